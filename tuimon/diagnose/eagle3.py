"""What each engine's EAGLE-3 draft class reads: config fields, tensor names by version, shapes.

Facts: SGLang 0.4.6 – 0.5.23 (`models/llama_eagle3.py` of each wheel), vLLM 0.32 (`models/llama_eagle3.py`,
`transformers_utils/configs/speculators`). The draft's one layer was called `midlayer` until SGLang 0.5.11.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from tuimon.diagnose.checkpoint import Checkpoint

Version = tuple[int, ...]
NEWEST = {"sglang": "0.5.23", "vllm": "0.32.0"}
"""The newest version whose source these facts were read from."""
RENAMED: Version = (0, 5, 12)
"""SGLang from which the layer is `layers.0`, more than one layer is allowed, and fc takes any number of taps."""
NORM_BEFORE_FC: Version = (0, 5, 17)
LEGACY = {
    "midlayer": "layers.0",
    "aux_norm_low": "fc_norm.0",
    "aux_norm_mid": "fc_norm.1",
    "aux_norm_high": "fc_norm.2",
}
LAYER = re.compile(r"^layers\.(\d{1,4})\.(.+)$")


class Case(Struct, frozen=True):
    """What is to be checked."""

    draft: Checkpoint
    target: dict[str, Any] | None
    """The target's config (of its language model); None = not given."""
    engine: str
    version: Version
    algorithm: str = "EAGLE3"

    @property
    def config(self) -> dict[str, Any]:
        """The draft's config as the engine sees it: vLLM unfolds the speculators format."""
        return unfolded(self.draft.config) if self.engine == "vllm" else self.draft.config


class Expected(Struct, frozen=True):
    """A tensor that the draft class has."""

    shape: tuple[int | None, ...]
    """None = the config does not tell."""
    required: bool = True
    """False: nothing breaks without it."""


class Sizes(Struct, frozen=True):
    """The config's numbers; None where it does not tell."""

    hidden: int | None
    target_hidden: int | None
    """Width of one tapped hidden state."""
    taps: int
    heads: int | None
    kv_heads: int | None
    head_dim: int | None
    inner: int | None
    vocab: int | None
    draft_vocab: int | None
    layers: int


def version_of(text: str) -> Version:
    """`0.5.12.post1` → (0, 5, 12); a post release counts as its release."""
    return tuple(int(part) for part in re.findall(r"\d{1,9}", re.split(r"post|rc|dev|\+", text)[0])[:4])


def is_speculators(config: dict[str, Any]) -> bool:
    """Whether this is vLLM's speculators format."""
    return "speculators_model_type" in config or isinstance(config.get("transformer_layer_config"), dict)


def unfolded(config: dict[str, Any]) -> dict[str, Any]:
    """The speculators format as one flat config; others as they are."""
    inner = config.get("transformer_layer_config")
    if not isinstance(inner, dict):
        return config
    flat = {**inner, "architectures": [f"Eagle3{str(inner.get('model_type', 'llama')).title()}ForCausalLM"]}
    for name in ("draft_vocab_size", "norm_before_residual", "norm_before_fc", "fc_norm", "norm_output"):
        flat[name] = config.get(name)
    if config.get("target_hidden_size") is not None:
        flat["target_hidden_size"] = config["target_hidden_size"]
    flat.setdefault("model_type", "llama")
    return flat


def language(config: dict[str, Any]) -> dict[str, Any]:
    """The language model's part of a multimodal config."""
    for name in ("text_config", "llm_config", "language_config", "thinker_config"):
        inner = config.get(name)
        if isinstance(inner, dict) and "hidden_size" in inner:
            return inner
    return config


def number(config: dict[str, Any], name: str) -> int | None:
    """A whole number of the config, or unknown."""
    value = config.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 40 else None


def options(config: dict[str, Any]) -> dict[str, Any]:
    """`eagle_config`, or an empty one."""
    found = config.get("eagle_config")
    return found if isinstance(found, dict) else {}


