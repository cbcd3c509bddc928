"""What py-spy prints is read as it is, and anything else is survived."""

from __future__ import annotations

import ast
import contextlib
import json
import re
import sys
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tuimon.diagnose
from tuimon.diagnose import stacks
from tuimon.diagnose.errors import BadDump
from tuimon.diagnose.failures import About, reason
from tuimon.diagnose.groups import group
from tuimon.diagnose.pyspy import MAX_FRAMES, parse_json, parse_text
from tuimon.diagnose.targets import Target, choose
from tuimon.diagnose.waits import waits_in
from tuimon.launch.events import Frame, Process, RankStack, Stacks, ThreadStack

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
SAMPLES = SHARED / "reference" / "samples"
RECORDINGS = SHARED / "recordings"
needs_samples = pytest.mark.skipif(not SAMPLES.exists(), reason="the reference samples are not beside the repository")
ROOT = About("x86_64", 0, None, (1 << 41) - 1)
USER = About("x86_64", 1000, "1", 0)
SEEN = {"state": "S", "wchan": "futex_do_wait", "syscall": "202", "tracer": 0, "uid": 1000}


@needs_samples
def test_the_json_of_a_deadlocked_rank() -> None:
    threads = parse_json((SAMPLES / "pyspy_json_bad_rank.json").read_bytes())
    assert threads is not None
    assert [thread.name for thread in threads] == ["kv-writer", "watchdog", "MainThread"]
    assert threads[-1].tid == 16947
    assert threads[-1].frames[0] == Frame("ModelRunner.go_wrong", "/app/mock_server.py", 26)


@needs_samples
def test_a_gil_held_in_c_is_kept() -> None:
    threads = parse_json((SAMPLES / "pyspy_json_gil_held_in_c.json").read_bytes())
    assert threads is not None
    assert [(thread.active, thread.owns_gil) for thread in threads if thread.owns_gil] == [(False, True)]


@needs_samples
def test_native_frames_show_their_library_instead_of_a_file() -> None:
    threads = parse_json((SAMPLES / "pyspy_native_json_sample.json").read_bytes())
    assert threads
    assert any(frame.file and ".so" in frame.file for thread in threads for frame in thread.frames)


@needs_samples
def test_the_text_form_gives_the_same_main_thread() -> None:
    threads = parse_text((SAMPLES / "pyspy_text_bad_rank.txt").read_text())
    assert threads[-1].name == "MainThread"
    assert threads[-1].frames[0] == Frame("ModelRunner.go_wrong", "mock_server.py", 26)


@needs_samples
def test_eight_ranks_of_the_sample_give_the_groups_that_are_printed_beside_it() -> None:
    groups = group(Stacks(ranks=tuple(ranks_in(SAMPLES / "pyspy_dump_subprocesses_deadlock.txt"))))
    peers = [(item.label, item.odd, item.waits_in) for item in groups if item.peers]
    assert peers == [("TP3", True, None), ("TP[0-2,4-7]", False, "in a collective: all_reduce")]


def ranks_in(path: Path) -> list[RankStack]:
    """The processes of a text dump, named as the probe names them."""
    found = []
    for part in re.split(r"(?m)^(?=Process \d+: )", path.read_text(errors="replace")):
        head = re.match(r"Process (\d+): (.*)", part)
        if head:
            title = re.search(r"(?:scheduler_|Worker_)((?:[A-Z]+\d+_?)+)", head[2])
            name = title[1].replace("_", " ") if title else "other"
            found.append(RankStack(int(head[1]), name, parse_text(part)))
    return found


@pytest.mark.parametrize(
    ("recording", "label", "waits"),
    [
        ("sglang-tp2-sigstop-load", "TP0", "in a collective: monitored_barrier"),
        ("sglang-tp2-sigstop-graph", "TP0", "in a collective: barrier"),
        ("sglang-tp2-sigstop-serving", "TP0", "in a collective: broadcast"),
    ],
)
def test_recorded_hangs_name_the_collective_that_the_waiting_rank_is_in(recording: str, label: str, waits: str) -> None:
    folder = RECORDINGS / recording
    if not folder.exists():
        pytest.skip(f"{folder} is not beside the repository")
    groups = group(Stacks(ranks=tuple(rank for path in sorted(folder.glob("pyspy_*.txt")) for rank in ranks_in(path))))
    waiting = {item.label: item for item in groups if item.peers}
    assert waiting[label].waits_in == waits
    assert not waiting[label].odd
    assert all(item.odd for name, item in waiting.items() if name != label)


@pytest.mark.skipif(not RECORDINGS.exists(), reason="the recordings are not beside the repository")
def test_every_recorded_dump_can_be_read_and_grouped() -> None:
    for path in RECORDINGS.glob("*/pyspy_*.txt"):
        ranks = ranks_in(path)
        assert "Thread" not in path.read_text() or any(rank.threads for rank in ranks), path
        group(Stacks(ranks=tuple(ranks)))


