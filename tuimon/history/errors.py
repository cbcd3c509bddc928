"""What can be wrong with the history; none of it disturbs the watching."""

from __future__ import annotations

from tuimon.errors import TuimonError


class HistoryError(TuimonError):
    """The history cannot be read or kept."""


class HistoryTooNew(HistoryError):
    """The file was written by a newer tuimon; it is left alone."""
