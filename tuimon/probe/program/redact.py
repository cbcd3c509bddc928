"""Secrets in command lines are replaced before anything leaves the host."""

import re

HIDDEN = "***"
_NAME = r"(?:api[-_]?key|apikey|token|secret|password|passwd|credentials?|private[-_]?key|access[-_]?key)s?"
_FLAG = re.compile(r"^--?(?:[\w.-]*[-_.])?" + _NAME + r"$", re.I)
_ASSIGNED = re.compile(r"^(--?(?:[\w.-]*[-_.])?" + _NAME + r"|\w*" + _NAME + r")=.+", re.I | re.S)
# Names whose value is a word of the model's, not a secret (all real flags of SGLang, vLLM or llama.cpp).
_HARMLESS = re.compile(r"(max|num|min|total|eos|bos|pad|stop|image|special|thinking|reasoning)[\w-]*tokens?", re.I)
_VALUES = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{16,}|ghp_[A-Za-z0-9]{20,}|nvapi-[\w-]{16,}|wandb_\w{20,}"
    r"|eyJ[\w-]{10,}\.[\w-]+\.[\w-]+)"
)
_USERINFO = re.compile(r"(://)[^/@\s]+@")
_JSON = re.compile(r"((?:\"|')[\w-]*" + _NAME + r"(?:\"|')\s*:\s*(?:\"|'))[^\"']*", re.I)
_INSIDE = re.compile(r"((?:^|[\s;])--?(?:[\w.-]*[-_.])?" + _NAME + r"[= ]|\b\w*" + _NAME + r"=)[^\s;&'\"]+", re.I)
_BEARER = re.compile(r"(bearer\s+)[^\s'\"]+", re.I)


def is_secret_flag(argument):
    """True for `--api-key` and its like."""
    return bool(_FLAG.match(argument)) and not _HARMLESS.search(argument)


def text(content):
    """A text with the secrets in it replaced."""
    content = _VALUES.sub(HIDDEN, content)
    content = _USERINFO.sub(r"\1" + HIDDEN + "@", content)
    content = _JSON.sub(r"\1" + HIDDEN, content)
    content = _BEARER.sub(r"\1" + HIDDEN, content)
    return _INSIDE.sub(_keep_harmless, content)


def arguments(argv):
    """An argument list with secrets replaced; all values up to the next flag (vLLM takes several keys)."""
    clean = []
    hiding = False
    for argument in argv:
        if argument.startswith("-"):
            hiding = is_secret_flag(argument)
        elif hiding:
            clean.append(HIDDEN)
            continue
        assigned = _ASSIGNED.match(argument)
        if assigned and not _HARMLESS.search(assigned.group(1)):
            clean.append(assigned.group(1) + "=" + HIDDEN)
        else:
            clean.append(text(argument))
    return clean


def _keep_harmless(match):
    return match.group(0) if _HARMLESS.search(match.group(1)) else match.group(1) + HIDDEN
