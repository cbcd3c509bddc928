"""The ladder's steps from harmless to fatal, each with its cost and its risk, which are shown before it runs."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class Rung(Struct, frozen=True):
    """One step."""

    name: str
    cost: str
    risk: str
    asks: Literal[0, 1, 2] = 0
    """How many times the user is asked first."""
    action: str | None = None
    """The action that takes this step alone; None where only `diagnose` does."""


RUNGS = (
    Rung("processes and threads (/proc)", "22 ms", "none: nothing is touched"),
    Rung("kernel log (Xid, OOM, hung tasks)", "10 ms", "none: nothing is touched"),
    Rung(
        "NCCL RAS",
        "10 ms, up to 10 s where ranks are stopped",
        "none: it is on by default and made for this",
        action="collectives",
    ),
    Rung(
        "stacks of all ranks (py-spy, nonblocking)",
        "0.2 s for 8 ranks",
        "none: reads memory, stops nothing",
        action="stacks",
    ),
    Rung(
        "flight-recorder dump",
        "5 s",
        "every rank writes its recorded collectives into a file on the host; the launch goes on",
        1,
        "flight_recorder",
    ),
    Rung(
        "torch's debug server, if it is up",
        "1 s",
        "every rank's server thread prints its stacks; the launch goes on",
        1,
        "debug_server",
    ),
    Rung("stacks with native frames (py-spy --native)", "0.3 s per rank", "stops each rank for 0.1 s", 1, "native"),
    Rung(
        "SIGABRT to one rank",
        "1 s",
        "KILLS THE SERVER; prints stacks into its log where faulthandler is on",
        2,
        "abort",
    ),
)


def rung_of(action: str) -> Rung | None:
    """The step that an action takes."""
    return next((rung for rung in RUNGS if rung.action == action), None)
