"""No collecting of garbage while a screen starts: importing makes 150,000 objects, and going through them again and
again is 10 ms of the first frame and 40 ms of asyncssh's import.
"""  # fmt: skip

from __future__ import annotations

import gc


def hold() -> None:
    """Collect nothing until `settle`."""
    gc.disable()


def settle() -> None:
    """Collect again, but never what the start has made: it stays as long as the program does."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()
