"""LiveWatch: where the log is read on, through relaunches and lost links."""

from __future__ import annotations

import pytest

from tests.watch.scripted import SAMPLE, SERVER, Watched
from tuimon.config import Settings
from tuimon.hosts.errors import ChannelRefused
from tuimon.hosts.host import LogPiece
from tuimon.launch.events import (
    Gap,
    LogReset,
    LogText,
    LogUnreadable,
    ServerFound,
    ServerGone,
    Unlinked,
)  # fmt: skip


def test_it_connects_starts_the_probe_and_follows_the_log_of_the_server_found(watched: Watched) -> None:
    watched.start()
    watched.says(SERVER, SAMPLE)
    watched.logs(LogPiece("text", 0, b"hello\n", inode=7))
    kinds = [type(event).__name__ for event in watched.believer.events]
    assert kinds == ["Linked", "CommandRun", "ServerFound", "Sample", "CommandRun", "LogText"]
    assert watched.host.follows == [("/data/server.log", -1, None)]
    assert all(event.at == 1000.0 for event in watched.believer.events)


def test_after_a_lost_link_the_log_goes_on_at_the_byte_and_the_gap_is_marked(watched: Watched) -> None:
    watched.start()
    watched.says(SERVER)
    watched.logs(LogPiece("text", 0, b"hello\n", inode=7))
    watched.passes(10)
    watched.loses_link("the host has stopped answering")
    assert watched.seen(Unlinked)[0].reason == "the host has stopped answering"
    watched.passes(2)
    assert watched.host.follows[-1] == ("/data/server.log", 6, 7)
    (gap,) = watched.seen(Gap)
    assert (gap.of, gap.since) == ("link", 1010.0)
    assert gap.at > gap.since
    assert len(watched.host.channels) == 2
    assert watched.host.channels[0].ended
    watched.says(SERVER)
    assert len(watched.host.follows) == 2


def test_a_log_named_by_the_user_is_followed_before_and_instead_of_the_one_found() -> None:
    watched = Watched(Settings(log="/mine.log"))
    watched.start()
    assert watched.host.follows == [("/mine.log", -1, None)]
    watched.says(SERVER)
    assert watched.host.follows == [("/mine.log", -1, None)]
    watched.watch.stop()


def test_what_a_named_log_said_before_its_server_was_found_is_told_again_to_the_new_launch() -> None:
    watched = Watched(Settings(log="/mine.log"))
    watched.start()
    watched.logs(LogPiece("text", 0, b"weights\n", inode=7))
    watched.says(SERVER)
    assert watched.host.follows == [("/mine.log", -1, None)] * 2
    watched.logs(LogPiece("text", 0, b"weights\nmore\n", inode=7))
    watched.passes(10)
    watched.says(SERVER)
    assert len(watched.host.follows) == 2
    watched.watch.stop()


def test_a_relaunch_into_another_log_follows_that_one(watched: Watched) -> None:
    watched.start()
    watched.says(SERVER)
    watched.logs(LogPiece("text", 0, b"old\n"))
    watched.says(ServerGone(pid=41), ServerFound(pid=51, log="/data/two.log"))
    assert watched.host.follows[-1] == ("/data/two.log", -1, None)
    assert [reset.why for reset in watched.seen(LogReset)] == ["relaunched"]


def test_a_relaunch_that_appends_begins_where_the_last_launch_ended(watched: Watched) -> None:
    watched.start()
    watched.says(SERVER)
    watched.logs(LogPiece("text", 0, b"old\n", inode=7))
    watched.says(ServerGone(pid=41))
    watched.logs(LogPiece("text", 4, b"new launch\n", inode=7))
    watched.says(ServerFound(pid=51, log="/data/server.log"))
    assert watched.host.follows[-1] == ("/data/server.log", 4, 7)


def test_a_relaunch_that_empties_the_log_begins_at_its_start_whatever_is_noticed_first(watched: Watched) -> None:
    watched.start()
    watched.says(SERVER)
    watched.logs(LogPiece("text", 0, b"old old old\n", inode=7), LogPiece("truncated", 0, inode=7))
    watched.logs(LogPiece("text", 0, b"arguments\n", inode=7))
    watched.says(ServerGone(pid=41), ServerFound(pid=51, log="/data/server.log"))
    assert watched.host.follows[-1] == ("/data/server.log", 0, 7)


def test_what_the_tail_says_beside_text_becomes_events(watched: Watched) -> None:
    watched.start()
    watched.says(SERVER)
    watched.logs(
        LogPiece("missing", 0, reason="no such file"),
        LogPiece("text", 0, b"a"),
        LogPiece("skipped", 900, skipped=899),
        LogPiece("rotated", 0),
    )
    (unreadable,) = watched.seen(LogUnreadable)
    assert (unreadable.path, unreadable.reason) == ("/data/server.log", "no such file")
    assert [(reset.why, reset.offset, reset.skipped) for reset in watched.seen(LogReset)] == [
        ("skipped", 900, 899), ("rotated", 0, 0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ChannelRefused("opens no further session", "Raise MaxSessions"), "opens no further session"),
        (TypeError("bug"), "tuimon's own error: TypeError('bug')"),
    ],
)
def test_a_log_that_cannot_be_followed_says_why_where_it_would_be_shown(
    watched: Watched, error: Exception, reason: str
) -> None:
    watched.start()
    watched.says(SERVER)
    watched.logs(error)
    assert [event.reason for event in watched.seen(LogUnreadable)] == [reason]
    watched.passes(5)
    watched.logs(LogPiece("text", 0, b"weights\n", inode=7))
    assert len(watched.seen(LogText)) == 1
