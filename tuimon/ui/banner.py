"""The verdict in words: several red lines, or one line in amber, green or plain; each with a shape of its own."""

from __future__ import annotations

from textwrap import wrap

from textual import events

from tuimon.launch.lasting import age, duration
from tuimon.launch.view import RED, LaunchView, State, Verdict
from tuimon.ui.brief import reasons
from tuimon.ui.pane import Painted, Pressed
from tuimon.ui.pressing import pressing
from tuimon.ui.rows import Row, cells, clean, fit, flow, shorten, spread, width_of
from tuimon.ui.words import about, clock

NAMES: dict[State, str] = {
    "waiting": "WAITING", "starting": "STARTING", "quiet": "QUIET", "stalled": "SILENT STALL", "spinning": "SPINNING",
    "frozen": "FROZEN", "crashed": "CRASHED", "ready": "READY", "serving": "SERVING", "failing": "FAILING",
    "finished": "FINISHED", "unreachable": "NO DATA",
}  # fmt: skip
ALARMS = {"useless_draft": "draft model is not working: its weights were probably never loaded"}


RECOVERED = 120.0
"""Seconds for which a red moment that ended is still spoken of."""


class Banner(Painted):
    """Says what is the matter."""

    keys: tuple[tuple[str, str, str], ...] = ()
    """Keys that help in a red moment and can be pressed: (action id, key, word)."""

    def slice(self, view: LaunchView) -> object:
        return (
            view.verdict,
            reasons(view),
            view.link,
            view.serving,
            view.error,
            view.broken,
            view.episodes,
            int(view.now - view.verdict.since),
            int(view.now),
            self.keys,
        )

    def paint(self, view: LaunchView | None, width: int, height: int) -> list[Row]:
        if view is None:
            return [fit(((" ◌ starting", "calmdim"),), width, "calm")]
        return rows(view, width, height, tuple((key, word) for _, key, word in self.keys))

    def on_click(self, event: events.Click) -> None:
        """A key in it presses that key; anything else shows all that the verdict rests on."""
        text = "".join(text for text, _ in self._rows[event.y]) if event.y < len(self._rows) else ""
        hint = max(0, len(text) - sum(len(key) + len(word) + 4 for _, key, word in self.keys) - 4)
        before, after = text[hint : event.x].split(" "), text[max(hint, event.x) :].split(" ")
        word = before[-1] + after[0] if event.x >= hint else ""
        asked = (action for action, *names in self.keys if word in names)
        self.post_message(Pressed(next(asked, "findings")))


def wanted(view: LaunchView, width: int, height: int) -> int:
    """How many lines the banner should have on a screen of this size."""
    if view.broken or view.verdict.state not in RED:
        most = 1 if height < 12 else 2 if height < 20 else 3 if height < 30 else 6
        return min(most, 1 + len(_below(view, width)))
    if height < 10:
        return 1
    if height < 30 or width < 40:
        return 2 if height < 20 or width >= 70 else 3
    low, high = (5, 6) if width >= 68 else (7, 11)
    return 2 + len(_red_words(view, width - 8, (), most=low if height < 50 else high))


def rows(view: LaunchView, width: int, height: int, keys: tuple[tuple[str, str], ...] = ()) -> list[Row]:
    """The banner in exactly the room there is."""
    if view.verdict.state in RED and not view.broken:
        return _red(view, width, height, keys)
    below = _below(view, width)
    shown = below[: height - 1]
    if shown and len(below) > len(shown):
        shown[-1] = (*shown[-1], (" …", "amberdim"))
    line, rest = _broken(view.broken, width) if view.broken else _line(view, width, whole=bool(shown))
    return [fit(line, width, rest), *(fit(row, width, "amberdim") for row in shown)]


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


def _head(view: LaunchView, width: int, *, gap: str, bare: bool = False) -> Row:
    """State, age, headline and suspect; `bare` = the headline stands elsewhere."""
    verdict = view.verdict
    ticks = age(view.now - verdict.since)
    dead = verdict.state == "crashed"
    words = f"{ticks} ago" if dead else ticks
    start: Row = ((f"{NAMES[verdict.state]}{gap}{words}", "red"), (f"{gap * 2 if gap == '  ' else gap}", "reddim"))
    first, dot, more = clean(verdict.headline).partition(" · ")
    said: Row = ((f"{first}{'' if dead else f' since {clock(verdict.since)}'}{dot}{more}", "reddim"),)
    end: Row = ((_suspects(verdict, short=len(gap) == 1), "red"),)
    room = width - width_of(start) - width_of(end) - 1
    if bare:
        said = ()
    elif width_of(said) > room:  # the time goes first, then what the suspect says too, then the words are cut
        said = ((shorten(_unsaid(clean(verdict.headline), end), room if room >= 8 else 0), "reddim"),)
    return spread((*start, *said), end, width, "reddim")


