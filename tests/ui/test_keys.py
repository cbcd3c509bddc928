"""Each key does what the table of actions says."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.ui import launches
from tests.ui.stage import staged
from tuimon.config import Settings
from tuimon.launch.view import Episode, LogLine
from tuimon.ui.actions import ACTIONS, key_table, with_keys
from tuimon.ui.boardscreen import BoardScreen
from tuimon.ui.errors import BadKeys


def many(count: int, first: int = 0) -> launches.Window:
    """Lines that can be told apart; every 50th is an error."""
    lines = [
        LogLine(number=n, text=f"line {n:05} of the log", at=launches.NOW, severity="error" if n % 50 == 49 else "info")
        for n in range(first, first + count)
    ]
    return launches.Window(lines, first)


async def test_s_opens_the_stacks_at_once_and_fills_them_when_they_arrive() -> None:
    async with staged(launches.stall()) as stage:
        stage.watching.busy = "stacks"
        await stage.press("s")
        assert stage.watching.asked == ["stacks"]
        await stage.crank()
        assert stage.has("reading stacks…", "SILENT STALL")
        stage.watching.busy = None
        await stage.crank(replace(launches.stall(), stacks=launches.stacks()))
        assert stage.has(
            "8 ranks, 2 groups", "nonblocking, 0.19 s", "saved: /home/me/.local/state/tuimon/stacks-155110.md"
        )
        assert stage.has("TP3  the odd one out", "TP[0-2,4-7]  7 ranks", "monitored_barrier", "acquire", "◀ waits")
        assert stage.has("1 not read", "detokenizer  no right to read its memory", "still seen: state S, poll")
        await stage.press("escape")
        assert stage.has("╭─ Launch", "╭─ GPUs")


@pytest.mark.parametrize("key", ["d", "c", "p", "a", "R", "D", "S"])
async def test_a_disabled_key_says_why(key: str) -> None:
    async with staged(launches.waiting()) as stage:
        await stage.press(key)
        assert "no server found yet" in stage.line(-1)
        assert stage.watching.asked == []


async def test_stacks_without_a_server_say_why_they_cannot_be_read() -> None:
    async with staged(launches.waiting()) as stage:
        await stage.press("s")
        assert "stacks: no server found yet" in stage.line(-1)
        await stage.crank(launches.unreachable())
        await stage.press("s")
        assert "stacks: the link to the host is down" in stage.line(-1)


async def test_help_lists_every_action_with_its_keys_and_reasons() -> None:
    async with staged(launches.stall(), (120, 70)) as stage:
        await stage.press("question_mark")
        await stage.crank()
        text = stage.text()
        for action in ACTIONS:
            assert action.help in text
        assert "not built yet" not in text
        await stage.press("question_mark")
        assert stage.has("╭─ Launch")


async def test_space_freezes_the_screen_and_says_so_while_collecting_goes_on() -> None:
    async with staged(launches.stall()) as stage:
        await stage.press("space")
        await stage.crank(seconds=60)
        assert "4 m 12 s" in stage.line(2)
        assert "PAUSED" in stage.line(-1)
        assert "space goes on" in stage.line(-1)
        await stage.press("space")
        assert "5 m 12 s" in stage.line(2)
        assert "PAUSED" not in stage.line(-1)


async def test_z_gives_the_focused_pane_the_room_and_escape_takes_it_back() -> None:
    async with staged(launches.stall(), (80, 24)) as stage:
        await stage.press("2", "z")
        assert stage.has("╭─ GPUs", "SILENT STALL", "gpu-17")
        assert "╭─ Launch" not in stage.text()
        assert stage.line(4).startswith("│ 0 TP0 ▕")
        await stage.press("escape")
        assert stage.has("╭─ Launch", "╭─ Log")


async def test_a_pane_without_room_is_shown_by_its_number() -> None:
    async with staged(launches.stall(), (80, 24)) as stage:
        assert "╭─ Processes" not in stage.text()
        await stage.press("5")
        assert stage.has("╭─ Processes", "scheduler TP[0-2,4-7]")
        await stage.press("6")
        assert stage.has("╭─ Health")
        await stage.press("escape")
        assert stage.has("╭─ Launch")


async def test_the_log_follows_until_it_is_scrolled_and_then_holds_still() -> None:
    view = replace(launches.starting(), lines=many(500))
    async with staged(view) as stage:
        assert stage.has("line 00499", "following")
        await stage.press("k")
        held = stage.text()
        await stage.crank(replace(view, lines=many(714)))
        assert stage.has("+214 new lines")
        body = [line for line in held.splitlines() if "of the log" in line]
        assert [line for line in stage.text().splitlines() if "of the log" in line] == body
        await stage.press("G")
        assert stage.has("line 00713", "following")


async def test_what_is_read_stays_where_it_is_when_old_lines_are_dropped() -> None:
    view = replace(launches.starting(), lines=many(500))
    async with staged(view) as stage:
        await stage.press("pageup", "pageup")
        before = [line for line in stage.text().splitlines() if "of the log" in line]
        await stage.crank(replace(view, lines=many(600, first=300)))
        assert [line for line in stage.text().splitlines() if "of the log" in line] == before


async def test_reaching_the_end_by_scrolling_follows_again() -> None:
    async with staged(replace(launches.starting(), lines=many(500))) as stage:
        await stage.press("k", "k")
        assert "following" not in stage.text()
        await stage.press("j", "j")
        assert "following" in stage.text()


async def test_search_goes_to_hits_in_both_directions() -> None:
    async with staged(replace(launches.starting(), lines=many(500))) as stage:
        await stage.press("slash", *"line 00[01]77", "enter")
        await stage.crank()
        assert stage.has("line 00177")
        await stage.press("N")
        assert stage.has("line 00077")
        await stage.press("n")
        assert stage.has("line 00177")
        await stage.press("n")
        assert "no more hits below" in stage.line(-1)
        await stage.press("G", "slash", *"nowhere", "enter")
        await stage.crank()
        assert "nothing in the log matches 'nowhere'" in stage.line(-1)


async def test_escape_leaves_the_search_prompt_and_the_keys_work_again() -> None:
    async with staged(launches.stall()) as stage:
        await stage.press("slash", "q", "escape", "z")
        assert stage.app.is_running
        assert "╭─ Launch" not in stage.text()


async def test_the_filter_keeps_lines_leaves_lines_out_and_is_taken_back() -> None:
    async with staged(replace(launches.starting(), lines=many(500))) as stage:
        await stage.press("ampersand", *"7 of", "enter")
        await stage.crank()
        assert stage.has("Log · only 7 of", "line 00497", "line 00487")
        assert "line 00498" not in stage.text()
        await stage.press("ampersand", *"!9 of", "enter")
        await stage.crank()
        assert stage.has("Log · without 9 of", "line 00498")
        assert "line 00499" not in stage.text()
        await stage.press("escape")
        assert stage.has("line 00499")


async def test_the_lens_shows_key_lines_only() -> None:
    async with staged(launches.stall()) as stage:
        await stage.press("l")
        assert stage.has("Log · key lines", "Capture cuda graph end")
        assert "safetensors" not in stage.text()
        await stage.press("l")
        assert stage.has("safetensors")


async def test_capital_t_goes_to_a_time() -> None:
    lines = launches.Window(
        [LogLine(n, f"line {n:05}", launches.NOW, clock=f"15:{n // 60:02}:{n % 60:02}") for n in range(900)]
    )
    async with staged(replace(launches.starting(), lines=lines)) as stage:
        await stage.press("T", *"15:02", "enter")
        await stage.crank()
        assert stage.has("line 00120")
        await stage.press("T", *"16:00", "enter")
        await stage.crank()
        assert "no line of the log is at '16:00' or later" in stage.line(-1)


async def test_a_time_after_midnight_is_found_behind_the_evening_before_it() -> None:
    clocks = [f"23:{minute:02}:00" for minute in range(30, 60)] + [f"00:{minute:02}:00" for minute in range(30)]
    lines = launches.Window([LogLine(n, f"line {n:05}", launches.NOW, clock=clock) for n, clock in enumerate(clocks)])
    async with staged(replace(launches.starting(), lines=lines), (80, 24)) as stage:
        for typed, line in (("0:10", "line 00040"), ("23:40", "line 00010"), ("16:00", "line 00000")):
            await stage.press("T", *typed, "enter", "y")
            assert line in stage.app.clipboard


async def test_m_goes_from_milestone_to_milestone() -> None:
    async with staged(launches.stall(), (80, 24)) as stage:
        await stage.press("M", "M", "M", "m", "y")
        assert stage.app.clipboard.startswith("15:26:00 TP0 Capture cuda graph begin")


async def test_ctrl_s_saves_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUIMON_STATE_DIR", str(tmp_path))
    async with staged(launches.stall(), (160, 40)) as stage:
        await stage.press("ctrl+s")
        assert "saved: " in stage.line(-1)
    saved = list((tmp_path / "saved").glob("log-gpu-17-*.txt"))
    assert len(saved) == 1
    assert "15:26:58 TP0 Capture cuda graph end" in saved[0].read_text()


async def test_i_lists_what_was_found() -> None:
    episode = Episode("stalled", "host deadlock", launches.NOW - 300, launches.NOW - 258, "weights", ())
    view = replace(launches.crashed(), findings=("yama ptrace_scope=1: stacks need root",), episodes=(episode,))
    async with staged(view) as stage:
        await stage.press("i")
        await stage.crank()
        assert stage.has("First error of the log", "OutOfMemoryError", "yama ptrace_scope=1")
        assert stage.has("stalled for 42 s in weights (host deadlock)")


async def test_a_recovery_is_spoken_of_for_a_while() -> None:
    episode = Episode("stalled", None, launches.NOW - 90, launches.NOW - 48, "weights", ())
    async with staged(replace(launches.starting(), episodes=(episode,))) as stage:
        assert "recovered: was SILENT STALL for 42 s" in stage.line(1)
        await stage.crank(seconds=100)
        assert "recovered" not in stage.line(1)


async def test_keys_move_through_the_panes_that_are_shown() -> None:
    async with staged(launches.stall(), (80, 24)) as stage:
        assert stage.app.focused is not None
        seen = []
        for _ in range(4):
            await stage.press("tab")
            seen.append(stage.app.focused.id)
        assert seen == ["launch", "gpus", "signs", "log"]


async def test_e_goes_to_errors() -> None:
    async with staged(replace(launches.starting(), lines=many(500))) as stage:
        await stage.press("E")
        await stage.press("E")
        assert stage.has("line 00449")
        await stage.press("e", "e")
        assert "no error line below" in stage.line(-1)


async def test_w_wraps_and_t_hides_the_times() -> None:
    async with staged(launches.stall(), (80, 24)) as stage:
        assert stage.has("15:26:58 TP0 Capture", "usage=2.1…")
        await stage.press("w")
        assert stage.has("avail mem=19.80 GB.")
        await stage.press("w", "t")
        assert stage.has("◆ TP0 Capture cuda graph end")


async def test_y_copies_the_found_line_whole() -> None:
    async with staged(launches.stall(), (80, 24)) as stage:
        await stage.press("slash", *"graph end", "enter", "y")
        assert stage.app.clipboard.startswith("15:26:58 TP0 Capture cuda graph end. Time elapsed")
        assert "avail mem=19.80 GB." in stage.app.clipboard
        assert "sent 1 line" in stage.line(-1)


async def test_y_copies_what_another_pane_shows() -> None:
    async with staged(launches.stall()) as stage:
        await stage.press("5", "y")
        assert "scheduler TP[0-2,4-7]" in stage.app.clipboard


async def test_the_commands_sent_to_the_host_are_listed() -> None:
    async with staged(launches.stall()) as stage:
        await stage.press("at")
        await stage.crank()
        assert stage.has("Commands sent to the host", "python3 -I -u -c", "0.4 % of one core")


async def test_the_palette_finds_actions_by_name() -> None:
    async with staged(launches.stall()) as stage:
        await stage.press("colon")
        await stage.pilot.pause()
        await stage.press(*"wrap")
        await stage.pilot.pause(0.3)
        await stage.press("enter")
        await stage.pilot.pause()
        screen = stage.app.screen
        assert isinstance(screen, BoardScreen)
        assert screen.log_pane.reader.look.wrap


async def test_q_quits_from_anywhere() -> None:
    async with staged(launches.stall()) as stage:
        await stage.press("s")
        await stage.press("q")
        assert not stage.app.is_running


async def test_the_users_keys_replace_ours_everywhere() -> None:
    async with staged(launches.stall(), (120, 70), Settings(keys={"stacks": "x", "zoom": "f5, v"})) as stage:
        assert " x stacks" in stage.line(-1)
        await stage.press("x")
        assert stage.watching.asked == ["stacks"]
        await stage.press("escape", "v")
        assert "╭─ Launch" not in stage.text()
        await stage.press("escape", "s")
        assert stage.watching.asked == ["stacks"]


async def test_a_key_that_the_user_takes_is_taken_from_its_action() -> None:
    async with staged(launches.stall(), settings=Settings(keys={"zoom": "s"})) as stage:
        assert "stacks" not in stage.line(-1)
        await stage.press("s")
        assert stage.watching.asked == []
        assert "╭─ Launch" not in stage.text()


async def test_a_bad_keymap_is_a_sentence_and_the_app_lives() -> None:
    async with staged(launches.stall(), settings=Settings(keys={"stax": "x"})) as stage:
        assert "name no action: stax" in stage.line(-1)
        await stage.press("s")
        assert stage.watching.asked == ["stacks"]


def test_one_key_for_two_actions_is_refused() -> None:
    with pytest.raises(BadKeys, match="give x to both"):
        with_keys(ACTIONS, {"stacks": "x", "zoom": "x"})


def test_no_key_is_given_twice_and_every_action_is_explained() -> None:
    keys = [key for action in ACTIONS for key in action.keys]
    assert len(keys) == len(set(keys))
    assert all(action.help and action.word for action in ACTIONS)


def test_the_readme_table_lists_what_is_built() -> None:
    table = key_table()
    assert "| `s` | Read all ranks' Python stacks" in table


@pytest.mark.parametrize("key", ["R", "D", "S", "a"])
async def test_read_only_takes_every_key_away_that_touches_the_server(key: str) -> None:
    async with staged(launches.stall(), settings=Settings(read_only=True)) as stage:
        await stage.press(key)
        assert "tuimon was started read-only" in stage.line(-1)
        assert stage.watching.asked == []
        await stage.press("s")
        assert stage.watching.asked == ["stacks"]
