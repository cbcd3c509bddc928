"""The demo's stand-in for the pynvml module: real readings of other GPUs, replayed by what each rank says it does.

Sent to the probe in place of the real one, with the three constants below filled in. Python 3.6 syntax.
"""

import json
import os
import time

FOLDER = "@FOLDER@"
GPUS = 8
READINGS = json.loads("""@READINGS@""")

NVML_ERROR_NOT_SUPPORTED = 3
NVML_ERROR_INVALID_ARGUMENT = 2
NVML_CLOCK_GRAPHICS = 0
NVML_CLOCK_SM = 1
NVML_CLOCK_MEM = 2
NVML_TEMPERATURE_GPU = 0
NVML_PCIE_UTIL_TX_BYTES = 0
NVML_PCIE_UTIL_RX_BYTES = 1
_GIB = 1 << 30
_MIB = 1 << 20


class NVMLError(Exception):
    """An NVML return code as an exception, as in the real module."""

    value = 999

    def __str__(self):
        return type(self).__name__.replace("NVMLError_", "")


class NVMLError_NotSupported(NVMLError):
    """This GPU cannot tell."""

    value = NVML_ERROR_NOT_SUPPORTED


class NVMLError_InvalidArgument(NVMLError):
    """There is no such GPU."""

    value = NVML_ERROR_INVALID_ARGUMENT


class _Answer(object):
    """A C structure of the real module."""

    def __init__(self, **fields):
        self.__dict__.update(fields)


class _Gpu(object):
    """One GPU: what its rank last wrote about it, and the recorded readings of that scene."""

    def __init__(self, index):
        self.index = index
        self.path = os.path.join(FOLDER, "gpu%d.json" % index)
        self.stamp = None
        self.told = {"scene": "parked", "pid": None, "from": 0, "to": 0, "since": 0, "till": 0}
        self.energy = time.monotonic() * 77000
        self.counted = time.monotonic()

    def look(self):
        """The newest state; a rank that died has left its GPU parked and empty."""
        try:
            found = os.stat(self.path)
            stamp = (found.st_mtime_ns, found.st_ino)
            if stamp != self.stamp:
                with open(self.path) as file:
                    self.told = json.load(file)
                self.stamp = stamp
        except (OSError, ValueError):
            pass
        if self.told["pid"] is not None and not _lives(self.told["pid"]):
            self.told = {"scene": "parked", "pid": None, "from": 0, "to": 0, "since": 0, "till": 0}
        return self.told

    def reading(self, name):
        """This second's value of a reading; each GPU is at another place of the recording."""
        values = READINGS[self.look()["scene"]][name]
        if not isinstance(values, list):
            return values + self.index % 3
        return values[(int(time.time()) + 3 * self.index) % len(values)]

    def power(self):
        """Power in mW, no two cards being quite alike; also keeps the energy counter."""
        power = int(1000 * (self.reading("power") + 0.4 * (self.index % 4)))
        now = time.monotonic()
        self.energy += power * (now - self.counted)
        self.counted = now
        return power

    def used(self):
        """Bytes that the rank holds now."""
        told = self.look()
        span = told["till"] - told["since"]
        part = min(1.0, (time.monotonic() - told["since"]) / span) if span > 0 else 1.0
        return int((told["from"] + (told["to"] - told["from"]) * part) * _GIB)


def _lives(pid):
    try:
        with open("/proc/%d/stat" % pid, "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except (OSError, IndexError):
        return False


_GPUS = [_Gpu(index) for index in range(GPUS)]


def nvmlInit():
    """Nothing to open."""


nvmlInit_v2 = nvmlInit


def nvmlShutdown():
    """Nothing to close."""


def nvmlSystemGetDriverVersion():
    return "580.95.05"


def nvmlDeviceGetCount():
    return GPUS


def nvmlDeviceGetHandleByIndex(index):
    if not 0 <= index < GPUS:
        raise NVMLError_InvalidArgument
    return _GPUS[index]


def nvmlDeviceGetIndex(gpu):
    return gpu.index


def nvmlDeviceGetName(gpu):
    return READINGS["card"]["name"]


def nvmlDeviceGetUUID(gpu):
    return "GPU-de300000-0000-4000-8000-%012d" % gpu.index


def nvmlDeviceGetUtilizationRates(gpu):
    return _Answer(gpu=gpu.reading("util"), memory=gpu.reading("memory"))


def nvmlDeviceGetMemoryInfo(gpu, version=None):
    total = READINGS["card"]["memory_mib"] * _MIB
    used = READINGS["card"]["reserved_mib"] * _MIB + gpu.used()
    return _Answer(total=total, used=used, free=total - used)


def nvmlDeviceGetPowerUsage(gpu):
    return gpu.power()


def nvmlDeviceGetEnforcedPowerLimit(gpu):
    return READINGS["card"]["limit"] * 1000


def nvmlDeviceGetTotalEnergyConsumption(gpu):
    gpu.power()
    return int(gpu.energy)


def nvmlDeviceGetClockInfo(gpu, kind):
    if kind not in (NVML_CLOCK_SM, NVML_CLOCK_GRAPHICS):
        raise NVMLError_NotSupported
    return READINGS[gpu.look()["scene"]]["clock"]


def nvmlDeviceGetTemperature(gpu, sensor):
    return gpu.reading("temperature")


def nvmlDeviceGetCurrentClocksEventReasons(gpu):
    """1 = GPU idle, the reason that a parked card gives; 0 = none."""
    return 1 if gpu.look()["scene"] == "parked" else 0


nvmlDeviceGetCurrentClocksThrottleReasons = nvmlDeviceGetCurrentClocksEventReasons


def nvmlDeviceGetPcieThroughput(gpu, counter):
    return gpu.reading("tx" if counter == NVML_PCIE_UTIL_TX_BYTES else "rx")


def nvmlDeviceGetComputeRunningProcesses(gpu):
    pid = gpu.look()["pid"]
    return [] if pid is None else [_Answer(pid=pid, usedGpuMemory=gpu.used())]


nvmlDeviceGetComputeRunningProcesses_v3 = nvmlDeviceGetComputeRunningProcesses


def __getattr__(name):
    """Everything else that NVML has, this card does not support."""
    if not name.startswith("nvml"):
        raise AttributeError(name)

    def unsupported(*arguments):
        raise NVMLError_NotSupported

    return unsupported
