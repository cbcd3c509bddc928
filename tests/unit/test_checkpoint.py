"""The preflight of a draft model: every rule with a tiny checkpoint that breaks it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.drafts import (
    CONFIG,
    DIM,
    NEW,
    OLD,
    SMALL,
    TARGET,
    VOCAB,
    H,
    Json,
    Shapes,
    check,
    good,
    rules,
    without,
    write,
)  # fmt: skip
from tuimon.diagnose import preflight


@pytest.mark.parametrize("version", ["0.4.8", OLD, "0.5.12.post1", NEW, "0.5.23"])
@pytest.mark.parametrize("prefix", ["", "model."])
def test_a_good_draft_has_no_findings_in_any_version(tmp_path: Path, version: str, prefix: str) -> None:
    tensors = {(name if name == "lm_head.weight" else prefix + name): what for name, what in good().items()}
    found = check(tmp_path, tensors=tensors, version=version)
    assert (found.format, found.verdict, found.findings) == ("eagle3", "ok", ())


@pytest.mark.parametrize(("version", "verdict"), [(OLD, "silent"), (NEW, "ok")])
def test_layers_0_is_dropped_without_a_word_until_0_5_11(tmp_path: Path, version: str, verdict: str) -> None:
    found = check(tmp_path, tensors=good("layers.0"), version=version)
    assert found.verdict == verdict
    if verdict == "silent":
        (flaw,) = found.findings
        assert (flaw.rule, flaw.key, flaw.severity) == ("weights.prefix", "layers.0.*", "silent")
        assert flaw.found.startswith("10 of 12 draft tensors")
        assert flaw.fix == "Rename layers.0.* to midlayer.*, or use SGLang ≥ 0.5.12"


def test_the_night_of_the_foreign_prefix(tmp_path: Path) -> None:
    """The lab's `eagle3_badkeys`: the real server became ready in 41 s, without a warning, acceptance length 1.02."""
    tensors = {"draft_model.backbone." + name: what for name, what in good().items() if name not in {"d2t", "t2d"}}
    found = check(tmp_path, tensors=tensors)

    assert found.verdict == "silent"
    assert rules(found) == [("weights.prefix", "silent"), ("d2t.missing", "silent"), ("lm_head.missing", "silent")]
    flaw = found.findings[0]
    assert flaw.key == "draft_model.backbone.*"
    assert flaw.found.startswith("12 of 12 draft tensors are called draft_model.backbone.")
    assert "strip 'draft_model.backbone.'" in flaw.fix


