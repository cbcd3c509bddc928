"""How the program meets its caller: three standard streams whatever the shell closed, and an end in one sentence."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

import click

from tuimon.errors import TuimonError

INTERRUPTED = 128 + signal.SIGINT
"""Ended by a signal: 128 and its number, as shells say it."""


class ReaderGone(Exception):
    """Whoever read stdout has what he wanted, like `head`: no error."""


class Terminated(SystemExit):
    """SIGTERM came."""


class NoTerminal(TuimonError):
    """The screen was wanted where there is none."""

    exit_code = 2


def run(command: Callable[[], object]) -> NoReturn:
    """Run the program's command and end the process: with its exit code, or a sentence and the one that it means."""
    _open_streams()
    with suppress(ValueError):  # not the main thread
        signal.signal(signal.SIGTERM, _terminated)
    code = _code(command)
    try:
        sys.stdout.flush()
    except OSError as error:
        code = _unwritten(error, code)
    with suppress(OSError):
        sys.stderr.flush()
    sys.exit(code)


def need_terminal(*, keys: bool = True) -> None:
    """The screen is written to stderr, its keys come from stdin. Raises NoTerminal."""
    for stream, name in ((sys.stdin if keys else None, "input"), (sys.stderr, "error")):
        if stream is not None and not stream.isatty():
            raise NoTerminal(
                f"The screen needs a terminal, and standard {name} is none",
                "In a script use tuimon check, wait, timeline or export",
            )


def _code(command: Callable[[], object]) -> int:
    """The exit code that it ended with; an error is said."""
    try:
        code = command()
    except Terminated as end:
        code = _said("Terminated", int(str(end.code)))
    except SystemExit as end:
        code = end.code
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (KeyboardInterrupt, click.Abort):
        code = _said("Interrupted", INTERRUPTED)
    except TuimonError as error:
        code = _said(error.sentence(), error.exit_code)
    except ReaderGone:
        code = 0
    except OSError as error:
        code = _unwritten(error, 0)
    except Exception as error:  # noqa: BLE001  the last resort: a traceback helps no script
        code = _said(f"tuimon's own error: {type(error).__name__}: {error}. Please report it", 1)
    return code if isinstance(code, int) else 0


def _unwritten(error: OSError, code: int) -> int:
    """A reader that went away takes nothing from the answer; a full disk does."""
    # Python flushes once more at its end, and would say the same in other words.
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if error.errno == errno.EPIPE:
        return code
    what = f"{error.filename}: " if error.filename else "The answer cannot be written: "
    return _said(f"{what}{error.strerror or error}", 1)


def _said(text: str, code: int) -> int:
    from tuimon.headless.plain import plain, say  # noqa: PLC0415  only where something went wrong

    say(f"tuimon: {plain(text, 2000)}", sys.stderr)
    return code


def _open_streams() -> None:
    """A closed one becomes /dev/null: else the next file or socket takes its number, and children write into it."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            with suppress(OSError):
                os.fstat(number)
                continue
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115  as long as we live


def _terminated(number: int, _frame: object) -> NoReturn:
    """Unwind: what was begun on the host and on the disk is ended in order."""
    raise Terminated(128 + number)
