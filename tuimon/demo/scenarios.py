"""What the demo can play, and when: a launch of Kimi-K2.5 on 8 GPUs with an EAGLE-3 draft, and seven ways it can go."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from tuimon.demo.errors import UnknownPace, UnknownScenario

# Seconds for each phase, in the order in which a launch goes through them. "brisk" puts every scenario's trouble
# 30-40 s after the start; "real" is what such a launch takes (64 shards in 8.5 min, graphs in 58 s).
BRISK: Mapping[str, float] = {
    "imports": 1.0, "spawn": 1.5, "dist": 2.0, "load": 17.0, "kv": 1.0, "compile": 0.0, "capture": 9.0,
    "draft": 4.0, "draft_capture": 3.0, "warmup": 1.5,
}  # fmt: skip
REAL: Mapping[str, float] = {
    "imports": 26.0, "spawn": 20.0, "dist": 4.1, "load": 511.0, "kv": 2.0, "compile": 0.0, "capture": 58.0,
    "draft": 21.0, "draft_capture": 10.0, "warmup": 5.0,
}  # fmt: skip
READY = "ready"


class Scenario(Struct, frozen=True):
    """One way that the launch can go."""

    name: str
    line: str
    """What happens, in one line."""
    trouble: tuple[str, float] | None
    """Phase in which the trouble begins (or `ready`), and how far into it, 0-1; None where all goes well."""
    brisk: Mapping[str, float] = {}
    """Phases that take another time than `BRISK` says."""
    real: Mapping[str, float] = {}


class Phase(Struct, frozen=True):
    """When a phase runs, in seconds since the start."""

    begin: float
    length: float


SCENARIOS: Mapping[str, Scenario] = {
    scenario.name: scenario
    for scenario in (
        Scenario(
            "silent-stall",
            "weights load, then rank 3 waits in a lock and seven ranks wait for it; the draft model never comes",
            ("draft", 0.0),
        ),
        Scenario("healthy", "the launch becomes ready and serves some requests", None, {"load": 14.0}),
        Scenario(
            "collective-spin",
            "seven ranks spin in an all-reduce at 100 % GPU and CPU, rank 5 sleeps: busy, and dead",
            ("capture", 0.87),
        ),
        Scenario(
            "rank-killed", "rank 6 is killed while CUDA graphs are captured; nobody says a word", ("capture", 0.87)
        ),
        Scenario(
            "slow-compile",
            "the log is silent for minutes while nvcc compiles: slow, and alive",
            ("compile", 0.0),
            {"load": 26.0, "compile": 200.0},
            {"compile": 600.0},
        ),
        Scenario(
            "dead-storage",
            "rank 5's read of a weight shard never returns; the others wait for it",
            ("load", 0.953),
            {"load": 34.0},
        ),
        Scenario(
            "useless-draft",
            "ready and serving, but the draft model's acceptance length is 1.0",
            (READY, 0.0),
            {"load": 12.0, "capture": 8.0, "draft": 3.0},
        ),
    )
}


def find(name: str) -> Scenario:
    """The scenario with this name. Raises UnknownScenario."""
    try:
        return SCENARIOS[name]
    except KeyError:
        raise UnknownScenario(name, SCENARIOS) from None


def phases(scenario: Scenario, pace: str) -> dict[str, Phase]:
    """When each phase runs at this pace: `brisk`, `real`, or a factor on the brisk seconds. Raises UnknownPace."""
    lengths = {**REAL, **scenario.real} if pace == "real" else {**BRISK, **scenario.brisk}
    factor = 1.0 if pace in {"brisk", "real"} else _factor(pace)
    found = {}
    begin = 0.0
    for name, length in lengths.items():
        found[name] = Phase(round(begin, 3), round(length * factor, 3))
        begin += length * factor
    found[READY] = Phase(round(begin, 3), 0.0)
    return found


def trouble_at(scenario: Scenario, pace: str) -> float | None:
    """Seconds after the start at which the trouble begins; None where there is none."""
    if scenario.trouble is None:
        return None
    name, part = scenario.trouble
    phase = phases(scenario, pace)[name]
    return round(phase.begin + part * phase.length, 3)


def _factor(pace: str) -> float:
    try:
        factor = float(pace)
    except ValueError:
        raise UnknownPace(pace) from None
    if not 0 < factor < float("inf"):
        raise UnknownPace(pace)
    return factor