def test_a_draft_for_a_target_of_another_width(tmp_path: Path) -> None:
    """The lab's `eagle3_badshape`: graph capture raised "mat1 and mat2 shapes cannot be multiplied"."""
    config = {"hidden_size": H // 2}
    found = check(tmp_path, config, good(hidden=H // 2))
    assert found.verdict == "broken"
    assert ("target.hidden_size", "fatal") in rules(found)


@pytest.mark.parametrize("name", [name for name in good() if name not in {"d2t", "t2d", "lm_head.weight"}])
def test_each_missing_tensor_is_named_because_it_stays_random(tmp_path: Path, name: str) -> None:
    found = check(tmp_path, tensors=without(name), version=OLD)
    assert found.verdict == "silent"
    assert [(flaw.rule, flaw.key) for flaw in found.findings] == [("weights.missing", name)]


@pytest.mark.parametrize("name", [name for name in good() if name not in {"d2t", "t2d"}])
def test_each_wrong_shape_is_named_with_both_shapes(tmp_path: Path, name: str) -> None:
    dtype, shape = good()[name]
    wrong = (shape[0] + 1, *shape[1:])
    found = check(tmp_path, tensors={**good(), name: (dtype, wrong)})
    (flaw,) = found.findings
    assert (found.verdict, flaw.severity, flaw.key) == ("broken", "fatal", name)
    assert (flaw.expected, flaw.found) == (str(list(shape)), str(list(wrong)))


FAULTS: list[tuple[str, Json, Shapes, str, str]] = [
    ("format.model_type", {"model_type": None}, good(), NEW, "broken"),
    ("architecture", {"architectures": ["LlamaForCausalLM"]}, good(), NEW, "broken"),
    ("architecture", {"architectures": ["Eagle3DeepseekV2ForCausalLM"]}, good(), OLD, "broken"),
    ("config.target_hidden_size", {"target_hidden_size": None}, good(), NEW, "broken"),
    ("config.num_hidden_layers", {"num_hidden_layers": 2}, good(), OLD, "broken"),
    ("fc.shape", {"num_aux_hidden_states": 4}, good(), NEW, "broken"),
    ("target.vocab_size", {"vocab_size": 63}, without("embed_tokens.weight"), NEW, "silent"),
    ("d2t.missing", {}, without("d2t"), NEW, "silent"),
    ("d2t.shape", {}, {**good(), "d2t": ("I64", (SMALL + 1,))}, NEW, "silent"),
    ("d2t.dtype", {}, {**good(), "d2t": ("BOOL", (SMALL,))}, NEW, "silent"),
    ("lm_head.missing", {}, without("lm_head.weight"), NEW, "silent"),
    ("lm_head.shape", {}, {**good(), "lm_head.weight": ("BF16", (VOCAB, H))}, NEW, "broken"),
    ("weights.ignored", {}, {**good(), "midlayer.self_attn.q_norm.weight": ("BF16", (DIM,))}, NEW, "silent"),
    ("weights.ignored", {}, {**good(), "midlayer.self_attn.q_proj.bias": ("BF16", (DIM,))}, NEW, "silent"),
    ("weights.unknown", {}, {**good(), "extra.weight": ("BF16", (4,))}, NEW, "ok"),
    ("config.norm_before_residual", {"norm_before_residual": True}, good(), NEW, "silent"),
    ("config.norm_before_fc", {"norm_before_fc": True}, good(), "0.5.16", "silent"),
    ("config.fc_norm", {"fc_norm": True}, good(), OLD, "silent"),
    ("config.layer_ids", {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [2, 4, 5]}}, good(), NEW, "silent"),
    ("config.max_position_embeddings", {"max_position_embeddings": 2048}, good(), NEW, "broken"),
    ("files.dtype", {}, {n: (w[0].replace("BF16", "F32"), w[1]) for n, w in good().items()}, NEW, "ok"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "config", "tensors", "version", "verdict"), FAULTS)
def test_each_fault_is_found_by_its_rule(
    tmp_path: Path, rule: str, config: Json, tensors: Shapes, version: str, verdict: str
) -> None:
    found = check(tmp_path, config, tensors, version=version)
    assert rule in {flaw.rule for flaw in found.findings}
    assert found.verdict == verdict
    assert all(flaw.fix and flaw.key and flaw.expected and flaw.found for flaw in found.findings)


def test_faults_add_up_in_the_order_of_the_rules(tmp_path: Path) -> None:
    config = {"model_type": None, "norm_before_residual": True, "vocab_size": 63}
    found = check(tmp_path, config, without("d2t", "fc.weight"))
    assert [flaw.rule for flaw in found.findings] == [
        "format.model_type", "weights.missing", "d2t.missing", "target.vocab_size", "config.norm_before_residual",
    ]  # fmt: skip
    assert found.verdict == "broken"


def test_a_missing_draft_vocab_size_is_fatal_and_null_shares_the_targets_head(tmp_path: Path) -> None:
    config = {name: value for name, value in CONFIG.items() if name != "draft_vocab_size"}
    path = write(tmp_path / "a", config, without("d2t", "t2d", "lm_head.weight"))
    assert rules(preflight.check_local(path, None, None, NEW)) == [("config.draft_vocab_size", "fatal")]
    shared = check(tmp_path, {"draft_vocab_size": None}, without("d2t", "t2d", "lm_head.weight"))
    assert shared.verdict == "ok"


def test_with_the_algorithm_eagle_an_eagle3_draft_accepts_nothing(tmp_path: Path) -> None:
    found = check(tmp_path, algorithm="EAGLE")
    assert rules(found) == [("architecture.algorithm", "silent")]


def test_a_draft_narrower_than_its_target_needs_target_hidden_size_and_its_own_embedding(tmp_path: Path) -> None:
    tensors = {**good(), "fc.weight": ("BF16", (H, 3 * 32))}
    config, target = {"target_hidden_size": 32}, {"hidden_size": 32}
    assert rules(check(tmp_path, config, tensors, target)) == [("embed_tokens.missing", "silent")]
    tensors["embed_tokens.weight"] = ("BF16", (VOCAB, H))
    assert check(tmp_path, config, tensors, target).verdict == "ok"


@pytest.mark.parametrize(("version", "verdict"), [("0.5.2", "broken"), ("0.5.23", "ok")])
def test_old_versions_cannot_tap_every_target(tmp_path: Path, version: str, verdict: str) -> None:
    found = check(tmp_path, target={"model_type": "some_new_model"}, version=version)
    assert found.verdict == verdict
    assert [flaw.rule for flaw in found.findings] == (["target.class"] if verdict == "broken" else [])


def test_the_language_model_inside_a_multimodal_target_is_what_counts(tmp_path: Path) -> None:
    found = check(tmp_path, target={"hidden_size": 1, "vocab_size": 1, "text_config": TARGET})
    assert found.verdict == "ok"


def test_rope_scaling_stretches_the_context_as_sglang_reads_it(tmp_path: Path) -> None:
    stretched = {"max_position_embeddings": 2048, "rope_scaling": {"type": "linear", "factor": 2.0}}
    llama3 = {"max_position_embeddings": 2048, "rope_scaling": {"rope_type": "llama3", "factor": 8.0}}
    assert check(tmp_path, stretched).verdict == "ok"
    assert check(tmp_path, llama3).verdict == "broken"


SPECULATORS: Json = {
    "architectures": ["Eagle3DraftModel"], "speculators_model_type": "eagle3", "draft_vocab_size": SMALL,
    "target_hidden_size": None, "norm_before_residual": True,
    "speculators_config": {"proposal_methods": [{"speculative_tokens": 3}], "verifier": {"name_or_path": "x"}},
    "transformer_layer_config": {k: v for k, v in CONFIG.items() if k not in {"architectures", "draft_vocab_size"}},
}  # fmt: skip


def test_the_speculators_format_is_for_vllm_only(tmp_path: Path) -> None:
    path = write(tmp_path / "draft", SPECULATORS, good("layers.0"))
    for_vllm = preflight.check_local(path, None, "vllm", None)
    for_sglang = preflight.check_local(path, None, "sglang", NEW)

    assert (for_vllm.format, for_vllm.verdict, for_vllm.findings) == ("eagle3", "ok", ())
    assert (for_sglang.format, for_sglang.verdict) == ("speculators", "broken")
    assert [flaw.rule for flaw in for_sglang.findings] == [
        "format.speculators", "config.target_hidden_size", "config.norm_before_residual",
    ]  # fmt: skip


def test_vllm_demands_fields_of_the_speculators_format_and_stops_at_unknown_keys(tmp_path: Path) -> None:
    path = write(tmp_path / "a", {**SPECULATORS, "speculators_config": {}}, good("layers.0"))
    found = preflight.check_local(path, None, "vllm", None)
    assert [flaw.key for flaw in found.findings] == [
        "speculators_config.proposal_methods[0].speculative_tokens", "speculators_config.verifier.name_or_path",
    ]  # fmt: skip
    renamed = {f"model.{name}": what for name, what in good().items()}
    assert check(tmp_path, tensors=renamed, engine="vllm").verdict == "broken"
    assert check(tmp_path, engine="vllm").verdict == "ok"


def test_what_the_rules_do_not_know_is_unknown_not_ok(tmp_path: Path) -> None:
    mla = check(tmp_path, {"architectures": ["Eagle3DeepseekV2ForCausalLM"]}, {"a": ("BF16", (1,))})
    assert (mla.format, mla.verdict) == ("eagle3-mla", "unknown")
    pickled = tmp_path / "pickled"
    write(pickled, CONFIG, {})
    (pickled / "model.safetensors").unlink()
    (pickled / "pytorch_model.bin").touch()
    found = preflight.check_local(str(pickled), None, None, None)
    assert (found.verdict, rules(found)) == ("unknown", [("files.format", "warning")])
    assert "pytorch_model.bin" in found.findings[0].found


def test_a_shard_that_ends_before_its_weights_is_broken(tmp_path: Path) -> None:
    path = Path(write(tmp_path / "draft", CONFIG, good()))
    whole = (path / "model.safetensors").read_bytes()
    (path / "model.safetensors").write_bytes(whole[:-10])
    found = preflight.check_local(str(path), None, None, None)
    assert (found.verdict, found.findings[-1].rule) == ("broken", "files.torn")
    assert "10 bytes are missing" in found.findings[-1].key
