"""Which process is a server (or a launch), told by its argument list or its title alone."""

import os.path
import re

# Module or script → engine. Strict: shells, editors, ssh, docker, grep and our own probe never have these as program.
_MODULES = {
    "sglang.launch_server": "sglang",
    "sglang": "sglang",
    "sglang.cli.main": "sglang",
    "vllm": "vllm",
    "sglang.srt.entrypoints.http_server": "sglang",
    "vllm.entrypoints.openai.api_server": "vllm",
    "vllm.entrypoints.api_server": "vllm",
    "vllm.entrypoints.cli.main": "vllm",
    "vllm.entrypoints.grpc_server": "vllm",
    "tensorrt_llm.commands.serve": "trtllm",
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torchrun",
    "accelerate.commands.launch": "accelerate",
    "accelerate.commands.accelerate_cli": "accelerate",
    "lmdeploy.serve.openai.api_server": "lmdeploy",
    "lmdeploy": "lmdeploy",
}
_FILES = {
    "sglang/launch_server.py": "sglang",
    "vllm/entrypoints/openai/api_server.py": "vllm",
    "torch/distributed/run.py": "torchrun",
}
_PROGRAMS = {
    "sglang": "sglang",
    "vllm": "vllm",
    "trtllm-serve": "trtllm",
    "llama-server": "llamacpp",
    "torchrun": "torchrun",
    "accelerate": "accelerate",
    "text-generation-launcher": "tgi",
    "lmdeploy": "lmdeploy",
}
# Programs that do more than serving: the word that must follow.
_COMMANDS = {
    "sglang.cli.main": ("serve",),
    "sglang": ("serve",),
    "vllm": ("serve",),
    "vllm.entrypoints.cli.main": ("serve",),
    "accelerate": ("launch",),
    "accelerate.commands.accelerate_cli": ("launch",),
    "lmdeploy": ("serve",),
}
PORTS = {"sglang": 30000, "vllm": 8000, "trtllm": 8000, "llamacpp": 8080, "tgi": 3000, "lmdeploy": 23333}
_PYTHON = re.compile(r"^(?:python|pypy)[\d.]*t?$")
_PYTHON_TAKES_VALUE = ("-W", "-X", "--check-hash-based-pycs")
_TITLES = (("sglang::", "sglang"), ("VLLM::", "vllm"))
_MODEL_FLAGS = {
    "sglang": ("--model-path", "--model"),
    "vllm": ("--model",),
    "trtllm": ("--model",),
    "llamacpp": ("-m", "--model", "-hf", "-hfr", "--hf-repo", "-mu", "--model-url"),
    "tgi": ("--model-id",),
    "lmdeploy": ("--model-path",),
}
_PORT_FLAGS = {"tgi": ("--port", "-p"), "lmdeploy": ("--server-port",)}
_HOST_FLAGS = {"tgi": ("--hostname",), "lmdeploy": ("--server-name",)}
_RANK_WORD = re.compile(r"(DP|PP|TP|EP|CP|PCP|DCP|ATTN_TP|MOE_EP|MOE_DP|ATTN_CP)(\d+)")


def launch(argv):
    """(engine, index of the first argument after the program's own words), None where this is no server's launch."""
    if not argv:
        return None
    if len(argv) == 1 and title(argv):
        return None
    at = 0
    name = os.path.basename(argv[0])
    if _PYTHON.match(name):
        at = _after_interpreter(argv)
        if at is None:
            return None
        if argv[at] == "-m":
            return _engine(_MODULES, argv, at + 1)
        for ending, engine in _FILES.items():
            if argv[at].endswith(ending):
                return engine, at + 1
        name = os.path.basename(argv[at])
    return _engine(_PROGRAMS, argv, at, name)


def title(argv):
    """The engine whose process title this is, None where it is no title of ours."""
    if not argv:
        return None
    for prefix, engine in _TITLES:
        if argv[0].startswith(prefix):
            return engine
    return None


