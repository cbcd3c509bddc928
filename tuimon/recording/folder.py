"""A folder of a recorded launch (`samples.jsonl`, `server.log`, `command.txt`) as events; never its `truth.json`."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from tuimon.launch.events import (
    AnyEvent,
    Gpu,
    Health,
    HostLoad,
    Linked,
    LogStat,
    LogText,
    Process,
    Sample,
    ServerFound,
)  # fmt: skip
from tuimon.recording.errors import UnreadableRecording

EPOCH = 1_800_000_000.0
"""Seconds since the epoch at which a recording's t = 0 is put; any constant would do."""
MIB = 1024 * 1024
ENGINES = (
    ("sglang", ("sglang",)), ("vllm", ("vllm",)), ("trtllm", ("trtllm-serve",)),
    ("llamacpp", ("llama-server", ".gguf")), ("torchrun", ("torchrun", "torch.distributed.run")),
)  # fmt: skip
RANK = re.compile(
    r"^(?:sglang::+scheduler_?|VLLM::+)((?:(?:DP|PP|TP|EP|ATTN_TP)\d+_?)+|Engine[A-Za-z_0-9]*|Worker[A-Za-z_0-9]*)?$"
)


def events(path: Path) -> Iterator[AnyEvent]:
    """The recording as it would have been watched, in order of time. Raises UnreadableRecording."""
    samples = _samples(path)
    log = _log(path)
    server = _server(path, samples[0])
    yield Linked(at=EPOCH, host=path.name, detail="recording")
    yield server
    told = 0
    mtime = EPOCH
    for row in samples:
        at = EPOCH + float(row["t"])
        size = row.get("log_size")
        if size is not None and size > told:
            mtime = at
            yield LogText(at=at, host_time=at, offset=told, text=log[told:size])
            told = size
        health = _health(row.get("health"), at)
        if health is not None:
            yield health
        yield _sample(row, at, None if size is None else LogStat(path="server.log", size=size, mtime=mtime, inode=1))


def _samples(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    try:
        text = (path / "samples.jsonl").read_bytes()
    except OSError as error:
        raise UnreadableRecording(
            f"{path} cannot be read as a recording: {error.strerror}", "Give a folder with samples.jsonl"
        ) from error
    for line in text.splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            break  # a torn tail is read up to the tear
        if isinstance(row, dict) and isinstance(row.get("t"), int | float):
            rows.append(row)
    if not rows:
        raise UnreadableRecording(f"{path} holds no sample", "Give a folder with samples.jsonl")
    return rows


def _log(path: Path) -> bytes:
    try:
        return (path / "server.log").read_bytes()
    except OSError:
        return b""


def _server(path: Path, first: Mapping[str, Any]) -> ServerFound:
    argv = _argv(path)
    processes = first.get("procs") or []
    pids = {process["pid"] for process in processes}
    roots = [process for process in processes if process.get("ppid") not in pids]
    joined = " ".join(argv) or " ".join(str(process.get("cmd") or "") for process in processes)
    engine = next((engine for engine, words in ENGINES if any(word in joined for word in words)), None)
    readable = first.get("log_size") is not None
    return ServerFound(
        at=EPOCH,
        host_time=EPOCH,
        pid=roots[0]["pid"] if roots else 0,
        argv=argv,
        engine=engine,
        log="server.log" if readable else None,
        log_note=None if readable else "the recording does not tell how the log grew",
        port=_port(argv),
        started=EPOCH,
        age=0.0,
    )


def _argv(path: Path) -> tuple[str, ...]:
    try:
        lines = (path / "command.txt").read_text(errors="replace").splitlines()
    except OSError:
        return ()
    line = next((line for line in lines if line.strip()), "").removeprefix("Command:")
    try:
        return tuple(shlex.split(line))
    except ValueError:
        return tuple(line.split())


def _port(argv: tuple[str, ...]) -> int | None:
    for flag, value in pairwise(argv):
        if flag == "--port" and value.isdigit():
            return int(value)
    return None


def _health(health: Mapping[str, Any] | None, at: float) -> Health | None:
    if not health:
        return None
    error = health.get("error")
    if error is not None:
        error = {"ConnectionRefusedError": "refused", "TimeoutError": "timeout"}.get(str(error), str(error))
    return Health(
        at=at, host_time=at, address="127.0.0.1", path=health.get("path"), status=health.get("status"), error=error
    )


def _sample(row: Mapping[str, Any], at: float, log: LogStat | None) -> Sample:
    gpus = row.get("gpus")
    processes = row.get("procs")
    return Sample(
        at=at,
        host_time=at,
        mono=float(row["t"]),
        gpus=None if gpus is None else tuple(_gpu(gpu) for gpu in gpus),
        gpu_note="not recorded" if gpus is None else None,
        processes=None if processes is None else tuple(_process(process) for process in processes),
        log=log,
        host=HostLoad(),
    )


def _gpu(gpu: Mapping[str, Any]) -> Gpu:
    mib = gpu.get("mem_mib")
    held = gpu.get("procs")
    return Gpu(
        index=gpu["index"],
        util=gpu.get("util"),
        mem_util=gpu.get("mem_util"),
        mem_used=None if mib is None else int(mib * MIB),
        power=gpu.get("power_w"),
        energy=gpu.get("energy_j"),
        sm_clock=gpu.get("sm_mhz"),
        pcie_tx=gpu.get("pcie_tx_kbs"),
        pcie_rx=gpu.get("pcie_rx_kbs"),
        dram_active=gpu.get("dram_bw_pct"),
        sm_active=gpu.get("sm_active_pct"),
        procs=None if held is None else {int(pid): int(used * MIB) for pid, used in held.items()},
    )


def _process(process: Mapping[str, Any]) -> Process:
    rss = process.get("rss_kb")
    title = process.get("cmd")
    return Process(
        pid=process["pid"], ppid=process.get("ppid") or 0, state=process.get("state") or "S", name=process.get("comm"),
        title=title, rank=rank_of(title), cpu=process.get("cpu_s"),
        minor_faults=process.get("minflt"), major_faults=process.get("majflt"), rss=None if rss is None else rss * 1024,
        threads=process.get("threads"), thread_states=process.get("thread_states"),
        wchan=_clean(process.get("wchan")), syscall=_clean(process.get("syscall")),
        voluntary=process.get("vol_ctx"), involuntary=process.get("invol_ctx"),
        read_bytes=process.get("read_bytes"), rchar=process.get("rchar"), write_bytes=process.get("write_bytes"),
    )  # fmt: skip


def _clean(text: object) -> str | None:
    return str(text).strip() or None if text is not None else None


def rank_of(title: str | None) -> str | None:
    """The rank that a process title names: `sglang::scheduler_TP1` → TP1, `VLLM::Worker_TP1` → Worker_TP1."""
    match = RANK.match(title or "")
    if match is None:
        return None
    name = (match[1] or "scheduler").strip("_")
    return name.replace("_", " ") if re.match(r"^(?:DP|PP|TP|EP)\d", name) else name
