"""The group of ranks that work on one model."""

import socket

import torch.cuda
from torch.distributed import distributed_c10d


class GroupCoordinator:
    """The ranks' way to wait for each other."""

    def __init__(self, rank: int, links: list[socket.socket]) -> None:
        self.rank = rank
        self.links = links

    def barrier(self) -> None:
        """Wait for every rank, on the host."""
        distributed_c10d.monitored_barrier(self.rank, self.links)

    def broadcast(self, word: bytes = b"") -> bytes:
        """One byte from rank 0 to all."""
        heard: bytes = distributed_c10d.broadcast(self.rank, self.links, word)
        return heard

    def all_reduce(self) -> None:
        """A collective on the GPUs that some rank never joins."""
        torch.cuda.synchronize()
