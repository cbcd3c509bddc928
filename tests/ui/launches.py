"""Views of a launch at the moments that matter, made by hand: what the tests and the preview show."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from tests.ui.parts import (
    GB,
    NOW,
    PROCESSES,
    REFUSALS,
    REFUSED,
    SERVER,
    STORY,
    Window,
    gpus,
    growth,
    line,
    phases,
    ramp,
    signs,
    story,
)
from tuimon.launch.events import Frame, RankStack, Stacks, ThreadStack, Unread
from tuimon.launch.steps import Advice, Do
from tuimon.launch.view import (
    Evidence,
    GrowthView,
    HealthView,
    LaunchView,
    LinkView,
    Missing,
    PhaseView,
    ProcessView,
    ServingView,
    Suspect,
    Verdict,
)

__all__ = [
    "GB",
    "NOW",
    "PROCESSES",
    "REFUSALS",
    "REFUSED",
    "SERVER",
    "STORY",
    "Window",
    "gpus",
    "growth",
    "line",
    "phases",
    "ramp",
    "signs",
    "story",
]
"""The parts that tests name as well."""


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
        advice=Advice((Do("stacks"), " to see which rank waits where")),
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
        advice=Advice((Do("stacks"), " to see which rank waits where")),
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
        advice=Advice(("lower --mem-fraction-static",)),
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
    verdict = Verdict(
        "waiting", NOW - 30, "for a launch on gpu-17", advice=Advice(("start the server; it is found by itself",))
    )
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
        view,
        verdict=replace(
            view.verdict,
            alarms=("useless_draft",),
            advice=Advice((Do("checkpoint"), ": compare the draft model's tensor names with the target's")),
        ),
        serving=ServingView(3, 0, 61.0, 1.0, NOW - 2),
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
        else replace(sign, visible=False, text="read once it goes quiet")
        if sign.name == "stacks"
        else sign
        for sign in view.signs
    )
    told = replace(view.verdict, advice=Advice(("Wait: it works.",)))
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
