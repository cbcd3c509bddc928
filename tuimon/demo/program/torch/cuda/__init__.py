"""Where a rank waits for its GPU."""


def synchronize() -> None:
    """Spin for ever without a fault, a system call or a switch, as the driver does when a collective never ends."""
    # fmt: off
    while True: pass  # noqa: E701 - one line, so that the stack does not seem to move
    # fmt: on
