"""What stands before a message: time, rank, process, level, in the habits of every engine we know.

Prefixes nest (Ray before vLLM, `[rank0]:` before a C++ stamp), so parts are taken off one after another.
"""

from __future__ import annotations

import re
from calendar import timegm
from functools import lru_cache

from msgspec import Struct

_LEVELS = rb"(?P<level>TRACE|DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL|FATAL)"
_DAY = rb"\d{4}-\d\d-\d\d"
_CLOCK = rb"\d\d:\d\d:\d\d"

_BRACKETS = (
    # SGLang and uvicorn under SGLang: `[2026-03-04 10:15:36.412 DP0 PP1 TP3 EP3] `
    rb"\[(?P<full>" + _DAY + rb"[ T]" + _CLOCK + rb"(?:[.,]\d+)?)(?P<tags>(?: [A-Z_]{2,8}\d+)*)\] ?",
    # torch's Python traceback prefix and the C++ one: `[rank0]: `, `[rank0]:[W1130 …`
    rb"\[rank(?P<trank>\d+)\]:? ?",
    # glog: `[W1130 03:26:39.840455039 reducer.cpp:1529] `; month without a leading zero: `[E304 …`
    rb"\[(?P<letter>[IWEFD])(?P<glog>\d{3,4} " + _CLOCK + rb"\.\d+) (?:\d+ )?[\w./-]+:\d+\] ?",
    # TensorRT-LLM: `[10/21/2025-23:23:27] [TRT-LLM] [RANK 0] [I] `, C++ `[TensorRT-LLM][INFO] `
    rb"\[(?P<us>\d\d/\d\d/\d{4}-" + _CLOCK + rb")\] ?",
    rb"\[TRT-LLM\] (?:\[(?:MPI_Rank|RANK) ?(?P<trank>\d+)\] )?\[(?P<letter>[IWEDVF])\] ",
    rb"\[TensorRT-LLM\](?:\[" + _LEVELS + rb"\])? ?",
    # transformers: `[INFO|trainer.py:2409] 2026-11-30 03:20:11,123 >> `
    rb"\[" + _LEVELS + rb"\|[\w./-]+:\d+\] (?P<full>" + _DAY + rb" " + _CLOCK + rb"(?:,\d+)?) >> ",
)
_DIGITS = (
    # llama.cpp: minutes.seconds.ms.us since the start
    rb"(?P<since>\d+\.\d\d\.\d\d\d\.\d\d\d) (?P<letter>[IWED]) ",
    # Rust tracing (TGI, Dynamo): `2026-01-08T14:02:49.123456Z  INFO `
    rb"(?P<full>" + _DAY + rb"T" + _CLOCK + rb"(?:\.\d+)?)Z?\s+" + _LEVELS + rb" +",
    # LMDeploy, flashinfer, plain logging: `2026-10-12 11:04:31,408 - lmdeploy - INFO - base.py:439 - `
    rb"(?P<full>" + _DAY + rb" " + _CLOCK + rb"(?:[.,]\d+)?) - (?:[\w.-]+ - )?" + _LEVELS + rb" - (?:[\w./-]+:\d+ - )?",
    rb"(?P<full>" + _DAY + rb" " + _CLOCK + rb"(?:[.,]\d+)?),? (?:\[?" + _LEVELS + rb"\]?:? )?",
    rb"(?P<us>\d\d/\d\d/\d{4} " + _CLOCK + rb") - " + _LEVELS + rb" - [\w.]+ - +",
    rb"(?P<hms>" + _CLOCK + rb") (?=\[rank|[A-Z])",
)
_LETTERS = (
    # vLLM: `INFO 11-30 03:10:41 [core.py:133] `, before 0.8 `INFO 02-25 18:26:42 llm_engine.py:234] `
    _LEVELS + rb" (?P<md>\d\d-\d\d " + _CLOCK + rb") \[?[\w./-]+:\d+\] ?",
    # Ray: `INFO 2026-08-19 17:58:40,112 controller 28290 -- `
    _LEVELS + rb" (?P<full>" + _DAY + rb" " + _CLOCK + rb",\d+) [^\n]{1,120}? -- ",
    rb"(?P<letter>[IWEF])(?P<glog>\d{3,4} " + _CLOCK + rb"\.\d+) (?:\d+ )?[\w./-]+:\d+\] ?",
    # NCCL: `node-a:4711:4711 [0] NCCL INFO …`
    rb"[\w.-]{1,64}:(?P<pid>\d+):\d+ \[\d+\] (?=NCCL )",
)
_PARENS = (rb"\((?P<proc>[\w:.@/= -]{1,160}?) pid=(?P<pid>\d+)(?:, ip=[\d.]+)?\) ?",)


