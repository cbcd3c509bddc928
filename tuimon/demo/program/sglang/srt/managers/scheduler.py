"""One rank: loads target and draft, then runs batches for the launcher."""

import faulthandler
import random
import socket
import time

import stage
from sglang.srt.distributed.parallel_state import GroupCoordinator
from sglang.srt.model_executor.model_runner import TARGET, ModelRunner
from sglang.srt.speculative.eagle_worker import EAGLEWorker

TOKENS_PER_S = 110.0
DECODE_LOG_INTERVAL = 40
DRAFT_TOKENS = 4


class Scheduler:
    """A rank, ready once it is made."""

    def __init__(self, rank: int, links: list[socket.socket]) -> None:
        self.rank = rank
        self.group = GroupCoordinator(rank, links)
        stage.until("dist")
        self.init_model_worker()

    def init_model_worker(self) -> None:
        """The target with its graphs, then the whole draft."""
        self.tp_worker = ModelRunner(self.rank, self.group, TARGET)
        self.tp_worker.init_device_graphs("cuda graph", "capture")
        self.draft_worker = EAGLEWorker(self.rank, self.group, self.tp_worker.used)
        self.used = self.draft_worker.runner.used
        if self.rank == 0:
            self._say(
                "max_total_num_tokens=412032, chunked_prefill_size=8192, max_prefill_tokens=16384, "
                f"max_running_requests=48, context_len=262144, available_gpu_mem={95.58 - self.used:.2f} GB"
            )

    def event_loop_normal(self, requests: socket.socket) -> None:
        """Rank 0 takes requests (`TOKENS`, one a line) and tells the others; they follow."""
        if self.rank:
            while True:
                self.show(self.group.broadcast())
        for line in requests.makefile("rb"):
            self.run_batch(int(line))
            requests.sendall(b".")

    def run_batch(self, tokens: int) -> None:
        """Answer one request: a prefill line, and a decode line for each 40 steps."""
        prompt = 1 if tokens == 1 else 6
        self._say(
            f"Prefill batch, #new-seq: 1, #new-token: {prompt}, #cached-token: 0, token usage: 0.00, "
            "#running-req: 0, #queue-req: 0, "
        )
        if tokens <= DECODE_LOG_INTERVAL:
            return
        self.show(self.group.broadcast(b"d"))
        done = 0
        while done < tokens:
            accepted = 1.0 if stage.SCENARIO == "useless-draft" else round(random.uniform(2.6, 3.0), 2)
            rate = TOKENS_PER_S * accepted / 2.8 * random.uniform(0.97, 1.03)
            time.sleep(DECODE_LOG_INTERVAL * accepted / rate * stage.SPEED)
            done += int(DECODE_LOG_INTERVAL * accepted)
            self._say(
                f"Decode batch, #running-req: 1, #token: {prompt + done}, token usage: 0.00, "
                f"accept len: {accepted:.2f}, accept rate: {accepted / DRAFT_TOKENS:.2f}, cuda graph: True, "
                f"gen throughput (token/s): {rate:.2f}, #queue-req: 0, "
            )
        self.show(self.group.broadcast(b"i"))

    def show(self, word: bytes) -> None:
        """d = this rank's GPU decodes, anything else = it is idle."""
        stage.gpu(self.rank, "decode" if word == b"d" else "idle", self.used)

    def _say(self, message: str) -> None:
        stage.say(message, self.rank)


def run_scheduler_process(rank: int, links: list[socket.socket], ready: socket.socket, requests: socket.socket) -> None:
    """What a rank's process does."""
    faulthandler.enable()  # as SGLang's schedulers do
    scheduler = Scheduler(rank, links)
    ready.sendall(b"r")
    scheduler.event_loop_normal(requests)
