"""The one table of actions: bindings, palette, help, footer, README and the user's keymap all come from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from tuimon.launch.view import LaunchView
from tuimon.ui.errors import BadKeys

Group = Literal["Nodes", "Ask the host", "Log", "Panes", "Screen", "Replay"]
Why = Callable[[LaunchView], str | None]
"""The reason why an action cannot be done now; None = it can."""


def always(_view: LaunchView) -> str | None:
    """Never disabled."""
    return None


def needs_server(view: LaunchView) -> str | None:
    """Only with a server and a link to its host."""
    if view.link.state != "up":
        return "the link to the host is down"
    return None if view.server is not None else "no server found yet"


def needs_draft(view: LaunchView) -> str | None:
    """Only where the command line names a draft model."""
    why = needs_server(view)
    if why is not None or view.server is None:
        return why
    from tuimon.diagnose.preflight import launched  # noqa: PLC0415  first paint need not wait for it

    return None if launched(view.server.argv) else "this launch names no draft model"


def needs_launches(view: LaunchView) -> str | None:
    """Only where several launches run."""
    return None if view.launches else "only one launch was found on this host"


def read_only(_view: LaunchView) -> str | None:
    """Never, because tuimon was started so."""
    return "tuimon was started read-only"


class Action(Struct, frozen=True):
    """Something a key does."""

    id: str
    keys: tuple[str, ...]
    """Textual's key names."""
    word: str
    """For the footer and the palette."""
    help: str
    """One sentence."""
    group: Group
    footer: int = 0
    """Importance in the footer, 1 stays longest when it gets narrow; 0 = not there."""
    why: Why = always
    touches: bool = False
    """It makes the server do something; taken away by --read-only."""


def _ask(name: str, key: str, words: str, footer: int, why: Why, *, touches: bool = False) -> Action:
    return Action(name, (key,), name.replace("_", " "), words, "Ask the host", footer, why, touches)


_PANES = ("the launch", "the GPUs", "log growth", "signs of life", "processes", "health", "the log")

