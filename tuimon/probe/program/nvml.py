"""Runs in the NVML child: reads all GPUs once per request. Whatever the driver does, only this process suffers."""

import json
import os
import struct
import sys
import time

from .cost import pss

XID_CRITICAL = 8
GPM_SM, GPM_DRAM = 2, 10
GPM_VERSION = 1
SM_CLOCK, TX, RX = 1, 0, 1
MEMORY_V2 = 0x02000028
RECOVERY = 230  # field: what the driver asks to be done to the GPU; since driver 560
UNSUPPORTED = (3, 4, 13)
"""NVML's not supported, no permission, function not found: will not change, so not asked again."""
LOST = (15, 16)
"""GPU is lost, reset required: every further call would wait for the driver's own timeout."""
ENERGY_EVERY = 40
"""Readings between two looks at one GPU's energy counter: 4.1 ms of CPU a call on an H200, all the rest takes 0.1."""


class Reader:
    """All GPUs of this machine through pynvml (the real one or a stand-in)."""

    def __init__(self, nvml, mark):
        self.nvml = nvml
        self.mark = mark  # tells the parent which GPU is being read
        self.count = 0
        nvml.nvmlInit()
        self.gpus = []
        for index in range(nvml.nvmlDeviceGetCount()):
            mark(index)
            self.gpus.append(Gpu(nvml, index))
        mark(-1)
        self.events = self.watch_xids()

    def look(self, pcie):
        """Every GPU as a dictionary of events.Gpu."""
        rows = []
        for gpu in self.gpus:
            self.mark(gpu.index)
            rows.append(gpu.look(pcie, self.count % ENERGY_EVERY == gpu.index * 5 % ENERGY_EVERY))
        self.mark(-1)
        self.count += 1
        self.take_xids()
        for gpu, row in zip(self.gpus, rows):  # noqa: B905  (strict= is 3.10)
            if gpu.xid is not None:
                row["xid"] = gpu.xid
        return rows

    def watch_xids(self):
        """The driver's event set, None where it has none for us."""
        nvml = self.nvml
        try:
            events = nvml.nvmlEventSetCreate()
        except Exception:
            return None
        watched = False
        for gpu in self.gpus:
            try:
                nvml.nvmlDeviceRegisterEvents(gpu.handle, XID_CRITICAL, events)
                watched = True
            except Exception:
                continue
        return events if watched else None

    def take_xids(self):
        """Take the Xid events that came since the last look."""
        for _event in range(32 if self.events is not None else 0):
            try:
                event = self.nvml.nvmlEventSetWait_v2(self.events, 0)
                index = self.nvml.nvmlDeviceGetIndex(event.device)
            except Exception:  # NVML tells "nothing came" by an error
                return
            for gpu in self.gpus:
                if gpu.index == index:
                    gpu.xid = int(event.eventData)


