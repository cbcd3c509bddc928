"""The demo's launch: real processes, started and ended through their keeper."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from contextlib import ExitStack
from pathlib import Path

import setproctitle

from tuimon.demo import models, nvml
from tuimon.demo.errors import DemoFailed
from tuimon.demo.scenarios import Scenario, phases

KEEPER = nvml.PROGRAM / "keeper.py"
LOG = "sglang_eagle3_v2.log"
START_S = 15.0
"""Ten processes are forked 0.1 s after the start; more than this on a machine that is not stuck would be odd."""
STOP_S = 6.0
"""The keeper itself gives up after 5 s."""


class Launch:
    """One launch of the demo; `start` makes it, `stop` leaves no process and no file."""

    def __init__(self, keeper: asyncio.subprocess.Process, folder: Path, reserved: socket.socket) -> None:
        self._keeper = keeper
        self._reserved = reserved
        self.folder = folder
        self.port = int(reserved.getsockname()[1])
        """Where the server will answer once it is ready."""
        self.pids: tuple[int, ...] = ()
        """Launcher, ranks in order, detokenizer."""

    @classmethod
    async def start(cls, scenario: Scenario, pace: str) -> Launch:
        """Start the keeper, which starts the launch. Raises DemoFailed, UnknownPace."""
        if sys.platform != "linux":
            raise DemoFailed("The demo plays on Linux only: its processes are seen through /proc", "Watch a Linux host")
        with ExitStack() as undo:
            reserved = undo.enter_context(_reserved())
            order = _order(scenario, pace, reserved.getsockname()[1])
            launch = await cls._begun(scenario.name, order, reserved)
            undo.pop_all()
        return launch

    @classmethod
    async def _begun(cls, scenario: str, order: dict[str, object], reserved: socket.socket) -> Launch:
        keeper = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-S", str(KEEPER),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            start_new_session=True,  # ctrl+c in our terminal is ours; the keeper acts when its stdin ends
        )  # fmt: skip
        assert keeper.stdin is not None  # noqa: S101 - asked for
        try:
            async with asyncio.timeout(START_S):
                keeper.stdin.write(json.dumps(order).encode() + b"\n")
                launch = cls(keeper, await _folder(keeper), reserved)
                launch.pids = await launch._cast()
                launch.pynvml.write_bytes(nvml.source(launch.folder))
                models.write(launch.folder, scenario)
        except TimeoutError:
            await _end(keeper)
            raise DemoFailed(f"The demo's launch did not start within {START_S:g} s") from None
        except BaseException:
            await _end(keeper)
            raise
        return launch

    @property
    def within(self) -> int:
        """The pid below which the whole launch is."""
        return self._keeper.pid

    @property
    def log(self) -> Path:
        """The server's log."""
        return self.folder / LOG

    @property
    def pynvml(self) -> Path:
        """A stand-in pynvml for this launch, as a file."""
        return self.folder / "pynvml.py"

    def note(self, group: int, *, started: bool) -> None:
        """Tell the keeper of a process group that must not outlive us either."""
        stdin = self._keeper.stdin
        if stdin is not None and not stdin.is_closing():
            stdin.write(b"%s%d\n" % (b"+" if started else b"-", group))

    async def stop(self) -> None:
        """End every process and remove every file; safe to call twice."""
        self._reserved.close()
        await _end(self._keeper)

    async def _cast(self) -> tuple[int, ...]:
        while True:
            try:
                return tuple(json.loads((self.folder / "pids.json").read_text())["pids"])
            except FileNotFoundError:
                if self._keeper.returncode is not None:
                    raise DemoFailed("The demo's launch ended at once") from None
                await asyncio.sleep(0.02)


def _order(scenario: Scenario, pace: str, port: int) -> dict[str, object]:
    when = phases(scenario, pace)
    plan = {
        "scenario": scenario.name,
        "phases": {name: (phase.begin, phase.length) for name, phase in when.items()},
        "speed": 1.0 if pace in {"brisk", "real"} else float(pace),
    }
    argv = [
        "-W", "ignore", "-m", "sglang.launch_server",
        "--model-path", models.TARGET, "--tp-size", "8", "--trust-remote-code",
        "--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", models.DRAFT,
        "--speculative-num-steps", "3", "--speculative-eagle-topk", "1", "--speculative-num-draft-tokens", "4",
        "--mem-fraction-static", "0.75", "--enable-metrics", "--host", "127.0.0.1", "--port", str(port),
    ]  # fmt: skip
    packages = Path(setproctitle.__file__).parents[1]
    environ = {
        "PYTHONPATH": f"{nvml.PROGRAM}{os.pathsep}{packages}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PATH": os.environ.get("PATH", os.defpath),
        # Some Pythons do not start without it.
        **{name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ},
    }
    tools = {"python": sys.executable, "py-spy": str(Path(sys.executable).with_name("py-spy"))}
    return {"argv": argv, "environ": environ, "plan": plan, "log": LOG, "tools": tools}


def _reserved() -> socket.socket:
    """A port that nobody else is given until the server opens it, 8-40 s later: a busy machine takes a free one.

    Bound and not listening, with SO_REUSEADDR: so the server, which has that too, may bind it, and no port 0 gets it.
    """
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("127.0.0.1", 0))
    return holder


async def _end(keeper: asyncio.subprocess.Process) -> None:
    if keeper.stdin is not None:
        keeper.stdin.close()
    try:
        async with asyncio.timeout(STOP_S):
            await keeper.wait()
    except TimeoutError:
        keeper.kill()
        await keeper.wait()


async def _folder(keeper: asyncio.subprocess.Process) -> Path:
    assert keeper.stdout is not None  # noqa: S101 - asked for
    assert keeper.stderr is not None  # noqa: S101
    told = await keeper.stdout.readline()
    if told:
        return Path(json.loads(told)["folder"])
    lines = (await keeper.stderr.read(1 << 16)).decode(errors="replace").split("\n")
    reason = next((line for line in reversed(lines) if line.strip()), "no reason was given")
    raise DemoFailed(f"The demo's launch did not start: {reason}")
