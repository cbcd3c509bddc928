"""Hangs that look alive: noise that no work makes must not keep red away."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from msgspec import structs

from tests.judging import MIB, Rank, Story
from tuimon.launch.events import LogText, Thread
from tuimon.launch.view import RED

FOUND_WITHIN = 30
Noise = Callable[[Story, "Log", int], None]


class Log:
    """Writes lines of a real log into a story."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self.offset = 0

    def __call__(self, line: str, end: str = "\n") -> None:
        text = f"{line}{end}".encode()
        self.story.apply(LogText(at=self.story.now, offset=self.offset, text=text))
        self.offset += len(text)


def _loading(ranks: int = 4) -> tuple[Story, Log]:
    story = Story(ranks, real_log=True)
    log = Log(story)
    story.everybody("imports", "idle")
    story.runs(5)
    log("[2026-03-04 10:15:12 TP0] Load weight begin. avail mem=78.00 GB")
    log("Loading safetensors checkpoint shards:  30% Completed | 3/10 [00:08<00:20,  2.90s/it]", end="\r")
    story.everybody("loads")
    story.runs(5)
    return story, log


def _still(story: Story) -> None:
    story.everybody("sleeps", "idle")


def _one_spins(story: Story) -> None:
    story.everybody("sleeps", "idle")
    story.ranks[2].does = "spins"


def _all_spin(story: Story) -> None:
    story.everybody("spins", "spins")


def _one_is_missing(story: Story) -> None:
    _all_spin(story)
    story.ranks[1].does = "sleeps"
    if story.gpus is not None:
        story.gpus[1] = "idle"


def _dead_nfs(story: Story) -> None:
    story.everybody("sleeps", "idle")
    story.ranks[0].does = "dies on storage"
    story.ranks[0].more = {"wchan": "rpc_wait_bit_killable"}


def _a_thread_in_dead_nfs(story: Story) -> None:
    story.everybody("sleeps", "idle")
    story.ranks[0].more = {"busy_threads": (Thread(tid=7, state="D", wchan="rpc_wait_bit_killable"),)}


def _polls(story: Story) -> None:
    story.everybody("polls", "idle")


HANGS = [_still, _one_spins, _all_spin, _one_is_missing, _dead_nfs, _a_thread_in_dead_nfs, _polls]


def _nothing(story: Story, log: Log, second: int) -> None:
    pass


def _faults_of_a_monitoring_thread(story: Story, log: Log, second: int) -> None:
    story.ranks[0].more = story.ranks[0].more | {"minor": 50}


def _a_bar_redrawn_with_its_clock(story: Story, log: Log, second: int) -> None:
    took = f"{second // 60:02}:{second % 60 + 8:02}"
    log(f"Loading safetensors checkpoint shards:  30% Completed | 3/10 [{took}<00:20,  2.90s/it]", end="\r")


def _heartbeats(story: Story, log: Log, second: int) -> None:
    if second % 5 == 0:
        log(f"Still waiting to acquire lock on /models/.locks/1a2b.lock (elapsed: {second}.0 seconds)")


def _our_own_questions(story: Story, log: Log, second: int) -> None:
    if second % 2 == 0:
        log('[2026-03-04 10:15:49] INFO:     127.0.0.1:51520 - "GET /health HTTP/1.1" 503 Service Unavailable')


def _prometheus(story: Story, log: Log, second: int) -> None:
    if second % 5 == 0:
        log('[2026-03-04 10:15:49] INFO:     10.0.0.7:51520 - "GET /metrics HTTP/1.1" 200 OK')


def _a_link_that_spikes(story: Story, log: Log, second: int) -> None:
    for i in range(len(story.ranks)):
        story.gpu_more[i] = {"pcie_rx": 900_000.0 if second % 6 == i else 1_500.0, "pcie_tx": 900.0}


def _a_driver_that_breathes(story: Story, log: Log, second: int) -> None:
    story.gpu_memory[0] += 2 * MIB if second % 2 else -2 * MIB


def _a_busy_neighbour_on_the_network(story: Story, log: Log, second: int) -> None:
    received = (story.host_load.net_rx or 0) + 900_000_000
    story.host_load = structs.replace(story.host_load, net_rx=received)


def _a_shell_that_asks_now_and_then(story: Story, log: Log, second: int) -> None:
    story.root.more = {"children": 0.01 if second % 5 == 0 else 0.0}


def _a_neighbour_that_takes_memory(story: Story, log: Log, second: int) -> None:
    free = (story.host_load.mem_available or 10**12) - 500_000_000
    story.host_load = structs.replace(story.host_load, mem_available=free)


def _a_thread_that_exports_metrics(story: Story, log: Log, second: int) -> None:
    burst = {"minor": 600, "rchar": 500_000, "written": 50_000, "switches": 40, "rss": 3 * MIB, "read": 500_000}
    noise = story.ranks[-1].more
    now = burst if second % 15 == 7 else {"rss": -3 * MIB} if second % 15 == 8 else {}
    story.ranks[-1].more = {key: value for key, value in noise.items() if key not in burst} | now


