"""The few values of /metrics that tell whether a server works for somebody, under the same names for every engine.

`running`, `waiting` (requests), `prompt_tokens`, `generation_tokens` (counters), `kv_usage` (0–1),
`gen_throughput` (tokens/s), `accept_length` (tokens per speculative step, mean since the last look).
"""

import math

_SUMS = {
    "sglang:num_running_reqs": "running",
    "sglang:num_queue_reqs": "waiting",
    "sglang:prompt_tokens_total": "prompt_tokens",
    "sglang:generation_tokens_total": "generation_tokens",
    "sglang:gen_throughput": "gen_throughput",
    "vllm:num_requests_running": "running",
    "vllm:num_requests_waiting": "waiting",
    "vllm:prompt_tokens_total": "prompt_tokens",
    "vllm:generation_tokens_total": "generation_tokens",
    "vllm:spec_decode_num_drafts_total": "drafts",
    "vllm:spec_decode_num_accepted_tokens_total": "accepted",
    "llamacpp:requests_processing": "running",
    "llamacpp:requests_deferred": "waiting",
    "llamacpp:prompt_tokens_total": "prompt_tokens",
    "llamacpp:tokens_predicted_total": "generation_tokens",
}
_MEANS = {
    "sglang:token_usage": "kv_usage",
    "sglang:spec_accept_length": "accept_length",
    "vllm:kv_cache_usage_perc": "kv_usage",
    "vllm:gpu_cache_usage_perc": "kv_usage",
}
LINE = 4096


class Reader:
    """Adds up a Prometheus text as it arrives; any bytes are fine, only lines of ours count."""

    def __init__(self):
        self.rest = b""
        self.sums = {}
        self.counts = {}

    def feed(self, piece):
        """Take the next bytes; a line longer than 4 KB is none of ours."""
        lines = (self.rest + piece).split(b"\n")
        self.rest = lines.pop()[: LINE + 1]
        for line in lines:
            self.line(line)

    def line(self, line):
        """One line, ignored where it is malformed."""
        if len(line) > LINE or not line.startswith((b"sglang:", b"vllm:", b"llamacpp:")):
            return
        text = line.decode("utf-8", "replace")
        name = text.split("{", 1)[0].split(" ", 1)[0].strip()
        if name not in _SUMS and name not in _MEANS:
            return
        try:
            value = float(text.rsplit("}", 1)[-1].split()[0] if "}" in text else text.split()[1])
        except (ValueError, IndexError):
            return
        if not math.isfinite(value):
            return
        self.sums[name] = self.sums.get(name, 0.0) + value
        self.counts[name] = self.counts.get(name, 0) + 1

    def values(self):
        """Values by our names."""
        self.line(self.rest)
        found = {}
        for name, total in self.sums.items():
            if name in _SUMS:
                found[_SUMS[name]] = total
            else:
                found[_MEANS[name]] = total / self.counts[name]
        return found


def acceptance(values, before):
    """Replace vLLM's two counters by the mean acceptance length since the last look, where anything was drafted."""
    drafts = values.pop("drafts", None)
    accepted = values.pop("accepted", None)
    if drafts is None or accepted is None:
        return before
    if before is not None and drafts > before[0]:
        values["accept_length"] = 1.0 + (accepted - before[1]) / (drafts - before[0])
    return (drafts, accepted)