def test_a_runaway_recursion_is_cut_in_the_middle() -> None:
    frames = [{"name": f"f{n}", "filename": "x.py", "line": 1} for n in range(50_000)]
    threads = parse_json(json.dumps([{"thread_name": "MainThread", "frames": frames}]).encode())
    assert threads is not None
    assert len(threads[0].frames) == MAX_FRAMES + 1
    assert threads[0].frames[-1].name == "f49999"


def test_names_from_a_strangers_memory_lose_their_escape_codes() -> None:
    threads = parse_json(
        b'[{"thread_name": "a\\u001b[31m", "frames": [{"name": "x\\u009b2J\\n", "filename": "y\\u0000"}]}]'
    )
    assert threads is not None
    assert (threads[0].name, threads[0].frames[0].name, threads[0].frames[0].file) == ("a�[31m", "x�2J�", "y�")


@given(st.binary(max_size=300))
def test_any_bytes_are_survived(output: bytes) -> None:
    parse_json(output)
    parse_text(output.decode("utf-8", "replace"))
    with contextlib.suppress(BadDump):
        stacks.read_answer(output)


NAMES = ["thread_name", "frames", "name", "filename", "line", "os_thread_id", "active", "owns_gil", "module", "inner"]
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(values, max_size=3))
def test_any_json_is_survived(found: list[object]) -> None:
    parse_json(json.dumps(found).encode())


head = st.fixed_dictionaries({"pid": st.just(5), "exit": st.just(0) | values, "error": values, "proc": values})


@given(head, values)
def test_any_answer_from_the_host_becomes_stacks_or_reasons(said: dict[str, object], inner: object) -> None:
    body = zlib.compress(b'[{"thread_name": "MainThread", "os_thread_id": 9, "frames": [{"name": "f"}]}]')
    frames = b'{"about": true, "length": 0}\n' + json.dumps({**said, "length": len(body)}).encode() + b"\n" + body
    found = stacks.assemble(stacks.read_answer(frames), [Target(5, "TP0")], asked=True)
    assert len(found.ranks) + len(found.unread) == 1
    seen = {"about": True, "length": 0, "binaries": inner, "yama": inner, "uid": inner, "capabilities": inner}
    stacks.read_answer(json.dumps(seen).encode() + b"\n")


def test_an_answer_that_breaks_off_keeps_what_came_and_says_so() -> None:
    body = zlib.compress(b'[{"thread_name": "MainThread", "frames": [{"name": "f"}]}]')
    frame = json.dumps({"pid": 5, "exit": 0, "error": "", "proc": {}, "length": len(body)}).encode() + b"\n" + body
    torn = b'{"about": true, "length": 0}\n' + frame + frame.replace(b'"pid": 5', b'"pid": 6')[:-4]

    found = stacks.assemble(stacks.read_answer(torn), [Target(5, "TP0"), Target(6, "TP1")], asked=False)

    assert [rank.rank for rank in found.ranks] == ["TP0"]
    assert [(item.rank, item.reason) for item in found.unread] == [("TP1", "the answer broke off")]


def test_a_dump_that_unpacks_to_gigabytes_is_cut() -> None:
    assert stacks.unpack(zlib.compress(b" " * (64 << 20))) is None


DENIED = "Caused by: 0: Permission denied (os error 13)"
GONE = "Error: Failed to get process executable name.\nCaused by: 0: No such file or directory (os error 2)"
OTHERS = {**SEEN, "uid": 7}


@pytest.mark.parametrize(
    ("error", "seen", "about", "begins"),
    [
        ("gone", {}, USER, "the process is gone"),
        ("zombie", {"state": "Z"}, USER, "a zombie"),
        (GONE, {}, ROOT, "the process is gone"),
        (DENIED, SEEN, USER, "no right to read it: kernel.yama.ptrace_scope is 1"),
        (DENIED, OTHERS, USER, "no right to read it: it belongs to uid 7, we are uid 1000"),
        ("Permission Denied: Try running again with elevated permissions", OTHERS, USER, "no right to read it"),
        (DENIED, SEEN, About("x", 0, None, 0), "no right to read it: we are root without CAP_SYS_PTRACE"),
        (DENIED, SEEN, ROOT, "no right to read it: it has more capabilities"),
        ("Error: Failed to find python version from target process", SEEN, ROOT, "not a Python process"),
        ("Error: Unsupported version of Python: 3.16.0", SEEN, ROOT, "a Python that this py-spy does not know"),
        ("/mnt/py-spy: Permission denied", SEEN, ROOT, "py-spy may not be executed there (noexec)"),
        ("no py-spy", SEEN, ROOT, "no py-spy on the host"),
        ("\x1b[31mthread panicked\n", SEEN, ROOT, "�[31mthread panicked"),
        ("", SEEN, ROOT, "py-spy ended with 1 and said nothing"),
    ],
)
def test_each_failure_says_what_to_do_and_what_proc_still_shows(
    error: str, seen: dict[str, object], about: About, begins: str
) -> None:
    text = reason(error, 1, seen, about)
    assert text.startswith(begins)
    call = "futex" if about.machine == "x86_64" else "202"
    assert not seen.get("wchan") or text.endswith(
        f"; /proc shows: state S (asleep), sleeps in futex_do_wait, system call {call}"
    )


