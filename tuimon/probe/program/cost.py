"""What the probe itself costs its host."""

import os

from . import procfs

EVERY = 60
"""Samples between two looks at memory: the kernel walks all pages, 0.2–1 ms."""


class Cost:
    """CPU and memory of the probe and its NVML child."""

    def __init__(self):
        self.pss = None
        self.count = 0

    def look(self, child, driver, duration):
        """events.ProbeCost as a dictionary; `driver` = what the driver's library took in the child, bytes."""
        if self.count % EVERY == 3:
            of_child = max(0, (pss(child) or 0) - driver) if child else 0
            self.pss = (pss("self") or 0) + of_child or None
        self.count += 1
        times = os.times()
        cpu = times[0] + times[1] + times[2] + times[3]
        if child:
            try:
                stat = procfs.Stat(procfs.read("/proc/%d/stat" % child, 4096))
                cpu += sum(stat.number(index) for index in (11, 12, 13, 14)) / procfs.TICK
            except (OSError, ValueError, IndexError):
                pass
        found = {"cpu": round(cpu, 3), "sample": round(duration, 5)}
        if self.pss:
            found["pss"] = self.pss
        return found


def pss(pid):
    """Bytes of one process, None where unreadable (needs Linux 4.14)."""
    try:
        kilobytes = procfs.number_after(procfs.read("/proc/%s/smaps_rollup" % pid, 4096), b"\nPss:")
    except OSError:
        return None
    return None if kilobytes is None else kilobytes * 1024
