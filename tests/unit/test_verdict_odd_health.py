"""Launches that look odd and are well: no red, whatever the log says or does not say."""

from __future__ import annotations

import pytest
from msgspec import structs

from tests.judging import MIB, Rank, Story
from tuimon.launch.events import LogText, Metrics, Process
from tuimon.launch.view import RED


class Log:
    """Writes lines of a real log into a story."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self.offset = 0

    def __call__(self, *lines: str, end: str = "\n") -> None:
        text = "".join(f"{line}{end}" for line in lines).encode()
        self.story.apply(LogText(at=self.story.now, offset=self.offset, text=text))
        self.offset += len(text)


def _told(ranks: int = 2, *flags: str) -> tuple[Story, Log]:
    """A story with a real SGLang log."""
    story = Story(ranks, real_log=True, argv=("python3", "-m", "sglang.launch_server", *flags))
    story.everybody("imports", "idle")
    story.runs(3)
    return story, Log(story)


def _calm(story: Story) -> None:
    red = [
        (round(at - story.verdicts[0][0]), verdict.headline) for at, verdict in story.verdicts if verdict.state in RED
    ]
    assert red == []


def _blind_io(rank: Rank) -> None:
    rank.process = structs.replace(rank.process, read_bytes=None, rchar=None, write_bytes=None)


def test_eight_ranks_load_from_a_slow_nfs_of_which_one_reads_and_pauses_for_fifteen_seconds() -> None:
    story, log = _told(8)
    log("[2026-03-04 10:15:12 TP0] Load weight begin. avail mem=78.00 GB")
    story.everybody("polls", "idle")
    for shard in range(8):
        story.ranks[0].does = "dies on storage"
        story.runs(15)
        story.ranks[0].does = "loads"
        log(f"Loading safetensors checkpoint shards:  {shard * 10}% Completed | {shard}/10 [00:18<00:09,  3.14s/it]")
        story.runs(3)
    _calm(story)


def test_dummy_weights_are_made_on_the_gpu_without_any_reading() -> None:
    story, log = _told()
    log("[2026-03-04 10:15:12 TP0] Load weight begin. avail mem=78.00 GB")
    story.everybody("spins", "works")
    story.runs(60)
    _calm(story)


def test_compilers_that_live_shorter_than_a_sample_and_work_through_a_daemon_elsewhere() -> None:
    """Only children that end are seen: the cache's daemon, which has the work, is not in our tree."""
    story, _ = _told()
    story.everybody("sleeps")
    for second in range(90):
        story.ranks[0].more = {"children": 0.04 if second % 3 == 0 else 0.0}
        story.runs(1)
    _calm(story)


def test_a_compiler_that_waits_half_a_minute_for_the_daemon_that_compiles_for_it() -> None:
    story, _ = _told()
    story.everybody("sleeps")
    for pid in range(700, 705):
        story.others = [
            Rank(pid, None, ppid=101, name="nvcc", does="sleeps", more={"wchan": "do_wait"}),
            Rank(pid + 100, None, ppid=pid, name="sccache", does="sleeps", more={"wchan": "do_epoll_wait"}),
        ]
        story.runs(35)
    _calm(story)


def test_one_thread_of_python_traces_a_huge_model_with_few_faults_while_its_stack_moves() -> None:
    story, _ = _told(1)
    story.everybody("spins")
    story.ranks[0].more = {"minor": 30}
    for i in range(60):
        story.runs(2)
        if story.launch.verdict.wants_stacks:
            story.looks([("call", 1), ("step", 2), ("visit", i), ("trace", 4)])
    _calm(story)


def test_a_host_without_gpus_computes_its_first_forward_on_many_cores() -> None:
    story, _ = _told(1)
    story.gpus = []
    story.everybody("spins")
    story.ranks[0].more = {"cpu": 16.0, "switches": 40}
    story.runs(45)
    _calm(story)


@pytest.mark.parametrize("does", ["imports", "loads"])
def test_a_container_that_hides_what_its_processes_read(does: str) -> None:
    story, _ = _told()
    for rank in (story.root, *story.ranks):
        _blind_io(rank)
    story.everybody(does)
    story.runs(60)
    _calm(story)


@pytest.mark.parametrize("interval", [2.0, 5.0])
def test_a_probe_that_looks_seldom(interval: float) -> None:
    story, log = _told()
    story.interval = interval
    for shard in range(10):
        story.everybody("sleeps")
        story.runs(15)
        story.everybody("loads")
        log(f"Loading safetensors checkpoint shards:  {shard * 10}% Completed | {shard}/10 [00:18<00:09,  3.14s/it]")
        story.runs(interval)
    _calm(story)