def rank(text):
    """`sglang::scheduler_DP0_TP1` → `DP0 TP1`; None where the title names none."""
    for prefix, _engine_name in _TITLES:
        if text.startswith(prefix):
            break
    else:
        return None
    name = text[len(prefix) :].split(" ", 1)[0]
    if name.startswith(("detokenizer", "tokenizer", "http_server", "data_parallel", "DPCoordinator", "APIServer")):
        return None
    words = ["%s%s" % found for found in _RANK_WORD.findall(name)]
    if name.startswith("DPEngineCore_"):
        words = ["DP" + name[len("DPEngineCore_") :]]
    if "EngineCore" in name:
        words.insert(0, "EngineCore")
    if not words and name.startswith("scheduler"):
        words = ["TP0"]  # tp 1: the title carries no rank
    if not words and name.startswith("Worker"):
        words = ["Worker"]
    return " ".join(words) or None


def option(argv, flags, start=0):
    """The value of the last of these flags (`--port 1` or `--port=1`), as argparse would take it; else None."""
    value = None
    for index in range(start, len(argv)):
        for flag in flags:
            if argv[index] == flag and index + 1 < len(argv):
                value = argv[index + 1]
            elif argv[index].startswith(flag + "=") and flag.startswith("--"):
                value = argv[index][len(flag) + 1 :]
            elif flag.startswith("--") and argv[index].startswith(flag.replace("-", "_").replace("__", "--", 1) + "="):
                value = argv[index].split("=", 1)[1]
    return value


def port(engine, argv):
    """The port that the server will listen on, None for engines without one."""
    value = option(argv, _PORT_FLAGS.get(engine, ("--port",)))
    if value is not None and value.isdigit() and 0 < int(value) < 65536:
        return int(value)
    return PORTS.get(engine)


def address(engine, argv):
    """Where to ask for health from the host itself: the bound address, 127.0.0.1 for "any" and localhost."""
    value = option(argv, _HOST_FLAGS.get(engine, ("--host",)))
    if value in (None, "", "0.0.0.0", "localhost", "*"):
        return "127.0.0.1"
    return "::1" if value in ("::", "[::]") else value.strip("[]")


def model(engine, argv, start):
    """The model as given on the command line, None where it is not told."""
    value = option(argv, _MODEL_FLAGS.get(engine, ()), start)
    if value is not None:
        return value
    words = argv[start:]
    if engine == "trtllm" and words[:1] == ["serve"]:
        words = words[1:]
    if engine == "lmdeploy" and words[:1] == ["api_server"]:
        words = words[1:]
    # Only directly after the command: further on a word may be the value of a flag.
    if engine in ("vllm", "sglang", "trtllm", "lmdeploy") and words and not words[0].startswith("-"):
        return words[0]
    return None


def api_key(argv):
    """The first key on the command line, None where there is none."""
    return option(argv, ("--api-key",))


def encrypted(argv):
    """True where the server speaks TLS."""
    return any(argument.split("=", 1)[0] in ("--ssl-certfile", "--ssl-cert-file") for argument in argv)


def _after_interpreter(argv):
    """Index of `-m` or of the script; None for `-c`, `-` and the bare interpreter."""
    at = 1
    while at < len(argv):
        word = argv[at]
        if word in ("-m",) or not word.startswith("-"):
            return at
        if word in ("-", "-c") or word.startswith("-c"):
            return None
        at += 2 if word in _PYTHON_TAKES_VALUE else 1
    return None


def _engine(known, argv, at, name=None):
    if at >= len(argv):
        return None
    name = argv[at] if name is None else name
    engine = known.get(name)
    if engine is None:
        return None
    after = at + 1
    wanted = _COMMANDS.get(name)
    if wanted:
        if argv[after : after + 1] == [] or argv[after] not in wanted:
            return None
        after += 1
    return engine, after
