"""The draft model's side of a rank."""

from sglang.srt.distributed.parallel_state import GroupCoordinator
from sglang.srt.model_executor.model_runner import DRAFT, ModelRunner


class EAGLEWorker:
    """Loads the draft model after the target, as SGLang does up to 0.5.13."""

    def __init__(self, rank: int, group: GroupCoordinator, used: float) -> None:
        self.runner = ModelRunner(rank, group, DRAFT, used)
        self.init_cuda_graphs()

    def init_cuda_graphs(self) -> None:
        """The draft's own graphs: decode, then extend."""
        self.runner.init_device_graphs("draft cuda graph", "draft_capture", (0.0, 0.5))
        self.runner.init_device_graphs("draft extend cuda graph", "draft_capture", (0.5, 1.0))
