"""What can be wrong with a recording."""

from __future__ import annotations

from tuimon.errors import TuimonError


class UnreadableRecording(TuimonError):
    """This is no recording; the sentence says of what kind it should be."""

    exit_code = 2