def sizes(case: Case) -> Sizes:
    """The numbers that shapes follow from."""
    config = case.config
    hidden, heads = number(config, "hidden_size"), number(config, "num_attention_heads")
    head_dim = number(config, "head_dim") or (hidden // heads if hidden and heads else None)
    inner = "intermediate_size_mlp" if config.get("model_type") == "llama4_text" else "intermediate_size"
    target_hidden = number(config, "target_hidden_size") if "target_hidden_size" in config else hidden
    return Sizes(
        hidden, target_hidden, taps(case), heads, number(config, "num_key_value_heads") or heads, head_dim,
        number(config, inner), number(config, "vocab_size"),
        number(config, "draft_vocab_size") or number(config, "vocab_size"), number(config, "num_hidden_layers") or 1,
    )  # fmt: skip


def taps(case: Case) -> int:
    """How many hidden states of the target fc takes: always 3 until SGLang 0.5.11."""
    if case.engine == "sglang" and case.version < RENAMED:
        return 3
    ids = options(case.config).get("eagle_aux_hidden_state_layer_ids")
    return number(case.config, "num_aux_hidden_states") or (len(ids) if isinstance(ids, list) and ids else 3)


def expected(case: Case) -> dict[str, Expected]:
    """Every tensor that the draft class has, by its name without `model.`."""
    size = sizes(case)
    config = case.config
    wide = size.target_hidden * size.taps if size.target_hidden else None
    uses_fc = options(config).get("use_aux_hidden_state", True)
    found = {"fc.weight": Expected((size.hidden, wide), bool(uses_fc)), "norm.weight": Expected((size.hidden,))}
    for layer in range(min(size.layers, 64)):
        found.update(layer_tensors(f"layers.{layer}.", size, first=layer == 0))
    own_head = not config.get("tie_word_embeddings") and config.get("draft_vocab_size") is not None
    found["lm_head.weight"] = Expected((size.draft_vocab, size.hidden), own_head)
    narrower = bool(size.draft_vocab and size.vocab and size.draft_vocab < size.vocab)
    found["d2t"] = Expected((size.draft_vocab,), narrower)
    differs = case.engine == "sglang" and size.target_hidden != size.hidden
    found["embed_tokens.weight"] = Expected((size.vocab, size.hidden), differs)
    if config.get("bias"):
        found["fc.bias"] = Expected((size.hidden,))
    return found | norms(case, size, wide)


def layer_tensors(prefix: str, size: Sizes, *, first: bool) -> dict[str, Expected]:
    """One decoder layer; only the first takes embedding and hidden state side by side."""
    hidden = size.hidden
    wide = 2 * hidden if hidden and first else hidden
    query = size.heads * size.head_dim if size.heads and size.head_dim else None
    key = size.kv_heads * size.head_dim if size.kv_heads and size.head_dim else None
    shapes: dict[str, tuple[int | None, ...]] = {
        "self_attn.q_proj.weight": (query, wide), "self_attn.k_proj.weight": (key, wide),
        "self_attn.v_proj.weight": (key, wide), "self_attn.o_proj.weight": (hidden, query),
        "mlp.gate_proj.weight": (size.inner, hidden), "mlp.up_proj.weight": (size.inner, hidden),
        "mlp.down_proj.weight": (hidden, size.inner), "input_layernorm.weight": (hidden,),
        "post_attention_layernorm.weight": (hidden,), "hidden_norm.weight": (hidden,),
    }  # fmt: skip
    return {prefix + name: Expected(shape) for name, shape in shapes.items()}


def norms(case: Case, size: Sizes, wide: int | None) -> dict[str, Expected]:
    """Norms that only some configs and versions have."""
    config, found = case.config, {}
    newer = case.engine == "vllm" or case.version >= RENAMED
    if newer and (config.get("fc_norm") or config.get("use_aux_norm")):
        found.update({f"fc_norm.{tap}.weight": Expected((size.target_hidden,)) for tap in range(min(size.taps, 64))})
    before = options(config).get("norm_before_fc", config.get("norm_before_fc"))
    if before and (case.engine == "vllm" or case.version >= NORM_BEFORE_FC):
        found["input_norm.weight"] = Expected((wide,))
    return found


def resolve(key: str, case: Case, known: dict[str, Expected]) -> str | None:
    """The tensor that the engine puts a checkpoint's key into; None where it finds no place for it."""
    if "d2t" in key or "t2d" in key:
        return "d2t" if "d2t" in key else "t2d"
    name = vllm_name(key) if case.engine == "vllm" else sglang_name(key, case.version)
    return name if name is not None and (name in known or fused(name, known)) else None


def vllm_name(key: str) -> str:
    """vLLM puts `model.` in front itself, so a key that has it finds no place."""
    return key.replace("midlayer.", "layers.0.")


def sglang_name(key: str, version: Version) -> str | None:
    """SGLang tries the key as it is and with `model.` in front; `layers.0` is unknown before it was renamed."""
    name = key
    if version >= RENAMED:
        for old, new in LEGACY.items():
            name = name.replace(old, new)
    elif "layers.0." in name:
        return None
    else:
        name = name.replace("midlayer.", "layers.0.")
    bare = name.removeprefix("model.")
    return None if bare.startswith("lm_head.") and name != bare else bare


FUSED = {"qkv_proj": ("q_proj", "k_proj", "v_proj"), "gate_up_proj": ("gate_proj", "up_proj")}


def fused(name: str, known: dict[str, Expected]) -> tuple[str, ...]:
    """The tensors that a fused one stands for; empty where it is none."""
    for whole, parts in FUSED.items():
        names = tuple(name.replace(whole, part) for part in parts)
        if whole in name and names[0] in known:
            return names
    return ()
