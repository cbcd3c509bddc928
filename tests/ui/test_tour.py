"""The screens of the tour are the tested ones, and what it says of keys is so."""

from __future__ import annotations

import os
import re
from pathlib import Path

from msgspec.structs import replace

from tests.ui import launches
from tests.ui.stage import staged
from tuimon.ui.actions import ACTIONS, keys_of

ROOT = Path(__file__).resolve().parents[2]
TOUR = ROOT / "docs" / "TOUR.md"
GOLDENS = ROOT / "tests" / "ui" / "goldens"
WRITE = os.environ.get("TUIMON_GOLDENS") == "write"
BLOCK = re.compile(r"(<!-- golden (\S+) -->\n```\n)(.*?)(```)", re.DOTALL)


async def test_the_stacks_look_as_they_were_looked_at() -> None:
    async with staged(launches.stall()) as stage:
        await stage.press("s")
        await stage.crank(replace(launches.stall(), stacks=launches.stacks()))
        text = stage.text()
    path = GOLDENS / "stacks-120x40.txt"
    if WRITE:
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_every_screen_of_the_tour_is_a_tested_one() -> None:
    text = TOUR.read_text(encoding="utf-8")
    if WRITE:
        text = BLOCK.sub(lambda found: found[1] + golden(found[2]) + found[4], text)
        TOUR.write_text(text, encoding="utf-8")
    blocks = BLOCK.findall(text)
    assert len(blocks) >= 7
    for _, name, shown, _ in blocks:
        assert shown == golden(name), name


def golden(name: str) -> str:
    """A screen, without the spaces at its ends."""
    lines = (GOLDENS / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return "\n".join(line.rstrip() for line in lines) + "\n"


def test_every_key_that_the_tour_names_is_in_the_table() -> None:
    known = {key for action in ACTIONS for key in keys_of(action).split()} | {"&!"}
    named = set(re.findall(r"`(\S|&!)`", TOUR.read_text(encoding="utf-8"))) - set("●○–`")
    assert named <= known
