"""The launch in a container that nobody saw run."""

from __future__ import annotations

import pytest

from tuimon.hosts.ending import Ending
from tuimon.launch.events import ServerFound
from tuimon.watch import former


@pytest.mark.parametrize(
    ("began", "started", "another"),
    [
        (100.0, None, False),  # nobody knows: then it is the one that we saw
        (None, 100.0, False),
        (100.0, 99.2, False),  # an engine notes the start a moment later
        (100.0, 160.0, False),  # started by hand, in a container that was there for something else
        (100.0, 40.0, True),  # the container was started again meanwhile, and ended again
    ],
)
def test_which_launch_an_end_is_of(began: float | None, started: float | None, another: bool) -> None:
    assert former.is_another(Ending(1, began=began), ServerFound(pid=1, started=started)) is another


def test_an_end_is_that_of_a_launch_where_none_was_seen() -> None:
    assert former.is_another(Ending(1), None)


def test_what_an_engine_tells_of_a_launch_holds_no_secret() -> None:
    argv = ("vllm", "serve", "https://user:hush@hub/model", "--port", "9000", "--api-key", "hush")
    told = former.server(Ending(1, began=100.0, argv=argv))
    assert (told.pid, told.engine, told.port, told.started) == (1, "vllm", 9000, 100.0)
    assert told.model == "https://***@hub/model"
    assert "hush" not in repr(told)


def test_an_argument_list_that_is_no_server_is_a_launch_all_the_same() -> None:
    told = former.server(Ending(1, argv=("sh", "-c", "vllm serve /model")))
    assert (told.engine, told.model, told.argv) == (None, None, ("sh", "-c", "vllm serve /model"))
