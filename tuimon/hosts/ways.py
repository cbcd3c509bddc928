"""Ways into a place that another machine can enter: a container, a pod, or a host through the user's own ssh."""

from __future__ import annotations

import os.path
import re
import shlex
from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from tuimon.hosts import ending
from tuimon.hosts.address import Address
from tuimon.hosts.ending import Ending
from tuimon.hosts.errors import AccessDenied, BadAddress, HostError, HostUnreachable, PlaceGone
from tuimon.hosts.loginshell import for_login_shell
from tuimon.hosts.quoting import last_line

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,252}")
_DENIED = re.compile(r"permission denied|forbidden|unauthorized|not allowed|access denied", re.IGNORECASE)
JUST_NOW = 10
"""Seconds within which a container died if that cut our link: it is asked at once, for 2 s."""


class Way(Protocol):
    """How a command gets there from the machine before it."""

    @property
    def words(self) -> str:
        """`the container vllm`."""

    def detail(self, outer: str) -> str:
        """How it is reached, `outer` being how the machine before it is."""

    @property
    def log(self) -> str | None:
        """The name under which the machine before it can follow what the place prints; None where it prints nothing."""

    def enter(self, argv: Sequence[str]) -> list[str]:
        """The argument list, for the machine before it, that runs `argv` there."""

    def trouble(self, said: str, status: int | None) -> HostError:
        """Why nothing could be run there."""

    def states(self, since: int = JUST_NOW) -> tuple[tuple[str, ...], ...]:
        """What asks the machine before it how the place ended, one after the other; none where that does not end.

        since: seconds for which it may be gone.
        """

    def ending(self, state: bytes) -> Ending | None:
        """How it ended, from the answer to one of them; None while it runs, or where that is not told."""


class Container(Struct, frozen=True):
    """A container of the Docker engine on the machine before it."""

    name: str

    @property
    def words(self) -> str:
        """For a sentence."""
        return f"the container {self.name}"

    def detail(self, outer: str) -> str:
        """By way of the machine before it."""
        return f"{self.words} on {outer}"

    @property
    def log(self) -> str | None:
        """What its first process prints."""
        return f"docker:{self.name}"

    def enter(self, argv: Sequence[str]) -> list[str]:
        """By `docker exec`; no terminal, so bytes stay as they are."""
        return ["docker", "exec", "-i", self.name, *argv]

    def trouble(self, said: str, status: int | None) -> HostError:
        """In words; what may pass (not there yet, stopped) is tried again."""
        reason = last_line(said)
        if "executable file not found" in said:
            return AccessDenied(
                f"{self.words} has no shell (sh)", "Watch the machine that it runs on: its processes can be seen there"
            )
        if status == 127:
            return AccessDenied("There is no docker program there", "Name the machine that runs the container: HOST/…")
        if _DENIED.search(reason):
            return AccessDenied(
                f"Docker may not be asked: {reason}", "Join the group `docker` there, or log in as root"
            )
        return self._not_there(said) or HostUnreachable(f"{self.words} cannot be entered: {reason}")

    def _not_there(self, said: str) -> HostUnreachable | None:
        if "No such container" in said:
            return PlaceGone(f"There is no container {self.name} there", "Look at: docker ps -a")
        if "is paused" in said:
            return HostUnreachable(f"The container {self.name} is paused", f"Let it run: docker unpause {self.name}")
        for sign in ("is not running", "is restarting"):
            if sign in said:
                logs = f"Its log: docker logs {self.name} 2>&1 | tuimon timeline -"
                return PlaceGone(f"The container {self.name} {sign}", logs)
        return None

    def states(self, since: int = JUST_NOW) -> tuple[tuple[str, ...], ...]:
        """Its State, as JSON; its deaths, for what was removed at once (--rm) or runs again by now (--restart)."""
        inspect = "docker", "inspect", "--type=container", "-f", ending.INSPECT, self.name
        just_now = "docker", "events", f"--since={since}s", "--until=0s"
        died = f"--filter=container={self.name}", "--filter=event=die", "--format={{json .Actor.Attributes}}"
        return inspect, (*just_now, *died)

    def ending(self, state: bytes) -> Ending | None:
        """Exited, dead, about to be started again; or the last of its deaths."""
        return ending.of_container(state) or ending.of_deaths(state)


