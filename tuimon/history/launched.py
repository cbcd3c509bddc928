"""One launch as it is remembered, made from what was seen of it."""

from __future__ import annotations

from msgspec import Struct

from tuimon.launch.facts import from_argv
from tuimon.launch.view import RED, LaunchView, ServerView

UNFINISHED = "unfinished"
"""tuimon left before the launch was ready or dead."""
MATTERS = (
    "tp_size", "pp_size", "dp_size", "ep_size", "nnodes", "node_rank", "ranks_per_node", "enable_dp_attention",
    "quantization", "dtype", "kv_cache_dtype", "load_format", "context_length", "max_model_len",
    "mem_fraction_static", "gpu_memory_utilization", "attention_backend", "device",
    "speculative_algorithm", "speculative_draft_model_path", "speculative_num_steps", "speculative_config",
    "disable_cuda_graph", "cuda_graph_max_bs", "enforce_eager", "enable_torch_compile", "compilation_config",
    "skip_server_warmup", "disaggregation_mode",
)  # fmt: skip
"""Arguments that change how long a launch takes."""
_LONGEST = 200  # characters of one argument's value


class Launched(Struct, frozen=True):
    """A launch. Instants are seconds since the epoch, durations seconds; unknown is None."""

    host: str
    pid: int
    started: float
    """Start of the server's process, or when it was first seen."""
    engine: str | None = None
    version: str | None = None
    model: str | None = None
    flags: dict[str, str] = {}
    """Arguments that matter, by SGLang's names."""
    ready: bool = False
    """It was ready at some time."""
    ready_s: float | None = None
    """Seconds from the start until ready; None where nobody watched it become ready."""
    outcome: str = UNFINISHED
    """ready, finished, unfinished, or the red state that it ended in."""
    kind: str | None = None
    """What kind of hang or crash it was."""
    phase: str | None = None
    """Where it was when it ended or hung."""
    seen: float = 0.0
    """When this was last true."""
    phases: dict[str, float] = {}
    """Durations of the phases that were done, in their order."""


def flags_of(server: ServerView) -> dict[str, str]:
    """The arguments that matter, from the command line (secrets are already replaced there)."""
    facts = from_argv(server.argv)
    values = facts.values if facts else {}
    return {name: str(values[name])[:_LONGEST] for name in MATTERS if name in values}


def launched(view: LaunchView, host: str, started: float, *, watched_ready: bool) -> Launched | None:
    """What this view tells of its launch; None without one.

    watched_ready: we were there before it was ready, so that the time of it is a measurement.
    """
    server = view.server
    if server is None:
        return None
    verdict, ready_at = view.verdict, view.health.ready_at
    ready = ready_at is not None or verdict.state in {"ready", "serving", "failing"}
    outcome = verdict.state if verdict.state in RED or verdict.state == "finished" else "ready" if ready else UNFINISHED
    return Launched(
        host=host,
        pid=server.pid,
        started=started,
        engine=server.engine,
        version=server.version,
        model=server.model,
        flags=flags_of(server),
        ready=ready,
        ready_s=max(0.0, ready_at - started) if ready_at is not None and watched_ready else None,
        outcome=outcome,
        kind=verdict.kind if verdict.state in RED else None,
        phase=verdict.phase,
        seen=view.now,
        phases={
            phase.name: phase.seconds for phase in view.phases if phase.state == "done" and phase.seconds is not None
        },
    )
