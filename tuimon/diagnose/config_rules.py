"""Rules on config.json: format, class, fields, target, options. Facts by version: `eagle3.py`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tuimon.diagnose.eagle3 import NORM_BEFORE_FC, RENAMED, Case, Version, is_speculators, number, options, sizes
from tuimon.diagnose.flaws import MLA, Flaw, architecture, shown
from tuimon.diagnose.pyspy import clean

DRAFTS: dict[str, dict[str, Version]] = {
    "sglang": {"LlamaForCausalLMEagle3": (0, 0), MLA: RENAMED},
    "vllm": dict.fromkeys(("LlamaForCausalLMEagle3", "Eagle3LlamaForCausalLM", "Eagle3Qwen3ForCausalLM"), (0, 0)),
}
"""Draft classes by engine → the first version that has them."""
TARGETS = frozenset({
    "gpt_oss", "llama", "llama4", "llama4_text", "mllama4", "qwen2", "qwen2_5_vl", "qwen2_moe", "qwen3", "qwen3_moe",
    "apertus", "bailing_moe", "deepseek_v2", "deepseek_v3", "kimi_k2", "exaone_moe", "glm4_moe", "longcat_flash",
    "minimax_m2", "qwen3_next",
})  # fmt: skip
"""Targets whose class lets hidden states be tapped, up to SGLang 0.5.9; later versions have more."""
TARGETS_KNOWN_TO = (0, 5, 9)


def the_format(case: Case) -> Iterator[Flaw]:
    """1: a format the engine reads, and a `model_type`."""
    config = case.draft.config
    if is_speculators(config) and case.engine == "vllm":
        yield from speculators_fields(config)
    elif is_speculators(config):
        yield Flaw(
            "format.speculators", "fatal", "speculators_model_type",
            "absent: no SGLang reads vLLM's speculators format",
            shown(config.get("speculators_model_type", "transformer_layer_config")),
            "Convert it: lift transformer_layer_config to the top, architectures [LlamaForCausalLMEagle3], model_type"
            " llama; aux layer ids under eagle_config, minus 1",
        )  # fmt: skip
    elif not config.get("model_type"):
        yield Flaw(
            "format.model_type", "fatal", "model_type", "llama", "absent", 'Add "model_type": "llama" to config.json'
        )


def speculators_fields(config: dict[str, Any]) -> Iterator[Flaw]:
    """What vLLM demands of the speculators format."""
    inner = as_object(config.get("speculators_config"))
    methods = inner.get("proposal_methods")
    first = as_object(methods[0] if isinstance(methods, list) and methods else None)
    wanted: dict[str, object] = {
        "speculators_model_type": config.get("speculators_model_type"),
        "transformer_layer_config": config.get("transformer_layer_config"),
        "speculators_config.proposal_methods[0].speculative_tokens": first.get("speculative_tokens"),
        "speculators_config.verifier.name_or_path": as_object(inner.get("verifier")).get("name_or_path"),
    }
    for key, value in wanted.items():
        if value is None:
            yield Flaw("format.speculators", "fatal", key, "present", "absent", f"Add {key} to config.json")


def as_object(value: object) -> dict[str, Any]:
    """A JSON object, or an empty one."""
    return value if isinstance(value, dict) else {}


def the_architecture(case: Case) -> Iterator[Flaw]:
    """2: a draft class that this version has, and the algorithm that uses it."""
    name = architecture(case)
    known = DRAFTS.get(case.engine, {})
    usable = [each for each, since in known.items() if case.version >= since]
    eagle3 = case.algorithm.upper() == "EAGLE3"
    if name not in usable and eagle3 and not is_speculators(case.draft.config):
        since = known.get(name)
        fix = f"Set architectures to [{usable[0]}]" if usable else "Use SGLang or vLLM"
        if since:
            fix = f"Use {case.engine} ≥ {'.'.join(map(str, since))}"
        yield Flaw("architecture", "fatal", "architectures", " or ".join(usable), shown(name or None), fix)
    if "eagle3" in name.lower() and not eagle3 and case.engine == "sglang":
        yield Flaw(
            "architecture.algorithm", "silent", "--speculative-algorithm", "EAGLE3", shown(case.algorithm),
            "Start with --speculative-algorithm EAGLE3: with EAGLE fc is skipped and nothing is ever accepted",
        )  # fmt: skip


def the_config(case: Case) -> Iterator[Flaw]:
    """3: fields without which the engine's own code fails."""
    config = case.config
    if "draft_vocab_size" not in config and case.engine == "sglang":
        yield Flaw(
            "config.draft_vocab_size", "fatal", "draft_vocab_size",
            "a number, or null to share the target's head", "absent",
            'Add "draft_vocab_size" to config.json (the rows of lm_head.weight)',
        )  # fmt: skip
    if "target_hidden_size" in config and number(config, "target_hidden_size") is None:
        yield Flaw(
            "config.target_hidden_size", "fatal", "target_hidden_size", "a number, or no such key",
            clean(str(config["target_hidden_size"])), "Remove target_hidden_size, or set the target's hidden_size",
        )  # fmt: skip
    layers = number(config, "num_hidden_layers")
    if layers != 1 and case.engine == "sglang" and case.version < RENAMED:
        yield Flaw(
            "config.num_hidden_layers", "fatal", "num_hidden_layers", "1", shown(config.get("num_hidden_layers")),
            "Set it to 1, or use SGLang ≥ 0.5.12",
        )  # fmt: skip
    target = (case.target or {}).get("model_type")
    if target and case.engine == "sglang" and case.version <= TARGETS_KNOWN_TO and str(target) not in TARGETS:
        yield Flaw(
            "target.class", "fatal", "target model_type", "a target that lets its layers be tapped", shown(target),
            "Use a newer SGLang: this version has no set_eagle3_layers_to_capture for it",
        )  # fmt: skip


