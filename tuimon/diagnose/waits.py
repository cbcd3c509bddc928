"""What a stack waits in, told by its innermost known frame; where no Python frame tells it, by the kernel function."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from tuimon.launch.events import Frame

Kind = Literal[
    "collective", "rendezvous", "gpu", "lock", "queue", "socket", "pipe", "child", "file", "sleep", "compile", "events",
    "stopped",
]  # fmt: skip


class Wait(Struct, frozen=True):
    """Something that is waited for."""

    kind: Kind
    words: str
    """`in a collective: all_reduce`"""


class Rule(Struct, frozen=True):
    """One way of telling a wait by a frame: the function's bare name and a part of its file."""

    kind: Kind
    words: str
    """{} is the function's bare name."""
    names: str
    """Names separated by blanks; a trailing * stands for any ending; * alone is any name."""
    files: str = ""
    """Parts of the file's path separated by blanks, one must be in it; empty is any file."""

    def tells(self, name: str, file: str) -> bool:
        """Whether the frame is of this kind."""
        return name_fits(name, self.names) and (not self.files or any(part in file for part in self.files.split()))


@lru_cache(maxsize=4096)
def name_fits(name: str, names: str) -> bool:
    """Whether a function name is one of the names."""
    return any(name.startswith(word[:-1]) if word.endswith("*") else name == word for word in names.split())


# The first rule that fits a frame wins, so what says more stands first.
RULES = (
    Rule(
        "rendezvous", "in a rendezvous: {}",
        "rendezvous* _rendezvous* _tcp_rendezvous_handler _create_c10d_store _create_tcp_store init_process_group"
        " _store_based_barrier next_rendezvous",
        "torch distributed parallel_state",
    ),
    Rule(
        "collective", "in a collective: {}",
        "all_reduce* allreduce* all_gather* allgather* reduce_scatter* broadcast broadcast_* barrier monitored_barrier"
        " all_to_all* scatter gather reduce send_object_list recv_object_list recv_object irecv batch_isend_irecv"
        " recv_tensor_dict send_tensor_dict new_group _new_process_group_helper point_to_point_pyobj _all_reduce_*"
        " quick_all_reduce ncclCommInitRank* ncclCommWindowRegister ncclAllReduce ncclAllGather ncclBroadcast",
    ),
    Rule("collective", "in a collective: {}", "recv send isend", "torch/distributed distributed_c10d parallel_state"),
    Rule(
        "compile", "compiling: {}", "*",
        "torch/_inductor/ triton/compiler triton/backends torch/_dynamo/ cpp_extension tvm_ffi/cpp flashinfer/jit"
        " deep_gemm/jit",
    ),
    Rule(
        "gpu", "in a GPU sync: {}",
        "synchronize _cuda_synchronize item tolist cpu wait_stream wait_event current_stream_synchronize",
        "torch/ cuda",
    ),
    Rule("queue", "for a queue: {}", "get put dequeue enqueue acquire_read acquire_write", "queue shm_broadcast"),
    Rule("queue", "for a queue: {}", "wait_until_ready", "shm_broadcast"),
    Rule(
        "child", "for a child process: {}",
        "wait _wait communicate _communicate _try_wait check_output check_call waitpid join",
        "subprocess multiprocessing/popen multiprocessing/process",
    ),
    Rule(
        "pipe", "for a pipe: {}",
        "_recv _recv_bytes recv recv_bytes poll _poll wait _send", "multiprocessing/connection",
    ),
    Rule(
        "socket", "for a socket: {}",
        "recv* accept connect send* readinto create_connection getaddrinfo poll sock_recv",
        "socket zmq ssl http/client urllib3 io_struct",
    ),
    Rule(
        "lock", "for a lock: {}",
        "acquire __enter__ wait wait_for join _wait_for_tstate_lock result flock lock",
        "threading filelock synchronize concurrent/futures",
    ),
    Rule("events", "for events: {}", "select poll _run_once run_forever", "selectors asyncio uvloop"),
    Rule(
        "file", "reading a file: {}",
        "load_file _load_from_file load_from_file safe_open get_tensor safetensors_weights_iterator pt_weights_iterator"
        " np_cache_weights_iterator multi_thread_safetensors_weights_iterator buffered_multi_thread* memmap read_bytes",
    ),
    Rule("sleep", "asleep: {}", "sleep"),
)  # fmt: skip
DEPTH = 12
"""Frames from the innermost that may tell the wait; further out they only say which work was going on."""

_KERNEL: tuple[tuple[str, Kind, str], ...] = (
    (r"futex", "lock", "for a lock (futex)"),
    (r"do_wait$|kernel_wait|wait_consider", "child", "for a child process"),
    (r"pipe_read|pipe_write", "pipe", "for a pipe"),
    (r"wait_for_partner|fifo_open", "file", "for the other end of a FIFO"),
    (r"locks_lock|flock|fcntl_setlk|posix_lock", "lock", "for a file lock"),
    (r"sk_wait|wait_woken|tcp_|inet_csk|unix_stream|skb_wait|sock_|accept", "socket", "for a socket"),
    (r"request_wait_answer|fuse_", "file", "for a file system (FUSE)"),
    (r"nfs_|rpc_", "file", "for a file system (NFS)"),
    (r"folio_wait|wait_on_page|io_schedule|filemap|read_pages|wait_on_buffer", "file", "for storage"),
    (r"percpu_rwsem_wait|rwsem_down|jbd2_|blk_", "file", "for storage"),
    (r"ep_poll|epoll", "events", "for events (epoll)"),
    (r"poll_schedule|do_poll|do_select|do_sys_poll", "events", "for events (poll)"),
    (r"hrtimer_nanosleep|do_nanosleep|nanosleep", "sleep", "asleep (timed)"),
    (r"sigsuspend|do_sigtimedwait|sys_pause", "events", "for a signal"),
)  # fmt: skip
KERNEL = tuple((re.compile(pattern), kind, words) for pattern, kind, words in _KERNEL)


def waits_in(frames: Sequence[Frame], state: str | None = None, wchan: str | None = None) -> Wait | None:
    """What the thread waits in; None where neither frames nor kernel tell it (it runs, or nobody knows)."""
    if state in {"T", "t"}:
        return Wait("stopped", "stopped by a signal" if state == "T" else "stopped by a debugger")
    told = from_frames(frames)
    # A lock's frame may lie above a socket's in the kernel; a frame that names a collective says more than a futex.
    return told or (None if state == "R" else from_kernel(wchan))


def from_frames(frames: Sequence[Frame]) -> Wait | None:
    """A collective anywhere near the top says most; else the innermost frame that is known."""
    found = [wait for wait in map(from_frame, frames[:DEPTH]) if wait is not None]
    return next((wait for wait in found if wait.kind in {"collective", "rendezvous"}), found[0] if found else None)


def from_frame(frame: Frame) -> Wait | None:
    """What one frame says."""
    name = frame.name.rsplit(".", 1)[-1]
    file = (frame.file or "").replace("\\", "/")
    rule = next((rule for rule in RULES if rule.tells(name, file)), None)
    return Wait(rule.kind, rule.words.format(name)) if rule else None


def from_kernel(wchan: str | None) -> Wait | None:
    """What the kernel function says."""
    return next((Wait(kind, words) for pattern, kind, words in KERNEL if wchan and pattern.search(wchan)), None)