def _a_thread_that_calls_nvidia_smi(story: Story, log: Log, second: int) -> None:
    others = [rank for rank in story.others if rank.name != "nvidia-smi"]
    called = second % 5 == 0
    story.others = (
        [*others, Rank(5000 + second, None, ppid=100, name="nvidia-smi", does="imports")] if called else others
    )
    story.root.more = {"children": 0.4 if second % 5 == 1 else 0.0}


def _an_own_line_that_waits(story: Story, log: Log, second: int) -> None:
    if second % 5 == 0:
        log(f"[rank3] still waiting for the other ranks ({second} s)")


def _a_heartbeat_in_words_of_its_own(story: Story, log: Log, second: int) -> None:
    if second % 5 == 0:
        log(
            f"[2026-03-04 10:15:{second % 60:02}] [monitor pid=4711] rank 3 alive, {second} s in barrier 17, rss 8.1 GB"
        )


def _kubernetes(story: Story, log: Log, second: int) -> None:
    if second % 5 == 3:
        log(f'INFO:     10.0.0.7:{40000 + second} - "GET /v1/health/ready HTTP/1.1" 503 Service Unavailable')


def _an_exporter_in_the_tree(story: Story, log: Log, second: int) -> None:
    story.others = [Rank(900, None, name="dcgm-exporter", does="imports")]


def _an_idle_pool_of_compile_workers(story: Story, log: Log, second: int) -> None:
    title = "python -m torch._inductor.compile_worker"
    story.others = story.others or [Rank(901 + i, None, ppid=101, title=title, does="sleeps") for i in range(8)]


NOISES = [
    _nothing, _faults_of_a_monitoring_thread, _a_bar_redrawn_with_its_clock, _heartbeats, _our_own_questions,
    _prometheus, _a_link_that_spikes, _a_driver_that_breathes, _a_busy_neighbour_on_the_network,
    _a_shell_that_asks_now_and_then, _an_exporter_in_the_tree, _an_idle_pool_of_compile_workers,
    _a_neighbour_that_takes_memory, _an_own_line_that_waits, _a_thread_that_exports_metrics,
    _kubernetes,
    _a_thread_that_calls_nvidia_smi,
]  # fmt: skip


def _plays(story: Story, log: Log, noises: Sequence[Noise], seconds: int = FOUND_WITHIN) -> None:
    for second in range(seconds):
        for noise in noises:
            noise(story, log, second)
        story.runs(1)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("hang", HANGS)
def test_a_hang_is_found_whatever_noise_is_beside_it(hang: Callable[[Story], None], noise: Noise) -> None:
    story, log = _loading()
    hang(story)
    _plays(story, log, [noise])
    assert story.launch.verdict.state in RED, story.launch.verdict


@pytest.mark.parametrize("hang", HANGS)
def test_and_with_all_of_the_noise_at_once(hang: Callable[[Story], None]) -> None:
    story, log = _loading()
    hang(story)
    _plays(story, log, NOISES)
    assert story.launch.verdict.state in RED, story.launch.verdict


@pytest.mark.parametrize("hang", [hang for hang in HANGS if hang is not _one_spins])
def test_a_heartbeat_in_words_of_its_own_hides_no_hang(hang: Callable[[Story], None]) -> None:
    """Beside a busy host whose GPU rests, such a line may be the word of one that computes: only stacks tell."""
    story, log = _loading()
    hang(story)
    _plays(story, log, [_a_heartbeat_in_words_of_its_own])
    assert story.launch.verdict.state in RED
    heard = next(evidence for evidence in story.launch.verdict.evidence if evidence.sign == "log")
    assert "comes again and again" in heard.text


@pytest.mark.parametrize("interval", [5.0, 10.1, 15.0])
@pytest.mark.parametrize("hang", HANGS)
def test_a_probe_that_looks_seldom_finds_it_too(hang: Callable[[Story], None], interval: float) -> None:
    story, _ = _loading()
    story.interval = interval
    story.runs(4 * interval)
    hang(story)
    story.runs(20 + 2 * interval)
    assert story.launch.verdict.state in RED


def test_a_frozen_cgroup_is_certain_at_once() -> None:
    story, _ = _loading()
    for rank in story.ranks:
        rank.more = {"frozen": True, "state": "D", "wchan": "do_freezer_trap"}
    verdict = story.runs(3)
    assert (verdict.state, verdict.kind, verdict.certain) == ("frozen", "cgroup frozen", True)


def test_a_front_process_that_answers_scrapes_does_not_speak_for_ranks_that_hang_in_the_warm_up() -> None:
    """Each scrape reads files of every rank's counters: a megabyte of I/O in the process that answers, and no work."""
    story, log = _loading()
    log("[2026-03-04 10:15:48] INFO:     Uvicorn running on http://0.0.0.0:30000 (Press CTRL+C to quit)")
    _still(story)
    for second in range(FOUND_WITHIN):
        scraped = second % 5 == 0
        story.root.more = {"rchar": 1_000_000, "switches": 40, "system": 0.05, "minor": 400} if scraped else {}
        story.asks(200, path="/model_info", listener=story.root.pid)
        story.runs(1)
    assert story.launch.verdict.state in RED, story.launch.verdict


