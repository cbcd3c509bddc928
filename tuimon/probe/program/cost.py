"""What the probe itself costs its host."""

import os

from . import procfs

EVERY = 60
"""Samples between two looks at memory: reading smaps costs 1–3 ms."""


class Cost:
    """CPU and memory of the probe and its NVML child."""

    def __init__(self):
        self.pss = None
        self.count = 0

    def look(self, child, duration):
        """events.ProbeCost as a dictionary."""
        if self.count % EVERY == 3:
            self.pss = (pss("self") or 0) + (pss(child) or 0 if child else 0) or None
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
    """Bytes of one process without the driver's own library, None where unreadable."""
    try:
        content = procfs.read("/proc/%s/smaps" % pid, 4 << 20, whole=True)
    except OSError:
        return None
    total = 0
    counts = True
    for line in content.splitlines():
        if line.startswith(b"Pss:"):
            if counts:
                total += int(line.split()[1]) * 1024
        elif b"-" in line.split(b" ", 1)[0]:
            counts = b"libnvidia" not in line and b"libcuda" not in line
    return total
