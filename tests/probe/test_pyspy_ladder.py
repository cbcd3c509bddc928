"""`d`: all harmless looks at once on real hung processes, and one report of them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

from tests.probe.hung import Hung
from tuimon.diagnose import collectives, kernel, ladder, report
from tuimon.diagnose.rungs import RUNGS
from tuimon.diagnose.targets import Target
from tuimon.hosts.errors import HostError
from tuimon.hosts.host import Completed
from tuimon.hosts.local import LocalHost
from tuimon.launch.events import CollectiveCount, Collectives, Finding, Linked, ServerFound, Stacks
from tuimon.launch.state import Launch
from tuimon.launch.view import LaunchView

NOW = 1_800_000_000.0
ARGV = ("python3", "-m", "sglang.launch_server", "--tp", "2", "--api-key", "sk-very-secret-value-123")


def view() -> LaunchView:
    launch = Launch("gpu-17")
    launch.apply(Linked(at=NOW - 61, host="gpu-17"))
    launch.apply(ServerFound(at=NOW - 60, pid=7, argv=ARGV, engine="sglang", version="0.5.6"))
    return launch.snapshot(NOW)


def test_the_harmless_rungs_run_side_by_side_and_say_what_they_could_not_read(tmp_path: Path) -> None:
    hung = Hung(tmp_path)
    try:
        ranks = [hung.start("all_reduce"), hung.start("load_weights")]
        hung.settle("S", "S")
        targets = [Target(process.pid, f"TP{number}") for number, process in enumerate(ranks)]
        found = asyncio.run(ladder.climb(LocalHost(), [*targets, Target(999_999_999, "TP2")], server=ranks[0].pid))
    finally:
        hung.end()

    assert [item.rank for item in found.stacks.ranks] == ["TP0", "TP1"]
    assert "TP2 (pid 999999999): the process is gone" in found.unread
    text = report.markdown(view(), found)
    assert text.startswith("# SGLang 0.5.6 on gpu-17: ")
    assert "TP0 waits in a collective: all_reduce" in text
    assert "ODD ONE OUT" in text
    assert "TP2 (pid 999999999): the process is gone" in text


def test_a_report_holds_no_secret_and_foreign_text_is_no_markup() -> None:
    finding = Finding(source="kernel", kind="xid", text="Xid 79 <img src=x> [a](b)", fix="Reboot")
    counts = Collectives(source="NCCL RAS", counts=(CollectiveCount("TP0", "0x1", 3),), text="``` x\n```` y")
    found = ladder.Diagnosis(Stacks(), counts, (finding,), ("stacks: none",), 0.1)
    suspicious = msgspec.structs.replace(view(), error="bad # heading\x1b[31m")

    text = report.markdown(suspicious, found)

    assert "very-secret" not in text
    assert "--api-key" in text
    assert "\\<img src=x\\> \\[a\\](b)" in text
    assert "\x1b" not in text
    assert "`````\n``` x\n```` y\n`````" in text


class Refuses(LocalHost):
    """A host that refuses every further channel."""

    async def run(self, *_: object, **__: object) -> Completed:
        raise HostError("the host allows no more channels", "Close another session")


def test_a_rung_that_fails_does_not_stop_the_others() -> None:
    found = asyncio.run(ladder.climb(Refuses(), [Target(1, "TP0")]))
    assert "stacks: the host allows no more channels. Close another session" in found.unread
    assert found.collectives == collectives.nothing("not asked")
    assert found.findings == kernel.parse("")


def test_what_can_kill_asks_twice_and_what_can_pause_asks_once() -> None:
    assert [rung.asks for rung in RUNGS] == [0, 0, 0, 0, 1, 1, 1, 2]
    assert "KILLS THE SERVER" in RUNGS[-1].risk