def _compiled(parts: tuple[bytes, ...]) -> tuple[re.Pattern[bytes], ...]:
    return tuple(re.compile(part) for part in parts)


_BY_FIRST: dict[int, tuple[re.Pattern[bytes], ...]] = {ord("["): _compiled(_BRACKETS), ord("("): _compiled(_PARENS)}
_BY_FIRST.update(dict.fromkeys(b"0123456789", _compiled(_DIGITS)))
_BY_FIRST.update(dict.fromkeys(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_", _compiled(_LETTERS)))
_MOST_PARTS = 8  # `(ServeReplica…) (EngineCore…) (RayWorkerProc…) (Worker…) INFO …` has five
_JSON = re.compile(rb'"(?:message|fields":\{"message)"\s*:\s*"((?:[^"\\]|\\.)*)"')
_JSON_TIME = re.compile(rb'"(?:asctime|timestamp|time)"\s*:\s*"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)')
_JSON_PROC = re.compile(rb'"processName"\s*:\s*"([^"]{1,80})".*?"process"\s*:\s*(\d+)')


class Prefix(Struct, frozen=True):
    """What stands before a message."""

    clock: str | None = None
    """The time of day as written."""
    stamp: float | None = None
    """Seconds since the epoch as if the zone were UTC; since the start for llama.cpp."""
    yearless: bool = False
    """The stamp lacks a year (then it counts from 1972) or a day."""
    rank: str | None = None
    process: str | None = None
    """Name of the process where it is no rank: APIServer, EngineCore."""
    pid: int | None = None
    level: str | None = None


NONE = Prefix()
"""Of a line without one."""
_LEVEL_OF = {"I": "INFO", "W": "WARNING", "E": "ERROR", "F": "FATAL", "D": "DEBUG", "V": "DEBUG", "WARN": "WARNING"}


# Lines of the same second and process begin alike: what their heads (up to the first "] ") say is remembered.
_heads: dict[bytes, Prefix] = {}
_MOST_HEADS = 4096
_LONGEST_HEAD = 200


def parse(line: bytes) -> tuple[bytes, Prefix]:
    """A line's message, and what stands before it; never raises."""
    end = line.find(b"] ", 0, _LONGEST_HEAD) + 2
    if end > 2:
        known = _heads.get(line[:end])
        if known is not None:
            return line[end:], known
    elif line.startswith((b"INFO: ", b" ")):
        return line, NONE
    if line.startswith(b'{"'):
        structured = _structured(line)
        if structured is not None:
            return structured
    at, found, last = _parts(line)
    if at == 0:
        return line, NONE
    result = _prefix(found) if found else NONE
    if at == end and last in _LAST:
        if len(_heads) >= _MOST_HEADS:
            _heads.clear()
        _heads[line[:end]] = result
    return line[at:], result


# Kinds of time behind which no further part of a prefix comes.
_LAST = frozenset({"full", "md"})


def _parts(line: bytes) -> tuple[int, dict[str, bytes], str | None]:
    """(where the message begins, what the parts say, the kind of time that the last part has)."""
    at = 0
    found: dict[str, bytes] = {}
    kind = None
    for _ in range(_MOST_PARTS):
        patterns = _BY_FIRST.get(line[at]) if at < len(line) else None
        for pattern in patterns or ():
            match = pattern.match(line, at)
            if match:
                part = {name: value for name, value in match.groupdict().items() if value is not None}
                found.update(part)
                at = match.end()
                kind = next((name for name in ("full", "md") if name in part), None)
                break
        else:
            break
        if kind is not None:
            break
    return at, found, kind


def _prefix(found: dict[str, bytes]) -> Prefix:
    stamp, clock, yearless = _time(found)
    rank, process = None, None
    if "proc" in found:
        rank, process = who(found["proc"])
    if found.get("tags"):
        rank = tagged(found["tags"])
    elif "trank" in found:
        rank = f"rank{int(found['trank'])}"
    level = found.get("level") or found.get("letter")
    name = level.decode() if level else None
    return Prefix(
        clock, stamp, yearless, rank, process,
        int(found["pid"][:9]) if "pid" in found else None,
        _LEVEL_OF.get(name, name) if name else None,
    )  # fmt: skip


def _structured(line: bytes) -> tuple[bytes, Prefix] | None:
    """A JSON line (vLLM's optional formatter, Dynamo, TGI): message, time and process are taken out."""
    match = _JSON.search(line)
    if not match:
        return None
    found: dict[str, bytes] = {}
    time = _JSON_TIME.search(line)
    if time:
        found["full"] = time[1]
    process = _JSON_PROC.search(line)
    if process:
        found["proc"], found["pid"] = process[1], process[2]
    message = match[1].replace(rb"\"", b'"').replace(rb"\n", b" ").replace(rb"\\", b"\\")
    return message, _prefix(found) if found else NONE


@lru_cache(maxsize=512)
def tagged(tags: bytes) -> str | None:
    """SGLang's tags as a rank, as written: its process title is made of the same words, and the probe reads that."""
    return tags.decode("ascii", "replace").strip() or None


@lru_cache(maxsize=512)
def who(name: bytes) -> tuple[str | None, str | None]:
    """vLLM's process name as (rank, process): `Worker_DP0_TP3_EP3` → `DP0 TP3 EP3`."""
    text = name.decode("ascii", "replace")
    if text.startswith(("EngineCore", "DPEngineCore", "APIServer", "ApiServer", "Serve", "Proxy")):
        return None, text
    numbered = re.search(r"rank=(\d+)", text)
    if numbered:
        return f"TP{numbered[1]}", text
    return " ".join(re.findall(r"[A-Z]*(?:DP|PP|TP|EP|CP)\d+", text)) or None, text


def _time(found: dict[str, bytes]) -> tuple[float | None, str | None, bool]:
    for kind in ("full", "md", "us", "glog", "since", "hms"):
        if kind in found:
            return _stamp(kind, found[kind])
    return None, None, False


@lru_cache(maxsize=4096)
def _stamp(kind: str, text: bytes) -> tuple[float | None, str | None, bool]:
    """(seconds, time of day as written, without year). Impossible dates give no seconds."""
    words = text.decode("ascii", "replace")
    if kind == "since":
        minutes, seconds, milli, micro = words.split(".")
        return int(minutes) * 60 + int(seconds) + int(milli) / 1e3 + int(micro) / 1e6, words, False
    clock = words[11:] if kind == "full" else words.split()[1] if kind == "glog" else words[-8:]
    hour, minute, second = int(clock[:2]), int(clock[3:5]), int(clock[6:8])
    fraction = float(f"0.{clock[9:]}") if len(clock) > 9 and clock[9:].isdigit() else 0.0
    year, month, day = 1972, 1, 1  # a leap year, so that 02-29 exists
    if kind == "full":
        year, month, day = int(words[:4]), int(words[5:7]), int(words[8:10])
    elif kind == "us":
        month, day, year = int(words[:2]), int(words[3:5]), int(words[6:10])
    elif kind == "md":
        month, day = int(words[:2]), int(words[3:5])
    elif kind == "glog":
        date = words.split()[0]
        month, day = int(date[:-2]), int(date[-2:])
    if not (1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60 and second < 62):
        return None, clock[:12], kind not in {"full", "us"}
    seconds_ = timegm((year, month, day, hour, minute, second, 0, 1, 0)) + fraction
    return seconds_, clock[:12], kind not in {"full", "us"}
