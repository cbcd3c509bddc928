"""The first line: who is watched, for how long, and the three lights."""

from __future__ import annotations

from tuimon.launch.lasting import age
from tuimon.launch.view import LaunchView, ServerView
from tuimon.ui.pane import Painted
from tuimon.ui.rows import Row, clean, cut, fit, flow, spread, width_of
from tuimon.ui.words import data_age

ENGINES = {"sglang": "SGLang", "vllm": "vLLM", "trtllm": "TensorRT-LLM", "llamacpp": "llama.cpp"}
STALE = 3.5
"""Seconds without a sample after which the data light changes (samples come each second)."""


class Header(Painted):
    """One line at the top."""

    def slice(self, view: LaunchView) -> object:
        started = view.server.started if view.server else None
        ticks = int(view.now - started) if started is not None else None
        return view.host, view.server, view.link.state, view.verdict.state, data_age(view), ticks

    def paint(self, view: LaunchView | None, width: int, height: int) -> list[Row]:  # noqa: ARG002  one line
        if view is None:
            return [fit(((" tuimon", "head"),), width, "headdim")]
        return [row(view, width)]


def row(view: LaunchView, width: int) -> Row:
    """The header in `width` cells: the lights stay, words of the left side go first."""
    end = lights(view, short=width < 100)
    if width < 60:
        end = lights(view, short=True, bare=True)
    room = width - width_of(end) - 3
    parts = _who(view, width)
    # A host's name is whole where engine and model find room beside it.
    short = max(8, width // 4, room - sum(width_of(part) + 3 for part in parts[:2]))
    start = flow([((cut(clean(view.host), short), "head"),), *parts], room, (" · ", "headdim"))
    return spread(((" ", "head"), *start), (*end, (" ", "head")), width, "headdim")


def _who(view: LaunchView, width: int) -> list[Row]:
    """All but the host, the most telling first."""
    server = view.server
    if server is None:
        return []
    parts = _server(server, width)
    if server.started is not None:
        ticks = age(view.now - server.started)
        parts.append(((f"launch {server.launch}, {ticks}" if width >= 100 else ticks, "headdim"),))
    if width >= 100:
        parts.append(((f"pid {server.pid}", "headdim"),))
    return parts


def _server(server: ServerView, width: int) -> list[Row]:
    wide = width >= 100
    engine = ENGINES.get(server.engine or "", clean(server.engine or "unknown engine"))
    version = f" {clean(server.version)}" if server.version and wide else ""
    model = cut(clean((server.model or "").rstrip("/").rsplit("/", 1)[-1]), 40 if wide else 22)
    shape = clean(server.shape or "")
    if not wide:
        shape = shape.replace(" · ", " ").replace("tp ", "tp")
    parts = [f"{engine}{version}"]
    parts += [model, shape] if wide or width < 72 else [f"{model} {shape}".strip()]
    return [((part, "headdim"),) for part in parts if part]


def lights(view: LaunchView, *, short: bool = False, bare: bool = False) -> Row:
    """link, process, data: a light each, with a shape of its own for each state."""
    link = {
        "up": ("●", "headgood"),
        "connecting": ("◌", "headwarn"),
        "lost": ("✖", "headbad"),
        "refused": ("✖", "headbad"),
    }
    dead = view.verdict.state in {"crashed", "finished"}
    process = ("○", "headdim") if view.server is None else ("✖", "headbad") if dead else ("●", "headgood")
    names = ("link", "proc" if short else "process", "data")
    spans: list[tuple[str, str]] = []
    for name, (shape, ink) in zip(names, (link[view.link.state], process, _data(view)), strict=True):
        spans += [(f" {name} " if short else f"  {name} ", "headdim")] if not bare else []
        spans.append((shape, ink))
    late = view.data_age is not None and view.data_age >= STALE
    if (not short or late) and view.data_age is not None:
        spans.append((f" {data_age(view)}", "headbad" if late else "headdim"))
    return tuple(spans)


def _data(view: LaunchView) -> tuple[str, str]:
    if view.data_age is None:
        return "○", "headdim"
    if view.data_age < STALE:
        return "●", "headgood"
    return ("◐", "headwarn") if view.data_age < 10 else ("✖", "headbad")
