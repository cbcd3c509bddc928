"""Flight-recorder dumps name where the ranks part; a pickle that is more than data is refused, never run."""

from __future__ import annotations

import contextlib
import os
import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuimon.diagnose import flight_recorder
from tuimon.diagnose.errors import BadDump

SAMPLES = Path(__file__).resolve().parents[2].parent / "shared" / "reference" / "samples" / "flight_recorder"
needs_samples = pytest.mark.skipif(not SAMPLES.exists(), reason="the reference samples are not beside the repository")


def trace(name: str) -> flight_recorder.Trace:
    return flight_recorder.parse((SAMPLES / f"{name}.pickle").read_bytes())


@needs_samples
def test_a_mismatch_names_both_collectives_and_where_they_were_called() -> None:
    found = flight_recorder.analyse({"rank 0": trace("nccl_mismatch-rank0"), "rank 1": trace("nccl_mismatch-rank1")})
    assert found.text is not None
    assert (
        "0: the ranks part at collective 2: rank 0 called nccl:all_reduce, rank 1 called nccl:broadcast" in found.text
    )
    assert "rank 1: collective 2 nccl:broadcast, scheduled, called by <module> (scenario.py:" in found.text


@needs_samples
def test_a_rank_with_fewer_collectives_has_the_lower_count() -> None:
    waiting = trace("nccl_missing_rank-rank0")
    behind = flight_recorder.Trace(waiting.version, waiting.entries[:1])
    found = flight_recorder.analyse({"rank 0": waiting, "rank 1": behind}, {"rank 1": 1008})
    assert [(count.rank, count.launched, count.pid) for count in found.counts] == [
        ("rank 0", 2, None),
        ("rank 1", 1, 1008),
    ]


@needs_samples
def test_a_long_healthy_dump_and_an_empty_one_are_read() -> None:
    assert len(trace("decode_like-rank0").entries) > 1000
    assert trace("nccl_comm_init_missing-rank0").entries == ()


class Trap:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch /tmp/tuimon-was-trapped",)


@pytest.mark.parametrize(
    "content",
    [
        pickle.dumps(Trap()),
        pickle.dumps({"entries": [Trap()]}, 2),
        b"cos\nsystem\n(S'touch /tmp/tuimon-was-trapped'\ntR.",
        b"\x80\x02r\xff\xff\xff\xff.",
        b"\x80\x02}r\xff\xff\xff\x7f.",
        b"\x80\x02Pid\n.",
        pickle.dumps([1]),
        pickle.dumps({"entries": 3}),
        b"",
    ],
)
def test_what_is_not_plain_data_is_refused_and_never_run(content: bytes) -> None:
    with pytest.raises(BadDump):
        flight_recorder.parse(content)
    assert not Path("/tmp/tuimon-was-trapped").exists()


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_or_read(content: bytes) -> None:
    with contextlib.suppress(BadDump):
        flight_recorder.parse(content)


FIELDS = ["process_group", "collective_seq_id", "profiling_name", "state", "frames", "pg_id"]
VALUES = st.none() | st.integers() | st.text(max_size=4) | st.lists(st.text(max_size=3), max_size=2)
ENTRIES = st.lists(st.dictionaries(st.sampled_from(FIELDS), VALUES), max_size=4)


@given(st.dictionaries(st.text(max_size=5), ENTRIES, max_size=3))
def test_any_entries_can_be_compared(ranks: dict[str, list[dict[str, object]]]) -> None:
    traces = {name: flight_recorder.parse(pickle.dumps({"entries": entries}, 2)) for name, entries in ranks.items()}
    flight_recorder.analyse(traces)


@needs_samples
@given(st.integers(0, 2000), st.integers(0, 255))
def test_a_damaged_dump_is_refused_or_read(at: int, byte: int) -> None:
    content = bytearray((SAMPLES / "nccl_mismatch-rank0.pickle").read_bytes())
    content[at % len(content)] = byte
    with contextlib.suppress(BadDump):
        flight_recorder.analyse({"rank 0": flight_recorder.parse(bytes(content))})
