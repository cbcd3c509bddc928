"""Grammars: every rule matches its own samples, users can add and replace rules, a bad one is named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tuimon.engines.grammar import COMMON, Grammar, Library, library, ready, shipped, use
from tuimon.engines.matching import Matcher
from tuimon.engines.rule import Rule, literal
from tuimon.launch.logbook import KEY, shown_severity
from tuimon.launch.reading import Reading

ENGINES = sorted(shipped().grammars)
ALARMING = {"error", "fatal"}
# (engine, rule): another rule that matches too says something else, and the order is what decides.
MEANT = {
    ("ray", "http_start", "ready"): "inside Ray, vLLM's HTTP server is not yet Ray's readiness",
    ("vllm", "fatal.aftermath", "shutdown.step"): "the death of the engine is told in a line of the shutdown",
}
TEN_LINES = r"""
engine = "myserver"
recognise = ['^\[myserver\] ']
expect = ["weights", "ready"]

[[rule]]
name = "load_begin"
match = '^\[myserver\] loading (?P<model>\S+)'
phase = "weights"
mark = "begin"
sample = "[myserver] loading /models/m"

[[rule]]
name = "ready"
match = '^\[myserver\] listening'
phase = "ready"
mark = "end"
role = "ready"
sample = "[myserver] listening on :9000"
"""


def matcher(engine: str) -> Matcher:
    grammars = shipped()
    return Matcher(ready(grammars.rules(grammars.grammars[engine])))


@pytest.mark.parametrize("engine", ENGINES)
def test_every_sample_gives_its_own_rule_first(engine: str) -> None:
    rules = matcher(engine)
    for rule in shipped().grammars[engine].rules:
        for sample in rule.samples:
            found = rules.find(sample.encode())
            assert found is not None, (rule.name, sample)
            assert found.rule.name == rule.name, sample


@pytest.mark.parametrize("engine", ENGINES)
def test_no_other_rule_contradicts_a_sample(engine: str) -> None:
    rules = matcher(engine)
    contradictions = [
        (engine, rule.name, other.name)
        for rule in shipped().grammars[engine].rules
        for sample in rule.samples
        for other in rules.all(sample.encode())
        if contradicts(rule, other) and (engine, rule.name, other.name) not in MEANT
    ]
    assert contradictions == []


def contradicts(rule: Rule, other: Rule) -> bool:
    """Calm against alarming, or another end of the launch."""
    ends = {"ready", "ended", "finished"}
    return (rule.severity in ALARMING) != (other.severity in ALARMING) or (
        rule.role != other.role and other.role in ends
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_names_are_unique_and_phases_are_known(engine: str) -> None:
    grammar = shipped().grammars[engine]
    names = [rule.name for rule in grammar.rules]
    assert len(names) == len(set(names))
    phases = set(shipped().phases(grammar)) | {"download"}
    if engine != COMMON:
        assert {rule.phase for rule in grammar.rules if rule.phase} <= phases
        assert set(grammar.expect) <= phases


@pytest.mark.parametrize("engine", [name for name in ENGINES if name != COMMON])
def test_an_engine_is_recognised_by_its_own_log(engine: str) -> None:
    reading = Reading()
    samples = [sample for rule in shipped().grammars[engine].rules for sample in rule.samples if "HTTP/" not in sample]
    for sample in samples:
        reading.feed(sample.encode() + b"\n", 1.0)
    assert reading.told(1.0).engine == shipped().grammars[engine].title


@pytest.mark.parametrize(
    ("name", "engine"),
    [
        ("SGLang", "sglang"), ("vLLM", "vllm"), ("tensorrt-llm", "trtllm"), ("llama.cpp", "llamacpp"), ("TGI", "tgi"),
        ("ray-serve-llm", "ray"), ("hf-trainer", "torchrun"), ("accelerate", "torchrun"), ("lmdeploy", "lmdeploy"),
    ],
)  # fmt: skip
def test_an_engine_is_found_by_its_names(name: str, engine: str) -> None:
    grammar = shipped().find(name)
    assert grammar is not None
    assert grammar.engine == engine


def test_nobody_is_found_by_no_name() -> None:
    assert shipped().find(None) is None
    assert shipped().find("cobol") is None


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"^Load weight end\. type=(?P<type>\w+)", "Load weight end. type="),
        (r"^Capture (?:cuda|CPU) graph begin\.", " graph begin."),
        (r"colou?r of money", "r of money"),
        (r"a|b", ""),
        (r"[Aa]ddress already in use", "ddress already in use"),
        (r"\[\d+/\d+\] building", "] building"),
        (r"x{2,3}yes", "yes"),
        (r"[]x] here", " here"),
    ],
)
def test_the_text_that_every_match_contains_is_read_off_a_pattern(pattern: str, text: str) -> None:
    assert literal(pattern) == text


# --- users' grammars --------------------------------------------------------------------------------------------------


def user(folder: Path, **files: str) -> Library:
    for name, text in files.items():
        (folder / f"{name}.toml").write_text(text)
    return library(folder)


def test_a_users_grammar_in_ten_lines_is_enough(tmp_path: Path) -> None:
    grammars = user(tmp_path, mine=TEN_LINES)
    assert grammars.faults == ()
    reading = Reading(grammars)
    reading.feed(b"[myserver] loading /models/m\n[myserver] listening on :9000\n", 5.0)
    told = reading.told(5.0)
    assert told.engine == "myserver"
    assert told.ready == 5.0
    assert [(phase.name, phase.state) for phase in told.phases] == [("weights", "done"), ("ready", "done")]


def test_the_grammars_in_use_are_the_ones_the_program_was_started_with(tmp_path: Path) -> None:
    use(user(tmp_path, mine=TEN_LINES))
    try:
        reading = Reading()
        reading.feed(b"[myserver] loading /models/m\n", 5.0)
        assert reading.told(5.0).engine == "myserver"
    finally:
        use(shipped())


def test_a_users_rule_replaces_the_one_of_the_same_name(tmp_path: Path) -> None:
    text = """
