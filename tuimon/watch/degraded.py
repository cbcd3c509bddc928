"""Watching a host without any Python: states and CPU of processes, load, GPUs by nvidia-smi, and what cannot be seen.

One `cat` of all /proc/PID/stat each 2 s costs 20 ms with 200 processes; a probe sees far more for less.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tuimon.hosts import plain
from tuimon.hosts.beating import beat
from tuimon.hosts.errors import HostError
from tuimon.hosts.host import Channel, Host
from tuimon.hosts.quoting import last_line, quoted
from tuimon.launch.events import Finding, Gpu
from tuimon.watch.board import Board
from tuimon.watch.lines import Reported
from tuimon.watch.rawproc import Look, Reader, gpu

EVERY = 2.0
"""Seconds between two looks."""
LONGEST = 8 << 20
"""Bytes of one look."""
_FIELDS = (
    "index,name,utilization.gpu,utilization.memory,memory.used,memory.total,power.draw,power.limit,temperature.gpu,"
    "clocks.sm"
)
SMI = ["nvidia-smi", f"--query-gpu={_FIELDS}", "--format=csv,noheader,nounits", "-lms", "1000"]
# The server's pid comes with the beat. grep's own arguments and this text are no server's command line.
SCRIPT = (
    f"echo --tuimon--; {plain.BEATS} set -- $x; "
    "echo @up; cat /proc/uptime /proc/loadavg; echo @memory; cat /proc/meminfo; echo @stat; "
    "cat /proc/[0-9]*/stat 2>/dev/null; echo @argv; "
    "for f in $(grep -lE 'sglang|vllm|VLLM|trtllm|llama-server|torchrun|lmdeploy' /proc/[0-9]*/cmdline 2>/dev/null); "
    "do echo \"$f $(tr '\\000\\n' '\\037 ' <$f 2>/dev/null)\"; done; echo @fd; "
    'test "$1" = - || ls -l /proc/$1/fd/1 /proc/$1/fd/2 2>/dev/null; echo @end; done'
)


class Degraded:
    """Two programs of the host's own, for as long as the link is up."""

    def __init__(self, host: Host, board: Board, heard: Callable[[Reported], None], log: str | None) -> None:
        self._host = host
        self._board = board
        self._heard = heard
        self._reader = Reader(log)
        self._gpus: dict[int, Gpu] = {}
        self._gpu_note = "nvidia-smi has said nothing yet"

    async def run(self) -> None:
        """Until the programs end. Raises HostUnreachable, ChannelRefused."""
        self._heard(
            Finding(
                source="probe",
                kind="no_python",
                severity="warning",
                text=f"{self._host.name} has no python3: states of processes, load, nvidia-smi's GPUs and the log are "
                "seen; I/O, what processes wait in, health, ranks' stacks and NVML's counters are not",
                fix="Install Python 3.6 or later there, or put it on the PATH of non-interactive logins",
            )
        )
        smi = asyncio.create_task(self._smi())
        try:
            await self._looks()
        finally:
            smi.cancel()

    async def _looks(self) -> None:
        channel = await self._host.start(["sh", "-c", SCRIPT])
        asking = asyncio.create_task(self._ask(channel))
        try:
            pending = b""
            while piece := await channel.read():
                pending = (pending + piece)[-LONGEST:]
                while b"\n@end\n" in pending:
                    text, _, pending = pending.partition(b"\n@end\n")
                    self._take(text.rpartition(plain.BEGIN)[2])
        finally:
            asking.cancel()
            channel.end_input()

    async def _ask(self, channel: Channel) -> None:
        while True:
            channel.write(f"{self._reader.pid or '-'}\n".encode())
            await self._board.clock.sleep(EVERY)

    def _take(self, text: bytes) -> None:
        look = Look(text)
        gpus = tuple(self._gpus[index] for index in sorted(self._gpus)) if self._gpus else None
        for event in self._reader.read(look, gpus, None if gpus else self._gpu_note):
            self._heard(event)

    async def _smi(self) -> None:
        try:
            await self._read_smi()
        except HostError as error:  # of a link that is lost the looks tell too, and nobody waits for this
            self._gpu_note = f"nvidia-smi: {error}"
        self._gpus.clear()

    async def _read_smi(self) -> None:
        channel = await self._host.start(plain.beside(SMI))
        beating = asyncio.create_task(beat(channel, self._board.clock.sleep, plain.BEAT))
        try:
            channel.write(plain.BEAT)
            pending = b""
            while piece := await channel.read():
                *lines, pending = (pending + piece)[-65536:].split(b"\n")
                for line in lines:
                    found = gpu(line)
                    if found is not None:
                        self._gpus[found.index] = found
                if said := quoted(channel.errors()):
                    self._gpu_note = f"nvidia-smi: {said}"
            self._gpu_note = f"nvidia-smi has ended: {last_line(channel.errors())}"
        finally:
            beating.cancel()
            channel.end_input()
