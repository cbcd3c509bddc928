"""The demo's checkpoints: real configs and safetensors headers; the weights are holes in sparse files.

Where the scenario's draft does nothing, its tensors carry a prefix that SGLang does not know: the server becomes ready,
and drops them without a word. That is the fault that key p finds.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

TARGET, DRAFT = "models/Kimi-K2.5", "models/kimi-k2.5-eagle3"
"""Relative to the launch's folder, as on the command line."""
USELESS = frozenset({"silent-stall", "useless-draft"})
"""Scenarios whose draft carries the wrong prefix."""
HIDDEN, INNER, HEADS, WIDTH, VOCABULARY, SMALL = 7168, 18432, 64, 128, 163840, 32000
SIZES = {"BF16": 2, "I64": 8, "BOOL": 1}


def write(folder: Path, scenario: str) -> None:
    """Lay both checkpoints into the launch's folder; a few KB of disk. Raises OSError."""
    target, draft = folder / TARGET, folder / DRAFT
    text = {"model_type": "kimi_k2", "hidden_size": HIDDEN, "vocab_size": VOCABULARY, "num_hidden_layers": 61}
    text |= {"max_position_embeddings": 262144, "num_attention_heads": HEADS}
    write_config(target, {"architectures": ["KimiK25ForConditionalGeneration"], "text_config": text})
    write_config(
        draft,
        {
            "architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama", "hidden_size": HIDDEN,
            "intermediate_size": INNER, "num_hidden_layers": 1, "num_attention_heads": HEADS,
            "num_key_value_heads": HEADS, "head_dim": WIDTH, "vocab_size": VOCABULARY, "draft_vocab_size": SMALL,
            "max_position_embeddings": 262144,
        },
    )  # fmt: skip
    write_tensors(draft / "model.safetensors", tensors("draft_model." if scenario in USELESS else ""))


def write_config(folder: Path, config: dict[str, Any]) -> None:
    """A checkpoint's folder with its config."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config, indent=1))


def tensors(prefix: str) -> dict[str, tuple[str, tuple[int, ...]]]:
    """An EAGLE-3 draft's tensors by name, as SGLang before 0.5.12 spells them behind the prefix."""
    layer = f"{prefix}midlayer."
    shapes = {
        f"{prefix}fc.weight": (HIDDEN, 3 * HIDDEN), f"{prefix}norm.weight": (HIDDEN,),
        f"{layer}self_attn.q_proj.weight": (HEADS * WIDTH, 2 * HIDDEN),
        f"{layer}self_attn.k_proj.weight": (HEADS * WIDTH, 2 * HIDDEN),
        f"{layer}self_attn.v_proj.weight": (HEADS * WIDTH, 2 * HIDDEN),
        f"{layer}self_attn.o_proj.weight": (HIDDEN, HEADS * WIDTH),
        f"{layer}mlp.gate_proj.weight": (INNER, HIDDEN), f"{layer}mlp.up_proj.weight": (INNER, HIDDEN),
        f"{layer}mlp.down_proj.weight": (HIDDEN, INNER), f"{layer}input_layernorm.weight": (HIDDEN,),
        f"{layer}hidden_norm.weight": (HIDDEN,), f"{layer}post_attention_layernorm.weight": (HIDDEN,),
        "lm_head.weight": (SMALL, HIDDEN),
    }  # fmt: skip
    return {name: ("BF16", shape) for name, shape in shapes.items()} | {
        "d2t": ("I64", (SMALL,)),
        "t2d": ("BOOL", (VOCABULARY,)),
    }


def write_tensors(path: Path, named: dict[str, tuple[str, tuple[int, ...]]]) -> None:
    """A safetensors file whose weights take no room."""
    entries: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, (dtype, shape) in named.items():
        size = SIZES[dtype]
        for each in shape:
            size *= each
        entries[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    header = json.dumps(entries).encode()
    with path.open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + at)