engine = "sglang"
[[rule]]
name = "ready"
match = '^We are open'
role = "ready"
phase = "ready"
mark = "end"
sample = "[2026-03-04 10:15:51] We are open"
"""
    grammar = user(tmp_path, sglang=text).grammars["sglang"]
    assert [rule.patterns for rule in grammar.rules if rule.name == "ready"] == [["^We are open"]]
    assert any(rule.name == "load_begin" for rule in grammar.rules), "the other rules stay"


@pytest.mark.parametrize(
    ("bad", "line", "reason"),
    [
        ("match = '^oops ('\nsample = 'oops ('", 3, "no regular expression"),
        ("match = '^other'\nsample = 'mine'", 3, "does not match its own sample"),
        ("match = '^mine'\nsample = 'mine'\ncolour = 'red'", 3, "colour"),
        ("match = '^mine'", 3, "sample"),
        ("match = '\\d+'\nsample = '123'", 3, "no fixed text"),
        ("match = 'größe'\nsample = 'größe'", 3, "ASCII"),
        ("match = '^mine'\nsample = 'mine'\nseverity = 'terrible'", 3, "terrible"),
    ],
)
def test_a_bad_rule_is_named_with_file_line_and_reason_and_the_rest_works(
    tmp_path: Path, bad: str, line: int, reason: str
) -> None:
    good = "\n[[rule]]\nname = 'good'\nmatch = '^good line'\nsample = 'good line'\n"
    grammars = user(tmp_path, mine=f"engine = 'mine'\n\n[[rule]]\nname = 'bad'\n{bad}\n{good}")
    (fault,) = grammars.faults
    assert fault.file.endswith("mine.toml")
    assert fault.line == line
    assert reason in fault.reason
    assert [rule.name for rule in grammars.grammars["mine"].rules] == ["good"]
    assert "sglang" in grammars.grammars


@pytest.mark.parametrize("text", ["engine = ", "\xff\xfe", "rule = 3\nengine = 'x'", "[[rule]]\nname = 'x'"])
def test_a_file_that_is_no_grammar_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "mine.toml").write_bytes(text.encode("latin-1"))
    (fault,) = library(tmp_path).faults
    assert "mine.toml" in fault.sentence()


def test_a_folder_that_is_missing_adds_nothing(tmp_path: Path) -> None:
    assert library(tmp_path / "nowhere").faults == ()


def test_rules_that_are_extended_come_behind_the_own_ones() -> None:
    grammars = shipped()
    rules = grammars.rules(grammars.grammars["ray"])
    names = [rule.name for rule in rules]
    assert names.index("deploy") < names.index("engine_init") < names.index("nccl_timeout")


def test_grammars_that_extend_each_other_end(tmp_path: Path) -> None:
    grammars = user(tmp_path, a="engine = 'a'\nextends = 'b'", b="engine = 'b'\nextends = 'a'")
    assert isinstance(grammars.grammars["a"], Grammar)
    grammars.rules(grammars.grammars["a"])


ACCESS = re.compile(r'"(?:GET|HEAD|POST) /\S* HTTP/[\d.]+" \d')


@pytest.mark.parametrize("engine", ENGINES)
def test_an_access_line_is_no_key_line(engine: str) -> None:
    """Somebody asked, perhaps we: that belongs to no lens that shows what the launch did."""
    shown = [
        (rule.name, sample)
        for rule in shipped().rules(shipped().grammars[engine])
        for sample in rule.samples
        if ACCESS.search(sample) and shown_severity(rule.severity) in KEY
    ]
    assert shown == []
