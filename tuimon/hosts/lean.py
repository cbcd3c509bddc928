"""asyncssh, imported without the programs that its import starts.

It looks for liboqs and nettle with `ldconfig`, `gcc` and `ld`: 25 ms, and 80 on a busy machine, for a key exchange
(sntrup761) and a checksum (UMAC) beside which every server has others that need no library.
"""

from __future__ import annotations

import ctypes.util
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_alone = threading.Lock()


@contextmanager
def no_search() -> Iterator[None]:
    """While this lasts, ctypes finds no library."""
    with _alone:
        search, ctypes.util.find_library = ctypes.util.find_library, _nothing
        try:
            yield
        finally:
            ctypes.util.find_library = search


def _nothing(name: str) -> str | None:
    del name
    return None
