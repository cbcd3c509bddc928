"""The systemd journal of a unit, without what else is in it."""

import json
import re

_UNIT = re.compile(r"(user/)?([\w@.:\\-]+\.service)\Z")


class Journal:
    """`sglang.service`, or `user/sglang.service` for a user's own unit."""

    def __init__(self, name):
        found = _UNIT.match(name)
        if not found:
            raise SystemExit("%r is no unit" % name)
        field = "_SYSTEMD_USER_UNIT" if found.group(1) else "_SYSTEMD_UNIT"
        self.at = None
        self.program = ["journalctl", "--quiet", "--no-pager", "--all", "-o", "json", field + "=" + found.group(2)]

    def head(self, mark):
        """The command that prints what there is since the mark."""
        return self.program + self.after(mark)

    def rest(self, mark, tail):
        """The command that goes on from the mark; `tail` = only so many of the lines that are there already."""
        return self.program + self.after(mark) + ["-f", "-n", tail or "all"]

    def after(self, mark):
        """A mark is a cursor, or `@SECONDS` for the launch's start."""
        if not mark:
            return ["--boot"]
        return ["--since=" + mark] if mark.startswith("@") else ["--after-cursor=" + mark]

    def written(self, _mark):
        """When the last record was written, seconds since the epoch; None where nobody knows."""
        return self.at

    def take(self, line, mark):
        """(the text, the new mark) of a record; ValueError where it is none."""
        record = json.loads(line.decode("utf-8", "replace"))
        if not isinstance(record, dict) or "__CURSOR" not in record:
            raise ValueError(line)
        cursor, message, at = record["__CURSOR"], record.get("MESSAGE"), record.get("__REALTIME_TIMESTAMP")
        self.at = int(at) / 1e6 if isinstance(at, str) and at.isdigit() else None
        if isinstance(message, list):  # the journal's way of writing what is not UTF-8, or holds control characters
            message = bytes(number & 255 for number in message)
        elif isinstance(message, str):
            message = message.encode("utf-8", "replace")
        else:
            message = b""
        return message + b"\n", cursor if isinstance(cursor, str) else mark
