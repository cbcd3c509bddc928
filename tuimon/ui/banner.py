"""The verdict in words: several red lines, or one line in amber, green or plain; each with a shape of its own."""

from __future__ import annotations

from tuimon.launch.view import RED, LaunchView, State, Verdict
from tuimon.ui.pane import Painted
from tuimon.ui.rows import Row, clean, cut, fit, flow, spread, width_of
from tuimon.ui.words import age, clock, duration

NAMES: dict[State, str] = {
    "waiting": "WAITING", "starting": "STARTING", "quiet": "QUIET", "stalled": "SILENT STALL", "spinning": "SPINNING",
    "frozen": "FROZEN", "crashed": "CRASHED", "ready": "READY", "serving": "SERVING", "failing": "FAILING",
    "finished": "FINISHED", "unreachable": "NO DATA",
}  # fmt: skip
ALARMS = {"useless_draft": "draft model is not working: its weights were probably never loaded"}


class Banner(Painted):
    """Says what is the matter."""

    keys: tuple[tuple[str, str], ...] = ()
    """Keys that help in a red moment and can be pressed: (key, word)."""

    def slice(self, view: LaunchView) -> object:
        return (
            view.verdict,
            view.link,
            view.serving,
            view.error,
            int(view.now - view.verdict.since),
            int(view.now),
            self.keys,
        )

    def paint(self, view: LaunchView | None, width: int, height: int) -> list[Row]:
        if view is None:
            return [fit(((" ◌ starting", "calmdim"),), width, "calm")]
        return rows(view, width, height, self.keys)


def wanted(view: LaunchView, width: int, height: int) -> int:
    """How many lines the banner should have on a screen of this size."""
    if view.verdict.state not in RED:
        extra = bool(view.verdict.alarms) or view.link.state == "refused"
        return 2 if extra and height >= 12 else 1
    if height < 10:
        return 1
    if height < 30 or width < 90:
        return 2 if height < 20 or width >= 70 else 3
    return 2 + len(_red_words(view, width - 8, (), most=6 if height >= 50 else 5))


def rows(view: LaunchView, width: int, height: int, keys: tuple[tuple[str, str], ...] = ()) -> list[Row]:
    """The banner in exactly the room there is."""
    if view.verdict.state in RED:
        return _red(view, width, height, keys)
    line, ink = _line(view, width)
    result = [fit(line, width, ink)]
    if height > 1:
        result.append(fit(_second(view), width, "amberdim"))
    return result


def _red(view: LaunchView, width: int, height: int, keys: tuple[tuple[str, str], ...]) -> list[Row]:
    edge, pad = ("██", 2) if height >= 5 else ("█", 1)
    inner = width - 2 * (len(edge) + pad)
    if inner < 30:
        return [fit(((_first_words(view), "red"),), width, "reddim")]
    side = height - 2 if height >= 5 else height
    words = _red_words(view, inner, keys, most=side) if height >= 3 else _tight(view, inner, keys)
    body: list[Row] = [
        ((edge, "rededge"), (" " * pad, "reddim"), *fit(row, inner, "reddim"), (" " * pad, "reddim"), (edge, "rededge"))
        for row in words[:side]
    ]
    rule: Row = (("█" * width, "rededge"),)
    return [rule, *body, rule] if height >= 5 else body


def _first_words(view: LaunchView) -> str:
    return f"✖ {NAMES[view.verdict.state]} {age(view.now - view.verdict.since)}"


def _suspects(verdict: Verdict, *, short: bool = False) -> str:
    names = [clean(s.rank or f"pid {s.pid}") for s in verdict.suspects]
    if not names:
        return ""
    listed = " ".join(names[:4]) + (" …" if len(names) > 4 else "")
    return f"suspect {listed}" if short else f"suspect: {listed}"


def _head(view: LaunchView, width: int, *, gap: str) -> Row:
    verdict = view.verdict
    ticks = age(view.now - verdict.since)
    dead = verdict.state == "crashed"
    words = f"{ticks} ago" if dead else ticks
    start: Row = ((f"{NAMES[verdict.state]}{gap}{words}", "red"), (f"{gap * 2 if gap == '  ' else gap}", "reddim"))
    said: Row = ((f"{clean(verdict.headline)}{'' if dead else f' since {clock(verdict.since)}'}", "reddim"),)
    end: Row = ((_suspects(verdict, short=len(gap) == 1), "red"),)
    room = width - width_of(start) - width_of(end) - 1
    if width_of(said) > room:  # the time goes first, then the words are cut; the suspect stays
        said = ((cut(clean(verdict.headline), room if room >= 8 else 0), "reddim"),)
    return spread((*start, *said), end, width, "reddim")


def _evidence(verdict: Verdict, width: int) -> Row:
    return flow([((clean(e.text), "reddim"),) for e in verdict.evidence], width, (" · ", "reddim"))


def _hints(keys: tuple[tuple[str, str], ...]) -> Row:
    spans: list[tuple[str, str]] = []
    for key, word in keys:
        spans += [(" · ", "reddim")] if spans else []
        spans += [(key, "red"), (f" {word}", "reddim")]
    return tuple(spans)


