"""What a part may import, seen at run time: import-linter reads the source, this reads `sys.modules`."""

from __future__ import annotations

import subprocess
import sys

import pytest

PURE = ("tuimon.launch.state", "tuimon.launch.nodes", "tuimon.engines.grammar", "tuimon.recording.folder")
SCREEN_AND_WIRE = ("textual", "asyncssh", "watchfiles")


def modules_after(importing: str) -> set[str]:
    script = f"import sys, {importing}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("module", PURE)
def test_what_we_believe_loads_neither_screen_nor_wire(module: str) -> None:
    loaded = modules_after(module)
    assert not loaded & set(SCREEN_AND_WIRE)
    assert not [name for name in loaded if name.startswith(("tuimon.hosts", "tuimon.ui", "tuimon.watch"))]


def test_the_command_line_loads_nothing_heavy() -> None:
    loaded = modules_after("tuimon.cli")
    assert not loaded & {*SCREEN_AND_WIRE, "msgspec", "asyncio", "tuimon.watch", "tuimon.ui"}


@pytest.mark.parametrize("app", ["tuimon.ui.app", "tuimon.ui.nodesapp, tuimon.headless.attended_nodes"])
def test_the_screen_paints_before_ssh_is_loaded(app: str) -> None:
    assert "asyncssh" not in modules_after(app)


def test_the_watch_loads_ssh_only_when_it_connects() -> None:
    assert "asyncssh" not in modules_after("tuimon.watch.live")


def test_importing_the_client_starts_no_program() -> None:
    code = (
        "import sys; started = []; "
        "sys.addaudithook(lambda event, args: started.append(args) if event == 'subprocess.Popen' else None); "
        "from tuimon.hosts.ssh import SshHost; SshHost.prepare(); "
        "import asyncssh, ctypes.util; assert not started, started; assert ctypes.util.find_library('c')"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