def the_target(case: Case) -> Iterator[Flaw]:
    """7: widths and vocabulary of the target that it is meant for."""
    size, target = sizes(case), case.target or {}
    hidden, vocab = number(target, "hidden_size"), number(target, "vocab_size")
    if hidden and size.target_hidden and size.target_hidden != hidden:
        key = "target_hidden_size" if "target_hidden_size" in case.config else "hidden_size"
        yield Flaw(
            "target.hidden_size", "fatal", key, f"{hidden} (the target's)", str(size.target_hidden),
            "This draft was made for another target: the first draft step stops with a matmul error",
        )  # fmt: skip
    if vocab and size.vocab and size.vocab != vocab:
        yield Flaw(
            "target.vocab_size", "silent", "vocab_size", f"{vocab} (the target's)", str(size.vocab),
            "The embedding is shared with the target: the vocabularies must be the same",
        )  # fmt: skip


def the_details(case: Case) -> Iterator[Flaw]:
    """8: options that this version does not know, and layer ids in the other convention."""
    if case.engine != "sglang":
        return
    config = case.draft.config
    if config.get("norm_before_residual") is True:
        yield Flaw(
            "config.norm_before_residual", "silent", "norm_before_residual", "false or absent", "true",
            "No SGLang implements it: the draft computes something else. Train without it, or serve it with vLLM",
        )  # fmt: skip
    since = {"fc_norm": RENAMED, "use_aux_norm": RENAMED, "norm_output": RENAMED, "norm_before_fc": NORM_BEFORE_FC}
    for name, first in since.items():
        if (config.get(name) or options(config).get(name)) and case.version < first:
            needs = ".".join(map(str, first))
            yield Flaw(
                f"config.{name}", "silent", name, f"absent before SGLang {needs}", "set", f"Use SGLang ≥ {needs}"
            )
    ids, layers = (
        options(config).get("eagle_aux_hidden_state_layer_ids"),
        number(case.target or {}, "num_hidden_layers"),
    )
    if layers and ids == [2, layers // 2, layers - 3]:
        right = [each - 1 for each in ids]
        yield Flaw(
            "config.layer_ids", "silent", "eagle_config.eagle_aux_hidden_state_layer_ids",
            f"{right}, or absent", str(ids),
            "These are vLLM's (input of a layer); SGLang taps the output: subtract 1, or leave them out",
        )  # fmt: skip


def the_context(case: Case) -> Iterator[Flaw]:
    """9: the draft must reach as far as the target."""
    mine, needed = context(case.config), context(case.target or {})
    if mine and needed and mine < needed and case.engine == "sglang" and case.version >= (0, 5, 1):
        yield Flaw(
            "config.max_position_embeddings", "fatal", "max_position_embeddings",
            f"≥ {needed} (the target's)", str(mine),
            f"Start with --context-length {mine} or SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1, or raise it here",
        )  # fmt: skip


def context(config: dict[str, Any]) -> int | None:
    """How far a model reaches, stretched by its rope scaling as SGLang reads it."""
    length = number(config, "max_position_embeddings")
    scaling = config.get("rope_scaling")
    if not length or not isinstance(scaling, dict):
        return length
    factor = scaling.get("factor", 1)
    plain = "original_max_position_embeddings" in scaling or scaling.get("rope_type") == "llama3"
    return length if plain or not isinstance(factor, int | float) or not 0 < factor < 1e6 else int(length * factor)
