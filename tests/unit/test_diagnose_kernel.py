"""The kernel's log in words: Xid, OOM, hung tasks; old lines and foreign bytes are left alone."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuimon.diagnose import gpus, kernel
from tuimon.hosts.local import LocalHost
from tuimon.launch.events import Gpu

FELL = "NVRM: Xid (PCI:0000:61:00): 79, pid=1234, name=python3, GPU has fallen off the bus."


@pytest.mark.parametrize(
    ("line", "kind", "words", "pid"),
    [
        (FELL, "xid", "Xid 79 on GPU 0000:61:00: the GPU has fallen off the bus", 1234),
        ("NVRM: Xid (PCI:0000:61:00): 119, Timeout after 6s", "xid", "GSP does not answer", None),
        ("NVRM: Xid (PCI:0000:61:00): 999, what", "xid", "see NVIDIA's Xid catalogue", None),
        ("nvidia-nvswitch3: SXid (PCI:0000:c4:00.0): 20034, Fatal", "sxid", "NVSwitch error 20034", None),
        (
            "Out of memory: Killed process 77 (sglang::schedul) total-vm:1kB",
            "oom",
            "killed sglang::schedul (pid 77)",
            77,
        ),
        ("oom-kill:constraint=CONSTRAINT_MEMCG,task=python3,pid=78,uid=0", "oom", "killed python3 (pid 78)", 78),
        ("INFO: task python3:42 blocked for more than 122 seconds.", "hung_task", "waits in the kernel", 42),
        ("python3[9]: segfault at 0 ip 0", "segfault", "python3 (pid 9) crashed", 9),
        ("nfs: server nas-1 not responding, still trying", "storage", "storage does not answer: nas-1", None),
        ("blk_update_request: I/O error, dev nvme0n1, sector 1", "storage", "storage does not answer: nvme0n1", None),
    ],
)
def test_each_kind_of_trouble_has_its_words(line: str, kind: str, words: str, pid: int | None) -> None:
    (found,) = kernel.parse(f"[ 1234.5] {line}\nordinary line\n")
    assert (found.kind, found.pid, found.source) == (kind, pid, "kernel")
    assert words in found.text
    assert found.fix


def test_a_repeated_error_is_one_finding() -> None:
    assert len(kernel.parse(f"{FELL}\n" * 1000)) == 1


def test_what_happened_before_the_launch_is_left_out() -> None:
    log = f"2026-11-30T04:00:00,123456+00:00 {FELL}\n2026-11-30T05:00:00+0000 {FELL.replace('61', '62')}\n"
    begun = kernel.time_of("2026-11-30T04:30:00+00:00 x")
    assert begun is not None
    (found,) = kernel.parse(log, begun)
    assert "0000:62:00" in found.text
    assert len(kernel.parse(f"[ 12.3] {FELL}", begun)) == 1  # no wall clock: kept


def test_a_log_that_may_not_be_read_says_what_to_do() -> None:
    denied = [["sh", "-c", "echo 'dmesg: read kernel buffer failed: Operation not permitted' >&2; exit 1"]]
    found, why = asyncio.run(kernel.read(LocalHost(), None, denied))
    assert found == ()
    assert "Operation not permitted" in why
    assert "kernel.dmesg_restrict=0" in why


def test_the_first_command_that_answers_is_taken() -> None:
    found, why = asyncio.run(kernel.read(LocalHost(), None, [["no-such-dmesg"], ["echo", FELL]]))
    assert [item.kind for item in found] == ["xid"]
    assert why == ""


@given(st.text(max_size=400))
def test_any_text_is_survived(text: str) -> None:
    kernel.parse(text + "\nNVRM: Xid (PCI:" + text)
    kernel.time_of(text)


def test_the_drivers_own_words_become_findings() -> None:
    found = gpus.read([Gpu(0, recovery=0), Gpu(1, xid=79), Gpu(2, recovery=1), Gpu(3, xid=9999, recovery=77)])
    assert [(each.kind, each.severity) for each in found] == [
        ("xid", "fatal"), ("recovery", "fatal"), ("xid", "warning"), ("recovery", "fatal"),
    ]  # fmt: skip
    assert found[0].text == "Xid 79 on GPU 1 while we looked: the GPU has fallen off the bus"
    assert found[1].text == "GPU 2: the driver asks for a reset of the GPU"
    assert gpus.read(None) == ()
