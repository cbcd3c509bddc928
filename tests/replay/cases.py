"""Reported cases as events: what each report *told* (fields it did not infer), put into words that the judge knows.

The vocabulary below is the whole translation: a phrase in a field → what ranks, GPUs, health endpoint or log do.
No case is named; nothing is taken from the label.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from tests.judging import Rank, Story
from tuimon.launch.events import Finding, LogText, Metrics
from tuimon.launch.view import RED, State, Verdict

LONGEST = 400
"""Seconds of silence that are played; no patience is longer."""
UNTOLD_SILENCE = 330
AFTERWARDS = 30

RIGHT: dict[str, frozenset[State]] = {
    "silently_dead": frozenset({"stalled", "spinning", "frozen"}),
    "partly_dead": frozenset({"stalled", "crashed"}),
    "ready_but_dead": frozenset({"failing"}),
    "ready_but_degraded": frozenset({"serving"}),
    "slow_but_alive": frozenset({"starting", "quiet", "ready", "serving"}),
    "healthy": frozenset({"starting", "quiet", "ready", "serving"}),
    "misconfigured": frozenset({"starting", "quiet", "stalled"}),
    "alive_but_unreachable": frozenset({"ready", "serving"}),
    "crashed": frozenset({"crashed"}),
}

GPU_WORDS = (
    (r"some 100%, some 0%|100%.*one|29 of 30", "odd"),
    (r"100%|9[0-9]%", "spins"),
    (r"\b0%", "idle"),
    (r"blips|spiky|power to match", "works"),
)
HOST_WORDS = (
    (r"\bgone\b|\bdead\b", "dies"),
    (r"sched_yield|one core at 100|CPU busy|blocked in ncclAllReduce|R state", "spins"),
    (r"short-lived child", "compiles"),
    (r"sleep|CPU 0%|same all_gather|tree sampling", "sleeps"),
    (r"high CPU, resident memory", "imports"),
)
PERIODIC = re.compile(r"Decode batch|SpecDecoding metrics|Engine \d+: Avg")
"""Lines that an engine writes again and again while it serves."""
REPEATS = re.compile(
    r"repeat|every \d+ s|every decode|a minute|again and again|doubled intervals|\d+ lines of|exactly 1|about 1\.04"
)
LATE = re.compile(
    r"[Ww]atchdog|imeoutError|timed out|fatal error|encountered a|EngineDead|timings|s in total|could finish the model|"
    r"ended unexpect|died|hit an exception|^\w*(?:Error|Exception): "
)
"""Lines that came after the silence, not before it."""
EXCEPTION = re.compile(r"^[\w.]*(?:Error|Exception): ")
STAMP = re.compile(r"\b(\d\d):(\d\d):(\d\d)\b")
KERNEL = re.compile(r"NVRM: Xid .*?: (\d+),")
STUCK_BAR = re.compile(r"stays|stands still|stops|no end")
BAR = re.compile(r"(\d+)/(\d+) \[.*?([\d.]+)(s/it|it/s)")
METHOD = re.compile(r"^method (\w+)$")
"""A speculative method that is told without its flag."""
PENDING = re.compile(
    r"requests running|\d+ running|one decode request|requests (?:hang|stop)|first prefill line is the last|"
    r"longer one never returns",
    re.IGNORECASE,
)
SERVERS = ("sglang", "vllm", "tensorrt", "ktransformers")
SERVING = {"serving", "ready"}
COMMANDS = {
    "sglang": ("python3", "-m", "sglang.launch_server"),
    "vllm": ("vllm", "serve", "/models/m"),
    "trtllm": ("trtllm-serve",),
}


class Outcome(Struct, frozen=True):
    """How the judge did on one case."""

    id: str
    letter: str
    label: str
    told: tuple[str, ...]
    """Fields that gave evidence; empty = untold."""
    lacks: tuple[str, ...]
    states: tuple[str, ...]
    right: bool
    verdict: Verdict
    next_step: str


def cases(path: Path) -> Iterator[dict[str, Any]]:
    """All cases of the file."""
    for line in path.read_text().splitlines():
        yield json.loads(line)


class Telling:
    """One case, played."""

    def __init__(self, case: dict[str, Any]) -> None:
        self.case = case
        self.description = case["log_description"] or ""
        self.told: list[str] = []
        self.gpu = self._words("gpu_util", GPU_WORDS)
        self.host = self._words("process_state", HOST_WORDS)
        self.low_power = self._field("power") is not None
        health = self._field("health") or ""
        self.path = next(iter(re.findall(r"(/[a-z][\w/]*) \d\d\d", health)), "/health")
        self.health = next((int(status) for status in re.findall(r"\b([2345]\d\d)\b", health)), None)
        self.refused = "refused" in health and self.health is None
        if (self.health is not None and self.health != 200) or (self.refused and case["phase"] in SERVING):
            # A 200 alone tells nothing: hung and idle servers both give it. Before ready every port is refused.
            self.told.append("health")
        if self.low_power and self.gpu is not None:
            self.told.append("power")
        engine = case["engine"].split()[0].replace("tensorrt-llm", "trtllm").rstrip(",")
        self.server = engine if engine in COMMANDS else "sglang" if "sglang" in case["engine"] else engine
        self.serves = any(word in case["engine"] for word in SERVERS)
        self.was_ready = self.serves and case["phase"] in SERVING
        last = case["log_lines"][-1] if case["log_lines"] else ""
        steady = bool(PERIODIC.search(last)) and not case["time_silent_s"]
        self.repeats = bool(REPEATS.search(self.description)) or steady
        flags = (case["flags"] or "").split()
        method = METHOD.search(case["flags"] or "")
        if method is not None and self.server == "vllm":
            flags = ["--speculative-config", f"{{'method': '{method[1]}', 'model': 'draft'}}"]
        argv = (
            *COMMANDS.get(self.server, ("python3", "train.py")),
            *(flags if flags and flags[0].startswith("-") else ()),
        )
        self.story = Story(
            4, gpus=self.gpu is not None, host=self.host is not None, log=False, real_log=True, argv=argv,
            engine=self.server if self.serves else "torchrun",
        )  # fmt: skip
        self.offset = 0

    def _field(self, name: str) -> str | None:
        return None if name in self.case["inferred_fields"] else self.case[name]

    def _words(self, field: str, vocabulary: tuple[tuple[str, str], ...]) -> str | None:
        text = self._field(field)
        for pattern, does in vocabulary:
            if text is not None and re.search(pattern, text):
                self.told.append(field)
                return does
        return None

    def play(self) -> Outcome:
        """The whole course: alive, then as told, then the last lines."""
        story, case = self.story, self.case
        lines: list[str] = case["log_lines"]
        late = [line for line in lines if LATE.search(line)] if case["time_silent_s"] else []
        early = [line for line in lines if line not in late]
        story.everybody("imports", "idle")
        story.runs(3)
        if self.was_ready:
            story.asks(200)
            story.runs(1)
        self._early(early)
        self._begin()
        silence = min(LONGEST, case["time_silent_s"] or UNTOLD_SILENCE)
        self._silence(int(silence), early)
        before = story.launch.verdict
        for line in late:
            self._write(line)
            story.runs(1)
        self._silence(AFTERWARDS, [])
        return self._outcome(before, story.launch.verdict)

    def _early(self, lines: list[str]) -> None:
        """Lines as far apart as their own clocks say."""
        clock: int | None = None
        for line in lines:
            stamp = STAMP.search(line[:60])
            at = int(stamp[1]) * 3600 + int(stamp[2]) * 60 + int(stamp[3]) if stamp else None
            if clock is not None and at is not None and 0 < at - clock <= LONGEST:
                self.story.runs(at - clock)
            clock = at if at is not None else clock
            self._write(line)
            self.story.runs(1)

    def _write(self, line: str) -> None:
        kernel = KERNEL.search(line)
        if kernel:
            # The kernel's ring buffer is no part of the server's log: it comes as a finding.
            self.told.append("log_lines")
            self.story.apply(Finding(at=self.story.now, source="kernel", kind="xid", text=line, severity="fatal"))
            return
        if EXCEPTION.match(line):
            line = f"Traceback (most recent call last):\n{line}"
        text = (line + "\n").encode()
        self.story.apply(LogText(at=self.story.now, offset=self.offset, text=text))
        self.offset += len(text)

    def _begin(self) -> None:
        """From now on as told."""
        story = self.story
        if self.host == "dies":
            story.everybody("sleeps")
            story.ranks = story.ranks[:-1]
        elif self.host == "compiles":
            story.everybody("sleeps")
        elif self.host is not None:
            story.everybody(self.host)
            if self.host == "spins" and (
                "rank B" in self.case["process_state"] or "rank 0" in self.case["process_state"]
            ):
                story.ranks[1].does = "sleeps"
        if self.gpu == "odd":
            story.gpus = ["spins", "spins", "spins", "idle"]
        elif self.gpu is not None:
            story.gpus = [self.gpu] * 4
        if self.low_power:
            story.gpu_more = {i: {"power": 119.0} for i in range(4)}

    def _silence(self, seconds: int, early: list[str]) -> None:
        story = self.story
        bar = BAR.search(early[-1]) if early else None
        crawls = bar is not None and not STUCK_BAR.search(self.description)
        step = (float(bar[3]) if bar[4] == "s/it" else 1 / float(bar[3])) if bar is not None else 0.0
        pending = PENDING.search(self.description)
        if pending:
            self.told.append("log_description")
        count, due = int(bar[1]) if bar else 0, story.now
        for second in range(seconds):
            if self.host == "compiles" and second % 11 == 0:
                story.others = [
                    Rank(1000 + second, None, ppid=101, name="python3", does="sleeps", more={"children": 0.4})
                ]
                story.root.more = {"children": 0.2}
            if self.repeats and early and second % 10 == 0:
                self._write(early[-1])
            if crawls and bar is not None and story.now - due >= step:
                count, due = count + 1, story.now
                self._write(early[-1].replace(f"{bar[1]}/{bar[2]}", f"{count}/{bar[2]}"))
            if second % 10 == 0:
                self._asked(bool(pending))
            story.runs(1)

    def _asked(self, pending: bool) -> None:
        story = self.story
        if self.health is not None:
            story.asks(self.health, path=self.path)
        elif self.refused:
            story.asks(error="refused")
        if pending:
            story.apply(Metrics(at=story.now, values={"num_requests_running": 2.0, "generation_tokens_total": 500.0}))

    def _outcome(self, before: Verdict, verdict: Verdict) -> Outcome:
        case, story = self.case, self.story
        label = case["label"]["verdict"]
        states = tuple(story.states())
        told = story.launch.run.told
        bar_moved = any(phase.count is not None for phase in told.phases) and "log_lines" not in self.told
        if (
            told.fatal
            or told.error
            or told.serving
            or told.ready
            or told.last_heartbeat
            or told.allowed_wait
            or told.ended
            or bar_moved
        ):
            self.told.append("log_lines")
        wanted = RIGHT[label]
        if label in {"slow_but_alive", "healthy"}:
            right = not set(states) & RED
        else:
            right = before.state in wanted or verdict.state in wanted
        chosen = before if before.state in wanted else verdict
        alarms = {alarm for _, seen in story.verdicts for alarm in seen.alarms}
        if label == "ready_but_degraded":
            right = right and "useless_draft" in alarms
        if label == "alive_but_unreachable":
            right = right and "not_reachable" in alarms
        lacks = tuple(name for name in ("process_state", "gpu_util", "health", "log_lines") if not self._field(name))
        return Outcome(
            id=case["id"], letter=case["class"], label=label, told=tuple(dict.fromkeys(self.told)), lacks=lacks,
            states=states, right=right, verdict=chosen, next_step=case["label"]["next_step"],
        )  # fmt: skip
