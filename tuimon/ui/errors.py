"""What can go wrong on the screen."""

from __future__ import annotations

from tuimon.errors import TuimonError


class ScreenError(TuimonError):
    """The root of this package's errors."""


class BadTheme(ScreenError):
    """A theme file that cannot be used; names the file and what is wrong in it."""


class BadKeys(ScreenError):
    """A keymap that names no known action."""
