from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest

from tuimon.launch.events import AnyEvent, Event, Process, Sample, ServerFound
from tuimon.probe import send

Kind = TypeVar("Kind", bound=Event)
STANDIN = (Path(__file__).parent / "standin_pynvml.py").read_bytes()
DEADLINE = 15.0
"""Seconds that an event may take on a busy machine; tests go on as soon as it comes."""


class RunningProbe:
    """A real probe, as a host would run it."""

    def __init__(self, options: send.ProbeOptions, python: str, nvml: bytes, wrapper: tuple[str, ...]) -> None:
        self.program = subprocess.Popen(
            [*wrapper, *send.command(python)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        self.events: list[AnyEvent] = []
        self._new: queue.Queue[AnyEvent | None] = queue.Queue()
        self.write(send.payload(options, nvml))
        threading.Thread(target=self._read, daemon=True).start()

    @property
    def pid(self) -> int:
        return self.program.pid

    def write(self, text: bytes) -> None:
        assert self.program.stdin is not None
        self.program.stdin.write(text)
        self.program.stdin.flush()

    def request(self, **request: object) -> None:
        self.write(msgspec.json.encode(request) + b"\n")

    def _read(self) -> None:
        assert self.program.stdout is not None
        for line in self.program.stdout:
            if line.strip():
                self._new.put(msgspec.json.decode(line, type=AnyEvent))
        self._new.put(None)

    def until(
        self, kind: type[Kind], wanted: Callable[[Kind], bool] = lambda _event: True, timeout: float = DEADLINE
    ) -> Kind:
        """The next event of a kind that fulfils a condition."""
        end = time.monotonic() + timeout
        while True:
            try:
                event = self._new.get(timeout=max(0.01, end - time.monotonic()))
            except queue.Empty:
                pytest.fail(f"no such {kind.__name__} within {timeout} s; last: {self.events[-3:]}")
            if event is None:
                assert self.program.stderr is not None
                pytest.fail(f"the probe ended: {self.program.stderr.read().decode()}")
            self.events.append(event)
            if isinstance(event, kind) and wanted(event):
                return event

    def process(self, pid: int, wanted: Callable[[Process], bool] = lambda _process: True) -> Process:
        """The next reading of a process that fulfils a condition."""
        sample = self.until(Sample, lambda sample: any(p.pid == pid and wanted(p) for p in sample.processes or ()))
        return next(process for process in sample.processes or () if process.pid == pid)

    def end(self, timeout: float = 5.0) -> int:
        """Close its stdin and wait."""
        assert self.program.stdin is not None
        self.program.stdin.close()
        return self.program.wait(timeout)


@pytest.fixture
def probe() -> Iterator[Callable[..., RunningProbe]]:
    """Starts probes; none is left at the end."""
    running: list[RunningProbe] = []

    def start(
        python: str = sys.executable,
        nvml: bytes = STANDIN + b"\nGPUS = 0\n",
        wrapper: tuple[str, ...] = (),
        **options: object,
    ) -> RunningProbe:
        values = {"interval": 0.2, "within": os.getpid(), **options}
        running.append(RunningProbe(msgspec.convert(values, send.ProbeOptions), python, nvml, wrapper))
        return running[-1]

    yield start
    for started in running:
        if started.program.poll() is None:
            started.program.kill()
        started.program.wait()
        for stream in (started.program.stdin, started.program.stdout, started.program.stderr):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts programs in sessions of their own; all of their processes are ended afterwards."""
    running: list[subprocess.Popen[bytes]] = []

    def start(program: str, *arguments: str, module: str | None = None, **options: object) -> subprocess.Popen[bytes]:
        folder = tmp_path / f"program{len(running)}"
        path = folder / (module or "program").replace(".", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".py").write_text(textwrap.dedent(program))
        argv = [sys.executable, *(["-m", module] if module else [str(path.with_suffix(".py"))]), *arguments]
        settings: dict[str, object] = {"stdin": subprocess.DEVNULL, "start_new_session": True, **options}
        environment = {**os.environ, "PYTHONPATH": str(folder)}
        running.append(subprocess.Popen(argv, env=environment, **settings))  # type: ignore[call-overload]  # any of its options
        return running[-1]

    yield start
    for started in running:
        end_session(started)


def end_session(started: subprocess.Popen[bytes]) -> None:
    """Kill every process of the session that a started program leads."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            session = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[3])
            if session == started.pid:
                os.kill(int(entry.name), signal.SIGKILL)
        except (OSError, ValueError, IndexError):
            continue
    started.wait()
    for stream in (started.stdin, started.stdout, started.stderr):
        if stream is not None:
            stream.close()


@pytest.fixture
def sglang(launch: Callable[..., subprocess.Popen[bytes]]) -> Callable[..., subprocess.Popen[bytes]]:
    """Starts a program whose command line is SGLang's."""

    def start(
        program: str = "import time\nwhile True: print('line', flush=True); time.sleep(0.1)",
        *arguments: str,
        **options: object,
    ) -> subprocess.Popen[bytes]:
        given = arguments or ("--model-path", "/models/target", "--port", "1")
        return launch(program, *given, module="sglang.launch_server", **options)

    return start


@pytest.fixture
def found(probe: Callable[..., RunningProbe]) -> Callable[..., ServerFound]:
    """What a fresh probe finds."""

    def find(wanted: Callable[[ServerFound], bool] = lambda _found: True, **options: object) -> ServerFound:
        return probe(**options).until(ServerFound, wanted)

    return find


def pythons() -> list[object]:
    """Real interpreters of other versions, where this machine has them."""
    known = ["3.6.15", "3.7.16", "3.8.18", "3.12.1", "3.13.0"]
    base = Path(os.environ.get("PYENV_ROOT", str(Path.home() / ".pyenv"))) / "versions"
    rows: list[object] = []
    for version in known:
        path = base / version / "bin" / "python3"
        skip = pytest.mark.skip(reason=f"no Python {version} on this machine")
        rows.append(pytest.param(str(path), id=version, marks=() if path.exists() else skip))
    return rows


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`any_python` runs a test under every interpreter there is."""
    if "any_python" in metafunc.fixturenames:
        metafunc.parametrize("any_python", pythons())
