# mypy: allow-untyped-calls
# (what is shared with the probe runs on Python 3.6 too, so it has no annotations)
"""What an argument list tells of a launch, where no probe does: secrets are replaced here too."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from tuimon.probe.program import recognise, redact


class Named(Struct, frozen=True):
    """As in ServerFound."""

    argv: tuple[str, ...]
    engine: str | None
    model: str | None
    port: int | None


def named(argv: Sequence[str]) -> Named:
    """Engine, model and port; None each where it is not told."""
    words = list(argv)
    engine, first = recognise.launch(words) or (None, 0)
    model = recognise.model(engine, words, first)
    return Named(
        tuple(redact.arguments(words)), engine, redact.text(model) if model else None, recognise.port(engine, words)
    )
