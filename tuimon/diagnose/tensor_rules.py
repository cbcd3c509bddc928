"""Rules on the tensors: names, shapes, the vocabulary's map, whole files. Facts by version: `eagle3.py`."""

from __future__ import annotations

from collections.abc import Iterator

from tuimon.diagnose.eagle3 import RENAMED, Case, Expected, expected, fused, resolve, sizes
from tuimon.diagnose.flaws import Flaw, Severity, kind
from tuimon.diagnose.pyspy import clean

HAVE_THEIR_OWN_RULES = frozenset({"d2t", "lm_head.weight", "embed_tokens.weight"})


def the_names(case: Case) -> Iterator[Flaw]:
    """4: every tensor is there under a name that the engine takes."""
    if not case.draft.tensors or kind(case) != "eagle3":
        return
    known = expected(case)
    loaded, rejected = placed(case, known)
    needed = [name for name, what in known.items() if what.required and name not in HAVE_THEIR_OWN_RULES]
    missing = [name for name in needed if name not in loaded]
    prefix, moved = foreign_prefix(missing, rejected)
    if moved:
        severity: Severity = "fatal" if case.engine == "vllm" else "silent"
        fate = "vLLM stops at them" if case.engine == "vllm" else "SGLang drops them without a word, they stay random"
        yield Flaw(
            "weights.prefix", severity, clean(f"{prefix}*"), f"{layer_names(case)}, fc.weight, norm.weight",
            f"{len(moved)} of {len(needed)} draft tensors are called {clean(prefix)}…: {fate}", rename_advice(prefix),
        )  # fmt: skip
    for name in missing:
        if name not in moved:
            yield Flaw(
                "weights.missing", "silent", spelled(name, case), f"shape {show_shape(known[name].shape)}", "absent",
                f"It stays random ({len(missing)} of {len(needed)} tensors are missing): export it or rename its key",
            )  # fmt: skip
    yield from unknown_keys(case, [key for key in rejected if not (prefix and key.startswith(prefix))])


def placed(case: Case, known: dict[str, Expected]) -> tuple[set[str], list[str]]:
    """Tensors that get a value, and keys that find no place."""
    loaded: set[str] = set()
    rejected: list[str] = []
    for key in case.draft.tensors:
        name = resolve(key, case, known)
        if name is None:
            rejected.append(key)
        else:
            loaded.update(fused(name, known) or (name,))
    if case.draft.config.get("quantization_config"):
        stems = {key.rpartition(".")[0].removeprefix("model.").replace("midlayer", "layers.0") for key in rejected}
        loaded.update(name for name in known if name.rpartition(".")[0] in stems)
    return loaded, rejected


def tail(name: str) -> str:
    """The part of a tensor's name that a foreign prefix leaves alone."""
    return name.removeprefix("layers.0.")


def foreign_prefix(missing: list[str], rejected: list[str]) -> tuple[str, set[str]]:
    """The prefix under which missing tensors lie instead, and which of them."""
    counts: dict[str, set[str]] = {}
    for name in missing:
        for key in rejected:
            prefix = key.removesuffix(tail(name))
            if prefix != key and prefix.endswith("."):
                counts.setdefault(prefix, set()).add(name)
    if not counts:
        return "", set()
    # The layer's tensors and fc carry different endings of one prefix: `x.midlayer.` and `x.`; the shortest names both.
    shortest = min(counts, key=len)
    family = {name for prefix, names in counts.items() if prefix.startswith(shortest) for name in names}
    return shortest, family


def layer_name(case: Case) -> str:
    """What the layer is called in this version."""
    return "midlayer" if case.engine == "sglang" and case.version < RENAMED else "layers.0"


def layer_names(case: Case) -> str:
    """Every name of the layer that this version takes."""
    return "midlayer.*" if layer_name(case) == "midlayer" else "layers.0.* or midlayer.*"


def spelled(name: str, case: Case) -> str:
    """A tensor's name in this version's spelling."""
    return name.replace("layers.0.", f"{layer_name(case)}.")


def rename_advice(prefix: str) -> str:
    """How to get the names right."""
    if prefix.removeprefix("model.") == "layers.0.":
        return "Rename layers.0.* to midlayer.*, or use SGLang ≥ 0.5.12"
    return f"Rename the keys: strip {clean(prefix).replace('midlayer.', '').replace('layers.0.', '')!r} when exporting"


def show_shape(shape: tuple[int | None, ...]) -> str:
    """`[4096, 12288]`, with ? where unknown."""
    return "[" + ", ".join("?" if each is None else str(each) for each in shape) + "]"


HARMFUL = ("q_norm", "k_norm", ".bias")
"""Parts of keys that mean: it was trained with something that SGLang's draft class does not have."""