def _unsaid(headline: str, end: Row) -> str:
    """Without the host that it begins with, where the suspect names it."""
    host, _, rest = headline.partition(": ")
    return rest if rest and any(f" {host}" in text for text, _ in end) else headline


def _evidence(view: LaunchView) -> list[Row]:
    """Nothing where it crashed: there the error is the evidence."""
    dead = view.verdict.state == "crashed"
    return [] if dead else [((reason, "reddim"),) for reason in reasons(view)]


def _hints(keys: tuple[tuple[str, str], ...]) -> Row:
    spans: list[tuple[str, str]] = []
    for key, word in keys:
        spans += [(" · ", "reddim")] if spans else []
        spans += [(key, "red"), (f" {word}", "reddim")]
    return tuple(spans)


def _reasons(view: LaunchView, width: int, most: int) -> list[Row]:
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
    pieces: list[str] = []
    for line in dict.fromkeys(lines):
        # A long reason goes on in a second line: a cut suspect is no suspect.
        whole = wrap(line, width, subsequent_indent="  ")
        shown = whole[: min(2, most - len(pieces))]
        if shown and len(shown) < len(whole):
            shown[-1] = shorten(f"{shown[-1]} {whole[len(shown)].strip()}", width)
        pieces += shown
    return [fit(((piece, "reddim"),), width, "reddim") for piece in pieces]


def _red_words(view: LaunchView, width: int, keys: tuple[tuple[str, str], ...], *, most: int) -> list[Row]:
    """The lines of the full banner, at most `most`: what, evidence, why, and what to press."""
    verdict = view.verdict
    narrow = width < 60
    lines = [_head(view, width, gap=" " if narrow else "  ", bare=narrow)]
    if narrow:
        lines += [((piece, "reddim"),) for piece in wrap(clean(verdict.headline), width)[:2]]
    if evidence := _evidence(view):
        lines.append(flow(evidence, width, (" · ", "reddim")))
    advice = _advice(clean(pressing(verdict.advice)), width)
    lines += _reasons(view, width, max(0, most - len(advice) - len(lines)))
    lines += [((piece, "red"),) for piece in advice[:-1]]
    lines.append(spread(((advice[-1], "red"),), _hints(keys), width, "reddim"))
    return lines


def _advice(words: str, width: int) -> list[str]:
    """In two lines, or in three where they are short; cut between words where even those do not do."""
    whole, most = wrap(words, width), 3 if width < 60 else 2
    if len(whole) > most:
        whole[most - 1] = shorten(" ".join(whole[most - 1 :]), width)
    return whole[:most] or [""]


def _tight(view: LaunchView, width: int, keys: tuple[tuple[str, str], ...]) -> list[Row]:
    """Two lines for small screens."""
    verdict = view.verdict
    hints = tuple(span for key, _ in keys for span in ((f" {key}", "red"),))
    pieces: list[Row] = (
        [((f"first error: {clean(view.error)}", "reddim"),)] if view.error and verdict.state == "crashed" else []
    )
    pieces += [((f"{clean(m.milestone)}: {_brief(clean(m.because))}", "reddim"),) for m in verdict.missing[:1]]
    pieces += [row for row in _evidence(view) if row[0][0] != "log silent"]  # that stands in the head
    room = width - width_of(hints) - 1
    words = flow(pieces, room, (" · ", "reddim")) or fit(pieces[0] if pieces else (), room, "reddim")
    return [_head(view, width, gap=" "), spread(words, hints, width, "reddim")]


def _brief(because: str) -> str:
    """Without the reason in brackets: on a small screen only that it was expected."""
    start, _, rest = because.partition(" (")
    return start + rest.partition(")")[2] if rest else because


def _line(view: LaunchView, width: int, *, whole: bool) -> tuple[Row, str]:
    """The one-line banner and the ink that fills its rest; `whole` = what is too long for it stands below."""
    verdict, link = view.verdict, view.link
    if link.state == "refused":
        why = f"by {clean(view.host)}" if whole and not _fits(view, width) else clean(link.reason or "the host refused")
        return _said(" ✖ REFUSED", [why], width, "amber")
    if link.state == "connecting" and view.server is None:
        return _said(f" ◌ CONNECTING to {clean(view.host)}", [clean(link.detail or "")], width, "calm")
    if verdict.state == "unreachable":
        start = " ╳ UNREACHABLE"
        room = 0 if whole and not _fits(view, width) else width - cells(start) - 1
        return _said(start, _unreachable(view, room), width, "amber")
    if verdict.state == "quiet":
        start = f"░░ QUIET {age(view.now - verdict.since)} ·"
        room = max(0, width - cells(start) - 5)
        words = shorten(clean(verdict.headline), room)
        advice = clean(pressing(verdict.advice))
        if advice and cells(words) + cells(advice) + 3 <= room:
            words = f"{words} · {advice}"
        row: Row = ((f"{start} ", "amber"), (f"{words} ", "amberdim"))
        return (*row, ("░" * max(0, width - width_of(row)), "amber")), "amberdim"
    if verdict.state in {"ready", "serving"}:
        return _said(f" ✔ READY{_took(view)} ·", [*_ready(view), *_recovered(view)], width, "green")
    return _said(*_plain(view), width, "calm")


