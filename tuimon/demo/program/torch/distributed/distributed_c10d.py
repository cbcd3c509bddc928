"""The host-side barrier of gloo, over socket pairs between rank 0 and each other rank."""

import socket


def monitored_barrier(rank: int, links: list[socket.socket]) -> None:
    """Wait until every rank has come here. Rank 0 holds a link to each, the others one to rank 0."""
    if rank:
        links[0].sendall(b".")
    for link in links:
        link.recv(1)  # the same line for all ranks, so that their stacks are the same
    if rank == 0:
        for link in links:
            link.sendall(b".")


def broadcast(rank: int, links: list[socket.socket], word: bytes = b"") -> bytes:
    """Send one byte from rank 0 to all; the others wait for it."""
    if rank == 0:
        for link in links:
            link.sendall(word)
        return word
    return links[0].recv(1)
