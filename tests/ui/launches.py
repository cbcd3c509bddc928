"""Views of a launch at the moments that matter, made by hand: what the tests and the preview show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from msgspec.structs import replace

from tuimon.launch.events import Frame, RankStack, Stacks, ThreadStack, Unread
from tuimon.launch.view import (
    Evidence,
    GpuView,
    GrowthView,
    HealthView,
    LaunchView,
    LinkView,
    LogLine,
    Missing,
    PhaseView,
    ProcessView,
    ServerView,
    ServingView,
    Severity,
    SignView,
    Suspect,
    Verdict,
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
        "15:26:57",
        None,
        "Loading safetensors checkpoint shards: 100% Completed | 64/64 [08:31<00:00,  7.98s/it]",
        "progress",
    ),
    ("15:26:57", "TP0", "Load weight end. type=KimiK25ForConditionalGeneration, avail mem=22.31 GB", "milestone"),
    ("15:26:59", "TP0", "KV Cache is allocated. #tokens: 412032", "milestone"),
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


def stall() -> LaunchView:
    """The moment that matters: eight ranks, silent for 4 m 12 s, TP3 is behind."""
    verdict = Verdict(
        state="stalled",
        since=NOW - 252,
        headline="after “CUDA graphs”, nothing alive",
        kind="host deadlock",
        phase="CUDA graphs",
        suspects=(Suspect("TP3", 41303, "waits in a socket while the others wait in a lock"),),
        evidence=(
            Evidence("log", 252, "log silent"),
            Evidence("GPU work", 253, "8 GPUs 0 % at idle power"),
            Evidence("host work", 252, "10 of 10 processes asleep"),
            Evidence("stacks", None, "stacks unmoved 3×"),
            Evidence("answers", None, "/model_info refused"),
        ),
        missing=(Missing("draft model load", "expected (speculative_algorithm=EAGLE3), not seen"),),
        unseen=("link traffic",),
        advice="press s to see which rank waits where",
    )
    return LaunchView(
        now=NOW,
        host="gpu-17",
        link=LinkView("up", NOW - 800),
        verdict=verdict,
        server=SERVER,
        data_age=1.0,
        phases=phases(stalled=True),
        growth=growth(252),
        gpus=gpus(suspect=3),
        gpu_note=None,
        signs=signs(252),
        processes=PROCESSES,
        health=REFUSED,
        serving=None,
        lines=story(),
        commands=("0.3 s  python3 -I -u -c …  (probe: samples once a second)",),
        probe_cost=0.4,
        usual_launches=5,
    )


def quiet() -> LaunchView:
    """Silent, but a compiler is at work."""
    verdict = Verdict("quiet", NOW - 14, "alive: cicc compiles at 100 % CPU", phase="CUDA graphs")
    view = stall()
    alive = tuple(
        replace(sign, last=NOW - 1, alive=True, text="cicc, 100 % CPU") if sign.name == "compilers" else sign
        for sign in signs(14)
    )
    running = PhaseView("CUDA graphs", "running", start=NOW - 73, count=9, total=23, rate=0.12, eta=117, usual=58)
    return replace(
        view,
        verdict=verdict,
        phases=(*phases()[:4], running, *phases()[5:]),
        growth=growth(14),
        gpus=gpus(0.02),
        signs=alive,
        processes=(*PROCESSES[:1], ProcessView("cicc", (41999,), "R", "0", 100.0, GB, 1, depth=1), *PROCESSES[2:]),
    )


def starting() -> LaunchView:
    """Weights load, with a bar."""
    verdict = Verdict("starting", NOW - 331, "loads weights: 41 of 64 shards", phase="weights")
    bar = PhaseView("weights", "running", start=NOW - 331, count=41, total=64, rate=0.124, eta=186, usual=480)
    coming = [PhaseView(phase.name, "expected") for phase in phases()[3:]]
    return replace(
        stall(),
        verdict=verdict,
        phases=(*phases()[:2], bar, *coming),
        growth=growth(2),
        gpus=gpus(0.0),
        signs=signs(1),
        lines=story(6),
    )


def spinning() -> LaunchView:
    """All GPUs at 100 %, none does any work."""
    verdict = Verdict(
        "spinning",
        NOW - 48,
        "in “CUDA graphs”: GPUs busy without work",
        kind="collective spin",
        phase="CUDA graphs",
        suspects=(Suspect("TP5", 41305, "at 0 % while its peers spin"),),
        certain=False,
        evidence=(
            Evidence("log", 48, "log silent"),
            Evidence("GPU work", 50, "8 GPUs 100 % busy, no memory traffic"),
        ),
        countdown="NCCL gives up in 9 m 12 s and kills the ranks",
        advice="press s to see which rank waits where",
    )
    busy = tuple(
        replace(gpu, util=100.0, power=119.0, word="100 % busy, no work", suspect=gpu.index == 5) for gpu in gpus(0.0)
    )
    return replace(stall(), verdict=verdict, gpus=busy, growth=growth(48), signs=signs(48), phases=quiet().phases)


def crashed() -> LaunchView:
    """A rank ran out of memory."""
    verdict = Verdict(
        "crashed",
        NOW - 21,
        "TP0 exited with 1",
        phase="KV cache",
        certain=True,
        suspects=(Suspect("TP0", 41300, "exited with 1"),),
        advice="lower --mem-fraction-static",
    )
    error = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has 2.31 GiB free"
    said = [
        *story(8),
        line(8, "15:30:49", "TP0", error, "fatal"),
        line(9, "15:30:50", None, "Received sigquit from a child process", "error"),
    ]
    failed = PhaseView("KV cache", "failed", seconds=1.2, note="out of memory")
    return replace(
        stall(),
        verdict=verdict,
        error=error,
        lines=Window(said),
        growth=growth(21),
        processes=(),
        gpus=gpus(0.0),
        phases=(*phases()[:3], failed, *[PhaseView(phase.name, "expected") for phase in phases()[4:]]),
        signs=signs(21),
    )


def serving() -> LaunchView:
    """Ready and at work."""
    verdict = Verdict("serving", NOW - 441, "serves")
    health = replace(
        REFUSED,
        error=None,
        status=200,
        latency=0.004,
        ready_at=NOW - 441,
        answered_at=NOW - 3,
        history=(*["refused"] * 20, *["open"] * 2, *["ok"] * 20),
    )
    done = tuple(PhaseView(phase.name, "done", seconds=phase.seconds or 9.0, usual=phase.usual) for phase in phases())
    return replace(
        stall(),
        verdict=verdict,
        health=health,
        phases=done,
        serving=ServingView(3, 0, 214.0, 2.8, NOW - 2),
        growth=growth(1),
        gpus=gpus(0.42),
        signs=signs(1),
    )


def nothing(host: str = "gpu-17") -> LaunchView:
    """Before anything is known."""
    return LaunchView(
        now=NOW,
        host=host,
        link=LinkView("connecting", NOW - 1, detail="ubuntu@10.1.230.174"),
        verdict=Verdict("waiting", NOW - 1, ""),
        server=None,
        data_age=None,
        phases=(),
        growth=GrowthView(None, None, (), 2.0, None, None),
        gpus=None,
        gpu_note=None,
        signs=(),
        processes=None,
        health=HealthView(None, None, None, None, None, None, ()),
        serving=None,
        lines=Window([]),
    )


def waiting() -> LaunchView:
    """The link is up, there is no server."""
    verdict = Verdict("waiting", NOW - 30, "for a launch on gpu-17", advice="start the server; it is found by itself")
    idle = tuple(replace(gpu, rank=None, mem_used=0) for gpu in gpus(0.0))
    return replace(nothing(), link=LinkView("up", NOW - 30), verdict=verdict, gpus=idle, data_age=0.4)


def unreachable() -> LaunchView:
    """The link broke."""
    link = LinkView("lost", NOW - 12, reason="link lost", next_try=NOW + 3)
    return replace(
        stall(), link=link, verdict=Verdict("unreachable", NOW - 12, "no data for 12 s: link lost"), data_age=12.0
    )


def refused() -> LaunchView:
    """The key is not accepted: trying again is pointless."""
    link = LinkView(
        "refused",
        NOW - 2,
        reason="no key was accepted for ubuntu@gpu-17",
        detail="load a key with ssh-add, or name one in ~/.ssh/config",
    )
    return replace(nothing(), link=link, verdict=Verdict("unreachable", NOW - 2, "no key was accepted"))


def useless_draft() -> LaunchView:
    """Ready, but the draft model does nothing."""
    view = serving()
    return replace(
        view, verdict=replace(view.verdict, alarms=("useless_draft",)), serving=ServingView(3, 0, 61.0, 1.0, NOW - 2)
    )


def stacks() -> Stacks:
    """Two groups: seven ranks in a barrier, TP3 in a lock."""
    package = "/usr/lib/python3.11/site-packages/sglang/srt/"
    base = [
        Frame("run_scheduler_process", package + "managers/scheduler.py", 2901),
        Frame("__init__", package + "managers/scheduler.py", 311),
        Frame("__init__", package + "speculative/eagle_worker.py", 142),
    ]
    wait = [
        *base,
        Frame("initialize", package + "model_executor/model_runner.py", 402),
        Frame("barrier", package + "distributed/parallel_state.py", 977),
        Frame("monitored_barrier", "/usr/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", 4711),
    ]
    odd = [
        *base,
        Frame("load_model", package + "model_executor/model_runner.py", 655),
        Frame("load_weights", package + "model_loader/loader.py", 511),
        Frame("acquire", "/usr/lib/python3.11/threading.py", 168),
    ]
    ranks = tuple(
        RankStack(
            41300 + rank,
            f"TP{rank}",
            (ThreadStack("MainThread", tuple(reversed(odd if rank == 3 else wait)), 41300 + rank),),
        )
        for rank in range(8)
    )
    unread = (Unread(41310, "detokenizer", "no right to read its memory (yama ptrace_scope=1)"),)
    return Stacks(
        at=NOW - 2,
        ranks=ranks,
        unread=unread,
        cost=0.19,
        saved="/home/me/.local/state/tuimon/stacks-155110.md",
        asked=True,
    )


def demo() -> LaunchView:
    """What `tuimon demo` shows after half a minute: a host with a long name, and eight H20."""
    view = starting()
    path = "/tmp/tuimon-demo-x_69v8w9/sglang_eagle3_v2.log"
    cards = tuple(replace(gpu, name="NVIDIA H20", mem_total=96 * GB, power=118.0 + gpu.index % 3) for gpu in gpus(0.0))
    ours = tuple(
        replace(sign, last=NOW, alive=True, text="Loading safetensors checkpoint shards:  64% Completed")
        if sign.name == "log"
        else replace(sign, visible=False, text="sampled only when a launch has gone quiet")
        if sign.name == "stacks"
        else sign
        for sign in view.signs
    )
    told = replace(view.verdict, advice="Wait: it works.")
    server = replace(SERVER, log=path, pid=18363, launch=1, started=NOW - 26)
    return replace(view, host="demo:silent-stall", server=server, gpus=cards, signs=ours, verdict=told)


def many_gpus(count: int) -> LaunchView:
    """A big node: one GPU in it spins without work, one is a suspect."""
    all_gpus = [
        replace(gpu, work=(gpu.index % 8) / 8, suspect=gpu.index == count - 3) for gpu in gpus(0.4, count=count)
    ]
    all_gpus[5] = replace(all_gpus[5], work=0.0, word="100 % busy, no work")
    return replace(stall(), gpus=tuple(all_gpus))


MOMENTS: dict[str, Callable[[], LaunchView]] = {
    "stall": stall,
    "quiet": quiet,
    "starting": starting,
    "spinning": spinning,
    "crashed": crashed,
    "serving": serving,
    "connecting": nothing,
    "waiting": waiting,
    "unreachable": unreachable,
    "refused": refused,
    "useless-draft": useless_draft,
    "demo": demo,
    "gpus-16": lambda: many_gpus(16),
    "gpus-64": lambda: many_gpus(64),
}