def _broken(why: str, width: int) -> tuple[Row, str]:
    return _said(" ✖ NOTHING IS JUDGED:", [f"tuimon's own error: {clean(why)}"], width, "amber")


def _said(start: str, pieces: list[str], width: int, ink: str) -> tuple[Row, str]:
    """A name and as many whole pieces as there is room for."""
    head: Row = ((f"{start} ", ink),)
    quiet = f"{ink}dim"
    first = shorten(pieces[0], width - width_of(head)) if pieces else ""
    rest = [((piece, quiet),) for piece in pieces[1:]]
    words = flow([((first, quiet),), *rest], width - width_of(head), (" · ", quiet)) if first else ()
    return (*head, *words), quiet


def _fits(view: LaunchView, width: int) -> bool:
    """Whether why there is no link can stand in one line with all else."""
    if view.link.state == "refused":
        return cells(clean(view.link.reason or "")) + 12 <= width
    return cells(_unreachable(view, 10_000)[0]) + 16 <= width


def _unreachable(view: LaunchView, width: int) -> list[str]:
    """How long, why, and when it is tried again: a long reason is cut, the next try is not."""
    link = view.link
    silent = view.data_age if view.data_age is not None else view.now - link.since
    tries = "" if link.next_try is None else f", next try in {age(link.next_try - view.now)}"
    start = f"no data for {age(silent)}"
    room = width - cells(start) - cells(tries) - 2
    reason = f": {shorten(clean(link.reason or 'link lost'), room)}" if room >= 9 else ""
    return [f"{start}{reason}{tries}", "nothing is judged meanwhile"]


def _took(view: LaunchView) -> str:
    server, ready = view.server, view.health.ready_at
    if server is None or server.started is None or ready is None:
        return ""
    return f" in {duration(ready - server.started)}"


def _ready(view: LaunchView) -> list[str]:
    server, serving = view.server, view.serving
    parts: list[str] = []
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
    return parts or [clean(view.verdict.headline)]


def _plain(view: LaunchView) -> tuple[str, list[str]]:
    verdict = view.verdict
    shape = {"waiting": "◌", "starting": "▸", "finished": "■"}.get(verdict.state, "·")
    words = clean(verdict.headline)
    if verdict.state == "waiting":
        words = words.removeprefix("waiting ") or f"for a launch on {clean(view.host)}"
    pieces = [words] if words and words.upper() != NAMES[verdict.state] else []
    if verdict.state == "starting":
        pieces += _progress(view, words)
        pieces += _recovered(view)
    if verdict.advice:
        pieces.append(clean(pressing(verdict.advice)))
    return f" {shape} {NAMES[verdict.state]}", pieces


def _recovered(view: LaunchView) -> list[str]:
    """For two minutes after a red moment: that it was, and that it is over."""
    last = view.episodes[-1] if view.episodes else None
    if last is None or last.end is None or view.now - last.end > RECOVERED:
        return []
    return [f"recovered: was {NAMES[last.state]} for {age(last.end - last.start)}"]


def _progress(view: LaunchView, words: str) -> list[str]:
    running = next((phase for phase in reversed(view.phases) if phase.state == "running" and phase.total), None)
    if running is None or not running.total:
        return []
    share = f"{(running.count or 0) / running.total * 100:.0f} %"
    if clean(running.name) not in words:
        share = f"{clean(running.name)} {share}"
    return [share, f"ETA {about(running.eta)}"] if running.eta is not None else [share]


def _below(view: LaunchView, width: int) -> list[Row]:
    """What stands under the one line: alarms, or all of the reason why there is no link."""
    verdict, link = view.verdict, view.link
    if verdict.alarms:
        words = " · ".join(ALARMS.get(alarm, clean(alarm)) for alarm in verdict.alarms)
        length = view.serving.accept_length if view.serving else None
        if "useless_draft" in verdict.alarms and length is not None:
            words = f"accept length {length:.1f}: {words}"
        if verdict.advice and verdict.state in {"ready", "serving"}:  # elsewhere the first line says it
            words = f"{words}. {clean(pressing(verdict.advice))}"
        pieces = wrap(words, max(10, width - 6), break_on_hyphens=False)
        return [((" ▲ " if not place else "   ", "amber"), (piece, "amberdim")) for place, piece in enumerate(pieces)]
    if view.broken or link.state not in {"refused", "lost"}:
        return []
    why = [] if _fits(view, width) else [clean(link.reason or "")]
    if link.state == "refused":
        why.append(clean(pressing(verdict.advice) or link.detail or ""))
    lines = [line for words in dict.fromkeys(why) for line in wrap(words, max(10, width - 6), break_on_hyphens=False)]
    return [((f"   {line}", "amberdim"),) for line in lines]