def test_a_rank_that_spins_on_a_host_without_gpus_is_found_as_soon_as_elsewhere() -> None:
    """One core is a spin; many are what such a host computes with."""
    story, _ = _loading(2)
    story.gpus = []
    story.everybody("spins")
    assert story.runs(22).state in RED


def test_a_wait_in_which_something_works_excuses_no_silence() -> None:
    story, log = _loading(2)
    log("[2026-03-04 10:15:32 TP0] Entering DeepGEMM JIT Pre-Compile session. It may take a long time")
    _still(story)
    assert story.runs(FOUND_WITHIN).state in RED


@pytest.mark.parametrize("status", [503, 404])
def test_a_server_of_one_process_that_loads_behind_its_open_port_does_speak_for_itself(status: int) -> None:
    """llama.cpp answers 503 while it loads."""
    story = Story(0, gpus=False, real_log=True, engine="llamacpp", argv=("llama-server",))
    story.root.does = "loads"
    for _ in range(60):
        story.asks(status, listener=story.root.pid)
        story.runs(1)
    assert not set(story.states()) & RED


def test_a_gate_does_not_excuse_a_rank_that_dies_or_spins_behind_it() -> None:
    story, log = _loading(2)
    log("[2026-03-04 10:15:12 TP0] Gated launch waiting for activation. rank=0")
    _all_spin(story)
    assert story.runs(FOUND_WITHIN).state == "spinning"
    _still(story)
    story.ranks = story.ranks[:1]
    assert story.runs(3).certain


def test_behind_an_opened_gate_silence_counts_again() -> None:
    story, log = _loading(2)
    log("[2026-03-04 10:15:12 TP0] Gated launch waiting for activation. rank=0")
    _still(story)
    story.runs(100)
    log("[2026-03-04 10:15:12 TP0] Init torch distributed begin.")
    story.runs(FOUND_WITHIN)
    assert story.launch.verdict.state in RED


def test_a_first_node_is_never_excused_as_a_follower() -> None:
    story = Story(2, real_log=True, engine="vllm", argv=("vllm", "serve", "m", "--nnodes", "2", "--node-rank", "0"))
    log = Log(story)
    story.everybody("imports", "idle")
    story.runs(3)
    stem = "(Worker_TP0 pid=4230) INFO 11-30 03:10:41 "
    log(f"{stem}[gpu_worker.py:298] Available KV cache memory: 61.07 GiB")
    log(f"{stem}[gpu_model_runner.py:5000] Graph capturing finished in 21 secs, took 0.62 GiB")
    _still(story)
    assert story.runs(FOUND_WITHIN).state in RED


def test_a_follower_that_hangs_while_it_loads_is_found() -> None:
    story = Story(2, real_log=True, engine="vllm", argv=("vllm", "serve", "m", "--headless"))
    log = Log(story)
    story.everybody("imports", "idle")
    story.runs(3)
    log("(Worker_TP0 pid=4230) INFO 11-30 03:10:41 [gpu_model_runner.py:5039] Starting to load model org/m...")
    _still(story)
    assert story.runs(FOUND_WITHIN).state in RED


def test_a_compiler_that_never_comes_back_is_found_though_later() -> None:
    story, _ = _loading(2)
    _still(story)
    story.others = [Rank(700, None, ppid=101, name="nvcc", does="sleeps", more={"wchan": "unix_stream_read_generic"})]
    assert story.runs(50).state not in RED
    verdict = story.runs(25)
    assert verdict.state in RED
    assert "a compiler waits" in verdict.headline


@pytest.mark.parametrize("does", ["sleeps", "dies on storage", "stops"])
def test_a_compiler_that_asks_nobody_is_found_as_soon_as_a_rank(does: str) -> None:
    story, _ = _loading(2)
    _still(story)
    story.others = [
        Rank(700, None, ppid=101, name="nvcc", does="sleeps", more={"wchan": "do_wait"}),
        Rank(701, None, ppid=700, name="cicc", does=does),
    ]
    assert story.runs(FOUND_WITHIN).state in RED


def test_many_ranks_that_tick_are_none_that_works() -> None:
    """64 ranks whose threads each beat, poll and breathe a little: together more than one rank that imports."""
    story, _ = _loading(64)
    story.everybody("polls", "idle")
    for rank in story.ranks:
        rank.more = {"minor": 20, "rss": 30_000, "read": 4_000, "rchar": 6_000}
    assert story.runs(FOUND_WITHIN).state in RED


def test_a_spin_beside_traffic_is_no_download_where_io_is_hidden() -> None:
    story, _ = _loading(2)
    for rank in (story.root, *story.ranks):
        rank.process = structs.replace(rank.process, read_bytes=None, rchar=None, write_bytes=None)
    _all_spin(story)
    for second in range(FOUND_WITHIN):
        _a_busy_neighbour_on_the_network(story, Log(story), second)
        story.runs(1)
    assert story.launch.verdict.state in RED
