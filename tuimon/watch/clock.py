"""tuimon's clock: looks like wall time, never jumps."""

from __future__ import annotations

import asyncio
import time

# Unlike CLOCK_MONOTONIC it goes on while a laptop sleeps: ages must count that time too. Elsewhere than on Linux the
# monotonic clock is the best there is.
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock:
    """Seconds since the epoch as the wall clock had it when this began, carried on by a clock that nobody sets."""

    def __init__(self) -> None:
        self._anchor = time.time() - time.clock_gettime(_STEADY)

    def now(self) -> float:
        """Seconds since the epoch."""
        return self._anchor + time.clock_gettime(_STEADY)

    async def sleep(self, seconds: float) -> None:
        """Wait on the running loop."""
        await asyncio.sleep(seconds)