_ASK: tuple[Action, ...] = (
    _ask("stacks", "s", "Read all ranks' Python stacks, grouped; nothing is stopped", 1, needs_server),
    _ask("diagnose", "d", "Look at everything harmless and write a report", 9, needs_server),
    _ask("collectives", "c", "Ask NCCL which rank launched fewer collectives", 10, needs_server),
    _ask("checkpoint", "p", "Check the draft model's files against the server", 11, needs_draft),
    *(
        _ask(name, key, words, 0, needs_server, touches=True)
        for name, key, words in (
            ("flight_recorder", "R", "Ask torch's flight recorders for their last collectives; asks first"),
            ("debug_server", "D", "Ask torch's debug server for stacks, if it is up; asks first"),
            ("native", "S", "Read stacks with native frames, which stops each rank for 0.1 s; asks first"),
            ("abort", "a", "Kill one rank to get its stacks; asks twice"),
        )
    ),
    _ask("launches", "o", "Choose among the launches that run on this host", 0, needs_launches),
    _ask("findings", "i", "What was found: findings, stalls that ended, earlier launches, the first error", 0, always),
    _ask("commands", "at", "Every command that was sent to the host", 0, always),
)
_LOG: tuple[Action, ...] = (
    Action("search", ("slash",), "search",
           "Search the log by regular expression, capitals count if any; in this help: find keys", "Log", 4),
    Action("next", ("n",), "next hit", "Next line that matches the search", "Log"),
    Action("previous", ("N",), "previous hit", "Previous line that matches", "Log"),
    Action("filter", ("ampersand",), "filter", "Show only lines that match; !… leaves them out; empty: all", "Log", 8),
    Action("lens", ("l",), "lens", "Show only key lines: milestones, warnings, errors", "Log"),
    Action("next_milestone", ("m",), "next milestone", "Next milestone", "Log"),
    Action("previous_milestone", ("M",), "previous milestone", "Previous milestone", "Log"),
    Action("time", ("T",), "to a time", "Go to a time: 15:46 or 15:46:58", "Log"),
    Action("next_error", ("e",), "next error", "Next error line", "Log"),
    Action("previous_error", ("E",), "previous error", "Previous error line", "Log"),
    Action("next_warning", ("b",), "next warning", "Next bad line: a warning or an error", "Log"),
    Action("previous_warning", ("B",), "previous warning", "Previous bad line", "Log"),
    Action("follow", ("f",), "follow", "Follow the end of the log, or hold still", "Log", 6),
    Action("wrap", ("w",), "wrap", "Wrap long log lines", "Log"),
    Action("times", ("t",), "times", "Show or hide the log's time stamps", "Log"),
    Action("save", ("ctrl+s",), "save", "Save what the focused pane shows, or the whole log that is held", "Log"),
    Action("copy", ("y",), "copy", "Copy marked lines, the found line, or the pane (over ssh too)", "Log"),
)  # fmt: skip
_MOVE: tuple[Action, ...] = (
    Action("down", ("j", "down"), "down", "Scroll down", "Panes"),
    Action("up", ("k", "up"), "up", "Scroll up", "Panes"),
    Action("page_down", ("pagedown", "ctrl+d"), "page down", "Scroll down a page", "Panes"),
    Action("page_up", ("pageup", "ctrl+u"), "page up", "Scroll up a page", "Panes"),
    Action("top", ("g", "home"), "top", "To the beginning", "Panes"),
    Action("end", ("G", "end"), "end", "To the end; the log follows again", "Panes"),
    Action("next_pane", ("tab",), "next pane", "To the next pane", "Panes"),
    Action("previous_pane", ("shift+tab",), "previous pane", "To the pane before", "Panes"),
    Action("zoom", ("z",), "zoom", "Give the focused pane the whole screen; Esc goes back", "Panes", 5),
    *(Action(f"pane_{n}", (str(n),), f"pane {n}", f"Go to {name}", "Panes") for n, name in enumerate(_PANES, 1)),
)
_SCREEN: tuple[Action, ...] = (
    Action("back", ("escape",), "back", "Leave zoom, search marks, or this screen", "Screen"),
    Action("pause", ("space",), "pause", "Freeze the screen; collecting goes on", "Screen", 7),
    Action("palette", ("colon", "ctrl+p"), "palette", "All actions by name", "Screen"),
    Action("help", ("question_mark", "f1"), "help", "This list", "Screen", 2),
    Action("quit", ("q", "ctrl+q", "ctrl+c"), "quit", "Quit tuimon; the server is left alone", "Screen", 3),
)
REPLAY: tuple[Action, ...] = (
    Action("replay_back", ("left",), "10 s back", "Ten seconds back", "Replay"),
    Action("replay_ahead", ("right",), "10 s on", "Ten seconds on", "Replay"),
    Action("replay_minute_back", ("shift+left",), "1 min back", "One minute back", "Replay"),
    Action("replay_minute_ahead", ("shift+right",), "1 min on", "One minute on", "Replay"),
    Action("replay_step_back", ("comma",), "step back", "Pause, one second back", "Replay"),
    Action("replay_step", ("full_stop",), "step", "Pause, one second on", "Replay"),
    Action("replay_verdict_back", ("left_square_bracket",), "verdict before", "Change of verdict before", "Replay"),
    Action("replay_verdict", ("right_square_bracket",), "next verdict", "Next change of the verdict", "Replay"),
    Action("replay_milestone_back", ("left_curly_bracket",), "milestone before", "Milestone before", "Replay"),
    Action("replay_milestone", ("right_curly_bracket",), "to milestone", "Next milestone", "Replay"),
    Action("replay_slower", ("less_than_sign",), "slower", "Slower, down to 1×", "Replay"),
    Action("replay_faster", ("greater_than_sign",), "faster", "Faster, up to 100×", "Replay"),
    Action("replay_start", ("0",), "to the start", "To the start of the recording", "Replay"),
    Action("replay_end", ("dollar_sign",), "to the end", "To the end of the recording", "Replay"),
)
"""Only while a recording is shown."""
NODES: tuple[Action, ...] = (
    Action("open", ("enter",), "open", "Open the board of the node under the cursor (a click does it too)", "Nodes"),
    Action("next_node", ("right_square_bracket",), "next node", "To the next node, as the list has them", "Nodes"),
    Action("previous_node", ("left_square_bracket",), "node before", "To the node before", "Nodes"),
)
"""Only while several hosts are watched."""
ACTIONS: tuple[Action, ...] = (*_ASK, *_LOG, *_MOVE, *_SCREEN)
BY_ID: Mapping[str, Action] = {action.id: action for action in (*ACTIONS, *REPLAY, *NODES)}