@pytest.mark.parametrize(
    ("wchan", "words"),
    [
        ("futex_wait_queue", "for a lock (futex)"),
        ("wait_woken", "for a socket"),
        ("anon_pipe_read", "for a pipe"),
        ("do_wait", "for a child process"),
        ("locks_lock_inode_wait", "for a file lock"),
        ("fcntl_setlk", "for a file lock"),
        ("wait_for_partner", "for the other end of a FIFO"),
        ("request_wait_answer", "for a file system (FUSE)"),
        ("folio_wait_bit_common", "for storage"),
        ("percpu_rwsem_wait", "for storage"),
        ("do_epoll_wait", "for events (epoll)"),
        ("poll_schedule_timeout.constprop.0", "for events (poll)"),
        ("hrtimer_nanosleep", "asleep (timed)"),
        ("0", None),
    ],
)
def test_where_no_python_frame_tells_it_the_kernel_does(wchan: str, words: str | None) -> None:
    found = waits_in([Frame("step", "/app/x.py", 1)], "S", wchan)
    assert (found.words if found else None) == words


@pytest.mark.parametrize(
    ("name", "file", "words"),
    [
        ("GroupCoordinator.barrier", "sglang/srt/distributed/parallel_state.py", "in a collective: barrier"),
        ("_rendezvous_handler", "torch/distributed/rendezvous.py", "in a rendezvous: _rendezvous_handler"),
        ("Event.synchronize", "torch/cuda/streams.py", "in a GPU sync: synchronize"),
        ("Condition.wait", "/usr/lib/python3.11/threading.py", "for a lock: wait"),
        ("Queue.get", "multiprocessing/queues.py", "for a queue: get"),
        ("Popen.communicate", "subprocess.py", "for a child process: communicate"),
        ("Connection._recv", "multiprocessing/connection.py", "for a pipe: _recv"),
        ("Socket.recv_pyobj", "zmq/sugar/socket.py", "for a socket: recv_pyobj"),
        ("safetensors_weights_iterator", "vllm/x.py", "reading a file: safetensors_weights_iterator"),
        ("compile_to_fn", "torch/_inductor/graph.py", "compiling: compile_to_fn"),
        ("step", "app.py", None),
    ],
)
def test_the_innermost_known_frame_tells_the_wait(name: str, file: str, words: str | None) -> None:
    found = waits_in([Frame(name, file, 1)], "S", None)
    assert (found.words if found else None) == words


def test_a_collective_says_more_than_the_lock_inside_it() -> None:
    frames = [Frame("Condition.wait", "threading.py", 1), Frame("barrier", "torch/distributed/distributed_c10d.py", 1)]
    found = waits_in(frames, "S", "futex_do_wait")
    assert found is not None
    assert found.words == "in a collective: barrier"


def test_ranks_are_looked_at_first_and_the_launcher_last() -> None:
    def process(pid: int, title: str, rank: str | None = None) -> Process:
        return Process(pid, 1, "S", title=title, rank=rank, started=pid * 10.0)

    tree = [
        process(1, "python3 -m sglang.launch_server --tp 12"),
        process(2, "sglang::detokenizer"),
        process(3, "/usr/bin/python -c from multiprocessing.resource_tracker import main"),
        process(4, "nvcc kernel.cu"),
        *(process(10 + n, f"sglang::scheduler_TP{n}", f"TP{n}") for n in reversed(range(12))),
    ]
    found = choose(tree, launcher=1)

    assert [item.rank for item in found] == [*(f"TP{n}" for n in range(12)), "detokenizer", "launcher"]
    assert found[0] == Target(10, "TP0", 100.0)


def test_programs_for_the_host_are_python_3_6_and_need_only_the_standard_library() -> None:
    folder = Path(tuimon.diagnose.__file__).parent / "on_host"
    for path in folder.glob("*.py"):
        tree = ast.parse(path.read_text(), feature_version=(3, 6))
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names | {"tuimon"}, path
    assert b"tuimon." not in stacks.program()


def test_a_thread_seen_from_outside_a_container_gets_its_host_id_and_true_state() -> None:
    inner = {"1": [2736, "R"]}
    known = stacks.outer_thread(ThreadStack("MainThread", (), tid=1, active=True), inner)
    unknown = stacks.outer_thread(ThreadStack("other", (), tid=6, active=True), inner)
    assert (known.tid, known.active, unknown.tid, unknown.active) == (2736, True, 6, None)
