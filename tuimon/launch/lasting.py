"""How long something takes, in words: the one way in which durations are written, on the screen and for scripts."""

from __future__ import annotations


def age(seconds: float) -> str:
    """`8 s`, `4 m 12 s`, `1 h 04 m`, `2 d 03 h`; whole seconds, for what ticks."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} m {whole % 60:02} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole // 60 % 60:02} m"
    return f"{whole // 86400} d {whole // 3600 % 24:02} h"


def duration(seconds: float) -> str:
    """Like `age`, with a decimal below ten seconds, for what is over."""
    return f"{max(0.0, seconds):.1f} s" if seconds < 9.95 else age(round(seconds))
