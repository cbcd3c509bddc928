"""What can be wrong with alerts."""

from __future__ import annotations

from tuimon.errors import TuimonError


class BadCommand(TuimonError):
    """The command for --on-change cannot be run as it was written."""

    exit_code = 2
