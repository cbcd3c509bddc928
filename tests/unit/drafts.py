"""Tiny draft checkpoints: a config and a safetensors file written by hand, weights all zero."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tuimon.diagnose import checkpoint, preflight
from tuimon.diagnose.preflight import Preflight

Json = dict[str, Any]
Shapes = dict[str, tuple[str, tuple[int, ...]]]
H, INNER, HEADS, KV, DIM, VOCAB, SMALL = 16, 24, 4, 2, 4, 64, 32
CONFIG: Json = {
    "architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama", "hidden_size": H, "intermediate_size": INNER,
    "num_hidden_layers": 1, "num_attention_heads": HEADS, "num_key_value_heads": KV, "head_dim": DIM,
    "vocab_size": VOCAB, "draft_vocab_size": SMALL, "max_position_embeddings": 4096,
}  # fmt: skip
TARGET: Json = {
    "model_type": "llama", "hidden_size": H, "vocab_size": VOCAB, "num_hidden_layers": 8,
    "max_position_embeddings": 4096,
}  # fmt: skip
OLD, NEW = "0.5.11", "0.5.17"


def good(layer: str = "midlayer", hidden: int = H) -> Shapes:
    shapes = {
        "fc.weight": (hidden, 3 * hidden), "norm.weight": (hidden,), "lm_head.weight": (SMALL, hidden),
        f"{layer}.self_attn.q_proj.weight": (HEADS * DIM, 2 * hidden),
        f"{layer}.self_attn.k_proj.weight": (KV * DIM, 2 * hidden),
        f"{layer}.self_attn.v_proj.weight": (KV * DIM, 2 * hidden),
        f"{layer}.self_attn.o_proj.weight": (hidden, HEADS * DIM),
        f"{layer}.mlp.gate_proj.weight": (INNER, hidden), f"{layer}.mlp.up_proj.weight": (INNER, hidden),
        f"{layer}.mlp.down_proj.weight": (hidden, INNER), f"{layer}.input_layernorm.weight": (hidden,),
        f"{layer}.hidden_norm.weight": (hidden,), f"{layer}.post_attention_layernorm.weight": (hidden,),
    }  # fmt: skip
    return {name: ("BF16", shape) for name, shape in shapes.items()} | {
        "d2t": ("I64", (SMALL,)),
        "t2d": ("BOOL", (VOCAB,)),
    }


def header_of(tensors: Shapes) -> tuple[bytes, int]:
    """A safetensors header, and the bytes of weights that it promises."""
    widths = {"BF16": 2, "F16": 2, "F32": 4, "I64": 8, "BOOL": 1}
    entries: Json = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, (dtype, shape) in tensors.items():
        size = widths[dtype]
        for each in shape:
            size *= each
        entries[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(entries).encode()
    return len(text).to_bytes(8, "little") + text, at


def write(folder: Path, config: Json, tensors: Shapes, file: str = "model.safetensors") -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    head, size = header_of(tensors)
    (folder / file).write_bytes(head + bytes(size))
    return str(folder)


def check(
    tmp_path: Path, config: Json | None = None, tensors: Shapes | None = None, target: Json | None = None,
    *, engine: str = "sglang", version: str = NEW, algorithm: str = "EAGLE3",
) -> Preflight:  # fmt: skip
    draft = write(tmp_path / "draft", {**CONFIG, **(config or {})}, good() if tensors is None else tensors)
    aim = write(tmp_path / "target", {**TARGET, **(target or {})}, {})
    read = checkpoint.read_local(draft), checkpoint.read_local(aim, headers=False)
    return preflight.judge(*read, engine, version, algorithm)


def rules(found: Preflight) -> list[tuple[str, str]]:
    return [(flaw.rule, flaw.severity) for flaw in found.findings]


def without(*names: str) -> Shapes:
    return {name: what for name, what in good().items() if name not in names}
