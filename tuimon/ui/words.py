"""Numbers in words: ages, sizes, rates. Unknown is shown as unknown."""

from __future__ import annotations

import time

from tuimon.launch.lasting import age
from tuimon.launch.view import LaunchView

UNKNOWN = "?"


def short_age(seconds: float | None) -> str:
    """`8s`, `4m`, `1h04`: for the terminal's title."""
    if seconds is None:
        return UNKNOWN
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole}s"
    return f"{whole // 60}m" if whole < 3600 else f"{whole // 3600}h{whole // 60 % 60:02}"


def about(seconds: float | None) -> str:
    """A duration without false precision: `4 s`, `58 s`, `8 m`, `1 h`."""
    if seconds is None:
        return UNKNOWN
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} m" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def ago(now: float, then: float | None) -> str:
    """`4 m 12 s ago`, or `never`."""
    return "never" if then is None else f"{age(now - then)} ago"


def size(count: float | None) -> str:
    """Bytes in decimal units: `0 B`, `812 B`, `1.2 MB`, `71 GB`."""
    if count is None:
        return UNKNOWN
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 999.5:
            return f"{value:.1f} {unit}" if unit != "B" and value < 9.95 else f"{value:.0f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def gigabytes(count: float | None) -> str:
    """GPU memory as the field writes it: `71`, without its unit.

    SGLang, vLLM and nvidia-smi count in powers of two and say GB; a reader compares ours with theirs.
    """
    if count is None:
        return UNKNOWN
    value = count / 2**30
    return f"{value:.1f}" if value < 9.95 else f"{value:.0f}"


def percent(value: float | None) -> str:
    """`0 %`; the value is 0–100."""
    return f"{UNKNOWN} %" if value is None else f"{value:.0f} %"


def clock(instant: float | None) -> str:
    """Local wall time `15:46:58`."""
    return UNKNOWN if instant is None else time.strftime("%H:%M:%S", time.localtime(instant))


def data_age(view: LaunchView) -> str:
    """Age of the newest sample: `1.0 s`, `12 s`."""
    if view.data_age is None:
        return ""
    return f"{view.data_age:.1f} s" if view.data_age < 9.95 else age(view.data_age)


WAITS = {
    "futex_wait_queue": "futex",
    "futex_wait_queue_me": "futex",
    "futex_do_wait": "futex",
    "ep_poll": "poll",
    "do_epoll_wait": "poll",
    "do_poll": "poll",
    "poll_schedule_timeout": "poll",
    "do_select": "poll",
    "hrtimer_nanosleep": "sleep",
    "do_wait": "child",
    "pipe_read": "pipe",
    "pipe_wait": "pipe",
    "anon_pipe_read": "pipe",
    "pipe_write": "full pipe",
    "wait_for_partner": "fifo",
    "sk_wait_data": "socket",
    "wait_woken": "socket",
    "unix_stream_data_wait": "socket",
    "unix_stream_read_generic": "socket",
    "inet_csk_accept": "accept",
    "folio_wait_bit": "storage",
    "folio_wait_bit_common": "storage",
    "io_schedule": "storage",
    "wait_on_page_bit": "storage",
    "filemap_fault": "storage",
    "do_signal_stop": "stopped",
    "ptrace_stop": "traced",
    "rpc_wait_bit_killable": "NFS",
    "0": "runs",
}


def waits(where: str | None) -> str:
    """The kernel function a process sleeps in, in a word where we know one."""
    if not where:
        return ""
    return WAITS.get(where.removeprefix("__"), where)
