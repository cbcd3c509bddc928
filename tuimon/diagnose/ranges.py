"""Names of many ranks in few characters: `TP[0-2,4-7]`, `DP[0-1] TP[0-7]`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_TOKEN = re.compile(r"^(.*?)(\d{1,9})$")
Key = tuple[str, int | None]


def compact(labels: Iterable[str]) -> str:
    """The labels with runs of numbers folded; labels without a number stand for themselves."""
    paths: dict[tuple[Key, ...], None] = {tuple(key(word) for word in label.split(" ")): None for label in labels}
    shapes: dict[tuple[str, ...], list[tuple[Key, ...]]] = {}
    for path in paths:
        shapes.setdefault(tuple(word for word, _ in path), []).append(path)
    return ", ".join(part for shape in shapes.values() for part in folded(shape))


def key(word: str) -> Key:
    """`TP3` → ("TP", 3); `launcher` → ("launcher", None)."""
    match = _TOKEN.match(word)
    return (match[1], int(match[2])) if match else (word, None)


def folded(paths: Sequence[tuple[Key, ...]]) -> list[str]:
    """Paths of one shape (`DP? TP?`), folded from the last word on: heads with the same tails are one."""
    if not paths[0][1:]:
        return [one_word([path[0] for path in paths])]
    tails: dict[Key, list[tuple[Key, ...]]] = {}
    for path in paths:
        tails.setdefault(path[0], []).append(path[1:])
    same: dict[tuple[str, ...], list[Key]] = {}
    for head, rest in tails.items():
        same.setdefault(tuple(folded(rest)), []).append(head)
    return [f"{one_word(heads)} {tail}" for rest, heads in same.items() for tail in rest]


def one_word(keys: Sequence[Key]) -> str:
    """`TP` with 0, 1, 2, 4 → `TP[0-2,4]`."""
    numbers = sorted({number for _, number in keys if number is not None})
    name = keys[0][0]
    if not numbers:
        return name
    return f"{name}{numbers[0]}" if len(numbers) == 1 else f"{name}[{runs(numbers)}]"


def runs(numbers: Sequence[int]) -> str:
    """Sorted numbers as runs: 0-2,4."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1] = [parts[-1][0], number]
        else:
            parts.append([number])
    return ",".join("-".join(str(end) for end in part) for part in parts)
