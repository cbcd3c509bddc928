"""What a tmux pane shows, told as it comes: captured each second, never typed into, nothing of tmux changed.

A capture is all that tmux keeps, so what was told before is found again in it, by a mark: a digest of the last lines.
"""

import hashlib
import os
import re
import stat as modes
import subprocess

EVERY = 1.0
"""Seconds between captures; one takes tmux 1–10 ms."""
NEAR, MOST = 200, 3000
"""Lines of history that are captured: where the place is near, and at most."""
NO_GROUP = 65534
KNOWN = 50
"""Lines that make a mark."""
_NAME = re.compile(r"(%[0-9]{1,6}):(/dev/[\w/]+):(/[^\0\n]+)\Z")
_STATE = "#{pane_tty} #{pane_height} #{cursor_y} #{window_activity}"


class Pane:
    """`%3:/dev/pts/5:/tmp/tmux-0/default`: the pane, the terminal that it must be, the server's socket."""

    def __init__(self, name):
        found = _NAME.match(name)
        if not found:
            raise SystemExit("%r is no pane" % name)
        self.pane, self.tty, self.socket = found.groups()
        self.written = None  # when something was last shown, where that was before us
        self.activity = None
        self.open = None  # what was told of the line that is still being written; None = unknown

    def news(self, mark):
        """(the text since the mark, the new mark, True where something was left out); ValueError says what is wrong."""
        lines, last = self.capture(NEAR)
        self.written = self.activity if not mark or mark.startswith("@") else None
        at = place(lines, mark)
        if at is None:
            lines, last = self.capture(MOST)
            at = place(lines, mark)
        # Cleared, or faster than we look: what can be seen may have been told, and nothing may come twice.
        lost = at is None
        fresh = [] if at is None else lines[at:]
        if self.open is None:
            self.open = b"" if at == 0 and not mark else None
        text = b"".join(self.finished(line) for line in fresh) + self.redrawn(last)
        return text, digest(lines[-KNOWN:]), lost

    def finished(self, line):
        """The rest of a line, with its end."""
        text = self.redrawn(line)
        self.open = b""
        return text + b"\n"

    def redrawn(self, line):
        """What turns the open line into this one: its new end, or all of it after a carriage return."""
        before, self.open = self.open, line
        if before is None:
            return b"\r" + line
        if line.startswith(before):
            return line[len(before) :]
        return b"\r" + line

    def trusted(self):
        """(the socket, who to be before it is connected to); ValueError where it may be a trap.

        A tmux client runs what its server tells it to, and the socket is named by a process that may be anybody's:
        it is connected to with the rights of the terminal's owner, whom the kernel knows, and no others'.
        """
        socket = os.path.realpath(self.socket)
        try:
            found, folder = os.lstat(socket), os.lstat(os.path.dirname(socket))
        except OSError as error:
            raise ValueError("tmux: %s: %s" % (socket, error.strerror)) from None
        try:
            owner = os.stat(self.tty).st_uid
        except OSError:
            raise ValueError("tmux pane %s is another terminal by now" % self.pane) from None
        kept = folder.st_uid in (0, owner) and (not folder.st_mode & 0o022 or folder.st_mode & modes.S_ISVTX)
        if not modes.S_ISSOCK(found.st_mode) or found.st_uid != owner or not kept:
            raise ValueError("tmux: whether %s is that of %s's owner is not certain" % (socket, self.tty))
        if owner == os.geteuid():
            return socket, None
        if os.geteuid():
            raise ValueError("tmux: permission denied, pane %s is the user's with the uid %d" % (self.pane, owner))
        return socket, lambda: become(owner)

    def capture(self, history):
        """(the lines above the cursor, the cursor's line)."""
        socket, before = self.trusted()
        argv = ["tmux", "-u", "-S", socket, "display-message", "-p", "-t", self.pane, _STATE, ";"]
        argv += ["capture-pane", "-p", "-J", "-S", "-%d" % history, "-t", self.pane]
        environment = dict(os.environ, LC_ALL="C.UTF-8")
        environment.pop("TMUX", None)
        try:
            child = subprocess.Popen(
                argv, env=environment, preexec_fn=before,  # noqa: PLW1509  three system calls, and only as root
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )  # fmt: skip
            out, err = child.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()
            raise ValueError("tmux does not answer") from None
        except OSError as error:
            raise ValueError("tmux cannot be run: %s" % error.strerror) from None
        rows = out.split(b"\n")[:-1]
        if child.returncode or not rows:
            words = err.decode("utf-8", "replace").strip() or "exit %d" % child.returncode
            raise ValueError("tmux: %s" % words[:200])
        tty, height, cursor, activity = (rows.pop(0).decode("utf-8", "replace") + " ").split(" ")[:4]
        self.activity = float(activity) if activity.isdigit() else None
        if tty != self.tty:
            raise ValueError("tmux pane %s is another terminal by now (%s)" % (self.pane, tty))
        # Below the cursor there is nothing yet, or what is redrawn all the time (several bars).
        rows = [row.rstrip() for row in rows[: len(rows) - (int(height) - 1 - int(cursor))]]
        return rows[:-1], rows[-1] if rows else b""


def become(uid):
    """Be this user, of no group that anybody has."""
    os.setgroups([])
    os.setgid(NO_GROUP)
    os.setuid(uid)


def digest(lines):
    """The mark of the place behind these lines."""
    return "%d:%s" % (len(lines), hashlib.sha1(b"\n".join(lines)).hexdigest())


def place(lines, mark):
    """The index behind the marked lines, searched from the end; None where they are not there."""
    if not mark or mark.startswith("@"):
        return 0
    count = int(mark.split(":", 1)[0])
    for end in range(len(lines), count - 1, -1):
        if digest(lines[end - count : end]) == mark:
            return end
    return None
