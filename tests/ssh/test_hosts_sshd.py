"""SshHost against a real sshd: its habits, host keys, jump hosts, encrypted keys, and nothing left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tuimon.hosts.errors import AccessDenied, HostKeyUnknown, TransferFailed
from tuimon.hosts.ssh import SshHost

if TYPE_CHECKING:
    from tests.ssh.conftest import Sshd


async def test_an_unknown_key_names_its_fingerprint_and_the_command_that_accepts_it(sshd: Sshd) -> None:
    with pytest.raises(HostKeyUnknown, match="is not known yet") as refusal:
        await sshd.host().connect()
    shown = _run("ssh-keygen", "-lf", sshd.folder / "host_key.pub")
    assert shown.split()[1] in str(refusal.value)
    assert "Compare this fingerprint" in refusal.value.advice
    command = refusal.value.advice.rpartition("accept it with: ")[2]
    _run("sh", "-c", command)
    host = sshd.host()
    await host.connect()
    assert (await host.run(["echo", "hello"])).stdout == b"hello\n"
    await host.close()


async def test_a_changed_key_is_another_and_a_stern_sentence(sshd: Sshd) -> None:
    other = sshd.key.with_suffix(".pub").read_text()
    sshd.known_hosts.write_text(f"# comment\nbroken\n[127.0.0.1]:{sshd.port} {other}")
    with pytest.raises(HostKeyUnknown, match=r"HAS CHANGED.*listening in") as refusal:
        await sshd.host().connect()
    assert "Do not go on" in refusal.value.advice
    assert f"ssh-keygen -f {sshd.known_hosts} -R '[127.0.0.1]:{sshd.port}'" in refusal.value.advice


async def test_a_key_of_another_kind_in_known_hosts_counts_as_changed_too(sshd: Sshd) -> None:
    _run("ssh-keygen", "-q", "-t", "ecdsa", "-N", "", "-f", sshd.folder / "ecdsa")
    sshd.known_hosts.write_text(f"[127.0.0.1]:{sshd.port} {(sshd.folder / 'ecdsa.pub').read_text()}")
    with pytest.raises(HostKeyUnknown, match="HAS CHANGED"):
        await sshd.host().connect()


async def test_a_revoked_key_is_refused_as_such(sshd: Sshd) -> None:
    sshd.trust()
    sshd.known_hosts.write_text(
        f"@revoked * {(sshd.folder / 'host_key.pub').read_text()}{sshd.known_hosts.read_text()}"
    )
    with pytest.raises(HostKeyUnknown, match="revoked"):
        await sshd.host().connect()


async def test_a_hashed_entry_is_found(sshd: Sshd) -> None:
    sshd.trust()
    _run("ssh-keygen", "-q", "-H", "-f", sshd.known_hosts)
    host = sshd.host()
    await host.connect()
    await host.close()


async def test_an_alias_of_the_ssh_config_leads_there_also_over_a_jump_host(sshd: Sshd) -> None:
    sshd.trust()
    (sshd.home / ".ssh" / "config").write_text(
        f"Host gpu bastion\n  HostName 127.0.0.1\n  Port {sshd.port}\n  User {sshd.user}\n"
        "Host gpu\n  ProxyJump bastion\n"
    )
    host = SshHost("gpu")
    await host.connect()
    assert host.detail == f"{sshd.name} via {sshd.name}"
    assert (await host.run(["echo", "there"])).stdout == b"there\n"
    assert len(sshd.children()) == 2
    await host.close()
    await _until(lambda: not sshd.children())


async def test_a_jump_host_that_is_not_known_is_named(sshd: Sshd) -> None:
    (sshd.home / ".ssh" / "config").write_text(f"Host gpu\n  ProxyJump {sshd.name}\n")
    with pytest.raises(HostKeyUnknown, match=f"On the way to gpu: The host key of {sshd.name} is not known"):
        await SshHost("gpu").connect()


async def test_an_encrypted_key_says_that_it_needs_its_passphrase(sshd: Sshd) -> None:
    sshd.trust()
    _encrypt(sshd.key)
    with pytest.raises(
        AccessDenied, match=r"id_ed25519 needs a passphrase, and the ssh agent has not got it"
    ) as refusal:
        await sshd.host().connect()
    assert "ssh-add ~/.ssh/id_ed25519" in refusal.value.advice


async def test_an_encrypted_key_works_through_the_agent(
    sshd: Sshd, agent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sshd.trust()
    monkeypatch.setenv("SSH_AUTH_SOCK", str(agent))
    _run("ssh-add", "-q", sshd.key)
    _encrypt(sshd.key)
    host = sshd.host()
    await host.connect()
    await host.close()


async def test_an_agent_that_is_gone_is_no_obstacle(sshd: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    sshd.trust()
    monkeypatch.setenv("SSH_AUTH_SOCK", str(sshd.folder / "nobody"))
    host = sshd.host()
    await host.connect()
    await host.close()


@pytest.mark.parametrize("end", ["close", "abort"])
async def test_a_silent_command_ends_with_its_connection(sshd: Sshd, end: str) -> None:
    sshd.trust()
    host = sshd.host()
    await host.connect()
    running = asyncio.create_task(host.run(["sh", "-c", f"echo $$ > {sshd.folder}/pid; exec sleep 600"], timeout=60))
    pid = await _pid(sshd.folder / "pid")
    if end == "close":
        await host.close()
    else:
        for child in sshd.children():
            os.kill(child, signal.SIGKILL)
    with pytest.raises(Exception, match=r"broke|closed"):
        await running
    await _until(lambda: not _lives(pid))
    await host.close()


async def test_a_silent_command_ends_when_tuimon_is_killed(sshd: Sshd) -> None:
    sshd.trust()
    client = _spawn(sys.executable, "-c", _CLIENT, sshd.name, str(sshd.folder))
    pid = await _pid(sshd.folder / "pid")
    client.kill()
    client.wait()
    await _until(lambda: not _lives(pid))
    await _until(lambda: not sshd.children())


async def test_a_transfer_cut_in_the_middle_leaves_nothing(sshd: Sshd) -> None:
    sshd.trust()
    host = sshd.host()
    await host.connect()
    putting = asyncio.create_task(host.put(os.urandom(100_000_000), f"{sshd.folder}/sub/big", 0o600))
    await _until(lambda: any(sshd.folder.glob("sub/big.*")))
    for child in sshd.children():
        os.kill(child, signal.SIGKILL)
    with pytest.raises(TransferFailed, match=r"broke|closed"):
        await putting
    await _until(lambda: not any(sshd.folder.glob("sub/*")))


async def test_a_killed_sshd_is_a_lost_link(sshd: Sshd) -> None:
    sshd.trust()
    host = sshd.host()
    await host.connect()
    for child in sshd.children():
        os.kill(child, signal.SIGKILL)
    async with asyncio.timeout(5):
        assert await host.lost() == "the connection broke"


_CLIENT = """
import asyncio, sys
from tuimon.hosts.ssh import SshHost

async def main():
    host = SshHost(sys.argv[1])
    await host.connect()
    await host.start(["cat"])
    await host.run(["sh", "-c", f"echo $$ > {sys.argv[2]}/pid; exec sleep 600"], timeout=60)

asyncio.run(main())
"""


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "agent"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", str(path)], stdout=subprocess.PIPE)
    assert process.stdout
    process.stdout.readline()
    yield path
    process.terminate()
    process.wait()
    process.stdout.close()


def _encrypt(key: Path) -> None:
    _run("ssh-keygen", "-q", "-p", "-P", "", "-N", "secret", "-f", key)


def _run(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _spawn(*command: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command)


async def _pid(path: Path) -> int:
    await _until(lambda: path.exists() and path.read_text().endswith("\n"))
    return _read(path)


def _read(path: Path) -> int:
    return int(path.read_text())


async def _until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not true():  # noqa: ASYNC110  other programs give no events
            await asyncio.sleep(0.02)


def _lives(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()
