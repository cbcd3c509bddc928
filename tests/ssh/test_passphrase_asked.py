"""A whole watch whose key is encrypted: it asks, connects, never asks again; a no is a refusal; no secret is kept."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import asyncssh
import msgspec
import pytest

from tuimon.config import Settings
from tuimon.hosts import keyring, unlocking
from tuimon.hosts.address import parse
from tuimon.hosts.errors import KeyLocked
from tuimon.launch.events import AnyEvent, Unlinked
from tuimon.watch.live import LiveWatch

if TYPE_CHECKING:
    from tests.ssh.conftest import Sshd

SECRET = "correct horse battery"


class Asked:
    """A watch before which somebody sits."""

    def __init__(self, name: str) -> None:
        self.events: list[AnyEvent] = []
        self.watch = LiveWatch(name, Settings(history=False))
        self.watch.asks = True
        self.watch.on_event(self.events.append)
        self.watch.start()

    def question(self) -> str:
        until(lambda: self.watch.secret_wanted is not None)
        return self.watch.secret_wanted or ""


@pytest.fixture
def asked(sshd: Sshd, monkeypatch: pytest.MonkeyPatch) -> Iterator[Asked]:
    sshd.trust()
    subprocess.run(["ssh-keygen", "-q", "-p", "-P", "", "-N", SECRET, "-f", sshd.key], check=True)
    monkeypatch.setattr(keyring, "RING", keyring.Keyring())
    asked = Asked(sshd.name)
    yield asked
    asked.watch.stop()


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 15
    while not true():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.02)


def test_a_wrong_answer_is_asked_again_and_a_right_one_connects_also_after_a_loss(asked: Asked, sshd: Sshd) -> None:
    assert asked.question().startswith("Passphrase of ~/.ssh/id_ed25519 for ")
    assert asked.watch.view.link.state == "connecting"
    asked.watch.give_secret("wrong")
    assert asked.watch.secret_wanted is None
    assert asked.question() == "That is not the passphrase of ~/.ssh/id_ed25519"
    asked.watch.give_secret(SECRET)
    until(lambda: asked.watch.view.link.state == "up")
    for pid in sshd.children():
        subprocess.run(["kill", "-9", str(pid)], check=True)
    until(lambda: any(isinstance(event, Unlinked) for event in asked.events))
    until(lambda: asked.watch.view.link.state == "up")
    assert asked.watch.secret_wanted is None
    told = msgspec.json.encode(asked.events)
    assert b"battery" not in told
    assert b"wrong" not in told
    assert SECRET not in str(vars(asked.watch._question))


def test_a_no_is_a_refusal_and_is_not_asked_about_again_until_the_user_wants_to(asked: Asked) -> None:
    asked.question()
    asked.watch.give_secret(None)
    until(lambda: asked.watch.view.link.state == "refused")
    assert "ssh-add ~/.ssh/id_ed25519" in (asked.watch.view.link.reason or "")
    assert asked.watch.secret_wanted is None
    asked.watch.retry()
    assert asked.question().startswith("Passphrase of")


def test_a_watch_that_ends_while_it_asks_ends_at_once(asked: Asked) -> None:
    asked.question()
    began = time.monotonic()
    asked.watch.stop()
    assert time.monotonic() - began < 2
    asked.watch.give_secret(SECRET)  # too late: dropped
    assert asked.watch._question._given is None


def test_a_script_is_told_what_to_do_and_waits_for_nobody(asked: Asked, sshd: Sshd, tmp_path: Path) -> None:
    alone = LiveWatch(sshd.name, Settings(history=False))
    alone.start()
    view = alone.wait_for(lambda view: view.link.state == "refused", 15)
    alone.stop()
    assert alone.secret_wanted is None
    assert "Unlock it with" in (view.link.reason or "")


async def test_a_key_is_unlocked_once_for_all_hosts_and_asked_for_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "id_ed25519")
    asyncssh.generate_private_key("ssh-ed25519").write_private_key(path, passphrase=SECRET)
    ring = keyring.Keyring()
    monkeypatch.setattr(keyring, "RING", ring)
    read: list[str] = []

    def counted(file: Path, passphrase: str) -> asyncssh.SSHKey:
        read.append(str(file))
        return original(file, passphrase)

    original = asyncssh.read_private_key
    monkeypatch.setattr(asyncssh, "read_private_key", counted)
    assert all(await asyncio.gather(*(asyncio.to_thread(ring.unlock, path, SECRET) for _ in range(8))))
    assert read == [path]
    locked = KeyLocked("it takes a key that is encrypted")
    locked.path = path
    tries: list[str] = []

    async def refuses(_address: object, name: str, _given: object) -> str:
        tries.append(name)
        if len(tries) == 1:
            raise locked
        return "a line"

    async def nobody(words: str) -> str | None:
        raise AssertionError(words)

    monkeypatch.setattr(unlocking, "dial", refuses)
    assert await unlocking.dialled(parse("gpu-18"), "gpu-18", {}, nobody) == "a line"  # type: ignore[comparison-overlap]
