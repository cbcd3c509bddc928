"""Keys and certificates against a real sshd: encrypted, in hardware, of users and of hosts; IPv6; long ways."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import asyncssh
import pytest
from asyncssh import sk_eddsa

from tests.ssh.conftest import start_sshd
from tuimon.hosts import keyring
from tuimon.hosts.errors import AccessDenied, HostKeyUnknown, KeyLocked
from tuimon.hosts.ssh import SshHost

if TYPE_CHECKING:
    from tests.ssh.conftest import Sshd

SECRET = "correct horse"


class User:
    """Somebody who is asked for secrets."""

    def __init__(self, *answers: str | None) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def ask(self, words: str) -> str | None:
        self.asked.append(words)
        return self.answers.pop(0)


@pytest.fixture(autouse=True)
def ring(monkeypatch: pytest.MonkeyPatch) -> keyring.Keyring:
    """Nothing is unlocked yet."""
    ring = keyring.Keyring()
    monkeypatch.setattr(keyring, "RING", ring)
    return ring


@pytest.fixture
def locked(sshd: Sshd) -> Sshd:
    """Its only key is encrypted, and no agent runs."""
    sshd.trust()
    keygen("-p", "-P", "", "-N", SECRET, "-f", sshd.key)
    return sshd


def keygen(*words: str | Path) -> None:
    subprocess.run(["ssh-keygen", "-q", *words], check=True, capture_output=True)


def shell(line: str) -> None:
    subprocess.run(["sh", "-c", line], check=True, capture_output=True)


async def test_the_passphrase_is_asked_for_once_and_the_key_serves_again(locked: Sshd) -> None:
    user = User(SECRET)
    host = locked.host()
    host.ask = user.ask
    await host.connect()
    assert user.asked == [f"Passphrase of ~/.ssh/id_ed25519 for {locked.name}"]
    await host.connect()  # after a lost link
    assert (await host.run(["echo", "there"])).stdout == b"there\n"
    await host.close()
    other = locked.host()
    other.ask = user.ask
    await other.connect()
    await other.close()
    assert len(user.asked) == 1


async def test_three_wrong_passphrases_are_a_refusal_that_names_the_other_way(locked: Sshd) -> None:
    user = User("no", "", "nor this")
    host = locked.host()
    host.ask = user.ask
    with pytest.raises(KeyLocked, match="needs a passphrase") as refusal:
        await host.connect()
    assert refusal.value.advice.endswith("ssh-add ~/.ssh/id_ed25519")
    assert user.asked[1:] == ["That is not the passphrase of ~/.ssh/id_ed25519"] * 2
    assert "nor this" not in f"{refusal.value.sentence()}{refusal.value!r}{vars(refusal.value)}"


async def test_whoever_leaves_the_question_gets_the_same_sentence(locked: Sshd) -> None:
    host = locked.host()
    host.ask = User(None).ask
    with pytest.raises(KeyLocked, match="needs a passphrase"):
        await host.connect()


async def test_a_key_that_the_host_would_not_take_is_not_asked_for(locked: Sshd) -> None:
    user = User()
    (locked.folder / "authorized").write_text("")
    host = locked.host()
    host.ask = user.ask
    with pytest.raises(AccessDenied, match="accepts none of your keys") as refusal:
        await host.connect()
    assert "passphrase" not in refusal.value.sentence()
    assert user.asked == []


async def test_a_key_without_its_public_half_is_asked_for_all_the_same(locked: Sshd) -> None:
    locked.key.with_suffix(".pub").unlink()
    user = User(SECRET)
    host = locked.host()
    host.ask = user.ask
    await host.connect()
    await host.close()


async def test_an_encrypted_key_of_a_jump_host_is_asked_for_on_the_way(locked: Sshd) -> None:
    (locked.home / ".ssh" / "config").write_text(f"Host gpu\n  HostName 127.0.0.1\n  Port {locked.port}\n"
                                                 f"  User {locked.user}\n  ProxyJump {locked.name}\n")  # fmt: skip
    user = User(SECRET)
    host = SshHost("gpu")
    host.ask = user.ask
    await host.connect()
    await host.close()
    assert len(user.asked) == 1


@pytest.mark.parametrize("encrypted", [False, True])
async def test_a_user_certificate_opens_what_trusts_its_authority(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encrypted: bool
) -> None:
    keygen("-t", "ed25519", "-N", "", "-f", tmp_path / "ca")
    server = start_sshd(tmp_path, f"TrustedUserCAKeys {tmp_path}/ca.pub")
    monkeypatch.setenv("HOME", str(server.home))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    try:
        server.trust()
        (tmp_path / "authorized").write_text("")  # nothing but the certificate counts
        with pytest.raises(AccessDenied):
            await server.host().connect()
        public = server.key.with_suffix(".pub")
        keygen("-s", tmp_path / "ca", "-I", "someone", "-n", server.user, "-V", "+1h", public)
        if encrypted:
            keygen("-p", "-P", "", "-N", SECRET, "-f", server.key)
        host, user = server.host(), User(SECRET)
        host.ask = user.ask
        await host.connect()
        await host.close()
        assert len(user.asked) == encrypted
    finally:
        server.close()


@pytest.fixture
def certified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sshd]:
    """An sshd that shows a host certificate."""
    keygen("-t", "ed25519", "-N", "", "-f", tmp_path / "ca")
    server = start_sshd(tmp_path, f"HostCertificate {tmp_path}/host_key-cert.pub")
    server.close()
    keygen("-s", tmp_path / "ca", "-I", "gpu", "-h", "-n", "127.0.0.1", "-V", "+1h", tmp_path / "host_key.pub")
    server.start()
    server.wait_until_up()
    monkeypatch.setenv("HOME", str(server.home))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    yield server
    server.close()


async def test_a_host_certificate_is_trusted_by_its_authority_alone(certified: Sshd) -> None:
    authority = (certified.folder / "ca.pub").read_text()
    certified.known_hosts.write_text(f"@cert-authority [127.0.0.1]:{certified.port} {authority}")
    host = certified.host()
    await host.connect()
    await host.close()
    certified.known_hosts.write_text(f"@cert-authority *.example.org {authority}")
    with pytest.raises(HostKeyUnknown, match="is not known yet"):
        await certified.host().connect()


async def test_a_certificate_of_another_authority_is_no_known_key(certified: Sshd) -> None:
    other = certified.key.with_suffix(".pub").read_text()
    certified.known_hosts.write_text(f"@cert-authority [127.0.0.1]:{certified.port} {other}")
    with pytest.raises(HostKeyUnknown, match="HAS CHANGED"):
        await certified.host().connect()


async def test_a_revoked_authority_is_refused_as_such(certified: Sshd) -> None:
    authority = (certified.folder / "ca.pub").read_text()
    certified.known_hosts.write_text(f"@cert-authority [127.0.0.1]:{certified.port} {authority}@revoked * {authority}")
    with pytest.raises(HostKeyUnknown, match="revoked"):
        await certified.host().connect()


async def test_ipv6_with_a_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError as error:
        pytest.skip(f"no IPv6 loopback here: {error}")
    server = start_sshd(tmp_path, "ListenAddress ::1")
    monkeypatch.setenv("HOME", str(server.home))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    try:
        name = f"{server.user}@[::1]:{server.port}"
        with pytest.raises(HostKeyUnknown, match="is not known yet") as refusal:
            await SshHost(name).connect()
        shell(refusal.value.advice.rpartition("accept it with: ")[2])
        host = SshHost(name)
        await host.connect()
        assert host.detail == name
        await host.close()
    finally:
        server.close()


async def test_a_way_over_two_jump_hosts_each_with_a_key_of_its_own(sshd: Sshd) -> None:
    sshd.trust()
    trusted = sshd.known_hosts.read_text()
    names = {name: f"Host {name}\n  HostName 127.0.0.1\n  Port {sshd.port}\n  User {sshd.user}\n" for name in "abc"}
    config = sshd.home / ".ssh" / "config"
    config.write_text("".join(names.values()) + "Host c\n  ProxyJump a,b\n")
    host = SshHost("c")
    await host.connect()
    assert host.detail == f"{sshd.name} via {sshd.name} via {sshd.name}"
    assert len(sshd.children()) == 3
    await host.close()
    # The same way, told from hop to hop, as people write it too.
    config.write_text(f"{names['a']}{names['b']}  ProxyJump a\n{names['c']}  ProxyJump b\n")
    await host.connect()
    assert len(sshd.children()) >= 3
    await host.close()
    sshd.known_hosts.write_text(trusted)


@pytest.mark.parametrize("value", ["none", "/dev/null"])
async def test_a_config_that_switches_checking_off_is_not_followed_and_the_way_to_have_it_is_named(
    sshd: Sshd, value: str
) -> None:
    (sshd.home / ".ssh" / "config").write_text(f"Host *\n  UserKnownHostsFile {value}\n  StrictHostKeyChecking no\n")
    with pytest.raises(HostKeyUnknown, match="is not known yet") as refusal:
        await sshd.host().connect()
    assert "--ssh-command ssh" in refusal.value.advice


async def test_a_hardware_key_without_its_hardware_says_so_and_names_the_way(sshd: Sshd) -> None:
    sshd.trust()
    seed = asyncssh.generate_private_key("ssh-ed25519").public_data[-32:]
    key = sk_eddsa._SKEd25519Key(seed, "ssh:", 1, b"handle")
    key.algorithm = b"sk-ssh-ed25519@openssh.com"
    sshd.key.unlink()
    path = sshd.home / ".ssh" / "id_ed25519_sk"
    key.write_private_key(path)
    key.write_public_key(f"{path}.pub")
    with pytest.raises(AccessDenied) as refusal:
        await sshd.host().connect()
    assert "hardware" not in refusal.value.sentence()  # the host knows nothing of it
    (sshd.folder / "authorized").write_bytes(key.export_public_key())
    with pytest.raises(AccessDenied, match="whose hardware tuimon's own client cannot use") as refusal:
        await sshd.host().connect()
    assert "--ssh-command ssh" in refusal.value.advice


async def test_a_host_with_a_certificate_whose_plain_key_is_known_is_reached(certified: Sshd) -> None:
    certified.trust()
    host = certified.host()
    await host.connect()
    await host.close()
