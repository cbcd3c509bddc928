from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tuimon.launch.events import Finding, Sample

STANDIN = (Path(__file__).parent / "standin_pynvml.py").read_bytes()
Probe = Callable[..., Any]


def standin(*lines: str) -> bytes:
    return STANDIN + "\n".join(("", *lines, "")).encode()


def readings(sample: Sample) -> bool:
    return bool(sample.gpus)


def test_every_gpu_is_read(probe: Probe) -> None:
    sample = probe(nvml=STANDIN).until(Sample, readings)
    assert [gpu.index for gpu in sample.gpus] == list(range(8))
    gpu = sample.gpus[5]
    assert (gpu.name, gpu.uuid, gpu.util, gpu.mem_util) == ("Stand-in H200", "GPU-5", 100, 0)
    assert (gpu.power, gpu.power_limit, gpu.sm_clock, gpu.temperature, gpu.reasons) == (119.5, 700.0, 1980, 41, 1)
    assert (gpu.mem_used, gpu.mem_total) == (70 << 30, 141 << 30)
    assert (gpu.sm_active, gpu.dram_active) == (18.25, 0.0)
    assert (gpu.pcie_tx, gpu.xid, gpu.error) == (None, None, None)


def test_pcie_is_only_read_when_the_launch_is_quiet(probe: Probe) -> None:
    watching = probe(nvml=STANDIN)
    watching.until(Sample, readings)
    watching.request(do="quiet", on=True)
    watching.until(Sample, lambda sample: readings(sample) and sample.gpus[0].pcie_rx == 420)
    watching.request(do="quiet", on=False)
    watching.until(Sample, lambda sample: readings(sample) and sample.gpus[0].pcie_rx is None)


def test_what_the_driver_asks_for_is_read_when_the_launch_is_quiet(probe: Probe) -> None:
    watching = probe(nvml=standin("RECOVERY = {2: 1}"))
    watching.until(Sample, readings)
    watching.request(do="quiet", on=True)
    sample = watching.until(Sample, lambda sample: readings(sample) and sample.gpus[2].recovery == 1)
    assert sample.gpus[3].recovery == 0


def test_a_hung_driver_is_said_and_no_old_reading_is_shown_as_new(probe: Probe) -> None:
    nvml = standin(
        "read = nvmlDeviceGetUtilizationRates",
        "def nvmlDeviceGetUtilizationRates(handle):",
        "    import time",
        "    if readings > 20 and handle == 3: time.sleep(1e6)",
        "    return read(handle)",
    )
    watching = probe(nvml=nvml)
    watching.until(Sample, readings)
    late = watching.until(Sample, lambda sample: sample.gpus is None)
    assert late.gpu_note == "NVML answers late"
    hung = watching.until(Finding)
    assert hung.kind == "nvml_hung"
    assert hung.text == "GPU 3: NVML does not answer for 5 s"
    sample = watching.until(Sample)
    assert (sample.gpus, sample.gpu_note) == (None, "GPU 3: NVML does not answer for 5 s")
    later = watching.until(Sample, lambda sample: sample.gpu_note.endswith("6 s"))
    assert later.cost.sample < 0.3  # a hung driver does not hold up the rest


def test_a_crashed_reader_is_said_and_started_again(probe: Probe) -> None:
    watching = probe(nvml=standin("EXIT_AFTER = 12"))
    watching.until(Sample, readings)
    crashed = watching.until(Finding)
    assert (crashed.kind, crashed.text) == ("nvml_crashed", "NVML crashed its reader (signal 11)")
    sample = watching.until(Sample, lambda sample: sample.gpus is None)
    assert sample.gpu_note == crashed.text
    watching.until(Sample, readings)


def test_a_lost_gpu_does_not_hide_the_others(probe: Probe) -> None:
    sample = probe(nvml=standin("LOST = (3,)")).until(Sample, readings)
    assert (sample.gpus[3].error, sample.gpus[3].util, sample.gpus[3].power) == ("GPU is lost", None, None)
    assert [gpu.util for gpu in sample.gpus if gpu.index != 3] == [100] * 7


def test_mig_has_no_utilisation_but_the_rest(probe: Probe) -> None:
    gpu = probe(nvml=standin("MIG = (0,)")).until(Sample, readings).gpus[0]
    assert (gpu.util, gpu.error, gpu.power) == (None, None, 119.5)


def test_an_old_driver_lacks_calls(probe: Probe) -> None:
    lacking = ["nvmlDeviceGetCurrentClocksEventReasons", "nvmlGpmQueryDeviceSupport", "nvmlEventSetCreate"]
    gpu = probe(nvml=standin(*(f"del {name}" for name in lacking))).until(Sample, readings).gpus[0]
    assert (gpu.reasons, gpu.dram_active, gpu.util, gpu.error) == (None, None, 100, None)


def test_xids_stay_with_their_gpu(probe: Probe) -> None:
    watching = probe(nvml=standin("XIDS = [(2, 79)]"))
    for _sample in range(2):
        sample = watching.until(Sample, readings)
        assert [gpu.xid for gpu in sample.gpus] == [None, None, 79, None, None, None, None, None]


def test_no_driver_and_no_device_is_a_machine_without_gpus(probe: Probe) -> None:
    if Path("/dev/nvidiactl").exists():
        pytest.skip("this machine has a GPU")
    sample = probe(nvml=standin("FAIL_INIT = 12")).until(Sample, lambda sample: sample.gpus is not None)
    assert (sample.gpus, sample.gpu_note) == ((), "no GPU on this machine")


def test_broken_pynvml_is_told(probe: Probe) -> None:
    watching = probe(nvml=b"raise ValueError('no such thing')")
    sample = watching.until(Sample, lambda sample: sample.gpu_note != "NVML is starting")
    assert (sample.gpus, sample.gpu_note) == (None, "GPUs cannot be read: no such thing")


def test_strangers_that_hold_gpu_memory_are_named(probe: Probe, launch: Callable[..., Any]) -> None:
    if os.readlink("/proc/self/ns/pid") != "pid:[4026531836]":
        pytest.skip("in a container NVML's pids are not ours")
    server = launch("import time\ntime.sleep(1000)")
    stranger = launch("import time\ntime.sleep(1000)", "other-job")
    nvml = standin(f"PROCESSES = {{1: {{{server.pid}: 5, {stranger.pid}: 7}}}}")
    watching = probe(nvml=nvml, pid=server.pid)
    sample = watching.until(Sample, lambda sample: readings(sample) and sample.processes)
    assert sample.gpus[1].procs == {server.pid: 5, stranger.pid: 7}
    assert list(sample.strangers) == [stranger.pid]
    assert sample.strangers[stranger.pid].endswith("other-job")


def test_the_hosts_own_stand_in_replaces_what_was_sent(probe: Probe, tmp_path: Path) -> None:
    (tmp_path / "pynvml.py").write_bytes(standin("GPUS = 2"))
    watching = probe(nvml=STANDIN, wrapper=("env", f"TUIMON_PYNVML={tmp_path / 'pynvml.py'}"))
    assert len(watching.until(Sample, readings).gpus) == 2
