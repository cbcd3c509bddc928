"""Before there is a log: what has been done, what is being done, what comes, and what the user can do."""

from __future__ import annotations

from textwrap import wrap

from tuimon.launch.view import LaunchView
from tuimon.ui.pressing import pressing
from tuimon.ui.rows import Row, clean, fit

DONE, NOW, LATER, BAD = ("✔ ", "good"), ("▸ ", "accent"), ("· ", "faint"), ("✖ ", "bad")


def beginning(view: LaunchView, width: int) -> list[Row]:
    """The steps from nothing to the first line of the log."""
    link, server = view.link, view.server
    host = clean(view.host)
    lines: list[Row] = []
    if link.state == "refused":
        lines = _whole(f"{host} refused: {clean(link.reason or '')}", width)
        lines += _whole(clean(link.detail or pressing(view.verdict.advice)), width, ("  ", "text"), "accent")
        lines.append((("  ", "text"), ("tried again once a minute", "dim")))
    elif link.state == "up":
        lines = [(DONE, (f"connected to {host}", "text"), (f"  {clean(link.detail or '')}", "dim"))]
    elif link.state == "lost":
        lines = _whole(f"no link to {host}: {clean(link.reason or 'lost')}", width)
    else:
        lines = [(NOW, (f"connecting to {host}", "strong"), (f"  {clean(link.detail or '')}", "dim"))]
    lines += _server(view, width)
    if server is not None and server.log_note:
        lines.append((("  ", "text"), (clean(server.log_note), "accent")))
    return [fit(line, width) for line in lines]


def _whole(words: str, width: int, mark: tuple[str, str] = BAD, ink: str = "text") -> list[Row]:
    """All of it: a reason often ends in the command that helps."""
    pieces = wrap(words, max(10, width - 2), break_on_hyphens=False)
    return [(mark if not place else ("  ", "text"), (piece, ink)) for place, piece in enumerate(pieces)]


def _server(view: LaunchView, width: int) -> list[Row]:
    server = view.server
    if server is None:
        look = "waiting for a launch: SGLang, vLLM, TensorRT-LLM, llama.cpp or torchrun; it is found by itself"
        first = _whole("finds the server: its ranks, port, model and log", width, LATER, "faint")
        if view.link.state == "up":
            first = _whole(look, width, NOW, "strong")
        return [*first, *_whole("follows its log from the start of the launch", width, LATER, "faint")]
    found: Row = (DONE, (f"found pid {server.pid}", "text"), (f"  {clean(server.model or '')}", "dim"))
    if server.log is None:
        return [found, (BAD, ("its log cannot be followed", "text"))]
    return [found, (NOW, (f"following {clean(server.log)}: no line yet", "strong"))]
