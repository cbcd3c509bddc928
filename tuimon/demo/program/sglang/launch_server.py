"""`python -m sglang.launch_server`, as the demo has it."""

import sys

import stage

from sglang.srt.entrypoints.engine import Engine, cast
from sglang.srt.server_args import ServerArgs


def run_server(engine: Engine, server_args: ServerArgs) -> None:
    """What the launcher does."""
    stage.work_until("spawn")
    stage.say(
        "Max running requests is reset to 48 for speculative decoding. "
        "You can override this by explicitly setting --max-running-requests."
    )
    stage.say(f"server_args={server_args}")
    stage.work_until("spawn", 0.6)
    stage.say("Using default HuggingFace chat template with detected content format: string")
    from sglang.srt.entrypoints.http_server import launch_server

    launch_server(engine, server_args.host, server_args.port)


if __name__ == "__main__":
    stage.begin()
    part = cast()
    if isinstance(part, Engine):
        run_server(part, ServerArgs.from_argv(sys.argv[1:]))
    else:
        part()
