# pynvml's own names and shapes, and run by Python 3.6 too:
# ruff: noqa: ANN001, ANN003, ANN201, ANN204, N802, PLC0415, PLW0603, UP031
# mypy: ignore-errors
"""A stand-in for pynvml: eight GPUs that read the same numbers for ever; tests change it by appending lines."""

GPUS = 8
HANG_AT = None  # index of the GPU whose utilisation call never returns
EXIT_AFTER = None  # the process dies in this many readings
LOST = ()  # indices of GPUs that fell off the bus
MIG = ()  # indices of GPUs that do not support utilisation
FAIL_INIT = None  # NVML's error number at nvmlInit
PROCESSES = {}  # index → {pid: bytes}
RECOVERY = {}  # index → recovery action
XIDS = []  # (index, number), each told once
readings = 0


class NVMLError(Exception):
    def __init__(self, value):
        names = {3: "Not Supported", 9: "Driver Not Loaded", 12: "Library Not Found", 15: "GPU is lost"}
        super().__init__(names[value])
        self.value = value


class Reading:
    def __init__(self, **values):
        self.__dict__.update(values)


def nvmlInit():
    if FAIL_INIT is not None:
        raise NVMLError(FAIL_INIT)


def nvmlDeviceGetCount():
    return GPUS


def nvmlDeviceGetHandleByIndex(index):
    return index


def nvmlDeviceGetIndex(handle):
    return handle


def nvmlDeviceGetName(handle):
    return b"Stand-in H200"


def nvmlDeviceGetUUID(handle):
    return "GPU-%d" % handle


def nvmlDeviceGetEnforcedPowerLimit(handle):
    return 700000


def nvmlDeviceGetFieldValues(handle, fields):
    if fields != [230]:
        raise NVMLError(3)
    return [Reading(nvmlReturn=0, value=Reading(uiVal=RECOVERY.get(handle, 0)))]


def nvmlDeviceGetUtilizationRates(handle):
    global readings
    readings += 1
    if EXIT_AFTER is not None and readings > EXIT_AFTER:
        import os
        import signal

        os.kill(os.getpid(), signal.SIGSEGV)
    if handle == HANG_AT:
        import time

        time.sleep(100000)
    if handle in LOST:
        raise NVMLError(15)
    if handle in MIG:
        raise NVMLError(3)
    return Reading(gpu=100, memory=0)


def nvmlDeviceGetMemoryInfo(handle, version=None):
    return Reading(used=70 << 30, total=141 << 30, free=71 << 30)


def nvmlDeviceGetComputeRunningProcesses(handle):
    return [Reading(pid=pid, usedGpuMemory=used) for pid, used in PROCESSES.get(handle, {}).items()]


def nvmlDeviceGetPowerUsage(handle):
    return 119500


def nvmlDeviceGetTotalEnergyConsumption(handle):
    return 5000000


def nvmlDeviceGetClockInfo(handle, kind):
    return 1980


def nvmlDeviceGetTemperature(handle, sensor):
    return 41


def nvmlDeviceGetCurrentClocksEventReasons(handle):
    return 1


def nvmlDeviceGetPcieThroughput(handle, counter):
    return 420


def nvmlGpmQueryDeviceSupport(handle):
    return Reading(isSupportedDevice=1)


def nvmlGpmSampleAlloc():
    return object()


def nvmlGpmSampleGet(handle, sample):
    return sample


def c_nvmlGpmMetricsGet_t():
    return Reading(metrics=[Reading(nvmlReturn=0, value=0.0), Reading(nvmlReturn=0, value=0.0)])


def nvmlGpmMetricsGet(metrics):
    metrics.metrics[0].value, metrics.metrics[1].value = 18.25, 0.0


def nvmlEventSetCreate():
    return object()


def nvmlDeviceRegisterEvents(handle, kinds, events):
    return None


def nvmlEventSetWait_v2(events, timeout):
    if not XIDS:
        raise NVMLError(9)
    index, number = XIDS.pop(0)
    return Reading(device=index, eventData=number)