SHOWN = {
    "slash": "/", "question_mark": "?", "at": "@", "colon": ":", "ampersand": "&", "escape": "Esc", "space": "space",
    "pagedown": "PgDn", "pageup": "PgUp", "home": "Home", "end": "End", "down": "↓", "up": "↑",
    "enter": "Enter", "tab": "Tab", "shift+tab": "⇧Tab",
    "left": "←", "right": "→", "shift+left": "⇧←", "shift+right": "⇧→", "comma": ",", "full_stop": ".",
    "left_square_bracket": "[", "right_square_bracket": "]", "left_curly_bracket": "{", "right_curly_bracket": "}",
    "less_than_sign": "<", "greater_than_sign": ">", "dollar_sign": "$",
}  # fmt: skip
_NAMES = {"/": "slash", "?": "question_mark", "@": "at", ":": "colon", "&": "ampersand", "esc": "escape"}


def key_name(key: str) -> str:
    """A key as it is written in settings, as Textual calls it."""
    key = key.strip()
    return _NAMES.get(key.lower(), key)


def shown(key: str) -> str:
    """A key as people read it."""
    return SHOWN.get(key, key.replace("ctrl+", "^").replace("f1", "F1"))


def with_keys(actions: tuple[Action, ...], keys: Mapping[str, str]) -> tuple[Action, ...]:
    """The table with the user's keys. Raises BadKeys for an unknown action or one key for two actions."""
    unknown = [name for name in keys if name not in BY_ID]
    if unknown:
        raise BadKeys(f"Settings [keys] name no action: {', '.join(unknown)}", f"Known: {', '.join(BY_ID)}")
    changed = {name: tuple(map(key_name, text.split(","))) for name, text in keys.items()}
    taken: dict[str, str] = {}
    for name, wanted in changed.items():
        for key in wanted:
            if taken.setdefault(key, name) != name:
                raise BadKeys(
                    f"Settings [keys] give {shown(key)} to both {taken[key]} and {name}", "Choose another key"
                )
    # A key that the user moves is taken from the action that had it.
    return tuple(
        replace(action, keys=changed.get(action.id, tuple(key for key in action.keys if key not in taken)))
        for action in actions
    )


def harmless(actions: tuple[Action, ...]) -> tuple[Action, ...]:
    """The table for --read-only: what touches the server stays listed, and says why it cannot be done."""
    return tuple(replace(action, why=read_only) if action.touches else action for action in actions)


def keys_of(action: Action) -> str:
    """All keys of an action, as people read them; aliases that look the same once."""
    return " ".join(dict.fromkeys(map(shown, action.keys)))


def key_table(actions: tuple[Action, ...] = ACTIONS) -> str:
    """The table of keys for the README, in Markdown."""
    listed = [a for a in actions if not a.id.startswith("pane_")]
    rows = [f"| `{'` `'.join(dict.fromkeys(map(shown, a.keys)))}` | {a.help} |" for a in listed]
    if len(listed) < len(actions):
        rows.append("| `1`–`7` | Go to a pane: launch, GPUs, log growth, signs of life, processes, health, log |")
    return "\n".join(["| key | does |", "|---|---|", *rows]) + "\n"
