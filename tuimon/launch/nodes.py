"""together(views): one launch over several nodes, judged as one.

A launch is alive while a sign of life was seen lately, on whichever of its nodes. So a node that is silent while
another one, which is not further on, still works is waiting, not dead; everything else that is red on one node is red
for all.
What cannot be seen is unknown: it is said, and never judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from tuimon.config import Patience
from tuimon.launch.node import STALE, NodeView, alone, further, silence, unseen, works
from tuimon.launch.steps import Advice
from tuimon.launch.view import RED, LaunchView, LinkView, State, Suspect, Verdict

WORST: tuple[State, ...] = ("crashed", "frozen", "stalled", "spinning", "failing")
"""Certain before silent before those that spin, waiting for the silent one."""
UNCONNECTED = 4.0
"""Seconds after which a link that is still being made is spoken of."""
SAME_MOMENT = 3.0
"""Seconds by which silences of one cause differ: samples come at different moments, clocks of lines differ too."""
LEAVING = 60.0
"""Seconds within which those that the first node leaves behind end too; later they hang, and hold their GPUs."""
MANY = 8
"""More suspects than this are no suspects."""
_WORDS = {
    "stalled": ("is silent too", "are silent too"), "spinning": ("spins", "spin"),
    "frozen": ("is frozen", "are frozen"), "crashed": ("has crashed", "have crashed"), "failing": ("fails", "fail"),
    "starting": ("starts", "start"),
    "quiet": ("is quiet", "are quiet"), "ready": ("is ready", "are ready"), "serving": ("serves", "serve"),
    "waiting": ("has no server", "have no server"), "finished": ("has ended", "have ended"),
    "unreachable": ("cannot be seen", "cannot be seen"),
}  # fmt: skip


class NodesView(Struct, frozen=True):
    """Everything that several hosts tell at one instant."""

    now: float
    whole: LaunchView
    """The launch as one: the view of the node that decides, with the verdict on all."""
    decides: int | None
    """Place of the node that decides; None where none can be seen."""
    nodes: tuple[NodeView, ...]
    """Red ones first, then the longest silent, then those without a server, unseen ones, and the rest as named."""

    @property
    def verdict(self) -> Verdict:
        """The judgement on the whole launch."""
        return self.whole.verdict

    def at(self, place: int) -> NodeView:
        """The node that was named at this place."""
        return next(node for node in self.nodes if node.place == place)


def together(views: Sequence[LaunchView], patience: Patience | None = None) -> NodesView:
    """Put at least one view together, in the order in which the user named their hosts."""
    bearable = (patience or Patience()).quiet
    now = max(view.now for view in views)
    views = [_current(view, now) for view in views]
    working = [view for view in views if works(view, now, bearable)]
    began = _began(views)
    nodes = [_node(place, view, working, now) for place, view in enumerate(views)]
    nodes = [_lacking(node) if _lacks(node, began, now, bearable) else node for node in nodes]
    chief = _decides(nodes)
    verdict = _verdict(nodes, chief, now)
    if chief is not None and chief.red:
        nodes = [replace(node, suspect=_is_suspect(node, nodes)) for node in nodes]
    whole = replace(
        nodes[0].view if chief is None else chief.view,
        now=now, host=_name(nodes, chief), link=_link(nodes, chief), verdict=verdict,
        episodes=(), findings=(), earlier=(), broken=_broken(nodes, chief),
    )  # fmt: skip
    nodes.sort(key=_order)
    return NodesView(now, whole, None if chief is None else chief.place, tuple(nodes))


# One node beside the others.


def _current(view: LaunchView, now: float) -> LaunchView:
    """A view is replaced each second: one that is much older than the others' says nothing about now."""
    if now - view.now < STALE or view.broken is not None:
        return view
    return replace(view, broken="what collects there says nothing any more")


def _node(place: int, view: LaunchView, working: list[LaunchView], now: float) -> NodeView:
    silent = silence(view, now)
    verdict = view.verdict
    if unseen(view):
        return NodeView(place, view, note=_why_unseen(view, now))
    if verdict.state in {"stalled", "spinning"} and not verdict.certain and not alone(view):
        awaited = [other for other in working if other is not view and not further(other, view)]
        if awaited:
            still = f"still work{'s' if len(awaited) == 1 else ''}"
            why = f"{_listed([other.host for other in awaited])} {still}"
            words = f"silent here, while {why}"
            milder = replace(verdict, state="quiet", headline=words, kind=None, suspects=(), missing=(), advice=None)
            return NodeView(place, replace(view, verdict=milder), silent, waits=why, note=words)
    loud = verdict.state in RED or verdict.state == "quiet"
    return NodeView(place, view, silent, note=verdict.headline if loud else None)


