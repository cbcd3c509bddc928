"""What can go wrong on the way to a machine."""

from __future__ import annotations

from tuimon.errors import TuimonError


class HostError(TuimonError):
    """The root of this package's errors."""


class HostUnreachable(HostError):
    """Nothing answers (DNS, refused, timeout, link lost); trying again may help."""


class PlaceGone(HostUnreachable):
    """The machine answers, but the container there does not run, or is no more."""


class HostKeyUnknown(HostError):
    """The host's key is not in known_hosts, or differs; the user must act."""


class AccessDenied(HostError):
    """No key or password was accepted; the user must act."""


class KeyLocked(AccessDenied):
    """The host takes a key that is encrypted, and that nobody has unlocked."""

    path = ""
    """The key."""


class CommandTimedOut(HostError):
    """A command did not end within its time."""


class TransferFailed(HostError):
    """A file could not be put on the host."""


class CannotStart(HostError):
    """This machine cannot start a program (it is not there, or may not be run)."""


class BadAddress(HostError):
    """What the user wrote is no host."""

    exit_code = 2


class BadSshConfig(HostError):
    """The user's ssh configuration, or a key that it names, cannot be used; the user must act."""


class ChannelRefused(HostError):
    """The link is up, but the host opens no further session on it (MaxSessions, a restricted account)."""
