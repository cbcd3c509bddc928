"""What the driver says of its GPUs: Xid events and the recovery action that it asks for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tuimon.diagnose.kernel import REBOOT, RESET, RESTART, XIDS, Meaning
from tuimon.launch.events import Finding, Gpu

RECOVERY = {
    1: ("a reset of the GPU", RESET),
    2: ("a reboot of the machine", REBOOT),
    3: ("its peer-to-peer traffic to be drained", "Move the work off it, then reset the GPU"),
    4: ("to be drained and reset", RESET),
    5: ("the recovery of its IMEX domain", "Recover the IMEX domain, then restart the server"),
    6: ("a reset of its bus", "Reset the bus, or reboot the machine"),
    7: ("a reboot of the whole system", REBOOT),
}
"""NVML_GPU_RECOVERY_ACTION_*; Xid 154 tells of the same."""


def read(gpus: Iterable[Gpu] | None) -> tuple[Finding, ...]:
    """What is worth a line, by GPU."""
    return tuple(finding for gpu in gpus or () for finding in of(gpu))


def of(gpu: Gpu) -> Iterator[Finding]:
    """One GPU's."""
    if gpu.xid is not None:
        meaning = XIDS.get(gpu.xid, Meaning("see NVIDIA's Xid catalogue", RESTART, fatal=False))
        text = f"Xid {gpu.xid} on GPU {gpu.index} while we looked: {meaning.words}"
        yield Finding(
            source="nvml", kind="xid", text=text, severity="fatal" if meaning.fatal else "warning", fix=meaning.fix
        )
    if gpu.recovery:
        words, fix = RECOVERY.get(gpu.recovery, (f"recovery action {gpu.recovery}", RESET))
        text = f"GPU {gpu.index}: the driver asks for {words}"
        yield Finding(source="nvml", kind="recovery", text=text, severity="fatal", fix=fix)
