"""A recording goes on where a host's wall clock jumped: the server that is told anew is the same one."""

from __future__ import annotations

import pytest

from tuimon.launch.events import ServerFound
from tuimon.recording.opening import Opening


@pytest.mark.parametrize("jump", [0.0, 0.01, 3600.0, -3600.0])
def test_a_server_told_again_by_another_clock_is_the_same(jump: float) -> None:
    opening = Opening()
    first = ServerFound(pid=41, started=1_700_000_000.0, ticks=4711)
    assert not opening.same(first)
    opening.remember(first)
    assert opening.same(ServerFound(pid=41, started=1_700_000_000.0 + jump, ticks=4711))


def test_another_start_under_the_same_pid_is_another_launch() -> None:
    opening = Opening()
    opening.remember(ServerFound(pid=1, started=1_700_000_000.0, ticks=4711))
    assert not opening.same(ServerFound(pid=1, started=1_700_000_000.0, ticks=5000))