def _ready(ranks: int = 2) -> tuple[Story, Log]:
    story, log = _told(ranks)
    log("[2026-03-04 10:15:51] The server is fired up and ready to roll!")
    story.everybody("sleeps", "idle")
    story.asks()
    story.runs(2)
    return story, log


def test_a_ready_server_idles_for_hours() -> None:
    story, log = _ready()
    for minute in range(180):
        story.asks()
        story.apply(Metrics(at=story.now, values={"num_requests_running": 0.0, "generation_tokens_total": 7.0}))
        if minute % 7 == 0:
            log('[2026-03-04 10:15:49] INFO:     127.0.0.1:51520 - "GET /metrics HTTP/1.1" 200 OK')
        story.interval = 6.0
        story.runs(60)
    _calm(story)
    assert story.launch.verdict.state == "ready"


def test_a_launch_behind_a_gate_sleeps_until_somebody_opens_it() -> None:
    story, log = _told()
    log(*(f"[2026-03-04 10:15:12 TP{i}] Gated launch waiting for activation. rank={i}" for i in range(2)))
    story.everybody("sleeps", "idle")
    verdict = story.runs(600)
    _calm(story)
    assert verdict.state == "quiet"
    assert "Gated launch waiting" in verdict.headline


def test_half_of_a_pair_waits_for_its_other_half_as_long_as_its_own_timer_allows() -> None:
    story, log = _told()
    log("[2026-03-04 10:15:49] Start of pd disaggregation warmup ...")
    story.everybody("sleeps", "idle")
    verdict = story.runs(600)
    _calm(story)
    assert verdict.countdown is not None


def test_an_engine_that_waits_for_the_cluster_to_give_it_machines() -> None:
    story = Story(0, real_log=True, engine="vllm", argv=("vllm", "serve", "m"))
    log = Log(story)
    story.runs(3)
    for seconds in (10, 20, 40, 80, 160):
        log(
            f"INFO 11-30 03:10:41 [ray_utils.py:233] Waiting for creating a placement group of specs for {seconds} "
            "seconds. specs=[{'node:10.0.0.1': 0.001, 'GPU': 1.0}]. Check `ray status` and `ray list nodes` to see "
            "if you have enough resources"
        )
        story.runs(seconds)
    _calm(story)
    assert "placement group" in story.launch.verdict.headline


@pytest.mark.parametrize(
    "argv",
    [
        ("vllm", "serve", "m", "--headless", "--data-parallel-size", "2"),
        ("vllm", "serve", "m", "--nnodes", "2", "--node-rank", "1"),
    ],
)
def test_a_second_node_that_is_up_waits_for_the_first_for_as_long_as_that_takes(argv: tuple[str, ...]) -> None:
    story = Story(2, real_log=True, engine="vllm", argv=argv)
    log = Log(story)
    story.everybody("imports", "idle")
    story.runs(3)
    stem = "(Worker_TP0 pid=4230) INFO 11-30 03:10:41 "
    log(f"{stem}[gpu_model_runner.py:5039] Starting to load model org/m...")
    story.runs(3)
    log(f"{stem}[gpu_model_runner.py:5150] Model loading took 12.66 GiB memory and 31.657031 seconds")
    log(f"{stem}[gpu_worker.py:298] Available KV cache memory: 61.07 GiB")
    log(f"{stem}[gpu_model_runner.py:5000] Graph capturing finished in 21 secs, took 0.62 GiB")
    story.everybody("sleeps", "idle")
    verdict = story.runs(120)
    _calm(story)
    assert "first node" in verdict.headline


def test_a_second_sglang_node_is_up_with_its_dummy_health_server() -> None:
    story, log = _told(2, "--nnodes", "2", "--node-rank", "1")
    log("[2026-03-04 10:15:48] Dummy health check server started in background thread at 0.0.0.0:30000")
    story.everybody("polls", "spins")
    story.runs(300)
    _calm(story)


@pytest.mark.parametrize("io", ["read", "hidden"])
def test_a_download_shows_only_on_the_network(io: str) -> None:
    story, _ = _told(1)
    story.everybody("sleeps")
    downloader = story.root
    downloader.more = {"cpu": 0.1, "rchar": 8_000_000, "switches": 50}
    if io == "hidden":
        _blind_io(downloader)
        _blind_io(story.ranks[0])
    received = 0
    for _ in range(60):
        received += 8_000_000
        story.host_load = structs.replace(story.host_load, net_rx=received)
        story.runs(1)
    _calm(story)


def test_a_log_behind_a_pipe_that_is_buffered_for_a_minute_while_the_gpus_work() -> None:
    story, log = _told()
    story.everybody("spins", "works")
    for _ in range(4):
        story.runs(60)
        log(*[f"[2026-03-04 10:15:12 TP0] step {i}" for i in range(50)])
    _calm(story)