def _began(views: Sequence[LaunchView]) -> float | None:
    """When the first server began that still runs; None where there is none."""
    running = [view for view in views if view.server and not unseen(view) and view.verdict.state != "finished"]
    return min((view.server.started or view.link.since for view in running if view.server), default=None)


def _lacks(node: NodeView, began: float | None, now: float, bearable: float) -> bool:
    """Without a server for long enough, while others have theirs; a launch does not begin everywhere at once."""
    if node.state not in {"waiting", "finished"} or began is None:
        return False
    return now - max(node.view.verdict.since, began) >= bearable


def _lacking(node: NodeView) -> NodeView:
    words = "no server here" if node.state == "waiting" else "its server has ended"
    return replace(node, absent=True, note=f"{words}; the others may wait for it")


def _why_unseen(view: LaunchView, now: float) -> str:
    if view.broken is not None:
        return f"not judged: tuimon's own error: {view.broken}"
    if view.link.state == "connecting":
        return f"connecting {view.link.detail or ''}".rstrip() if now - view.link.since < UNCONNECTED else "no link yet"
    return view.link.reason or "link lost"


def _order(node: NodeView) -> tuple[float, ...]:
    """Ages do not count here, instants do: rows stay where they are while nothing happens."""
    since = node.view.verdict.since // SAME_MOMENT
    if node.red:
        return 0, WORST.index(node.state), since, node.place
    if node.suspicious:
        return 1, since, node.place
    return 2 if node.absent else 3 if node.unseen else 4, node.place


# All of them.


def _decides(nodes: list[NodeView]) -> NodeView | None:
    """The node whose verdict is that of the launch; None where none can be seen."""
    red = sorted((node for node in nodes if node.red), key=_order)
    if red:
        now = max(node.view.now for node in nodes)
        return next((node for node in red if not _fell(node, nodes[0], now)), nodes[0])
    suspicious = sorted((node for node in nodes if node.suspicious), key=_order)
    for state in ("serving", "ready"):
        if found := _in(nodes, state):
            return found[0]
    starting = _in(nodes, "starting")
    if suspicious:
        return suspicious[0]
    if starting:
        return min(starting, key=_progress)
    return next((node for state in ("quiet", "waiting", "finished") for node in _in(nodes, state)), None)


def _in(nodes: list[NodeView], state: str) -> list[NodeView]:
    return [node for node in nodes if node.state == state]


def _progress(node: NodeView) -> tuple[float, ...]:
    """The slowest one tells when all are done."""
    phases = node.view.phases
    running = [phase for phase in phases if phase.state == "running" and phase.total]
    share = (running[-1].count or 0) / (running[-1].total or 1) if running else 0.0
    return sum(phase.state == "done" for phase in phases), share, node.place


def _fell(node: NodeView, first: NodeView, now: float) -> bool:
    """The first node ended as asked, and this one, of the same launch, fell after it: that is an end, not a crash."""
    ended = first.view.verdict.since
    if first.state != "finished" or node.view.verdict.since < ended:
        return False
    server = node.view.server
    if server is not None and (server.started or 0.0) > ended:
        return False
    return node.state == "crashed" or now - ended < LEAVING


def _verdict(nodes: list[NodeView], chief: NodeView | None, now: float) -> Verdict:
    if chief is None:
        links = [node.view.link for node in nodes]
        since = min((link.since for link in links), default=now)
        return Verdict("unreachable", since, f"none of {len(nodes)} hosts can be seen: {nodes[0].note or ''}")
    verdict = chief.view.verdict
    unknown, lacking = _unknown(nodes, chief), _lacking_words(nodes, chief)
    common = {"alarms": (*verdict.alarms, *unknown, *lacking), "wants_stacks": False}
    if chief.red:
        return replace(
            verdict, headline=f"{chief.host}: {verdict.headline}{_others(nodes, chief)}",
            suspects=_suspects(nodes),
            evidence=tuple(replace(one, text=f"{chief.host}: {one.text}") for one in verdict.evidence),
            advice=_advice(chief), **common,
        )  # fmt: skip
    absent = [node for node in nodes if node.absent]
    if absent and chief.state == "quiet" and not chief.waits:
        since = max(node.view.verdict.since for node in absent)
        return Verdict("quiet", since, lacking[0], phase=verdict.phase, alarms=(*verdict.alarms, *unknown))
    return replace(verdict, headline=_headline(nodes, chief), **common)


def _advice(chief: NodeView) -> Advice | None:
    advice = chief.view.verdict.advice
    return advice.after(f"on {chief.host}: ") if advice is not None else None


