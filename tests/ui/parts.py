"""What the moments of launches.py are made of: a story, GPUs, processes, signs, phases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from tuimon.launch.view import (
    GpuView,
    GrowthView,
    HealthView,
    LogLine,
    PhaseView,
    ProcessView,
    ServerView,
    Severity,
    SignView,
)

NOW = 1_764_430_270.0
"""15:31:10 UTC: the tests run in UTC."""
GB = 2**30


class Window(Sequence[LogLine]):
    """Lines with absolute numbers."""

    def __init__(self, lines: Sequence[LogLine], first: int = 0) -> None:
        self._lines = lines
        self._first = first

    @property
    def first(self) -> int:
        return self._first

    @property
    def end(self) -> int:
        return self._first + len(self._lines)

    def __len__(self) -> int:
        return len(self._lines)

    def __getitem__(self, number: int) -> LogLine:  # type: ignore[override]  # absolute numbers only
        if not self._first <= number < self.end:
            raise IndexError(number)
        return self._lines[number - self._first]

    def slice(self, start: int, stop: int) -> Sequence[LogLine]:
        return self._lines[max(0, start - self._first) : max(0, stop - self._first)]


def line(number: int, clock: str, rank: str | None, text: str, severity: Severity = "info") -> LogLine:
    return LogLine(number=number, text=text, at=NOW, clock=clock, rank=rank, severity=severity)


STORY: tuple[tuple[str, str | None, str, Severity], ...] = (
    (
        "15:18:20",
        None,
        "server_args=ServerArgs(model_path='/data/Kimi-K2.5', tp_size=8, speculative_algorithm='EAGLE3')",
        "milestone",
    ),
    ("15:18:22", "TP0", "Init torch distributed begin.", "milestone"),
    ("15:18:26", "TP0", "Init torch distributed ends. elapsed=4.12 s, mem usage=1.21 GB", "milestone"),
    ("15:18:26", "TP0", "Load weight begin. avail mem=93.18 GB", "milestone"),
    ("15:22:31", "TP3", "The tokenizer has no chat template; falling back to a generic one", "warning"),
    (
        "15:24:02",
        None,
        "Loading safetensors checkpoint shards:  64% Completed | 41/64 [05:31<03:06,  8.09s/it]",
        "progress",
    ),
    (
        "15:25:57",
        None,
        "Loading safetensors checkpoint shards: 100% Completed | 64/64 [08:31<00:00,  7.98s/it]",
        "progress",
    ),
    ("15:25:57", "TP0", "Load weight end. type=KimiK25ForConditionalGeneration, avail mem=22.31 GB", "milestone"),
    ("15:25:59", "TP0", "KV Cache is allocated. #tokens: 412032", "milestone"),
    (
        "15:26:00",
        "TP0",
        "Capture cuda graph begin. This can take up to several minutes. avail mem=21.90 GB",
        "milestone",
    ),
    (
        "15:26:58",
        "TP0",
        "Capture cuda graph end. Time elapsed: 58.02 s. mem usage=2.10 GB. avail mem=19.80 GB.",
        "milestone",
    ),
)


def story(count: int = len(STORY)) -> Window:
    return Window([line(number, *said) for number, said in enumerate(STORY[:count])])


def ramp(count: int, busy: int, quiet: int) -> tuple[float | None, ...]:
    work = [0.2, 0.35, 0.8, 0.65, 0.9, 0.7, 0.3][: max(0, busy)]
    return (*([None] * max(0, count - busy - quiet)), *work, *([0.0] * quiet))


def gpus(work: float | None = 0.0, *, suspect: int | None = None, count: int = 8) -> tuple[GpuView, ...]:
    return tuple(
        GpuView(
            index=index,
            rank=f"TP{index}",
            work=work,
            util=work * 100 if work is not None else None,
            mem_used=(69 if index == suspect else 71) * GB,
            mem_total=95 * GB,
            power=86.0 + index % 4 if not work else 310.0 + index,
            power_limit=700.0,
            temperature=30 + index % 3,
            history=ramp(40, 7, 12),
            word=None,
            suspect=index == suspect,
            name="NVIDIA H200",
            sm_clock=1980,
            pids=(41300 + index,),
        )
        for index in range(count)
    )


SERVER = ServerView(
    pid=41231,
    engine="sglang",
    version="0.5.6",
    model="/data/models/Kimi-K2.5",
    log="/data/eagle3/sglang_eagle3_v2.log",
    log_note=None,
    address="10.1.230.174",
    port=30000,
    started=NOW - 842,
    shape="tp 8 · EAGLE3",
    ranks=tuple(f"TP{index}" for index in range(8)),
    launch=3,
    argv=(
        *("python", "-m", "sglang.launch_server", "--model-path", "/data/models/Kimi-K2.5", "--tp-size", "8"),
        *("--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", "/data/eagle3/draft"),
    ),
)


def growth(silent: float) -> GrowthView:
    buckets = (
        None,
        None,
        *[float(x) for x in (900, 2400, 3800, 8200, 15000, 9100, 8800, 7000, 2000, 400, 350, 1900, 420)] * 2,
    )
    return GrowthView(
        total=1_204_118,
        rate=0.0 if silent > 5 else 812.0,
        buckets=(*buckets, *[0.0] * 20),
        bucket=2.0,
        last_growth=NOW - silent,
        last_line=NOW - silent,
    )


def signs(age: float) -> tuple[SignView, ...]:
    def sign(name: str, last: float | None, text: str, *, visible: bool = True) -> SignView:
        return SignView(
            name=name, last=None if last is None else NOW - last, visible=visible, text=text, alive=(last or 99) < 4
        )

    return (
        sign("log", age, ""),
        sign("GPU work", age + 1, "0 % everywhere" if age > 4 else "38 % on 8 GPUs"),
        sign("GPU memory", age + 1, ""),
        sign("link traffic", None, "not read", visible=False),
        sign("disk reads", age + 64, "0 B/s"),
        sign("host work", age, "0.4 % CPU, futex" if age > 4 else "96 % CPU, 812 faults/s"),
        sign("compilers", None, ""),
        sign("network", None, ""),
        sign("answers", None, "refused"),
        sign("stacks", None, "unmoved in 3 looks"),
    )


PROCESSES = (
    ProcessView("scheduler TP[0-2,4-7]", tuple(range(41300, 41307)), "S", "futex_wait_queue", 0.0, 497 * 10**9, 214),
    ProcessView("scheduler TP3", (41303,), "S", "sk_wait_data", 0.0, 69 * 10**9, 210, suspect=True),
    ProcessView("detokenizer", (41310,), "S", "ep_poll", 0.0, GB // 2, 40),
    ProcessView("launcher 41231", (41231,), "S", "pipe_read", 0.0, GB, 88),
)
REFUSALS: tuple[Literal["refused"], ...] = ("refused",) * 40
REFUSED = HealthView(
    address="127.0.0.1:30000",
    path="/model_info",
    last=NOW - 3,
    status=None,
    error="refused",
    latency=None,
    history=("gap", *REFUSALS[:30]),
)


def phases(*, stalled: bool = False) -> tuple[PhaseView, ...]:
    done = (
        PhaseView("arguments", "done", seconds=0.8),
        PhaseView("distributed init", "done", seconds=4.1, usual=4.0),
        PhaseView("weights", "done", count=64, total=64, seconds=511, usual=480),
        PhaseView("KV cache", "done", seconds=2.0),
        PhaseView("CUDA graphs", "done", count=23, total=23, seconds=58, usual=58),
    )
    draft = (
        PhaseView("draft model", "missing", start=NOW - 252, usual=21)
        if stalled
        else PhaseView("draft model", "expected")
    )
    return (*done, draft, PhaseView("warm-up", "expected"), PhaseView("ready", "expected"))
