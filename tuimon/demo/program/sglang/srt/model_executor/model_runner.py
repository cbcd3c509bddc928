"""One model on one rank: distributed init, weights, KV cache, CUDA graphs."""

import os
import signal
import time
from dataclasses import dataclass

import stage
from sglang.srt.distributed.parallel_state import GroupCoordinator
from sglang.srt.model_loader.loader import DefaultModelLoader
from torch.utils import cpp_extension

TOTAL_GB = 95.58
CONTEXT_GB = 1.17
COMPILES, SLEEPS, DIES = 0, 5, 6
"""Ranks with a part of their own in slow-compile, collective-spin and rank-killed."""
TROUBLE_STEP = 21
"""Of the 23 batch sizes."""


@dataclass(frozen=True)
class Model:
    """What is loaded, in GB per rank, and the phases in which it happens."""

    kind: str
    weights: float
    kv: float
    graphs: float
    shards: int
    load: str
    parts: tuple[float, float]
    """How far into the phase `load` the weights begin and end."""


TARGET = Model("KimiK25ForConditionalGeneration", 56.20, 9.64, 2.10, stage.SHARDS, "load", (0.0, 1.0))
DRAFT = Model("LlamaForCausalLMEagle3", 1.46, 0.47, 0.22, 1, "draft", (0.1, 0.8))


class ModelRunner:
    """Loads one model and gets it ready to run; `used` is what this rank holds of its GPU, GiB."""

    def __init__(self, rank: int, group: GroupCoordinator, model: Model, used: float = 0.0) -> None:
        self.rank = rank
        self.group = group
        self.model = model
        self.used = used
        self.initialize()

    def initialize(self) -> None:
        """Everything up to the KV cache."""
        if self.model is DRAFT and stage.SCENARIO == "silent-stall":
            if self.rank == 3:
                self.load_model()
            self._hold("idle", 1.9)
        self.group.barrier()
        self.init_torch_distributed()
        self.load_model()
        self.init_memory_pool()

    def init_torch_distributed(self) -> None:
        """The target's takes a phase of its own; the draft only repeats the pair of lines."""
        self._say("Init torch distributed begin.")
        taken = 0.0
        if self.model is TARGET:
            if self.rank == 0:
                self._say("sglang is using nccl==2.27.5")
            stage.until("dist", 0.5)
            stage.write(
                f"[Gloo] Rank {self.rank} is connected to 7 peer ranks. "
                "Expected number of connected peer ranks is : 7\n"
            )
            stage.until("load")
            taken = CONTEXT_GB - 0.6
            self._hold("idle", CONTEXT_GB)
        self._say(f"Init torch distributed ends. mem usage={taken:.2f} GB")

    def load_model(self) -> None:
        """Read the weights; as in SGLang, a rank says that it is done before it waits for the others."""
        model = self.model
        before = self._avail()
        if model is DRAFT and stage.SCENARIO == "silent-stall":
            DefaultModelLoader(self.rank).load_weights(model.load, model.parts, model.shards)
        self._say(f"Load weight begin. avail mem={before:.2f} GB")
        begin, end = model.parts
        self._hold("loading", model.weights, over=stage.seconds(model.load) * (end - begin))
        DefaultModelLoader(self.rank).load_weights(model.load, (begin, end), model.shards)
        self._hold("idle", 0)
        self._say(
            f"Load weight end. type={model.kind}, dtype=torch.bfloat16, "
            f"avail mem={self._avail():.2f} GB, mem usage={before - self._avail():.2f} GB."
        )
        self.group.barrier()

    def init_memory_pool(self) -> None:
        """Allocate the KV cache."""
        model = self.model
        if self.rank == 0:
            self._say("Using KV cache dtype: torch.bfloat16")
        stage.until("compile" if model is TARGET else "draft_capture")
        self._hold("idle", model.kv)
        self._say(f"KV Cache is allocated. #tokens: 412032, KV size: {model.kv:.2f} GB")
        self._say(f"Memory pool end. avail mem={self._avail():.2f} GB")

    def init_device_graphs(self, word: str, phase: str, parts: tuple[float, float] = (0.0, 1.0)) -> None:
        """Capture one graph per batch size; `word` is `cuda graph`, `draft cuda graph` …"""
        since = time.monotonic()
        before = self._avail()
        self._say(f"Capture {word} begin. This can take up to several minutes. avail mem={before:.2f} GB")
        CudaGraphRunner(self).capture(phase, parts)
        self._say(
            f"Capture {word} end. Time elapsed: {time.monotonic() - since:.2f} s. "
            f"mem usage={before - self._avail():.2f} GB. avail mem={self._avail():.2f} GB."
        )

    def _avail(self) -> float:
        return TOTAL_GB - self.used

    def _hold(self, scene: str, more: float, over: float = 0.0) -> None:
        """This rank's GPU shows a scene, and holds `more` GiB from now on (or `over` seconds later)."""
        before, self.used = self.used, self.used + more
        stage.gpu(self.rank, scene, self.used, before if over else None, over)

    def _say(self, message: str) -> None:
        stage.say(message, self.rank)


class CudaGraphRunner:
    """Captures the graphs of one model."""

    def __init__(self, runner: ModelRunner) -> None:
        self.runner = runner

    def capture(self, phase: str, parts: tuple[float, float]) -> None:
        """Go through the batch sizes from the largest; rank 0 draws the bar."""
        runner, sizes = self.runner, stage.BATCH_SIZES[::-1]
        if runner.rank == 0:
            runner._say(f"Capture cuda graph bs {stage.BATCH_SIZES}")
        since = time.monotonic()
        self._draw("\r", 0, since)
        self._draw(self._text(sizes[0]), 0, since)
        if phase == "capture" and stage.SCENARIO == "slow-compile":
            self._compile()
        runner._hold("capture", runner.model.graphs, over=stage.seconds(phase) * (parts[1] - parts[0]))
        for step, size in enumerate(sizes, 1):
            self.capture_one_batch_size(step, phase)
            stage.until(phase, parts[0] + (parts[1] - parts[0]) * step / len(sizes))
            self._draw(self._text(size), step, since)
            if step < len(sizes):
                self._draw(self._text(sizes[step]), step, since)
        if runner.rank == 0:
            stage.write("\n")
            runner._say("Registering 1560 cuda graph addresses")
        runner._hold("idle", 0)

    def capture_one_batch_size(self, step: int, phase: str) -> None:
        """Run the model once; here two scenarios end."""
        if phase != "capture" or step != TROUBLE_STEP:
            return
        runner = self.runner
        if stage.SCENARIO == "collective-spin":
            if runner.rank == SLEEPS:
                runner._hold("idle", 0)
                stage.hopeless_lock().acquire()
            runner._hold("spin", 0)
            stage.be_idle_class()
            runner.group.all_reduce()
        elif stage.SCENARIO == "rank-killed":
            if runner.rank == DIES:
                os.kill(os.getpid(), signal.SIGKILL)
            runner._hold("idle", 0)
            runner.group.barrier()

    def _compile(self) -> None:
        """The first batch size needs a kernel that was never compiled here: rank 0 compiles, the others wait for it."""
        self.runner._hold("idle", 0)
        if self.runner.rank == COMPILES:
            cpp_extension._run_ninja_build(stage.seconds("compile"))
        self.runner.group.barrier()

    def _text(self, size: int) -> str:
        return f"\rCapturing batches (bs={size} avail_mem={self.runner._avail():.2f} GB): "

    def _draw(self, text: str, done: int, since: float) -> None:
        if self.runner.rank == 0:
            stage.write(stage.bar(text, done, len(stage.BATCH_SIZES), since))
