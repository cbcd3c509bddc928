"""The process that turns tokens into text: here it only waits."""

import socket


class DetokenizerManager:
    """Waits for tokens."""

    def __init__(self, link: socket.socket) -> None:
        self.link = link

    def event_loop(self) -> None:
        """Wait for ever."""
        while self.link.recv(1):
            pass


def run_detokenizer_process(link: socket.socket) -> None:
    """What the detokenizer process does."""
    DetokenizerManager(link).event_loop()