def _headline(nodes: list[NodeView], chief: NodeView) -> str:
    """What is said where nothing is red."""
    words = chief.view.verdict.headline
    if chief.state == "starting":
        if chief.view.verdict.phase is None:
            return words
        same = [node for node in _in(nodes, "starting") if node.view.verdict.phase == chief.view.verdict.phase]
        if len(same) == len(nodes):
            return f"{words} on all {len(nodes)} nodes"
        return f"{words} on {chief.host if len(same) == 1 else f'{len(same)} of {len(nodes)} nodes'}"
    if chief.state == "waiting" and len(_in(nodes, "waiting")) == len(nodes):
        return f"for a launch on {len(nodes)} hosts"
    if chief.waits:
        silent = [node.host for node in sorted(nodes, key=_order) if node.waits]
        return f"{_listed(silent)} {'is' if len(silent) == 1 else 'are'} silent, while {chief.waits}"
    return words if chief.state in {"ready", "serving"} else f"{chief.host}: {words}{_others(nodes, chief)}"


def _others(nodes: list[NodeView], chief: NodeView) -> str:
    """How the other nodes are, in a few words: ` · 3 others spin`. What is said as an alarm is left out."""
    counted = Counter(
        "quiet" if node.waits else node.state
        for node in nodes
        if node is not chief and not node.absent and not node.unseen
    )
    pieces = []
    for state, count in counted.most_common(2):
        words = _WORDS[state][count > 1]
        words = words if state == chief.state else words.removesuffix(" too")
        pieces.append(f" · {count} other{'s' if count > 1 else ''} {words}")
    return "".join(pieces)


def _unknown(nodes: list[NodeView], chief: NodeView) -> list[str]:
    """What cannot be seen: never a reason for red, always worth a word; where all that is seen spins, two."""
    them = [node for node in nodes if node.unseen and not (node.note or "").startswith("connecting")]
    if not them:
        return []
    why = {node.note for node in them}
    reason = f": {why.pop()}" if len(why) == 1 else ""
    wait = "; the others may wait for it" if chief.state == "spinning" else ""
    return [f"{_listed([node.host for node in them])} cannot be seen{reason}{wait}"]


def _lacking_words(nodes: list[NodeView], chief: NodeView) -> list[str]:
    absent = [node.host for node in nodes if node.absent]
    if not absent or chief.state == "finished":
        return []
    wait = "" if chief.state in {"ready", "serving"} else "; the others may wait for it"
    return [f"no server on {_listed(absent)}{wait}"]


def _is_suspect(node: NodeView, nodes: list[NodeView]) -> bool:
    """Silent, dead or stopped; those that spin only where all do."""
    return node.red and (node.state not in {"spinning", "failing"} or all(one.state == node.state for one in nodes))


def _suspects(nodes: list[NodeView]) -> tuple[Suspect, ...]:
    """Of the whole launch, the worst node's first; who only spins waits for the others and accuses nobody."""
    red = sorted((node for node in nodes if node.red), key=_order)
    spin = [node for node in red if node.state == "spinning"]
    still = [node for node in red if node.state in {"crashed", "frozen", "stalled"}]
    named = [Suspect(node.host, None, "no server there, the others may wait for it") for node in nodes if node.absent]
    for node in still or red:
        its = _accused(node)
        named += [Suspect(f"{node.host} {one.rank or f'pid {one.pid}'}", one.pid, one.reason) for one in its]
        if not its and spin and still:
            others = f"{len(spin)} other{'s' if len(spin) > 1 else ''}"
            named.append(Suspect(node.host, None, f"does nothing while {others} spin, waiting for it"))
    return tuple(named[:MANY])


def _accused(node: NodeView) -> tuple[Suspect, ...]:
    """Its own suspects; who accuses all of its ranks accuses nobody, where there are other nodes."""
    its = node.view.verdict.suspects
    return () if len(its) >= max(2, len(node.ranks)) else its


def _name(nodes: list[NodeView], chief: NodeView | None) -> str:
    """What the launch is called: `64 hosts`, after the one that is red where one is."""
    return f"{chief.host}, {len(nodes)} hosts" if chief is not None and chief.red else f"{len(nodes)} hosts"


def _link(nodes: list[NodeView], chief: NodeView | None) -> LinkView:
    if chief is not None:
        return chief.view.link
    links = [node.view.link for node in nodes]
    return min(links, key=lambda link: ("connecting", "lost", "refused", "up").index(link.state))


def _broken(nodes: list[NodeView], chief: NodeView | None) -> str | None:
    return next((node.view.broken for node in nodes if node.view.broken), None) if chief is None else None


def _listed(names: list[str]) -> str:
    """`node1`, `node1 and node2`, `node1, node2 and 5 others`."""
    if len(names) <= 2:
        return " and ".join(names)
    return f"{names[0]}, {names[1]} and {len(names) - 2} other{'s' if len(names) > 3 else ''}"
