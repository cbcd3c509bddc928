"""The demo's launch: real processes with SGLang's titles and log, a port that opens when all are ready, real hangs."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tuimon.demo.launch import Launch
from tuimon.demo.scenarios import SCENARIOS, find

PACE = "0.05"
"""20 times as fast as the demo is shown."""
PREFIX = re.compile(r"^\[(?P<ts>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?P<tags>(?: TP\d+)?)\] (?P<msg>.*)")
BAR = re.compile(
    r"(?P<desc>[^\r\n|]*?):?\s*(?P<pct>\d{1,3})%(?: Completed \| |\|.*?\| )(?P<n>[\d.]+[kMGT]?)/(?P<tot>[\d.]+[kMGT]?) "
    r"\[(?P<el>[\d:?]+)<(?P<eta>[\d:?]+), +(?P<rate>[^\]]+)\]"
)
LINES = {
    "args": r"^server_args=ServerArgs\(model_path='models/Kimi-K2.5', .*tp_size=8, .*speculative_algorithm='EAGLE3'",
    "dist": r"^Init torch distributed begin\.$",
    "distend": r"^Init torch distributed ends\. mem usage=-?[\d.]+ GB$",
    "load": r"^Load weight begin\. avail mem=[\d.]+ GB$",
    "loaded": r"^Load weight end\. type=(\w+), dtype=torch.bfloat16, avail mem=[\d.]+ GB, mem usage=-?[\d.]+ GB\.$",
    "kv": r"^KV Cache is allocated\. #tokens: \d+, KV size: [\d.]+ GB$",
    "pool": r"^Memory pool end\. avail mem=[\d.]+ GB$",
    "graph": r"^Capture cuda graph begin\. This can take up to several minutes\. avail mem=[\d.]+ GB$",
    "graphend": r"^Capture cuda graph end\. Time elapsed: [\d.]+ s\. mem usage=[\d.]+ GB\. avail mem=[\d.]+ GB\.$",
    "draftgraphend": r"^Capture draft cuda graph end\. Time elapsed: [\d.]+ s\. ",
    "extendend": r"^Capture draft extend cuda graph end\. Time elapsed: [\d.]+ s\. ",
    "summary": r"^max_total_num_tokens=\d+, ",
    "up": r"^INFO: +Uvicorn running on http://127\.0\.0\.1:\d+ ",
    "probe": r'^INFO: +\S+ - "GET /get_model_info HTTP/1\.1" 200 OK$',
    "prefill": r"^Prefill batch, #new-seq: \d+, #new-token: \d+, ",
    "decode": (
        r"^Decode batch, #running-req: \d+, .*?accept len: ([\d.]+), accept rate: [\d.]+, "
        r".*?gen throughput \(token/s\): [\d.]+, #queue-req: \d+"
    ),
    "ready": r"^The server is fired up and ready to roll!$",
}
PER_RANK = ("dist", "distend", "load", "loaded", "kv", "pool", "graph", "graphend")


class Process:
    """A process as /proc shows it."""

    def __init__(self, pid: int) -> None:
        stat = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        self.pid = pid
        self.state = stat[0].decode()
        self.parent = int(stat[1])
        self.cpu = int(stat[11]) + int(stat[12])
        self.comm = Path(f"/proc/{pid}/comm").read_text().strip()
        self.argv = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").decode().split("\0")


def tree(root: int) -> list[Process]:
    """Everything below a pid."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                found.append(Process(int(entry.name)))
            except (OSError, IndexError):
                continue
    below = {root}
    while more := [process for process in found if process.parent in below and process.pid not in below]:
        below |= {process.pid for process in more}
    return [process for process in found if process.pid in below - {root}]


def milestones(log: str) -> Counter[str]:
    """How often each line of SGLang's was written; every stamped line must have SGLang's prefix."""
    counts: Counter[str] = Counter()
    for segment in re.split(r"[\r\n]|(?=\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)", log):
        if segment.startswith("[20"):
            line = PREFIX.match(segment)
            assert line, segment
            counts.update(name for name, shape in LINES.items() if re.search(shape, line["msg"]))
        elif "%|" in segment or "% Completed" in segment:
            assert BAR.fullmatch(segment), segment
            counts["bar"] += 1
    return counts


async def until(true: Callable[[], bool], what: str, within: float = 20.0) -> None:
    """Wait until something is true."""
    deadline = time.monotonic() + within
    while not true():
        assert time.monotonic() < deadline, f"not within {within} s: {what}"
        await asyncio.sleep(0.05)


@asynccontextmanager
async def playing(scenario: str, pace: str = PACE) -> AsyncIterator[Launch]:
    """A launch that is stopped afterwards, with nothing left."""
    launch = await Launch.start(find(scenario), pace)
    try:
        yield launch
    finally:
        await launch.stop()
        assert not left(launch)


