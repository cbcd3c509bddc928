"""What the user wrote as HOST → the host."""

from __future__ import annotations

import importlib
from typing import cast

from tuimon.hosts.errors import BadAddress, HostError
from tuimon.hosts.host import Host

_LATER = {"docker:": "containers", "k8s:": "Kubernetes pods"}


def host(spec: str) -> Host:
    """The host for `localhost`, `[user@]name[:port]` or `demo:SCENARIO`. Raises HostError.

    Nothing is connected, and nothing heavy imported.
    """
    scheme = next((scheme for scheme in _LATER if scheme in spec), None)
    if scheme:
        raise HostError(f"{spec}: {_LATER[scheme]} cannot be reached yet", "Watch the machine it runs on")
    if spec.startswith("demo:"):
        # By name: hosts do not depend on the demo, which is only one more of them.
        demo = importlib.import_module("tuimon.demo.host")
        scenario, _, pace = spec.removeprefix("demo:").partition("@")
        return cast("Host", demo.DemoHost(scenario, pace or "brisk"))
    if not spec.strip():
        raise BadAddress("No host was named", "Write localhost, [user@]name[:port] or demo:SCENARIO")
    if spec == "localhost":
        from tuimon.hosts.local import LocalHost  # noqa: PLC0415  asyncio.subprocess only where it is needed

        return LocalHost()
    from tuimon.hosts.ssh import SshHost  # noqa: PLC0415  as above

    return SshHost(spec)
