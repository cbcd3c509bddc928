"""Secrets out of text: before it is shown, stored or sent on. Pure, idempotent, usable on any foreign line.

SGLang prints its API key in its own argument dump, vLLM in its command line; both would end in recordings and reports.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

HIDDEN = "***"
PIECE = 8192
"""Bytes. A search keeps the interpreter to itself until it ends, and keys wait: 15 ms for a second of a busy log."""

# Bounded repeats: foreign text may not make this quadratic.
_NAMES = r"(?:[a-z]{1,24}[_-]){0,4}(?:api[_-]?keys?|token|secret|password|passwd|credentials?)(?:[_-](?:key|id))?"
_VALUE = r"(?:'(?:[^'\\]|\\.)*'?|\"(?:[^\"\\]|\\.)*\"?|[^\s,'\"()\[\]{}&;]+)"
_LIST = rf"\[\s*{_VALUE}(?:\s*,\s*{_VALUE})*\s*\]?"
# Values that say "there is none" stay: they are facts, and redacting them would claim a secret.
_NOTHING = r"(?!(?:None|null|False|True|''|\"\"|\*\*\*)(?:[\s,)}\]]|$))"
_ASSIGNED = re.compile(
    rf"(?P<name>(?<![A-Za-z0-9]){_NAMES}['\"]?\s*(?:=|:)\s*)"
    rf"(?P<value>{_NOTHING}(?:{_LIST}|{_VALUE}))",
    re.IGNORECASE,
)
_FLAG = re.compile(
    rf"(?P<name>--{_NAMES}['\"]?(?:\s*,)?\s+)(?P<value>(?!-){_NOTHING}{_VALUE})",
    re.IGNORECASE,
)
_HEADER = re.compile(
    r"(?P<name>(?:proxy-)?authorization['\"]?\s*[:=]\s*['\"]?(?:(?:Bearer|Basic|Token)\s+)?|\bBearer\s+)"
    r"(?P<value>(?!\*\*\*|Bearer\b|Basic\b|Token\b)[^\s,'\"(){}]+)",
    re.IGNORECASE,
)
# Well-known shapes: Hugging Face, OpenAI style, GitHub, Slack, AWS, and credentials inside a URL.
_SHAPES = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|xox[abprs]-[A-Za-z0-9-]{10,}|AKIA[0-9A-Z]{16})"
    r"|(?<=://)[^/\s:@]{1,200}:[^/\s@]{1,200}(?=@)"
)
# Token counts are no secrets: `#new-token: 6`, `max_tokens=16`, `token usage: 0.01`.
_COUNT = re.compile(r"^[\d.,:%]+$")
_HINT = re.compile(
    r"key|token|secret|passw|credential|authorization|bearer|hf_|sk-|gh[pousr]_|xox|AKIA|://", re.IGNORECASE
)
_HINT_BYTES = re.compile(_HINT.pattern.encode(), re.IGNORECASE)


def redact(text: str) -> str:
    """`text` with every secret's value replaced by `***`."""
    if not _HINT.search(text):
        return text
    text = _HEADER.sub(_hide, text)
    text = _ASSIGNED.sub(_hide, text)
    text = _FLAG.sub(_hide, text)
    return _SHAPES.sub(HIDDEN, text)


def redact_bytes(text: bytes) -> bytes:
    """The same for raw log bytes; bytes that are no UTF-8 survive unchanged."""
    return b"".join(map(_redacted, _pieces(text)))


def _pieces(text: bytes) -> Iterator[bytes]:
    """Whole lines, some at a time."""
    start = 0
    while start < len(text):
        end = text.find(b"\n", start + PIECE) + 1 or len(text)
        yield text[start:end]
        start = end


def _redacted(text: bytes) -> bytes:
    if not _HINT_BYTES.search(text):
        return text
    return redact(text.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def redact_argv(argv: tuple[str, ...]) -> tuple[str, ...]:
    """A command line, word by word: `--api-key X` and `--api-key=X`."""
    words: list[str] = []
    hide_next = False
    for word in argv:
        if hide_next and not word.startswith("-"):
            words.append(HIDDEN)
        else:
            words.append(redact(word))
        hide_next = bool(re.fullmatch(rf"--{_NAMES}", word, re.IGNORECASE))
    return tuple(words)


def _hide(match: re.Match[str]) -> str:
    value = match["value"]
    if _COUNT.match(value):
        return match[0]
    quote = value[0] if value[0] in "'\"" else ""
    return f"{match['name']}{quote}{HIDDEN}{quote}"