def left(launch: Launch) -> list[object]:
    """What a stopped launch has not cleaned up."""
    alive = [pid for pid in (launch.within, *launch.pids) if Path(f"/proc/{pid}").exists()]
    return [*alive, *tree(launch.within), *([launch.folder] if launch.folder.exists() else [])]


def resident(pid: int) -> int:
    """Bytes of memory."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found[1]) << 10


def output(pid: int) -> str:
    """Where a process's stderr goes."""
    return str(Path(f"/proc/{pid}/fd/2").resolve())


def ranks(launch: Launch) -> list[Process]:
    """The eight ranks."""
    return [Process(pid) for pid in launch.pids[1:9]]


def said(launch: Launch) -> Counter[str]:
    return milestones(launch.log.read_text())


def gpus(launch: Launch) -> list[tuple[int, int, float, float, list[int]]]:
    """What the stand-in NVML says of each GPU: utilisation, memory traffic, W, GiB used, pids."""
    program = (
        "import json, pynvml as n; n.nvmlInit()\n"
        "g = [n.nvmlDeviceGetHandleByIndex(i) for i in range(n.nvmlDeviceGetCount())]\n"
        "u = [n.nvmlDeviceGetUtilizationRates(x) for x in g]\n"
        "print(json.dumps([[r.gpu, r.memory, n.nvmlDeviceGetPowerUsage(x) / 1000,"
        " n.nvmlDeviceGetMemoryInfo(x).used / 2**30,"
        " [p.pid for p in n.nvmlDeviceGetComputeRunningProcesses(x)]] for r, x in zip(u, g)]))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", program], env={"PYTHONPATH": str(launch.folder)}, capture_output=True, check=True
    )
    return [tuple(gpu) for gpu in json.loads(done.stdout)]


