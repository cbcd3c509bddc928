"""The stand-in pynvml: the names that the probe uses, with readings that follow what the ranks write."""

from __future__ import annotations

import ast
import json
import os
import time
import tomllib
import types
from pathlib import Path

import pytest

from tuimon.demo import nvml


@pytest.fixture
def pynvml(tmp_path: Path) -> types.ModuleType:
    module = types.ModuleType("pynvml")
    exec(compile(nvml.source(tmp_path), "pynvml.py", "exec"), module.__dict__)
    module.nvmlInit()
    return module


def write(folder: Path, index: int, **told: object) -> None:
    state = {"scene": "idle", "pid": os.getpid(), "from": 0, "to": 0, "since": 0, "till": 0, **told}
    (folder / "new").write_text(json.dumps(state))
    (folder / "new").replace(folder / f"gpu{index}.json")


def test_its_source_is_python_3_6(tmp_path: Path) -> None:
    ast.parse(nvml.source(tmp_path), feature_version=(3, 6))


def test_a_folder_with_quotes_in_its_name_is_only_text(tmp_path: Path) -> None:
    odd = tmp_path / 'it\'s "odd" \\'
    module = types.ModuleType("pynvml")
    exec(compile(nvml.source(odd), "pynvml.py", "exec"), module.__dict__)
    assert str(odd) == module.FOLDER


def test_before_any_rank_the_cards_are_parked_and_empty(pynvml: types.ModuleType) -> None:
    assert pynvml.nvmlDeviceGetCount() == 8
    card = pynvml.nvmlDeviceGetHandleByIndex(7)
    assert pynvml.nvmlDeviceGetUtilizationRates(card).gpu == 0
    assert 77_000 <= pynvml.nvmlDeviceGetPowerUsage(card) < 80_000
    assert pynvml.nvmlDeviceGetClockInfo(card, pynvml.NVML_CLOCK_SM) == 345
    assert pynvml.nvmlDeviceGetComputeRunningProcesses(card) == []
    memory = pynvml.nvmlDeviceGetMemoryInfo(card)
    assert memory.total == 97871 << 20
    assert memory.used == 615 << 20


def test_a_spinning_rank_reads_100_percent_without_work(pynvml: types.ModuleType, tmp_path: Path) -> None:
    write(tmp_path, 2, scene="spin", to=69)
    card = pynvml.nvmlDeviceGetHandleByIndex(2)
    rates = pynvml.nvmlDeviceGetUtilizationRates(card)
    assert (rates.gpu, rates.memory) == (100, 0)
    assert pynvml.nvmlDeviceGetPowerUsage(card) < 123_000
    assert [process.pid for process in pynvml.nvmlDeviceGetComputeRunningProcesses(card)] == [os.getpid()]


def test_memory_grows_while_weights_load(pynvml: types.ModuleType, tmp_path: Path) -> None:
    now = time.monotonic()
    write(tmp_path, 0, scene="loading", **{"from": 10, "to": 20, "since": now - 5, "till": now + 5})
    card = pynvml.nvmlDeviceGetHandleByIndex(0)
    used = pynvml.nvmlDeviceGetMemoryInfo(card).used / (1 << 30)
    assert 15.5 < used < 16.5


def test_a_dead_rank_leaves_its_card_parked_and_empty(pynvml: types.ModuleType, tmp_path: Path) -> None:
    write(tmp_path, 1, scene="decode", to=70, pid=2**22 + 1)  # above the kernel's largest pid
    card = pynvml.nvmlDeviceGetHandleByIndex(1)
    assert pynvml.nvmlDeviceGetMemoryInfo(card).used == 615 << 20
    assert pynvml.nvmlDeviceGetClockInfo(card, pynvml.NVML_CLOCK_SM) == 345


def test_energy_only_grows(pynvml: types.ModuleType) -> None:
    card = pynvml.nvmlDeviceGetHandleByIndex(0)
    first = pynvml.nvmlDeviceGetTotalEnergyConsumption(card)
    time.sleep(0.01)
    assert pynvml.nvmlDeviceGetTotalEnergyConsumption(card) > first


def test_what_it_does_not_have_is_not_supported(pynvml: types.ModuleType) -> None:
    card = pynvml.nvmlDeviceGetHandleByIndex(0)
    with pytest.raises(pynvml.NVMLError) as refusal:
        pynvml.nvmlGpmQueryDeviceSupport(card)
    assert refusal.value.value == pynvml.NVML_ERROR_NOT_SUPPORTED
    with pytest.raises(pynvml.NVMLError_InvalidArgument):
        pynvml.nvmlDeviceGetHandleByIndex(8)


def test_every_scene_comes_with_all_readings() -> None:
    scenes = tomllib.loads((Path(nvml.__file__).parent / "readings.toml").read_text("utf-8"))
    del scenes["card"]
    assert all(
        set(scene) == {"util", "memory", "power", "clock", "temperature", "tx", "rx"} for scene in scenes.values()
    )
