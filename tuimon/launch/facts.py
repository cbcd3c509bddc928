"""What a launch was told to do: from the argument dump in its log, or from its command line."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from msgspec import Struct

_QUIET_LEVELS = frozenset({"warning", "warn", "error", "critical", "fatal"})
# One pair of `ServerArgs(…)`, for dumps that Python cannot parse.
_PAIR = re.compile(r"\b([a-z]\w*)=('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[^,()\[\]{}]+)")
_SHORT = {
    "tp": "tp_size", "tensor_parallel_size": "tp_size", "pp": "pp_size", "pipeline_parallel_size": "pp_size",
    "dp": "dp_size", "data_parallel_size": "dp_size", "ep": "ep_size", "expert_parallel_size": "ep_size",
    "model": "model_path", "model_tag": "model_path", "speculative_algo": "speculative_algorithm",
    "speculative_draft_model": "speculative_draft_model_path", "nproc_per_node": "ranks_per_node",
    "m": "model_path", "np": "ranks_per_node",
}  # fmt: skip
_FLAGS = frozenset(
    {"enforce_eager", "disable_cuda_graph", "skip_server_warmup", "enable_dp_attention", "is_embedding", "headless"}
)


class Facts(Struct, frozen=True):
    """Arguments that matter, by SGLang's names; what is not told has its default."""

    values: dict[str, object]
    source: str
    """`log` or `command line`."""

    def get(self, name: str, default: object = None) -> object:
        """A value as it was given."""
        return self.values.get(name, default)

    def size(self, name: str) -> int:
        """A parallel size, at least 1."""
        return max(1, self.number(name) or 1)

    def number(self, name: str) -> int:
        """A whole number, 0 where it was not given."""
        value = self.values.get(name)
        try:
            return int(value) if isinstance(value, int | float | str) else 0
        except ValueError:
            return 0

    @property
    def model(self) -> str | None:
        """Model path or name."""
        value = self.values.get("served_model_name") or self.values.get("model_path")
        if isinstance(value, list | tuple):
            value = value[0] if value else None
        return str(value) if value else None

    @property
    def speculation(self) -> tuple[str, str] | None:
        """(argument's name, algorithm), None where speculation is off."""
        algorithm = self.values.get("speculative_algorithm")
        if algorithm:
            return "speculative_algorithm", str(algorithm)
        config = self.values.get("speculative_config")
        if isinstance(config, Mapping) and config:
            return "speculative_config", str(config.get("method") or ("draft_model" if config.get("model") else "?"))
        return None

    @property
    def draft(self) -> bool:
        """A draft model (or head) is loaded: not for n-gram and suffix speculation."""
        found = self.speculation
        return bool(found) and found is not None and found[1].lower() not in {"ngram", "suffix", "none", "[ngram]"}

    @property
    def quiet(self) -> bool:
        """The log level hides milestones."""
        level = self.values.get("log_level")
        return isinstance(level, str) and level.lower() in _QUIET_LEVELS

    @property
    def follows(self) -> bool:
        """Not the first node: it never serves, and is told what to do by the first."""
        return self.number("node_rank") > 0 or bool(self.values.get("headless"))

    @property
    def ranks(self) -> int | None:
        """Ranks on this node."""
        if "ranks_per_node" in self.values:
            return self.size("ranks_per_node")
        nodes = self.size("nnodes")
        replicas = 1 if self.values.get("enable_dp_attention") else self.size("dp_size")
        world = self.size("tp_size") * self.size("pp_size")
        return max(1, world // nodes) * replicas

    @property
    def shape(self) -> str | None:
        """`tp 8 · EAGLE3`."""
        parts = [
            f"{name} {self.size(f'{name}_size')}" for name in ("tp", "pp", "dp", "ep") if self.size(f"{name}_size") > 1
        ]
        if not parts and "tp_size" in self.values:
            parts = ["tp 1"]
        nodes = self.size("nnodes")
        if nodes > 1:
            parts.append(f"node {self.number('node_rank') + 1} of {nodes}")
        if self.speculation:
            parts.append(self.speculation[1])
        return " · ".join(parts) or None


@lru_cache(maxsize=16)  # a dump of 19 KB takes 10 ms, and a log that is appended to by every launch repeats it
def from_log(message: str) -> Facts | None:
    """Facts from an argument dump (SGLang's two formats, vLLM's two lines); None where the line is none."""
    for read in (_sglang, _vllm_args, _vllm_config):
        values = read(message)
        if values:
            return Facts(_named(values), "log")
    return None


def from_argv(argv: Sequence[str]) -> Facts | None:
    """Facts from a command line."""
    values: dict[str, object] = {}
    words = list(argv)
    for index, word in enumerate(words):
        if not word.startswith("-") or word == "-":
            continue
        name, equals, value = word.lstrip("-").partition("=")
        name = name.replace("-", "_")
        following = words[index + 1] if index + 1 < len(words) else "-"
        if equals:
            values[name] = _plain(value)
        elif following.startswith("-") and not re.fullmatch(r"-\d+", following):
            values[name] = True
        else:
            values[name] = True if name in _FLAGS else _plain(following)
    if len(words) > 1 and "serve" in words[:-1] and "model" not in values and "model_path" not in values:
        positional = words[words.index("serve") + 1]
        if not positional.startswith("-"):
            values["model_path"] = positional
    return Facts(_named(values), "command line") if values else None


def _named(values: Mapping[str, object]) -> dict[str, object]:
    return {_SHORT.get(name, name): value for name, value in values.items()}


def _plain(text: str) -> object:
    if text[:1] in "{[" or re.fullmatch(r"-?\d+(\.\d+)?", text):
        try:
            return ast.literal_eval(text.replace("true", "True").replace("false", "False").replace("null", "None"))
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return text
    return text


def _sglang(message: str) -> dict[str, object]:
    match = re.search(r"server_args=(ServerArgs\(|\{)", message)
    return _parsed(message[match.start(1) :]) if match else {}


def _vllm_args(message: str) -> dict[str, object]:
    match = re.search(r"non-default args: (\{)", message)
    return _parsed(message[match.start(1) :]) if match else {}


def _vllm_config(message: str) -> dict[str, object]:
    match = re.search(r"LLM engine \(v([^)]*)\) with config: ", message)
    if not match:
        return {}
    values = _pairs(message[match.end() :])
    speculation = re.search(r"speculative_config=SpeculativeConfig\(method='?([\w-]+)'?(?:, model='([^']*)')?", message)
    values["speculative_config"] = {"method": speculation[1], "model": speculation[2]} if speculation else None
    return values


def _parsed(text: str) -> dict[str, object]:
    try:
        node = ast.parse(text.strip(), mode="eval").body
        value = _value(node)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return _pairs(text)
    return value if isinstance(value, dict) else {}


def _value(node: ast.expr) -> object:
    if isinstance(node, ast.Call):
        return {word.arg: _value(word.value) for word in node.keywords if word.arg}
    if isinstance(node, ast.Dict):
        return {
            key.value: _value(value)
            for key, value in zip(node.keys, node.values, strict=True)
            if isinstance(key, ast.Constant) and isinstance(key.value, str)
        }
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError):
        return ast.unparse(node)[:200]


def _pairs(text: str) -> dict[str, object]:
    values: dict[str, object] = {}
    for name, word in _PAIR.findall(text):
        try:
            values.setdefault(name, ast.literal_eval(word.strip()))
        except (ValueError, SyntaxError, MemoryError):
            values.setdefault(name, word.strip())
    for name, word in re.findall(r"'(\w+)': ('[^']*'|[\w.-]+)", text):
        values.setdefault(name, word.strip("'"))
    return values