def ask(launch: Launch, path: str) -> int | str:
    """The status of a path, or the reason why there is none."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{launch.port}{path}", timeout=5) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError as error:
        return str(error)


@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_every_launch_is_a_launcher_eight_ranks_and_a_detokenizer(scenario: str) -> None:
    async with playing(scenario) as launch:
        launcher = Process(launch.pids[0])
        assert "sglang.launch_server" in launcher.argv
        assert launcher.argv[launcher.argv.index("--tp-size") + 1] == "8"
        titles = [f"sglang::scheduler_TP{rank}" for rank in range(8)] + ["sglang::detokenizer"]
        await until(lambda: [Process(pid).argv[0] for pid in launch.pids[1:]] == titles, "SGLang's titles")
        assert {Process(pid).comm for pid in launch.pids[1:9]} == {"sglang::schedul"}
        assert all(Process(pid).parent == launch.pids[0] for pid in launch.pids[1:])
        assert {output(pid) for pid in launch.pids} == {str(launch.log)}


async def test_the_whole_launch_is_small() -> None:
    async with playing("silent-stall") as launch:
        await until(lambda: said(launch)["graphend"] == 8, "the end of the capture")
        assert sum(resident(pid) for pid in launch.pids) < 200 << 20


async def test_silent_stall_ends_after_the_target_and_the_draft_never_comes() -> None:
    async with playing("silent-stall") as launch:
        await until(lambda: said(launch)["graphend"] == 8, "the end of the capture")
        await asyncio.sleep(0.5)
        told = said(launch)
        assert told["args"] == 1
        assert {name: told[name] for name in PER_RANK} == dict.fromkeys(PER_RANK, 8)
        assert told["bar"] > 64
        assert not told["draftgraphend"]
        assert "Capture cuda graph end" in launch.log.read_text().rstrip().rsplit("\n", 1)[-1]
        assert {process.state for process in ranks(launch)} == {"S"}
        assert all(gpu[0] == 0 and 118 < gpu[2] < 123 for gpu in gpus(launch))
        assert [round(gpu[3]) for gpu in gpus(launch)] == [72, 72, 72, 70, 72, 72, 72, 72]


async def test_silent_stall_shows_two_groups_of_stacks_and_rank_3_is_the_odd_one() -> None:
    async with playing("silent-stall") as launch:
        await until(lambda: said(launch)["graphend"] == 8, "the end of the capture")
        await asyncio.sleep(0.5)
        stacks = []
        for pid in launch.pids[1:9]:
            dump = await asyncio.create_subprocess_exec(
                f"{Path(sys.executable).parent}/py-spy",
                "dump",
                "--nonblocking",
                "--json",
                "-p",
                str(pid),
                stdout=subprocess.PIPE,
            )
            threads = json.loads((await dump.communicate())[0])
            stacks.append([(frame["name"], frame["short_filename"], frame["line"]) for frame in threads[0]["frames"]])
        waiting = [stack for rank, stack in enumerate(stacks) if rank != 3]
        assert all(stack == waiting[0] for stack in waiting)
        chain = [frame[0].rpartition(".")[2] for frame in waiting[0]]
        assert chain[:3] == ["monitored_barrier", "barrier", "initialize"]
        assert {frame[0].rpartition(".")[2] for frame in stacks[3]} > {
            "load_weights",
            "load_model",
            "run_scheduler_process",
        }
        assert stacks[3][0][0].endswith("load_weights")


async def test_healthy_opens_its_port_only_when_every_rank_is_ready_and_then_serves() -> None:
    async with playing("healthy") as launch:
        await until(lambda: said(launch)["load"] == 8, "the load")
        assert "refused" in str(ask(launch, "/model_info"))
        await until(lambda: said(launch)["decode"] >= 2, "tokens")
        told = said(launch)
        assert {name: told[name] for name in PER_RANK} == {
            name: 8 if name.startswith("graph") else 16 for name in PER_RANK
        }
        assert (told["draftgraphend"], told["extendend"]) == (8, 8)
        assert (told["summary"], told["up"], told["probe"], told["ready"]) == (1, 1, 1, 1)
        for path, status in {"/model_info": 200, "/health": 200, "/metrics": 200, "/nothing": 404}.items():
            assert await asyncio.to_thread(ask, launch, path) == status, path
        lengths = [float(length) for length in re.findall(r"accept len: ([\d.]+)", launch.log.read_text())]
        assert min(lengths) > 2.5
        await until(lambda: all(gpu[0] > 60 and gpu[2] > 200 for gpu in gpus(launch)), "GPUs that decode")


async def test_collective_spin_burns_cpu_and_gpu_and_does_nothing() -> None:
    async with playing("collective-spin") as launch:
        await until(lambda: [gpu[0] for gpu in gpus(launch)] == [100] * 5 + [0] + [100] * 2, "the spin")
        await until(lambda: [process.state for process in ranks(launch)] == ["R"] * 5 + ["S"] + ["R"] * 2, "R and S")
        readings = gpus(launch)
        assert {gpu[1] for gpu in readings} == {0}
        assert all(gpu[2] < 123 for gpu in readings)
        before = ranks(launch)

        def spent() -> list[int]:
            return [now.cpu - then.cpu for now, then in zip(ranks(launch), before, strict=True)]

        # Other work on this machine comes first, so it may take a while; 100 ticks are a second of one core.
        await until(lambda: min(spent()[:5]) > 2, "burning CPU")
        assert spent()[5] == 0


async def test_rank_killed_leaves_a_zombie_and_a_silent_log() -> None:
    async with playing("rank-killed") as launch:
        await until(lambda: ranks(launch)[6].state == "Z", "the dead rank")
        await asyncio.sleep(0.3)
        assert [process.state for process in ranks(launch)] == ["S"] * 6 + ["Z", "S"]
        assert not re.search("dead|sigquit|Error|Traceback", launch.log.read_text())
        assert not said(launch)["graphend"]
        *_, used, pids = gpus(launch)[6]
        assert used == pytest.approx(0.6, abs=0.01)
        assert pids == []


async def test_slow_compile_is_silent_while_a_real_compiler_works() -> None:
    async with playing("slow-compile") as launch:
        await until(lambda: any(process.comm == "cicc" for process in tree(launch.within)), "cicc")
        names = [process.comm for process in tree(launch.pids[1])]
        assert {"ninja", "nvcc", "cicc"} <= set(names)
        size = launch.log.stat().st_size
        before = max(process.cpu for process in tree(launch.pids[1]))
        await until(lambda: max(process.cpu for process in tree(launch.pids[1])) > before + 10, "compiling")
        assert launch.log.stat().st_size == size
        assert not said(launch)["graphend"]


async def test_slow_compile_becomes_ready_in_the_end() -> None:
    async with playing("slow-compile", "0.01") as launch:
        await until(lambda: bool(said(launch)["ready"]), "ready")


async def test_dead_storage_puts_a_rank_into_uninterruptible_sleep_without_root() -> None:
    async with playing("dead-storage") as launch:
        await until(lambda: ranks(launch)[5].state == "D", "state D")
        await until(lambda: said(launch)["loaded"] == 7, "the other ranks")
        await asyncio.sleep(0.3)
        assert [process.state for process in ranks(launch)] == ["S"] * 5 + ["D"] + ["S"] * 2
        assert "TP5] Load weight end" not in launch.log.read_text()


async def test_useless_draft_serves_with_an_acceptance_length_of_1() -> None:
    async with playing("useless-draft") as launch:
        await until(lambda: said(launch)["decode"] >= 3, "decode lines")
        assert said(launch)["ready"] == 1
        assert set(re.findall(r"accept len: ([\d.]+), accept rate: ([\d.]+)", launch.log.read_text())) == {
            ("1.00", "0.25")
        }


async def test_nobody_else_gets_its_port_before_it_opens_it() -> None:
    """A launch is under way for 40 s, and a busy machine gives out thousands of ports meanwhile."""
    async with playing("healthy") as launch:
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", launch.port))
        with socket.socket() as other:  # as the server does it
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            other.bind(("127.0.0.1", launch.port))
