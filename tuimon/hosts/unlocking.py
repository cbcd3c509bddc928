"""Dial; where the host takes a key that is encrypted, ask for its passphrase and dial again."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from tuimon.hosts import keyring
from tuimon.hosts.address import Address
from tuimon.hosts.dial import Line, dial
from tuimon.hosts.errors import KeyLocked
from tuimon.hosts.host import Ask

TRIES = 3
"""As many as ssh gives."""


async def dialled(address: Address, name: str, given: Mapping[str, object], ask: Ask | None) -> Line:
    """As `dial`. Raises KeyLocked too, where nobody asks or the user would not."""
    while True:
        try:
            return await dial(address, name, given)
        except KeyLocked as error:
            # What is unlocked is offered from now on, so this ends with the last of the keys.
            if ask is None or not await _unlock(error.path, name, ask):
                raise


async def _unlock(path: str, name: str, ask: Ask) -> bool:
    if keyring.RING.key(path) is not None:  # for another host, since this one refused
        return True
    words = f"Passphrase of {path} for {name}"
    for _ in range(TRIES):
        given = await ask(words)
        if given is None:
            return False
        if await asyncio.to_thread(keyring.RING.unlock, path, given):
            return True
        words = f"That is not the passphrase of {path}"
    return False