def test_weights_that_go_straight_from_the_disk_to_the_gpu_show_only_on_its_link() -> None:
    story, _ = _told()
    story.everybody("sleeps", "idle")
    for i in range(2):
        story.gpu_more[i] = {"pcie_rx": 1_000.0, "pcie_tx": 1_000.0}
    story.runs(8)
    for i in range(2):
        story.gpu_more[i] = {"pcie_rx": 900_000.0, "pcie_tx": 2_000.0}
    story.runs(60)
    _calm(story)


def test_a_rank_that_is_relaunched_by_its_supervisor_under_the_same_root_is_not_dead_for_ever() -> None:
    story, log = _told()
    log("[2026-03-04 10:15:12 TP0] Load weight begin. avail mem=78.00 GB")
    story.everybody("imports")
    story.others = [Rank(800, None, name="python3", title="python3 -m tools.convert", does="imports")]
    story.runs(5)
    story.others = []
    story.runs(10)
    _calm(story)


@pytest.mark.parametrize("seen", ["its GPUs work", "its GPUs cannot be seen", "its host computes", "it counts"])
def test_the_same_line_again_and_again_is_the_only_word_of_one_that_works(seen: str) -> None:
    """Steps of a training, or what a daemon elsewhere fetches: what stands beside the line tells what it is worth."""
    story, log = _told()
    story.everybody("sleeps" if seen == "it counts" else "spins", "works" if seen == "its GPUs work" else "idle")
    if seen == "its GPUs cannot be seen":
        story.gpus = None
    for step in range(60):
        log(f"fetched {step}/600 blocks" if seen == "it counts" else f"[2026-03-04 10:15:12] step {step} loss 2.{step}")
        story.runs(5)
    _calm(story)


def test_a_training_that_said_it_was_done_goes_on_with_its_next_part_and_hangs_there() -> None:
    story = Story(2, real_log=True, engine="torchrun", argv=("torchrun", "--nproc-per-node", "2", "train.py"))
    log = Log(story)
    story.everybody("imports", "works")
    story.runs(5)
    log("{'train_runtime': '6.444', 'train_samples_per_second': '248.3', 'train_loss': '6.932', 'epoch': '0.4'}")
    assert story.runs(3).state == "finished"
    for step in range(10):
        log(f"second part: {step}/400 loss 2.{step}")
        story.runs(5)
    assert story.launch.verdict.state == "starting"
    story.everybody("sleeps", "idle")
    assert story.runs(25).state == "stalled"


@pytest.mark.parametrize("line", ["No space left on device", "Cannot allocate memory"])
def test_a_cache_that_cannot_be_written_is_survived(line: str) -> None:
    story, log = _told()
    log(f"[2026-03-04 10:15:12 TP0] could not write /root/.cache/kernels/1a2b.so: {line}")
    story.runs(30)
    _calm(story)


def test_a_thousand_requests_then_none_leaves_no_debt() -> None:
    """The last status of a batch stays in the log for ever: it is no request that runs."""
    story, log = _ready()
    log("[2026-03-04 10:16:51 TP0] Decode batch, #running-req: 3, gen throughput (token/s): 91.0, #queue-req: 0")
    story.runs(300)
    _calm(story)


def test_memory_that_only_grows_slowly_on_one_rank_of_eight() -> None:
    """A quantisation on the CPU: one core, resident memory by 2 MB/s, nothing else."""
    story, _ = _told(8)
    story.everybody("sleeps", "idle")
    story.ranks[5].does = "spins"
    story.ranks[5].more = {"rss": 2 * MIB}
    story.runs(60)
    _calm(story)


def test_host_memory_is_pinned_for_a_cache_by_the_kernel_alone() -> None:
    """The driver's pages are in nobody's resident size, and pages that are there cause no faults."""
    story, log = _told()
    log("[2026-03-04 10:15:12 TP0] Allocating 180.00 GB host memory for hierarchical KV cache.")
    story.everybody("spins", "idle")
    for rank in story.ranks:
        rank.more = {"system": 1.0}
    free = 900 * 1024 * MIB
    for _ in range(60):
        free -= 3000 * MIB
        story.host_load = structs.replace(story.host_load, mem_available=free)
        story.runs(1)
    _calm(story)


def test_processes_that_cannot_be_named_or_measured_at_all_need_the_log() -> None:
    story = Story(1, gpus=False, host=False, real_log=True)
    log = Log(story)
    for step in range(12):
        log(f"[2026-03-04 10:15:12 TP0] step {step}")
        story.runs(30)
    _calm(story)


def test_unknown_process_is_not_a_zombie() -> None:
    assert Process(pid=1, ppid=0, state="S").name is None