class Pod(Struct, frozen=True):
    """A container of a pod, through kubectl on the machine before it."""

    namespace: str
    pod: str
    container: str | None = None

    @property
    def words(self) -> str:
        """For a sentence."""
        return f"the pod {self.namespace}/{self.pod}"

    def detail(self, outer: str) -> str:
        """By way of the machine before it."""
        return f"{self.words} on {outer}"

    @property
    def log(self) -> str | None:
        """What its first process prints."""
        return "/".join(["k8s:" + self.namespace, self.pod, *([self.container] if self.container else [])])

    def enter(self, argv: Sequence[str]) -> list[str]:
        """By `kubectl exec`."""
        container = ["-c", self.container] if self.container else []
        return ["kubectl", "exec", "-i", "-n", self.namespace, self.pod, *container, "--", *argv]

    def trouble(self, said: str, status: int | None) -> HostError:
        """In words."""
        reason = last_line(said)
        if "executable file not found" in said:
            return AccessDenied(f"{self.words} has no shell (sh)", "Nothing can be seen inside it")
        if status == 127:
            return AccessDenied(
                "There is no kubectl program there", "Install it, or name a machine that has it: HOST/…"
            )
        if "NotFound" in said or "not found" in said:
            return PlaceGone(f"There is no pod {self.pod} in {self.namespace}", "Look at: kubectl get pods -A")
        if "completed pod" in said:
            return PlaceGone(f"The pod {self.pod} has ended", f"Its log: kubectl logs -n {self.namespace} {self.pod}")
        if _DENIED.search(reason):
            return AccessDenied(f"{self.words} may not be entered: {reason}", "kubectl needs rights on pods/exec there")
        return HostUnreachable(f"{self.words} cannot be entered: {reason}")

    def states(self, since: int = JUST_NOW) -> tuple[tuple[str, ...], ...]:
        """Of all its containers, as JSON."""
        del since
        status = "jsonpath={.status.containerStatuses}"
        return (("kubectl", "get", "pod", "-n", self.namespace, self.pod, "-o", status),)

    def ending(self, state: bytes) -> Ending | None:
        """Terminated, and not started again yet."""
        return ending.of_pod(state, self.container)


class OwnSsh(Struct, frozen=True):
    """A machine through a program of the user's own: `ssh`, or a wrapper that takes HOST and COMMAND as ssh does."""

    program: tuple[str, ...]
    address: Address

    @property
    def words(self) -> str:
        """For a sentence."""
        return self.address.host

    def detail(self, outer: str) -> str:
        """From this machine, so that one is not named."""
        del outer
        return shlex.join(self.enter(["true"])[:-1])

    @property
    def log(self) -> str | None:
        """A machine prints nothing."""
        return None

    def enter(self, argv: Sequence[str]) -> list[str]:
        """The program's own options are given only to a real ssh."""
        at = self.address
        options: list[str] = []
        if os.path.basename(self.program[0]) == "ssh":
            options = ["-T", "-o", "BatchMode=yes", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"]
        options += ["-p", str(at.port)] if at.port else []
        return [*self.program, *options, f"{at.user}@{at.host}" if at.user else at.host, for_login_shell(argv)]

    def trouble(self, said: str, status: int | None) -> HostError:
        """In words; ssh says everything with 255."""
        reason = last_line(said)
        again = f"Try it by hand: {shlex.join(self.enter(['true'])[:-1])}"
        if "Host key verification failed" in said:
            return AccessDenied(f"{self.words}: the host key is not trusted", again)
        if _DENIED.search(reason):
            return AccessDenied(f"{self.words}: {reason}", again)
        if status == 127:
            return AccessDenied(f"{self.program[0]} (ssh_command) cannot be run: {reason}", "Correct ssh_command")
        return HostUnreachable(f"{self.words} cannot be reached by {self.program[0]}: {reason}", again)

    def states(self, since: int = JUST_NOW) -> tuple[tuple[str, ...], ...]:
        """A machine does not end with what it runs."""
        del since
        return ()

    def ending(self, state: bytes) -> Ending | None:
        """Nobody can tell."""
        del state
        return None


def way(spec: str) -> Container | Pod | None:
    """The way for `docker:NAME` or `k8s:NAMESPACE/POD`; None where it is neither. Raises BadAddress."""
    scheme, colon, rest = spec.partition(":")
    names = rest.split("/")
    if not colon or scheme not in {"docker", "k8s"}:
        return None
    if not all(_NAME.fullmatch(name) for name in names):
        raise BadAddress(f"{spec!r} names no container", "Write docker:NAME or k8s:NAMESPACE/POD")
    if scheme == "docker" and len(names) == 1:
        return Container(names[0])
    if scheme == "k8s" and len(names) in {2, 3}:
        return Pod(*names)
    raise BadAddress(f"{spec!r} is not complete", "Write docker:NAME or k8s:NAMESPACE/POD")
