"""A recording on the screen: the bar below the board, and the keys that move in time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from tests.ui import launches
from tests.ui.stage import Cranked, Stage
from tuimon.config import Settings
from tuimon.launch.view import LaunchView, State
from tuimon.ui import replay
from tuimon.ui.actions import ACTIONS, BY_ID, NODES, REPLAY
from tuimon.ui.replay import ReplayApp
from tuimon.ui.rows import plain, width_of
from tuimon.watch.replaying import Jump, Position, Replaying, Spot

BEGIN = launches.NOW - 600.0


def at(seconds: float, **more: object) -> Position:
    spots = (
        Spot(BEGIN + 0.5, "verdict", "starting", "starting"),
        Spot(BEGIN + 300, "milestone", "weights loaded"),
        Spot(BEGIN + 400, "verdict", "nothing alive", "stalled"),
    )
    here = Position(BEGIN, BEGIN + 600, BEGIN + seconds, playing=True, speed=20, known=BEGIN + 600, spots=spots)
    return replace(here, **more)


class Wound(Cranked):
    """A replay whose position the test gives; keeps what it was asked."""

    def __init__(self, view: LaunchView) -> None:
        super().__init__(view)
        self.where = at(300)
        self.wishes: list[tuple[object, ...]] = []

    def toggle(self) -> None:
        self.wishes.append(("toggle",))

    def faster(self, steps: int) -> None:
        self.wishes.append(("faster", steps))

    def move(self, seconds: float) -> None:
        self.wishes.append(("move", seconds))

    def go(self, *, end: bool) -> None:
        self.wishes.append(("go", end))

    def jump(self, kind: Jump, *, back: bool) -> None:
        self.wishes.append(("jump", kind, back))


class ReplayStage(Stage):
    """The stage of a replay."""

    watching: Wound

    def bar(self) -> str:
        return self.line(-1)


@asynccontextmanager
async def staged(
    view: LaunchView, size: tuple[int, int] = (120, 40), settings: Settings | None = None
) -> AsyncIterator[ReplayStage]:
    watching = Wound(view)
    assert isinstance(watching, Replaying)
    app = ReplayApp(watching, settings or Settings())
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        stage = ReplayStage(app, pilot, watching)
        await stage.crank()
        yield stage


async def test_the_bar_is_below_the_board_and_tells_where_we_are() -> None:
    async with staged(launches.stall()) as stage:
        assert stage.has("SILENT STALL", "╭─ Launch", "╭─ Log")
        assert "▶ 20×  0:05:00 / 0:10:00" in stage.bar()
        assert "●" in stage.bar()
        assert "▒" in stage.bar()
        assert "s stacks" in stage.line(-2)


async def test_the_bar_moves_also_while_the_view_stays() -> None:
    async with staged(launches.stall()) as stage:
        before = stage.bar()
        stage.watching.where = at(330, playing=False)
        stage.app.tick()
        await stage.pilot.pause()
        assert "‖ 20×  0:05:30" in stage.bar()
        assert stage.bar().index("●") > before.index("●")


async def test_a_click_on_the_track_goes_there() -> None:
    async with staged(launches.stall()) as stage:
        here = stage.bar().index("●")  # in the middle
        start = stage.bar().index("0:10:00") + 8
        await stage.pilot.click("#replay", offset=(start, 0))
        await stage.pilot.click("#replay", offset=(here, 0))
        await stage.pilot.click("#replay", offset=(2, 0))
        moves = [wish[1] for wish in stage.watching.wishes if wish[0] == "move"]
        assert moves == [pytest.approx(-300, abs=20), pytest.approx(0, abs=20)]


@pytest.mark.parametrize(
    ("key", "wish"),
    [
        ("space", ("toggle",)),
        ("left", ("move", -10.0)),
        ("right", ("move", 10.0)),
        ("shift+left", ("move", -60.0)),
        ("shift+right", ("move", 60.0)),
        ("left_square_bracket", ("jump", "verdict", True)),
        ("right_square_bracket", ("jump", "verdict", False)),
        ("left_curly_bracket", ("jump", "milestone", True)),
        ("right_curly_bracket", ("jump", "milestone", False)),
        ("less_than_sign", ("faster", -1)),
        ("greater_than_sign", ("faster", 1)),
        ("0", ("go", False)),
        ("dollar_sign", ("go", True)),
    ],
)
async def test_each_key_moves_in_time(key: str, wish: tuple[object, ...]) -> None:
    async with staged(launches.stall()) as stage:
        await stage.press(key)
        assert stage.watching.wishes == [wish]


@pytest.mark.parametrize(("typed", "seconds"), [(".", 1.0), (",", -1.0)])
async def test_a_step_pauses_first(typed: str, seconds: float) -> None:
    async with staged(launches.stall()) as stage:
        await stage.press(typed)
        assert stage.watching.wishes == [("toggle",), ("move", seconds)]
        stage.watching.where = at(300, playing=False)
        await stage.press(typed)
        assert stage.watching.wishes[2:] == [("move", seconds)]


async def test_the_other_keys_do_what_they_always_do() -> None:
    async with staged(launches.stall()) as stage:
        await stage.press("question_mark")
        await stage.crank(seconds=1)
        assert stage.has("Replay", "Ten seconds back")
        await stage.press("escape", "z")
        assert "╭─ Launch" not in stage.text()
        await stage.press("q")
        assert not stage.app.is_running


async def test_the_users_keys_move_in_time_too() -> None:
    async with staged(launches.stall(), settings=Settings(keys={"replay_ahead": "x"})) as stage:
        await stage.press("x")
        assert stage.watching.wishes == [("move", 10.0)]


async def test_what_is_wrong_with_the_recording_is_said_once() -> None:
    async with staged(launches.stall()) as stage:
        stage.watching.where = at(300, notes=("it is torn: the last 40 bytes are no whole block",))
        await stage.crank(seconds=1)
        assert "this recording: it is torn" in stage.line(-2)


async def test_what_a_key_came_to_is_said_in_the_bar() -> None:
    async with staged(launches.stall()) as stage:
        stage.watching.where = at(300, said="reading ahead: 40%")
        await stage.crank(seconds=1)
        assert "reading ahead: 40%" in stage.bar()


async def test_the_verdict_of_the_time_is_shown_where_it_differs() -> None:
    async with staged(launches.stall()) as stage:
        stage.watching.where = at(300, then="stalled")
        await stage.crank(seconds=1)
        assert "judged then" not in stage.bar()
        stage.watching.where = at(300, then="starting")
        await stage.crank(seconds=1)
        assert "judged then: starting" in stage.bar()


@pytest.mark.parametrize("size", [(200, 60), (80, 24), (60, 16), (20, 5)])
async def test_it_fits_on_any_screen(size: tuple[int, int]) -> None:
    async with staged(launches.stall(), size) as stage:
        assert "20×" in stage.bar()
        assert max(len(line) for line in stage.text().splitlines()) <= size[0]


@pytest.mark.parametrize("width", [10, 24, 40, 80, 200])
@pytest.mark.parametrize("seconds", [0.0, 300.0, 600.0])
def test_the_bar_is_exactly_as_wide_as_the_screen(width: int, seconds: float) -> None:
    assert width_of(replay.row(at(seconds), "stalled", (("space", "pause"), ("[]", "verdicts")), width)) == width


def test_a_short_stall_of_a_long_day_is_seen() -> None:
    day = 86_400.0
    states: list[tuple[float, State]] = [(0, "starting"), (40_000, "stalled"), (40_030, "serving")]
    spots = tuple(Spot(BEGIN + seconds, "verdict", "", state) for seconds, state in states)
    where = replace(at(0), end=BEGIN + day, known=BEGIN + day, spots=spots)
    track = plain([replay.track(where, 50)])
    assert track.count("▒") == 1
    assert track.startswith("●─")
    assert track.endswith("═")


def test_what_is_not_yet_read_is_dotted() -> None:
    track = plain([replay.track(at(0, known=BEGIN + 150), 40)])
    assert track.count("┈") == 29


def test_an_empty_recording_has_a_bar() -> None:
    nothing = Position(BEGIN, BEGIN, BEGIN, playing=False, speed=1, known=BEGIN)
    assert "0:00:00 / 0:00:00" in plain([replay.row(nothing, None, (), 80)])


def test_no_key_moves_in_time_and_does_something_else() -> None:
    keys = [key for action in (*ACTIONS, *REPLAY) for key in action.keys]
    assert len(keys) == len(set(keys))
    assert set(BY_ID) == {action.id for action in (*ACTIONS, *REPLAY, *NODES)}
