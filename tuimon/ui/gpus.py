"""GPUs, one row each: rank, work (not utilisation), memory, power, temperature, history, and a word when util lies."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from tuimon.launch.view import GpuView, LaunchView
from tuimon.ui.bars import meter, spark, squeezed
from tuimon.ui.pane import Pane
from tuimon.ui.rows import Row, cells, clean, cut, fit, flow, left, right, width_of
from tuimon.ui.words import UNKNOWN, gigabytes

BUCKET = 2.0
"""Seconds per value of a GPU's history."""


class Gpus(Pane):
    """What the GPUs really do."""

    TITLE = "GPUs"

    def slice(self, view: LaunchView) -> object:
        return view.gpus, view.gpu_note, int(view.now // BUCKET)

    def aside(self, view: LaunchView, room: int) -> str:
        names = {gpu.name for gpu in view.gpus or () if gpu.name}
        name = clean(names.pop()).removeprefix("NVIDIA ") if len(names) == 1 else ""
        full = f"{name} · work, not util"
        return full if name and len(full) <= room else "work, not util"

    def body(self, view: LaunchView, width: int, height: int) -> list[Row]:
        if view.gpus is None:
            return [((f"cannot be seen: {clean(view.gpu_note or 'no reading yet')}", "dim"),)]
        if not view.gpus:
            return [(("this machine has no GPU", "dim"),)]
        return rows(view.gpus, width, height, int(view.now // BUCKET))


def columns(count: int, width: int, height: int) -> int:
    """Two columns where one would not fit and both are wide enough to be read."""
    return 2 if count > height and width >= 72 else 1


def heat(gpus: Sequence[GpuView], width: int) -> list[Row]:
    """All GPUs as a strip of their work, eight and a space; a suspect is marked below."""
    lines: list[Row] = []
    across = max(8, (width - 4) // 9 * 8)
    for start in range(0, len(gpus), across):
        part = gpus[start : start + across]
        spans: list[tuple[str, str]] = [(f"{part[0].index:>3} ", "dim")]
        marks = "    "
        for place, gpu in enumerate(part):
            space = " " if place and place % 8 == 0 else ""
            spans += [(space, "text"), *spark([gpu.work], 1, 1.0, "suspect" if gpu.suspect else "bar")]
            marks += space + ("▲" if gpu.suspect else "!" if gpu.word else " ")
        lines.append(tuple(spans))
        if marks.strip():
            lines.append(((marks, "suspect"),))
    return lines


def together(gpus: Sequence[GpuView], width: int) -> Row:
    """All GPUs in one line: the work of each, then what stands out, then what they share."""
    works = [gpu.work for gpu in gpus if gpu.work is not None]
    watts = [gpu.power for gpu in gpus if gpu.power is not None]
    suspects = [clean(gpu.rank or f"GPU {gpu.index}") for gpu in gpus if gpu.suspect]
    lying = [clean(gpu.word) for gpu in gpus if gpu.word]
    pieces: list[Row] = [tuple(span for gpu in gpus for span in spark([gpu.work], 1, 1.0))]
    pieces += [((f"{_span([work * 100 for work in works])} % work", "text"),)] if works else []
    pieces += [((f"{' '.join(suspects[:3])} ◀", "suspect"),)] if suspects else []
    pieces += [((f"{len(lying)} × {lying[0].partition(' % ')[2] or lying[0]}", "warn"),)] if lying else []
    pieces += [((f"{gigabytes(sum(gpu.mem_used or 0 for gpu in gpus))} GB", "text"),)]
    pieces += [((f"{_span(watts)} W", "text"),)] if watts else []
    return fit(flow(pieces, width, (" · ", "dim")), width)


def _span(values: Sequence[float]) -> str:
    low, high = f"{min(values):.0f}", f"{max(values):.0f}"
    return low if low == high else f"{low}–{high}"


def rows(gpus: Sequence[GpuView], width: int, height: int, newest: int) -> list[Row]:
    """All GPUs, in one or two columns; where even those do not fit, a heat strip and what stands out first."""
    if height == 1 and 1 < len(gpus) <= 16:
        return [together(gpus, width)]
    if len(gpus) > height * columns(len(gpus), width, height) and len(gpus) > 8 and height >= 3:
        loud = sorted(gpus, key=lambda gpu: (not gpu.suspect, not gpu.word, gpu.index))
        return [*heat(gpus, width), *_rows(loud, width, height, newest)]
    return _rows(gpus, width, height, newest)


def _rows(gpus: Sequence[GpuView], width: int, height: int, newest: int) -> list[Row]:
    rank_width = max((len(clean(gpu.rank or "")) for gpu in gpus), default=0)
    word = max((cells(clean(gpu.word or "")) for gpu in gpus), default=0)
    look = Look(len(str(max(gpu.index for gpu in gpus))), min(rank_width, 12), newest, word)
    if columns(len(gpus), width, height) == 1:
        return [row(gpu, width, look) for gpu in gpus]
    half = (len(gpus) + 1) // 2
    each = (width - 2) // 2
    lines: list[Row] = []
    for index in range(half):
        second = row(gpus[half + index], each, look) if half + index < len(gpus) else ()
        lines.append(fit((*row(gpus[index], each, look), ("  ", "text"), *second), width))
    return lines


class Look(Struct, frozen=True):
    """What all rows have in common, so that their columns stand under each other."""

    index: int
    """Cells for the GPU's number."""
    rank: int
    """Cells for the rank."""
    newest: int
    """Absolute number of the newest bucket of the histories."""
    word: int
    """Cells that the longest word needs; what matters less makes room for it."""


def row(gpu: GpuView, width: int, look: Look) -> Row:
    """One GPU in `width` cells; what matters less goes first when it gets narrow."""
    mark: Row = ((" ◀", "suspect"),) if gpu.suspect else (("  ", "text"),)
    ink = "suspect" if gpu.suspect else "text"
    line: list[tuple[str, str]] = [(right(str(gpu.index), look.index) + " ", ink)]
    if look.rank:
        line.append((left(clean(gpu.rank or ""), look.rank) + " ", ink))
    spare = width - 40 - look.index - look.rank - look.word  # what is left for the bar, the total and the temperature
    if width >= 56:
        line += [*meter(gpu.work, 12 if spare >= 3 or not look.word else 8), (" ", "text")]
    line.append((right(_share(gpu.work), 5), "dim" if not gpu.work else "text"))
    if width >= 46 or not look.word:
        line.append((_memory(gpu, wide=width >= 50), "text"))
    line.append((f" {right(_watts(gpu), 5)}", "text"))
    if width >= 46 and (spare >= 0 or not look.word):
        line.append((f" {right(UNKNOWN if gpu.temperature is None else str(gpu.temperature), 2)}°", "dim"))
    if width >= 90 and gpu.sm_clock is not None:
        line.append((f" {gpu.sm_clock:>5} MHz", "dim"))
    room = width - width_of(tuple(line)) - width_of(mark) - 1
    return fit((*line, (" ", "text"), *_end(gpu, room, look.newest), *mark), width)


def _end(gpu: GpuView, room: int, newest: int) -> Row:
    """History, and the word when there is one; the word wins."""
    if room < 3:
        return ((" " * max(0, room), "text"),)
    word = clean(gpu.word or "")
    if cells(word) > room:  # "100 % busy, no work" without its number still says it
        word = word.partition(" % ")[2] or word
    word = cut(word, room)
    left_over = room - len(word) - 1 if word else room
    values = squeezed(gpu.history, min(left_over, 60), newest) if left_over >= 4 else []
    history = spark(values, len(values), 1.0)
    line: Row = (*history, (" ", "text"), (word, "warn")) if word and history else history or ((word, "warn"),)
    return fit(line, room)


def _share(work: float | None) -> str:
    return f"{UNKNOWN} %" if work is None else f"{work * 100:.0f} %"


def _memory(gpu: GpuView, *, wide: bool) -> str:
    used = gigabytes(gpu.mem_used)
    if wide:
        return f" {right(f'{used}/{gigabytes(gpu.mem_total)}', 7)} GB"
    return f" {right(used, 3)} GB"


def _watts(gpu: GpuView) -> str:
    return UNKNOWN if gpu.power is None else f"{gpu.power:.0f} W"
