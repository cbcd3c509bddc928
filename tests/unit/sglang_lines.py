"""Lines of a SGLang launch with 8 ranks and EAGLE-3, in the order of two versions: what timelines are tested with."""

from __future__ import annotations

RANKS = tuple(f"TP{rank}" for rank in range(8))
OLD_ARGS = (
    "speculative_algorithm='EAGLE3', speculative_num_steps=3, speculative_draft_model_path='/d', log_level='info'"
)
NEW_ARGS = OLD_ARGS + ", cuda_graph_config=CudaGraphConfig(decode=PhaseConfig(backend='full', bs=[1, 2]))"
SERVER = "ServerArgs(model_path='/models/Kimi-K2.5', tp_size=8, dp_size=1, api_key='sk-very-secret-0123456789', {})"


def stamped(second: int, text: str, rank: str = "") -> str:
    """A line with SGLang's prefix."""
    return f"[2026-03-04 10:{second // 60:02}:{second % 60:02}{f' {rank}' if rank else ''}] {text}\n"


def every(second: int, text: str, ranks: tuple[str, ...] = RANKS) -> str:
    """The same line of all ranks."""
    return "".join(stamped(second, text, rank) for rank in ranks)


def bar(name: str, count: int, total: int) -> str:
    """A redraw without a line end, as tqdm writes it."""
    return f"\r{name}: {100 * count // total:3}% Completed | {count}/{total} [00:0{count}<00:09,  1.00it/s]"


def arguments(extra: str) -> str:
    """The argument dump."""
    return stamped(1, "server_args=" + SERVER.format(extra))


def begin() -> str:
    """Up to the end of the target's weights."""
    return (
        every(9, "Init torch distributed begin.")
        + every(12, "Init torch distributed ends. mem usage=0.42 GB")
        + every(13, "Load weight begin. avail mem=94.00 GB")
        + every(20, "Load weight end. type=KimiK25ForConditionalGeneration, dtype=torch.bfloat16, avail mem=22.31 GB")
    )


def pool(second: int) -> str:
    """A KV cache."""
    return every(second, "KV Cache is allocated. #tokens: 412032, KV size: 3.35 GB") + every(
        second, "Memory pool end. avail mem=20.44 GB"
    )


def draft(second: int) -> str:
    """The draft model's load."""
    return (
        every(second, "Init torch distributed begin.")
        + every(second, "Init torch distributed ends. mem usage=0.00 GB")
        + every(second, "Load weight begin. avail mem=19.00 GB")
        + every(second + 1, "Load weight end. type=LlamaForCausalLMEagle3, dtype=torch.bfloat16, avail mem=18.00 GB")
    )


def graphs(second: int) -> str:
    """The target's graphs."""
    return every(second, "Capture cuda graph begin. This can take up to several minutes. avail mem=19.92 GB") + every(
        second + 4, "Capture cuda graph end. Time elapsed: 4.02 s. mem usage=2.10 GB. avail mem=19.80 GB."
    )


def draft_graphs(second: int) -> str:
    """The draft's graphs."""
    return every(
        second, "Capture draft cuda graph begin. This can take up to several minutes. avail mem=16 GB"
    ) + every(second + 1, "Capture draft cuda graph end. Time elapsed: 1.00 s. mem usage=0.22 GB. avail mem=16.58 GB.")


def up(second: int) -> str:
    """From the summary to ready."""
    access = 'INFO:     127.0.0.1:51520 - "{} HTTP/1.1" 200 OK'
    return (
        stamped(second, "max_total_num_tokens=412032, chunked_prefill_size=8192, max_running_requests=48", "TP0")
        + stamped(second, "INFO:     Started server process [4242]")
        + stamped(second, "INFO:     Application startup complete.")
        + stamped(second + 1, access.format("GET /get_model_info"))
        + stamped(second + 1, "Prefill batch. #new-seq: 1, #new-token: 6, #cached-token: 0, #running-req: 0, ", "TP0")
        + stamped(second + 2, access.format("POST /generate"))
        + stamped(second + 2, "The server is fired up and ready to roll!")
    )


OLD = arguments(OLD_ARGS) + begin() + pool(21) + graphs(22)
"""Up to 0.5.13: the draft loads behind the target's graphs. This is where the launch stands when the draft is due."""
NEW = arguments(NEW_ARGS) + begin() + draft(21) + pool(23) + pool(24) + graphs(25) + draft_graphs(30) + up(40)
"""From 0.5.14: the draft loads right behind the target."""