def unknown_keys(case: Case, rejected: list[str]) -> Iterator[Flaw]:
    """Keys that the engine drops (SGLang) or stops at (vLLM). 8: some of them change what the draft computes."""
    for key in rejected[:20]:
        harmless = "rotary_emb" in key or "verifier_" in key
        if case.engine == "vllm":
            yield Flaw(
                "weights.unknown",
                "fatal",
                clean(key),
                "no such key",
                "present",
                "Remove it: vLLM stops with a KeyError",
            )
        elif any(part in key for part in HARMFUL):
            yield Flaw(
                "weights.ignored", "silent", clean(key), "no such key", "present",
                "SGLang's draft class has no such parameter and drops it: train the draft without it",
            )  # fmt: skip
        elif not harmless:
            yield Flaw(
                "weights.unknown", "warning", clean(key), "no such key", "present", "It is dropped without a word"
            )


def the_shapes(case: Case) -> Iterator[Flaw]:
    """5: shapes as the config tells them; fc takes all tapped states side by side."""
    if kind(case) != "eagle3" or case.draft.config.get("quantization_config"):
        return
    known = expected(case)
    for key, tensor in case.draft.tensors.items():
        name = resolve(key, case, known)
        wanted = known.get(name or "")
        if wanted is None or name == "d2t" or fits(wanted.shape, tensor.shape):
            continue
        fix = "Correct config.json or export the weights again: loading stops with an assertion"
        if name == "fc.weight":
            size = sizes(case)
            fix = f"fc takes {size.taps} states of {size.target_hidden}: set target_hidden_size or the aux layers"
        rule = {"fc.weight": "fc.shape", "lm_head.weight": "lm_head.shape"}.get(name or "", "weights.shape")
        yield Flaw(rule, "fatal", clean(key), show_shape(wanted.shape), show_shape(tensor.shape), fix)


def fits(wanted: tuple[int | None, ...], found: tuple[int, ...]) -> bool:
    """Whether a shape is as wanted where it is known."""
    if len(wanted) != len(found):
        return False
    return all(one in (None, other) for one, other in zip(wanted, found, strict=True))


def the_vocabulary(case: Case) -> Iterator[Flaw]:
    """6: the smaller vocabulary needs its map and its own head."""
    if kind(case) != "eagle3" or not case.draft.tensors:
        return
    known, size = expected(case), sizes(case)
    loaded, _ = placed(case, known)
    wanted = f"[{size.draft_vocab}] int64 offsets"
    if known["d2t"].required and "d2t" not in loaded:
        found = f"absent, draft_vocab_size {size.draft_vocab} < vocab_size {size.vocab}"
        yield Flaw(
            "d2t.missing", "silent", "d2t", wanted, found, "Export d2t: without it draft ids are taken for target ids"
        )
    for key, tensor in case.draft.tensors.items():
        if "d2t" not in key:
            continue
        if size.draft_vocab and tensor.shape != (size.draft_vocab,):
            yield Flaw(
                "d2t.shape", "silent", clean(key), wanted, show_shape(tensor.shape), "Export d2t of this vocabulary"
            )
        if tensor.dtype not in {"I64", "I32"}:
            yield Flaw("d2t.dtype", "silent", clean(key), "I64", clean(tensor.dtype), "Store d2t as int64 offsets")
    if known["lm_head.weight"].required and "lm_head.weight" not in loaded:
        yield Flaw(
            "lm_head.missing", "silent", "lm_head.weight", show_shape(known["lm_head.weight"].shape), "absent",
            "Export lm_head.weight, or set draft_vocab_size to null to share the target's head",
        )  # fmt: skip


def the_embedding(case: Case) -> Iterator[Flaw]:
    """7: an embedding of another width than the target's cannot be shared."""
    if kind(case) != "eagle3" or not case.draft.tensors:
        return
    known = expected(case)
    embedding = known["embed_tokens.weight"]
    if embedding.required and "embed_tokens.weight" not in placed(case, known)[0]:
        yield Flaw(
            "embed_tokens.missing", "silent", "embed_tokens.weight", show_shape(embedding.shape), "absent",
            "With another width than the target's the embedding cannot be shared: export it",
        )  # fmt: skip


def the_files(case: Case) -> Iterator[Flaw]:
    """10: whole files, in a format that can be read without running it."""
    draft = case.draft
    for file in draft.torn:
        yield Flaw(
            "files.torn",
            "fatal",
            clean(file),
            "a whole file",
            "it ends before its weights",
            "Copy or download it again",
        )
    if not draft.tensors:
        other = ", ".join(draft.other_weights[:3])
        yield Flaw(
            "files.format", "warning", "*.safetensors", "present",
            f"only {clean(other)}" if other else "no weights at all",
            "Convert to safetensors: other formats cannot be checked without running them",
        )  # fmt: skip
    for key in draft.duplicates[:3]:
        yield Flaw("files.duplicate", "warning", clean(key), "in one file", "in several", "Remove left-over shards")
    wide = sum(tensor.dtype in {"F32", "F64"} for tensor in draft.tensors.values())
    if wide and wide * 2 > len(draft.tensors):
        yield Flaw(
            "files.dtype",
            "warning",
            "dtype",
            "BF16 or F16",
            "F32",
            "It is cast when loaded; export it in the target's dtype",
        )
