"""What can go wrong while diagnosing."""

from __future__ import annotations

from tuimon.errors import TuimonError


class DiagnoseError(TuimonError):
    """The root of this package's errors."""


class NoPySpy(DiagnoseError):
    """There is no py-spy here that could be sent to the host."""


class BadDump(DiagnoseError):
    """What came back from the host is not what our program writes."""


class BadCheckpoint(DiagnoseError):
    """A checkpoint cannot be read; names the file and what is wrong with it."""
