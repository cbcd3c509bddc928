"""An argument list as one line that every login shell passes on unchanged: sh, bash, zsh, csh, tcsh, fish.

sshd gives our command to the user's login shell. POSIX quotes hold in sh alone: csh replaces `!` and knows no newline
inside them, fish takes backslashes there for its own. So a command with anything but plain characters is written in
octal, which all of them leave alone, and turned back by a POSIX shell.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

# Evaluated by `sh`; its own text has none of the characters in question.
_DECODE = """sh -c 'eval "$(printf %b "$0")"' """
_ODD = re.compile(rb"[^ -~]|[!'\\]")


def for_login_shell(argv: Sequence[str]) -> str:
    """The line for the login shell; readable (plain `shlex.join`) where nothing in it is odd."""
    line = shlex.join(argv)
    raw = line.encode("utf-8", "surrogateescape")
    # The quotes that shlex put around whole words are understood by all; one inside a word is not.
    if not _ODD.search("".join(argv).encode("utf-8", "surrogateescape")):
        return line
    octal = _ODD.sub(lambda found: b"\\0%03o" % found[0][0], b"exec " + raw)
    return f"{_DECODE}'{octal.decode('ascii')}'"
