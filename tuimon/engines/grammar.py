"""Grammars: what each engine's log says, as data. One TOML file per engine, and one of rules that hold for all.

Users' files in their config folder add rules or replace those of the same name; a bad rule is named (file, line,
reason) and everything else still works.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from tuimon.engines.matching import Matcher
from tuimon.engines.rule import Compiled, Rule, compiled

COMMON = "common"
"""The grammar whose rules hold for every engine."""
_BIGGEST = 1024 * 1024  # bytes of a user's grammar that are read


class Fault(Struct, frozen=True):
    """What is wrong with a user's grammar."""

    file: str
    line: int | None
    reason: str

    def sentence(self) -> str:
        """File, line and reason in one line."""
        return f"{self.file}{f':{self.line}' if self.line else ''}: {self.reason}"


class Grammar(Struct, frozen=True):
    """The rules of one engine, best first."""

    engine: str
    title: str
    aliases: tuple[str, ...] = ()
    """Other names of the engine: as the probe, a user or a sample calls it."""
    recognise: tuple[str, ...] = ()
    """Patterns that only this engine writes, searched in whole lines."""
    extends: str | None = None
    """Engine whose rules hold too, after these."""
    phases: tuple[str, ...] = ()
    """Names of its phases in their usual order."""
    expect: tuple[str, ...] = ()
    """Phases that always come, where tuimon knows no better from the arguments."""
    serves: bool = True
    """False for training: it ends instead of becoming ready."""
    rules: tuple[Rule, ...] = ()


class _File(Struct, forbid_unknown_fields=True):
    engine: str
    title: str | None = None
    aliases: tuple[str, ...] = ()
    recognise: tuple[str, ...] = ()
    extends: str | None = None
    phases: tuple[str, ...] = ()
    expect: tuple[str, ...] = ()
    serves: bool = True
    rule: list[Any] = []


class Library(Struct, frozen=True):
    """All grammars that can be used."""

    grammars: dict[str, Grammar]
    faults: tuple[Fault, ...] = ()
    compiled: dict[str, list[Compiled]] = {}
    """Patterns by engine, filled as they are asked for: compiling 150 of them takes 60 ms."""

    def patterns(self, grammar: Grammar | None) -> list[Compiled]:
        """The rules that hold for an engine, compiled, in the order in which they are tried."""
        name = grammar.engine if grammar else COMMON
        if name not in self.compiled:
            self.compiled[name] = ready(self.rules(grammar))
        return self.compiled[name]

    def find(self, name: str | None) -> Grammar | None:
        """The grammar of an engine by its name or one of its aliases, in any case."""
        if not name:
            return None
        wanted = name.lower()
        for grammar in self.grammars.values():
            if wanted == grammar.engine or wanted in grammar.aliases:
                return grammar
        return None

    def rules(self, grammar: Grammar | None) -> list[Rule]:
        """Rules in the order in which they are tried: the engine's, those it extends, those of all engines."""
        chain: list[Grammar] = []
        while grammar is not None and grammar not in chain:
            chain.append(grammar)
            grammar = self.grammars.get(grammar.extends) if grammar.extends else None
        common = self.grammars.get(COMMON)
        return [rule for part in chain for rule in part.rules] + (list(common.rules) if common else [])

    def phases(self, grammar: Grammar | None) -> tuple[str, ...]:
        """The engine's phases in order, its own or those it extends."""
        while grammar is not None and not grammar.phases and grammar.extends:
            grammar = self.grammars.get(grammar.extends)
        return grammar.phases if grammar else ()


@cache
def shipped() -> Library:
    """The grammars inside the package. They are tested, so a fault in them is a bug and raises ValueError."""
    grammars: dict[str, Grammar] = {}
    for entry in sorted(files("tuimon.engines").iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith(".toml"):
            faults: list[Fault] = []
            grammar = parse(entry.read_text("utf-8"), entry.name, faults)
            if grammar is None or faults:
                raise ValueError("; ".join(fault.sentence() for fault in faults))
            grammars[grammar.engine] = grammar
    return Library(grammars)


_in_use: list[Library] = []


def use(grammars: Library) -> None:
    """Read logs with these from now on, where nobody says otherwise: called once, when the program starts."""
    _in_use[:] = [grammars]


def in_use() -> Library:
    """The grammars that the program was started with; the shipped ones where it said nothing."""
    return _in_use[0] if _in_use else shipped()


def library(folder: Path) -> Library:
    """The shipped grammars with those of a user's folder (`*.toml`) added; a missing folder adds nothing."""
    grammars = dict(shipped().grammars)
    faults: list[Fault] = []
    try:
        paths = sorted(folder.glob("*.toml"))
    except OSError as error:
        return Library(grammars, (Fault(str(folder), None, str(error)),))
    for path in paths:
        try:
            with path.open("rb") as file:
                text = file.read(_BIGGEST).decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            faults.append(Fault(str(path), None, f"cannot be read: {error}"))
            continue
        grammar = parse(text, str(path), faults)
        if grammar is not None:
            grammars[grammar.engine] = _merged(grammars.get(grammar.engine), grammar)
    return Library(grammars, tuple(faults))


def parse(text: str, file: str, faults: list[Fault]) -> Grammar | None:
    """One grammar file; what is wrong is appended to `faults`, None where nothing of it can be used."""
    try:
        raw = msgspec.convert(tomllib.loads(text), _File)
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"line (\d+)", str(error))
        faults.append(Fault(file, int(at[1]) if at else None, f"not TOML: {error}"))
        return None
    except msgspec.ValidationError as error:
        faults.append(Fault(file, None, str(error)))
        return None
    rules: list[Rule] = []
    for value, line in zip(raw.rule, _lines_of_rules(text), strict=False):
        try:
            rule = msgspec.convert(value, Rule)
            _check(rule)
        except (msgspec.ValidationError, ValueError) as error:
            faults.append(Fault(file, line, f"rule {_name(value)}: {error}"))
            continue
        rules.append(rule)
    for pattern in raw.recognise:
        try:
            re.compile(pattern.encode())
        except re.error as error:
            faults.append(Fault(file, None, f"recognise {pattern!r}: {error}"))
            return None
    return Grammar(
        raw.engine.lower(), raw.title or raw.engine, tuple(name.lower() for name in raw.aliases), raw.recognise,
        raw.extends, raw.phases, raw.expect, raw.serves, tuple(rules),
    )  # fmt: skip


def _check(rule: Rule) -> None:
    ready = compiled(rule)
    matcher = Matcher(ready)
    for sample in rule.samples:
        if matcher.find(sample.encode()) is None:
            raise ValueError(f"does not match its own sample {sample[:80]!r}")


def _merged(old: Grammar | None, new: Grammar) -> Grammar:
    if old is None:
        return new
    names = {rule.name for rule in new.rules}
    return Grammar(
        old.engine, new.title if new.title != new.engine else old.title, old.aliases + new.aliases,
        old.recognise + new.recognise, new.extends or old.extends, new.phases or old.phases, new.expect or old.expect,
        old.serves and new.serves, new.rules + tuple(rule for rule in old.rules if rule.name not in names),
    )  # fmt: skip


def _lines_of_rules(text: str) -> Iterator[int]:
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"\s*\[\[\s*rule\s*\]\]", line):
            yield number


def _name(value: object) -> str:
    return str(value.get("name", "without a name")) if isinstance(value, dict) else "that is no table"


def ready(rules: Iterable[Rule]) -> list[Compiled]:
    """Rules compiled, in order."""
    return [pattern for rule in rules for pattern in compiled(rule)]
