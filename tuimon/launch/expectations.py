"""Which phases a launch must go through, from what it was told to do."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from tuimon.launch.facts import Facts


class Expected(Struct, frozen=True):
    """A phase that must come."""

    phase: str
    because: str = ""
    """The argument that makes it come: `speculative_algorithm=EAGLE3`; empty for what every launch has."""

    def reason(self) -> str:
        """For `Missing.because`."""
        return f"expected ({self.because}), not seen" if self.because else "expected, not seen"


def expected(engine: str | None, facts: Facts | None, fallback: tuple[str, ...] = ()) -> tuple[Expected, ...]:
    """The phases in their order. `fallback` are those that a grammar names for engines we know no arguments of."""
    if engine == "sglang":
        return _sglang(facts)
    if engine in {"vllm", "ray", "dynamo"}:
        phases = _vllm(facts)
        return phases if engine == "vllm" else tuple(part for part in phases if part.phase != "HTTP server")
    return tuple(Expected(name) for name in fallback)


def _sglang(facts: Facts | None) -> tuple[Expected, ...]:
    begin = (Expected("arguments"), Expected("distributed init"), Expected("weights"))
    if facts is None:
        return (*begin, Expected("KV cache"), Expected("HTTP server"), Expected("ready"))
    draft: tuple[Expected, ...] = ()
    draft_graphs: tuple[Expected, ...] = ()
    graphs = _graphs(facts)
    if facts.draft and facts.speculation:
        because = "=".join(facts.speculation)
        draft = (Expected("draft model load", because),)
        if graphs and facts.get("speculative_num_steps", 2) != 1 and _is_eagle(facts.speculation[1]):
            draft_graphs = (Expected("draft graphs", because),)
    target = (*begin, Expected("KV cache"), *graphs)
    # From 0.5.14 (the dump has cuda_graph_config) the draft loads right behind the target; before, behind its graphs.
    interleaved = "cuda_graph_config" in facts.values
    order = (*begin, *draft, Expected("KV cache"), *graphs) if interleaved else (*target, *draft)
    return (*order, *draft_graphs, *_sglang_end(facts))


def _sglang_end(facts: Facts) -> tuple[Expected, ...]:
    if facts.number("node_rank") > 0:
        return (Expected("ready"),)
    end = () if facts.get("grpc_mode") or facts.get("smg_grpc_mode") else (Expected("HTTP server"),)
    warm = () if facts.get("skip_server_warmup") else (Expected("warm-up"),)
    return (*end, *warm, Expected("ready"))


def _graphs(facts: Facts) -> tuple[Expected, ...]:
    if facts.get("disable_cuda_graph") or facts.get("is_embedding") or facts.get("device") == "cpu":
        return ()
    config = facts.get("cuda_graph_config")
    decode = config.get("decode") if isinstance(config, Mapping) else None
    if isinstance(decode, Mapping) and decode.get("backend") == "disabled":
        return ()
    if facts.get("disaggregation_mode") == "prefill":
        return ()
    return (Expected("CUDA graphs"),)


def _is_eagle(algorithm: object) -> bool:
    return str(algorithm).upper() in {"EAGLE", "EAGLE3", "NEXTN"}


def _vllm(facts: Facts | None) -> tuple[Expected, ...]:
    draft: tuple[Expected, ...] = ()
    if facts is not None and facts.draft and facts.speculation:
        name, method = facts.speculation
        draft = (Expected("draft model load", f"{name} method={method}"),)
    if facts is not None and facts.follows:
        graphs = () if facts.get("enforce_eager") or _no_graphs(facts) else (Expected("CUDA graphs"),)
        return (Expected("weights"), *draft, Expected("KV cache"), *graphs, Expected("ready"))
    return (
        Expected("arguments"), Expected("engine init"), Expected("weights"), *draft,
        Expected("KV cache"), Expected("engine ready"), Expected("HTTP server"), Expected("ready"),
    )  # fmt: skip


def _no_graphs(facts: Facts) -> bool:
    """vLLM's way to compile without capturing: `cudagraph_mode` NONE or optimisation level 0."""
    config = facts.get("compilation_config")
    level = config.get("level") if isinstance(config, Mapping) else facts.get("O", facts.get("optimization_level"))
    mode = config.get("cudagraph_mode") if isinstance(config, Mapping) else None
    return str(mode).upper().endswith("NONE") if mode is not None else level == 0
