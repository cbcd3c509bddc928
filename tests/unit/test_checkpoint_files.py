"""Reading a checkpoint: whole, torn, sharded, here and on a host; the command; anything hostile."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.drafts import CONFIG, NEW, OLD, TARGET, Json, good, header_of, without, write
from tuimon.diagnose import checkpoint, preflight
from tuimon.diagnose.errors import BadCheckpoint
from tuimon.diagnose.safetensors import Tensor, parse_header
from tuimon.headless import checkpoint as headless
from tuimon.hosts.local import LocalHost

HEAD, _ = header_of(good())


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is 0 bytes long: no safetensors file"),
        (HEAD[:100], "claims a header of"),
        ((1 << 60).to_bytes(8, "little") + b"{}", "claims a header of 1152921504606846976 bytes"),
        (b'\x05\0\0\0\0\0\0\0{"a":', "is no JSON"),
        (b"\x02\0\0\0\0\0\0\0[]", "is no JSON object"),
        (b'\x0b\0\0\0\0\0\0\0{"fc": [1]}', "describes 'fc' in a way that is not safetensors'"),
    ],
)
def test_files_that_are_none_give_a_clear_error_and_exit_2(
    tmp_path: Path, content: bytes, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(write(tmp_path / "draft", CONFIG, {}))
    (path / "model.safetensors").write_bytes(content)
    assert headless.run(str(path), None, None, None, as_json=True) == 2
    out, err = capsys.readouterr()
    assert words in err
    document = json.loads(out)
    assert (document["verdict"], document["findings"]) == ("unknown", [])
    assert words in document["error"]


def test_missing_shards_config_and_folders_are_named(tmp_path: Path) -> None:
    path = Path(write(tmp_path / "draft", CONFIG, good(), "model-00001-of-00002.safetensors"))
    index = {"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}
    (path / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(BadCheckpoint, match=r"lacks 1 of 2 shards .* model-00002-of-00002"):
        checkpoint.read_local(str(path))
    (path / "config.json").write_text("{")
    with pytest.raises(BadCheckpoint, match=r"config\.json is no JSON"):
        checkpoint.read_local(str(path))
    (path / "config.json").unlink()
    with pytest.raises(BadCheckpoint, match=r"has no config\.json"):
        checkpoint.read_local(str(path))
    with pytest.raises(BadCheckpoint, match="No such file or directory"):
        checkpoint.read_local(str(tmp_path / "nowhere"))


def test_a_sharded_draft_is_read_whole_and_the_weights_never(tmp_path: Path) -> None:
    tensors = list(good().items())
    path = Path(write(tmp_path / "draft", CONFIG, dict(tensors[:5]), "model-00001-of-00002.safetensors"))
    write(path, CONFIG, dict(tensors[5:]), "model-00002-of-00002.safetensors")
    assert preflight.check_local(str(path), None, "sglang", NEW).verdict == "ok"


def test_a_checkpoint_on_a_host_reads_the_same_as_here(tmp_path: Path) -> None:
    path = write(tmp_path / "draft", CONFIG, good())
    there = asyncio.run(checkpoint.read(LocalHost(), path))
    assert there == checkpoint.read_local(path)
    with pytest.raises(BadCheckpoint, match="No such file"):
        asyncio.run(checkpoint.read(LocalHost(), str(tmp_path / "nowhere")))


def test_a_name_of_the_hub_is_found_in_its_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    snapshot = tmp_path / "hub" / "models--org--draft" / "snapshots" / "abc"
    write(snapshot, CONFIG, good())
    assert len(checkpoint.read_local("org/draft").tensors) == len(good())


@pytest.mark.parametrize(
    ("spec", "host", "path"),
    [
        ("/data/draft", None, "/data/draft"),
        ("./a:b", None, "./a:b"),
        ("org/name", None, "org/name"),
        ("gpu-17:/data/draft", "gpu-17", "/data/draft"),
        ("root@gpu-17:2222:/data/draft", "root@gpu-17:2222", "/data/draft"),
        ("gpu-17:draft", "gpu-17", "draft"),
        ("[::1]:22:/data", "[::1]:22", "/data"),
        ("demo:healthy:/data", "demo:healthy", "/data"),
    ],
)
def test_host_and_path_are_told_apart(spec: str, host: str | None, path: str) -> None:
    assert headless.split(spec) == (host, path)


def test_the_exit_code_and_the_words_say_what_will_happen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fine = write(tmp_path / "fine", CONFIG, good())
    useless = write(tmp_path / "useless", CONFIG, without("fc.weight"))
    target = write(tmp_path / "target", TARGET, {})

    assert headless.run(fine, target, "sglang", NEW, as_json=True) == 0
    document = json.loads(capsys.readouterr().out)
    assert document == {
        "schema": "tuimon.checkpoint/1", "path": fine, "target": target, "engine": "sglang", "engine_version": NEW,
        "format": "eagle3", "verdict": "ok", "findings": [],
    }  # fmt: skip
    assert headless.run(useless, None, None, None, as_json=False) == 1
    words = capsys.readouterr().out
    assert "SILENTLY USELESS: sglang 0.5.23 will become ready, and the draft will do nothing" in words
    assert "the newest known here" in words
    assert "the target was not given" in words


@pytest.mark.parametrize(
    ("argv", "draft", "target", "algorithm"),
    [
        (
            "sglang serve --model-path /t --speculative-draft-model-path /d --speculative-algorithm EAGLE3",
            "/d",
            "/t",
            "EAGLE3",
        ),
        ("python -m sglang.launch_server --model=/t --speculative-draft-model-path=/d", "/d", "/t", "EAGLE3"),
        ('vllm serve /t --speculative-config {"model":"/d","method":"eagle3"}', "/d", "/t", "eagle3"),
    ],
)
def test_the_command_line_names_draft_and_target(argv: str, draft: str, target: str, algorithm: str) -> None:
    assert preflight.launched(argv.split(" ")) == preflight.Launched(draft, target, algorithm)


def test_a_command_line_without_a_draft_names_none() -> None:
    assert preflight.launched(["sglang", "serve", "--model-path", "/t"]) is None
    assert preflight.launched(["vllm", "serve", "/t", "--speculative-config", "{broken"]) is None


@given(st.binary(max_size=200), st.integers(0, 1 << 50))
def test_any_bytes_are_a_header_or_a_clear_error(start: bytes, size: int) -> None:
    with contextlib.suppress(BadCheckpoint):
        parse_header("x", start, size)


scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=4)
)
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner), max_leaves=5
)
FIELDS = [
    *CONFIG, "target_hidden_size", "eagle_config", "fc_norm", "norm_before_fc", "num_aux_hidden_states", "rope_scaling",
    "bias", "speculators_model_type", "speculators_config", "transformer_layer_config", "quantization_config",
    "tie_word_embeddings",
]  # fmt: skip
names = st.sampled_from([*good(), "layers.3.mlp.up_proj.weight", "model.fc.weight", "", "midlayer", "x.norm.weight"])
shapes = st.lists(st.integers(0, 99), max_size=3)
engines, versions = st.sampled_from(["sglang", "vllm", "other"]), st.sampled_from([OLD, NEW, "x", ""])


@given(st.dictionaries(st.sampled_from(FIELDS), anything), st.dictionaries(names, shapes), engines, versions)
def test_any_config_and_any_tensors_get_a_verdict(
    config: Json, tensors: dict[str, list[int]], engine: str, version: str
) -> None:
    held = {name: Tensor("BF16", tuple(shape), "f") for name, shape in tensors.items()}
    draft = checkpoint.Checkpoint("p", {**CONFIG, **config}, held)
    found = preflight.judge(draft, checkpoint.Checkpoint("t", {**TARGET, **config}, {}), engine, version)
    assert found.verdict in {"ok", "broken", "silent", "unknown"}
    assert json.dumps(preflight.as_document(found))