class Gpu:
    """One GPU; remembers what it does not support."""

    def __init__(self, nvml, index):
        self.nvml = nvml
        self.index = index
        self.refused = set()
        self.xid = None
        self.recovery = None
        self.handle = None
        self.constant = {"index": index}
        self.samples = None
        self.error = None
        self.lost = False
        try:
            self.handle = nvml.nvmlDeviceGetHandleByIndex(index)
        except Exception as error:
            self.error = words(error)
            return
        self.constant.update(
            name=text(self.ask("nvmlDeviceGetName")),
            uuid=text(self.ask("nvmlDeviceGetUUID")),
            power_limit=scaled(self.ask("nvmlDeviceGetEnforcedPowerLimit"), 1000.0),
        )
        self.metrics = self.prepare_gpm()

    def ask(self, function, *arguments):
        """One call; None where it is not supported or failed (a failure is this reading's error)."""
        if function in self.refused or self.lost:
            return None
        try:
            return getattr(self.nvml, function)(self.handle, *arguments)
        except AttributeError:
            self.refused.add(function)
        except Exception as error:
            if getattr(error, "value", None) in UNSUPPORTED:
                self.refused.add(function)
            elif self.error is None:
                self.error = words(error)
                self.lost = getattr(error, "value", None) in LOST
        return None

    def look(self, pcie, energy):
        """One reading."""
        row = dict(self.constant)
        if self.handle is not None:
            self.error, self.lost = None, False
            self.work(row)
            self.state(row, energy)
            if pcie or energy:
                fields = self.ask("nvmlDeviceGetFieldValues", [RECOVERY])
                self.recovery = int(fields[0].value.uiVal) if fields and fields[0].nvmlReturn == 0 else None
            row["recovery"] = self.recovery
            if pcie:
                row["pcie_tx"] = self.ask("nvmlDeviceGetPcieThroughput", TX)
                row["pcie_rx"] = self.ask("nvmlDeviceGetPcieThroughput", RX)
            if self.samples and not self.lost:
                self.gpm(row)
        row["error"] = self.error
        return {key: value for key, value in row.items() if value is not None}

    def work(self, row):
        """Utilisation, memory, processes."""
        used = self.ask("nvmlDeviceGetUtilizationRates")
        if used is not None:
            row["util"], row["mem_util"] = used.gpu, used.memory
        memory = self.memory()
        if memory is not None:
            row["mem_used"], row["mem_total"] = int(memory.used), int(memory.total)
        processes = self.ask("nvmlDeviceGetComputeRunningProcesses")
        if processes is not None:
            # Memory is N/A (None) under MIG and WSL: the pid is still worth having.
            row["procs"] = {str(process.pid): int(process.usedGpuMemory or 0) for process in processes[:256]}

    def memory(self):
        """Version 2 leaves out what the driver reserves, as nvidia-smi does."""
        if "memory v2" not in self.refused and not self.lost:
            try:
                return self.nvml.nvmlDeviceGetMemoryInfo(self.handle, MEMORY_V2)
            except Exception as error:
                if getattr(error, "value", None) in (None, 2, 3, 13, 25):
                    self.refused.add("memory v2")
        return self.ask("nvmlDeviceGetMemoryInfo")

    def state(self, row, energy):
        """Power, energy, clock, temperature, what holds the clock down."""
        row["power"] = scaled(self.ask("nvmlDeviceGetPowerUsage"), 1000.0)
        if energy:
            row["energy"] = scaled(self.ask("nvmlDeviceGetTotalEnergyConsumption"), 1000.0)
        row["sm_clock"] = self.ask("nvmlDeviceGetClockInfo", SM_CLOCK)
        row["temperature"] = self.ask("nvmlDeviceGetTemperature", 0)
        reasons = self.ask("nvmlDeviceGetCurrentClocksEventReasons")
        if reasons is None and "nvmlDeviceGetCurrentClocksEventReasons" in self.refused:
            reasons = self.ask("nvmlDeviceGetCurrentClocksThrottleReasons")
        row["reasons"] = reasons

    def prepare_gpm(self):
        """Two sample buffers and the list of metrics, where this GPU (Hopper and later) has them."""
        nvml = self.nvml
        try:
            if not nvml.nvmlGpmQueryDeviceSupport(self.handle).isSupportedDevice:
                return None
            self.samples = [nvml.nvmlGpmSampleAlloc(), nvml.nvmlGpmSampleAlloc()]
            nvml.nvmlGpmSampleGet(self.handle, self.samples[0])
            metrics = nvml.c_nvmlGpmMetricsGet_t()
            metrics.version = GPM_VERSION
            metrics.numMetrics = 2
            metrics.metrics[0].metricId = GPM_SM
            metrics.metrics[1].metricId = GPM_DRAM
        except Exception:
            self.samples = None
            return None
        return metrics

    def gpm(self, row):
        """SM and DRAM activity between the last two samples."""
        nvml = self.nvml
        try:
            self.samples.reverse()
            nvml.nvmlGpmSampleGet(self.handle, self.samples[0])
            self.metrics.sample1, self.metrics.sample2 = self.samples[1], self.samples[0]
            nvml.nvmlGpmMetricsGet(self.metrics)
        except Exception as error:
            if getattr(error, "value", None) in UNSUPPORTED:
                self.samples = None
            return
        for index, name in enumerate(("sm_active", "dram_active")):
            metric = self.metrics.metrics[index]
            if metric.nvmlReturn == 0 and metric.value == metric.value:
                row[name] = round(metric.value, 2)


def serve(requests, answers, code, shared):
    """The child's life: read GPUs whenever asked, until the parent closes its end."""

    def mark(index):
        shared[0:4] = struct.pack("i", index)

    mark(-1)
    try:
        nvml = type(sys)("pynvml")
        sys.modules["pynvml"] = nvml  # ctypes structures look their module up
        exec(code, nvml.__dict__)
        before = pss("self") or 0
        reader = Reader(nvml, mark)
        driver = max(0, (pss("self") or 0) - before)
    except Exception as error:
        send(answers, {"failed": words(error), "code": getattr(error, "value", None)})
        return
    send(answers, {"ready": len(reader.gpus), "driver": driver})
    while True:
        request = os.read(requests, 1)
        if not request:
            return
        began = time.monotonic()
        rows = reader.look(request == b"p")
        send(answers, {"gpus": rows, "seconds": round(time.monotonic() - began, 5)})


def send(fd, message):
    """One JSON line."""
    content = memoryview(json.dumps(message, separators=(",", ":")).encode("ascii") + b"\n")
    while content:
        content = content[os.write(fd, content) :]


def words(error):
    """NVML's own words."""
    return str(error) or type(error).__name__


def text(value):
    """Old versions of pynvml give bytes."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def scaled(value, by):
    """A reading in another unit, None where there is none."""
    return None if value is None else value / by
