"""What the user wrote as HOST → the host."""

from __future__ import annotations

import importlib
import shlex
from typing import cast

from tuimon.hosts import ways
from tuimon.hosts.errors import BadAddress, BadSshConfig
from tuimon.hosts.host import Host

FORM = "localhost, [user@]name[:port], docker:NAME, HOST/docker:NAME, k8s:NAMESPACE/POD or demo:SCENARIO"


def host(spec: str, ssh_command: str | None = None) -> Host:
    """The host that FORM describes; ssh_command = the program that reaches machines instead of asyncssh.

    Nothing is connected, and nothing heavy imported. Raises HostError.
    """
    if not spec.strip():
        raise BadAddress("No host was named", f"Write {FORM}")
    outer, inner = _split(spec)
    if inner is not None:
        from tuimon.hosts.inside import Inside  # noqa: PLC0415  asyncio.subprocess only where it is needed

        return Inside(spec, _machine(outer or "localhost", ssh_command), inner)
    return _machine(spec, ssh_command)


def _split(spec: str) -> tuple[str, ways.Container | ways.Pod | None]:
    """The machine, and the way on from there."""
    inner = ways.way(spec)
    if inner is not None:
        return "", inner
    for scheme in ("/docker:", "/k8s:"):
        outer, found, name = spec.partition(scheme)
        if found:
            return outer, ways.way(scheme[1:] + name)
    return spec, None


def _machine(spec: str, ssh_command: str | None) -> Host:
    if spec.startswith("demo:"):
        # By name: hosts do not depend on the demo, which is only one more of them.
        demo = importlib.import_module("tuimon.demo.host")
        scenario, _, pace = spec.removeprefix("demo:").partition("@")
        return cast("Host", demo.DemoHost(scenario, pace or "brisk"))
    if spec == "localhost":
        from tuimon.hosts.local import LocalHost  # noqa: PLC0415  as above

        return LocalHost()
    if ssh_command:
        return _by_command(spec, ssh_command)
    from tuimon.hosts.ssh import SshHost  # noqa: PLC0415  as above

    return SshHost(spec)


def _by_command(spec: str, ssh_command: str) -> Host:
    from tuimon.hosts.address import parse  # noqa: PLC0415  as above
    from tuimon.hosts.inside import Inside  # noqa: PLC0415  as above
    from tuimon.hosts.local import LocalHost  # noqa: PLC0415  as above

    try:
        program = tuple(shlex.split(ssh_command))
    except ValueError as error:
        raise BadSshConfig(f"ssh_command is no command: {error}", "Write it as for a shell") from error
    if not program:
        raise BadSshConfig("ssh_command is empty", "Write ssh, or leave it away")
    return Inside(spec, LocalHost(), ways.OwnSsh(program, parse(spec)))
