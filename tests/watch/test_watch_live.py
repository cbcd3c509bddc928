"""LiveWatch: link, views, probe, looks at the stacks."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Any

import pytest

from tests.watch.scripted import SAMPLE, SERVER, Watched
from tuimon.config import Settings
from tuimon.hosts.errors import AccessDenied, HostError, HostKeyUnknown, HostUnreachable, PlaceGone
from tuimon.launch.events import (
    CommandRun,
    Linked,
    Stacks,
    Unlinked,
    UsualTimes,
)  # fmt: skip
from tuimon.probe.send import ProbeOptions


def test_a_view_comes_each_second_also_when_nothing_happens(watched: Watched) -> None:
    watched.start()
    watched.passes(10)
    assert watched.watch.view.now >= 1009
    assert watched.watch.wait_for(lambda view: view.now >= 1009, timeout=1) is watched.watch.view


def test_a_container_that_is_not_there_yet_is_looked_for_every_few_seconds(watched: Watched) -> None:
    """Its machine answers, and somebody is about to start it: half a minute of a launch would go unseen."""
    watched.host.connects = [PlaceGone("There is no container vllm there", "")] * 40
    watched.start()
    watched.passes(60)
    assert watched.host.tries >= 12


def test_an_unreachable_host_is_tried_again_with_growing_pauses_and_says_when(watched: Watched) -> None:
    watched.host.connects = [HostUnreachable("gpu-17 refuses", "Is sshd running?")] * 5
    watched.start()
    watched.passes(120)
    down = watched.seen(Unlinked)
    assert len(down) == 5
    assert down[0].reason == "gpu-17 refuses. Is sshd running?"
    assert all(event.next_try and 0 < event.next_try - event.at <= 30 for event in down)
    assert not any(event.refused for event in down)
    assert len(watched.seen(Linked)) == 1


@pytest.mark.parametrize("error", [HostKeyUnknown("unknown key"), AccessDenied("no key accepted")])
def test_a_refusal_is_said_once_and_tried_again_quietly_once_a_minute(watched: Watched, error: HostError) -> None:
    watched.host.connects = [error] * 3
    watched.start()
    watched.passes(59)
    assert watched.host.tries == 1
    watched.passes(70)
    assert watched.host.tries == 3
    (down,) = watched.seen(Unlinked)
    assert (down.refused, down.next_try) == (True, None)
    watched.passes(60)
    assert len(watched.seen(Linked)) == 1


def test_a_refused_host_is_tried_at_once_when_the_user_asks(watched: Watched) -> None:
    watched.host.connects = [AccessDenied("no key accepted")]
    watched.start()
    watched.watch.retry()
    watched.passes(0)
    assert len(watched.seen(Linked)) == 1


def test_the_probe_is_told_when_it_is_quiet_and_when_it_serves(watched: Watched) -> None:
    watched.start()
    assert b'{"do"' not in watched.host.channels[0].heard
    for state in ("quiet", "stalled", "starting", "serving"):
        watched.believer.state = state
        watched.passes(3)
    told = re.findall(rb'{"do".*}', watched.host.channels[0].heard)
    assert told == [
        b'{"do":"quiet","on":true}', b'{"do":"quiet","on":false}', b'{"do":"serving","metrics":true}',
    ]  # fmt: skip


def test_stacks_are_looked_at_when_the_judge_wants_them(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = _scripted_dump(monkeypatch)
    watched.start()
    watched.says(SERVER, SAMPLE)
    watched.believer.wants_stacks = True
    for _ in range(40):  # with samples, so that the probe counts as alive
        watched.passes(1)
        watched.says(SAMPLE)
    assert asked == [((42, "TP0"), False)] * 5
    times = [event.at for event in watched.seen(Stacks)]
    assert all(4 <= later - earlier < 5 for earlier, later in itertools.pairwise(times))


def test_no_stacks_are_looked_at_unasked_where_that_is_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = _scripted_dump(monkeypatch)
    watched = Watched(Settings(auto_diagnose=False))
    watched.start()
    watched.says(SERVER, SAMPLE)
    watched.believer.wants_stacks = True
    watched.passes(10)
    assert asked == []
    watched.watch.ask("stacks")
    watched.passes(1)
    assert asked == [((42, "TP0"), True)]
    watched.watch.stop()


def test_asking_without_a_process_says_so(watched: Watched) -> None:
    watched.start()
    watched.watch.ask("stacks")
    watched.passes(1)
    assert watched.findings() == ["There is no process whose stacks could be looked at"]


def test_an_action_while_the_link_is_down_says_so_and_tries_the_link(watched: Watched) -> None:
    watched.host.connects = [AccessDenied("no key accepted"), AccessDenied("no key accepted")]
    watched.start()
    watched.watch.ask("stacks")
    watched.passes(0)
    assert watched.findings() == ["stacks: there is no link to the host"]
    assert watched.host.tries == 2


def test_a_key_pressed_often_asks_once(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = _scripted_dump(monkeypatch)
    watched.start()
    watched.says(SERVER, SAMPLE)
    for _ in range(10):
        watched.watch.ask("stacks")
    watched.until(lambda: bool(watched.seen(Stacks)) and watched.watch.busy is None)
    taken = len(asked)
    assert 1 <= taken <= 2
    watched.watch.ask("stacks")
    watched.until(lambda: len(asked) == taken + 1)
    assert watched.seen(Stacks)[0].saved


def test_the_probe_gets_the_settings_and_the_key_and_what_the_host_says_of_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent: list[tuple[ProbeOptions, bytes | None]] = []

    def payload(options: ProbeOptions, nvml_source: bytes | None = None) -> bytes:
        sent.append((options, nvml_source))
        return b""

    monkeypatch.setattr("tuimon.probe.send.payload", payload)
    monkeypatch.setenv("KEY", "secret")
    watched = Watched(Settings(log="/l", port=30000, pid=7, engine="vllm", api_key_env="KEY", interval=2.0))
    watched.host.probe_nvml = b"stand-in"  # type: ignore[attr-defined]  # only the demo's host has these
    watched.host.probe_within = 99  # type: ignore[attr-defined]  # as above
    watched.start()
    watched.watch.stop()
    expected = ProbeOptions(
        interval=2.0, pid=7, port=30000, log="/l", engine="vllm", api_key="secret", within=99, patience=25.0
    )
    assert sent == [(expected, b"stand-in")]


def test_a_key_variable_that_is_not_set_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KEY", raising=False)
    watched = Watched(Settings(api_key_env="KEY"))
    watched.start()
    watched.watch.stop()
    assert watched.findings() == ["The variable KEY (api_key_env) is not set here"]


def test_events_that_are_not_the_hosts_are_taken_from_any_thread(watched: Watched) -> None:
    watched.watch.post(UsualTimes(phases={"weights": 1.0}, launches=1))
    watched.start()
    watched.watch.post(UsualTimes(phases={"weights": 2.0}, launches=2))
    watched.passes(0)
    assert [event.launches for event in watched.seen(UsualTimes)] == [1, 2]


def test_every_command_is_an_event(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    watched.start()
    watched.says(SERVER, SAMPLE)
    whys = [event.why for event in watched.seen(CommandRun)]
    assert whys == ["sample GPUs, processes and health", "follow the log"]


def _scripted_dump(monkeypatch: pytest.MonkeyPatch) -> list[tuple[tuple[int, str | None], bool]]:
    asked: list[tuple[tuple[int, str | None], bool]] = []

    async def dump(_: object, targets: Sequence[Any], *, asked: bool) -> Stacks:
        looked.append(((targets[0].pid, targets[0].rank), asked))
        return Stacks(asked=asked)

    looked = asked
    monkeypatch.setattr("tuimon.diagnose.stacks.dump", dump)
    return looked