def _reasons(view: LaunchView, width: int) -> list[Row]:
    verdict = view.verdict
    lines: list[str] = []
    if view.error and verdict.state in {"crashed", "failing"}:
        lines.append(f"first error: {clean(view.error)}")
    lines += [f"{clean(m.milestone)}: {clean(m.because)}" for m in verdict.missing[:2]]
    lines += [f"{clean(s.rank or str(s.pid))}: {clean(s.reason)}" for s in verdict.suspects[:2] if s.reason]
    if verdict.countdown:
        lines.append(clean(verdict.countdown))
    lines += [ALARMS.get(alarm, clean(alarm)) for alarm in verdict.alarms]
    if verdict.kind and verdict.kind not in clean(verdict.headline):
        lines.append(f"looks like: {clean(verdict.kind)}")
    if verdict.unseen:
        lines.append(f"cannot be seen here: {', '.join(map(clean, verdict.unseen))}")
    return [fit(((line, "reddim"),), width, "reddim") for line in dict.fromkeys(lines)]


def _red_words(view: LaunchView, width: int, keys: tuple[tuple[str, str], ...], *, most: int) -> list[Row]:
    """The lines of the full banner, at most `most`: what, evidence, why, and what to press."""
    verdict = view.verdict
    lines = [_head(view, width, gap="  ")]
    if verdict.evidence:
        lines.append(_evidence(verdict, width))
    lines += _reasons(view, width)[: max(0, most - 1 - len(lines))]
    advice: Row = ((clean(verdict.advice or ""), "red"),)
    lines.append(spread(advice, _hints(keys), width, "reddim"))
    return lines


def _tight(view: LaunchView, width: int, keys: tuple[tuple[str, str], ...]) -> list[Row]:
    """Two lines for small screens."""
    verdict = view.verdict
    hints = tuple(span for key, _ in keys for span in ((f" {key}", "red"),))
    pieces: list[Row] = (
        [((f"first error: {clean(view.error)}", "reddim"),)] if view.error and verdict.state == "crashed" else []
    )
    pieces += [((f"{clean(m.milestone)}: {_brief(clean(m.because))}", "reddim"),) for m in verdict.missing[:1]]
    pieces += [((clean(e.text), "reddim"),) for e in verdict.evidence]
    room = width - width_of(hints) - 1
    words = flow(pieces, room, (" · ", "reddim")) or fit(pieces[0] if pieces else (), room, "reddim")
    return [_head(view, width, gap=" "), spread(words, hints, width, "reddim")]


def _brief(because: str) -> str:
    """Without the reason in brackets: on a small screen only that it was expected."""
    start, _, rest = because.partition(" (")
    return start + rest.partition(")")[2] if rest else because


def _line(view: LaunchView, width: int) -> tuple[Row, str]:
    """The one-line banner and the ink that fills its rest."""
    verdict = view.verdict
    if view.link.state == "refused":
        return ((" ✖ REFUSED ", "amber"), (clean(view.link.reason or "the host refused"), "amberdim")), "amberdim"
    if view.link.state == "connecting" and view.server is None:
        return ((f" ◌ CONNECTING to {clean(view.host)} ", "calm"), (clean(view.link.detail or ""), "calmdim")), "calm"
    if verdict.state == "unreachable":
        return _unreachable(view), "amberdim"
    if verdict.state == "quiet":
        ticks = age(view.now - verdict.since)
        said: Row = ((f"░░ QUIET {ticks} · ", "amber"), (f"{clean(verdict.headline)} ", "amberdim"))
        return (*said, ("░" * max(2, width - width_of(said)), "amber")), "amberdim"
    if verdict.state in {"ready", "serving"}:
        return _ready(view), "greendim"
    return _plain(view), "calm"


def _unreachable(view: LaunchView) -> Row:
    link = view.link
    silent = view.data_age if view.data_age is not None else view.now - link.since
    words = f"no data for {age(silent)}: {clean(link.reason or 'link lost')}"
    tries = "" if link.next_try is None else f", next try in {age(link.next_try - view.now)}"
    return ((" ╳ UNREACHABLE ", "amber"), (f"{words}{tries} · nothing is judged meanwhile", "amberdim"))


def _ready(view: LaunchView) -> Row:
    verdict, server, serving = view.verdict, view.server, view.serving
    took = ""
    if server and server.started is not None and view.health.ready_at is not None:
        took = f" in {duration(view.health.ready_at - server.started)}"
    parts: list[str] = ["serving"] if verdict.state == "serving" else []
    if server and server.port:
        parts.append(f"http://{clean(server.address or '127.0.0.1')}:{server.port}")
    if serving:
        if serving.running is not None:
            queued = "?" if serving.queued is None else serving.queued
            parts.append(f"{serving.running} running, {queued} queued")
        if serving.tokens_per_second is not None:
            parts.append(f"{serving.tokens_per_second:.0f} tok/s")
        if serving.accept_length is not None:
            parts.append(f"accept length {serving.accept_length:.1f}")
    if not parts and verdict.headline:
        parts.append(clean(verdict.headline))
    return ((f" ✔ READY{took} ", "green"), (" ".join(f"· {part}" for part in parts), "greendim"))


def _plain(view: LaunchView) -> Row:
    verdict = view.verdict
    shape = {"waiting": "◌", "starting": "▸", "finished": "■"}.get(verdict.state, "·")
    words = clean(verdict.headline)
    if verdict.state == "waiting":
        words = words or f"for a launch on {clean(view.host)}"
    advice = f" · {clean(verdict.advice)}" if verdict.advice else ""
    return ((f" {shape} {NAMES[verdict.state]} ", "calm"), (f"{words}{advice}", "calmdim"))


def _second(view: LaunchView) -> Row:
    verdict = view.verdict
    if verdict.alarms:
        words = " · ".join(ALARMS.get(alarm, clean(alarm)) for alarm in verdict.alarms)
        return ((" ▲ ", "amber"), (words, "amberdim"))
    return ((f"   {clean(verdict.advice or view.link.detail or '')}", "amberdim"),)
