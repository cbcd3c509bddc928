"""Commands and flags. Imports nothing heavy: a command imports what it needs when it runs (asyncssh costs 130 ms)."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, TypeVar

import click

from tuimon import __version__, console

if TYPE_CHECKING:
    from collections.abc import Callable

    from tuimon.config import Settings
    from tuimon.headless.export import Form
    from tuimon.headless.wait import OnStall, Until

Command = TypeVar("Command", bound="Callable[..., object]")

KEYS_FIRST = 0.001
"""Seconds that a thread which reads a log may keep the interpreter from a key. At 10,000 lines/s the whole program
answers within 37 ms (p95, the median of eight runs) so, and within 49 at Python's own 5 ms."""
UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
LONGEST = 366 * 24 * 3600.0
"""Seconds; no clock of the system takes any number."""


class Duration(click.ParamType[float]):
    """`25s`, `30m`, `1h`, or seconds."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Seconds; fails with the accepted forms."""
        if isinstance(value, int | float):
            return float(value)
        match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", str(value))
        if match is None:
            self.fail(f"{value!r} is not a duration: write 25s, 30m or 1h", param, ctx)
        seconds = float(match[1]) * UNITS[match[2] or "s"]
        if seconds > LONGEST:
            self.fail(f"{value!r} is longer than a year", param, ctx)
        return seconds


class Commands(click.Group):
    """`tuimon HOST` is short for `tuimon watch HOST`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert `watch` in front of a first argument that is neither a command nor a global flag."""
        if args and args[0] not in self.commands and args[0] not in {"--help", "--version", "-h"}:
            args = ["watch", *args]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; click would make a problem of a reader that went away."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise console.ReaderGone from error


def _watching_flags(command: Command) -> Command:
    for option in reversed(
        (
            click.option("--log", help="Path of the log on the host, instead of the one found."),
            click.option("--port", type=click.IntRange(1, 65535), help="The server's port, instead of the one found."),
            click.option("--pid", type=click.IntRange(1), help="The server's pid, instead of the one found."),
            click.option("--engine", help="sglang, vllm, trtllm, llamacpp, torchrun …"),
            click.option(
                "--ssh-command", metavar="CMD", help="`ssh`, or a wrapper like it, instead of our own client."
            ),
            click.option("--api-key-env", metavar="NAME", help="Local variable holding the server's API key."),
            click.option(
                "--auto-diagnose/--no-auto-diagnose",
                default=None,
                help="Look at the stacks when a launch goes quiet, and diagnose a stall once. On unless switched off.",
            ),
            click.option(
                "--read-only", is_flag=True, default=None, help="Take away every key that touches the server."
            ),
        )
    ):
        command = option(command)
    return command


_json = click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
_on_change = click.option(
    "--on-change", metavar="CMD", help="Run CMD when the verdict changes: evidence as JSON on its stdin, no shell."
)


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="HOST: [user@]name[:sshport], localhost, docker:NAME, HOST/docker:NAME, k8s:NAMESPACE/POD, demo:SCENARIO.",
)
@click.version_option(__version__, prog_name="tuimon")
def cli() -> None:
    """Watch the launch of an LLM server: is it slow, or is it dead?"""


@cli.command()
@click.argument("hosts", nargs=-1, required=True, metavar="HOST…")
@click.option("--theme", help="Name of a theme.")
@click.option("--record/--no-record", default=None, help="Keep a recording for `tuimon replay` (the default).")
@click.option("--dry-run", is_flag=True, help="Print every command that may be sent to HOST, and send nothing.")
@_on_change
@_watching_flags
def watch(hosts: tuple[str, ...], dry_run: bool, **flags: object) -> None:
    """Watch HOST on a live screen (the same as `tuimon HOST`); several: the nodes of one launch, judged as one."""
    from tuimon.config import load

    settings = load(flags)
    if dry_run:
        from tuimon.headless import dry_run as headless

        sys.exit(max(headless.run(host, settings) for host in hosts))
    if len(set(hosts)) > 1:
        _show_nodes(hosts, settings)
    else:
        _show(hosts[0], settings)


@cli.command()
@click.argument("host")
@click.option(
    "--for", "seconds", type=Duration(), default=25.0, show_default="25s", help="Watch for at most this long."
)
@_json
@_watching_flags
def check(host: str, seconds: float, as_json: bool, **flags: object) -> None:
    """Judge once, without a screen. Exit code: 0 fine, 3 stalled, 4 crashed, 6 unreachable."""
    from tuimon.config import load
    from tuimon.headless import check as headless

    sys.exit(headless.run(host, load(flags), seconds, as_json=as_json))


@cli.command()
@click.argument("host")
@click.option("--until", type=click.Choice(["ready", "serving", "exit"]), default="ready", show_default=True)
@click.option("--timeout", type=Duration(), default=1800.0, show_default="30m", help="Wait for at most this long.")
@click.option(
    "--on-stall",
    type=click.Choice(["exit", "report"]),
    default="exit",
    show_default=True,
    help="At a stall: exit with 3, or report and wait on. Stacks are saved either way.",
)
@_json
@_on_change
@_watching_flags
def wait(host: str, until: Until, timeout: float, on_stall: OnStall, as_json: bool, **flags: object) -> None:
    """Block until the launch is ready, serves or ends. Exit: 0, 3 stalled, 4 crashed, 5 timed out, 6 unreachable."""
    from tuimon.config import load
    from tuimon.headless import wait as headless

    wish = headless.Wish(until, timeout, on_stall)
    sys.exit(headless.run(host, load(flags), wish, as_json=as_json))


@cli.command()
@click.argument("host", required=False)
@click.option("--last", "most", type=click.IntRange(1, 5000), default=50, show_default=True, help="How many launches.")
@_json
def history(host: str | None, most: int, as_json: bool) -> None:
    """The launches that were watched before, and how long they took."""
    from tuimon.headless import history as headless

    sys.exit(headless.run(host, most, as_json=as_json))


@cli.command()
@click.argument("hosts", nargs=-1, metavar="[HOST]…")
def mcp(hosts: tuple[str, ...]) -> None:
    """Answer an assistant over stdio (Model Context Protocol), read-only. With HOST…: about these hosts only."""
    from tuimon.config import load
    from tuimon.headless import mcp_server

    sys.exit(mcp_server.run(hosts, load({})))


@cli.command()
@click.argument("host")
@_json
@_watching_flags
def stacks(host: str, as_json: bool, **flags: object) -> None:
    """Dump the stacks of all ranks, grouped; nothing is stopped or slowed."""
    from tuimon.config import load
    from tuimon.headless import stacks as headless

    sys.exit(headless.run(host, load(flags), as_json=as_json))


@cli.command()
@click.argument("host")
@click.option("--flight-recorder", "recorders", is_flag=True, help="Ask torch's flight recorders for new dumps first.")
@_json
@_watching_flags
def diagnose(host: str, recorders: bool, as_json: bool, **flags: object) -> None:
    """Stacks, collectives and the kernel's log in one report; nothing is stopped or slowed."""
    from tuimon.config import load
    from tuimon.headless import diagnose as headless

    sys.exit(headless.run(host, load(flags), as_json=as_json, recorders=recorders))


@cli.command()
@click.argument("host")
@click.option("--clean", is_flag=True, help="Remove the py-spy that tuimon left in the host's cache.")
@_json
@_watching_flags
def doctor(host: str, clean: bool, as_json: bool, **flags: object) -> None:
    """What can be seen and done on HOST, each with the fix. Exit: 0 log and processes can be seen, 1, 6 unreachable."""
    from tuimon.config import load
    from tuimon.headless import doctor as headless

    sys.exit(headless.run(host, load(flags), as_json=as_json, clean=clean))


@cli.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE…")
@click.option(
    "--gap", type=Duration(), default=10.0, show_default="10s", help="Silences of at least this long are listed."
)
@click.option("--lens", is_flag=True, help="Print only the lines that matter: milestones, warnings, errors.")
@_json
def timeline(files: tuple[str, ...], gap: float, lens: bool, as_json: bool) -> None:
    """Phases, silences, missing milestones and the first error of any log; `-` reads standard input."""
    from tuimon.headless import timeline as headless

    sys.exit(headless.run(files, gap, lens=lens, as_json=as_json))


@cli.command()
@click.argument("where", metavar="[HOST:]PATH")
@click.option("--target", help="Path of the target model, to compare with.")
@click.option("--engine", type=click.Choice(["sglang", "vllm"]), help="Without it: SGLang.")
@click.option("--engine-version", help="Without it: the newest known version.")
@_json
def checkpoint(where: str, target: str | None, engine: str | None, engine_version: str | None, as_json: bool) -> None:
    """Will this draft model do anything? Reads config.json and safetensors headers only."""
    from tuimon.headless import checkpoint as headless

    sys.exit(headless.run(where, target, engine, engine_version, as_json=as_json))


@cli.command()
@click.argument("where", metavar="FILE|DIR|-")
@click.option("--speed", type=click.FloatRange(0.1, 100), default=1.0, show_default=True, help="How fast it plays.")
@click.option("--theme", help="Name of a theme.")
def replay(where: str, speed: float, theme: str | None) -> None:
    """Show a recording on the same screen, judged with today's rules; `-` reads standard input."""
    from tuimon.config import load
    from tuimon.recording.source import open_source
    from tuimon.ui.replay import ReplayApp, keys_from_terminal
    from tuimon.watch.replay import ReplayWatch

    settings = load({"theme": theme})
    source = open_source(where)
    if where == "-":
        keys_from_terminal()
    _ready_for_a_screen(keys=where != "-")
    watching = ReplayWatch(source, settings, speed=speed)
    try:
        ReplayApp(watching, settings).run()
    finally:
        watching.stop()


@cli.command()
@click.argument("where", metavar="FILE|DIR|-")
@click.option("--json", "form", flag_value="json", help="Its events, one JSON document a line.")
@click.option("--csv", "form", flag_value="csv", help="Its samples as a table.")
@click.option("--report", "form", flag_value="report", default="report", help="A report in Markdown; the default.")
def export(where: str, form: Form) -> None:
    """Write a recording to stdout in a form for others; what is wrong with it goes to stderr."""
    from tuimon.config import load
    from tuimon.headless import export as headless

    sys.exit(headless.run(where, form, load({})))


@cli.command()
@click.argument("scenario", default="silent-stall")
@click.option("--pace", type=click.Choice(["brisk", "real"]), default="brisk", help="real = true durations.")
@click.option("--serve", is_flag=True, help="Run the demo's host alone and print how to reach it.")
@click.option("--list", "listing", is_flag=True, help="List the scenarios.")
@click.option("--theme", help="Name of a theme.")
def demo(scenario: str, pace: str, serve: bool, listing: bool, theme: str | None) -> None:
    """Watch a launch that was made for showing: real processes, simulated GPUs."""
    from tuimon.config import load
    from tuimon.demo import scenarios

    if listing:
        for each in scenarios.SCENARIOS.values():
            click.echo(f"{each.name:16} {each.line}")
        return
    scenarios.find(scenario)
    if serve:
        from tuimon.demo.serve import serve as serve_host

        sys.exit(serve_host(scenario, pace))
    _show(f"demo:{scenario}" if pace == "brisk" else f"demo:{scenario}@{pace}", load({"theme": theme}))


@cli.group()
def config() -> None:
    """The settings: where they are, what holds, and what is wrong."""


@config.command("path")
def config_path() -> None:
    """Print the places of settings, themes, grammars and what is kept."""
    from tuimon.headless import settings

    sys.exit(settings.path())


@config.command("show")
def config_show() -> None:
    """Print all settings as TOML, each with where it comes from."""
    from tuimon.headless import settings

    sys.exit(settings.show())


@config.command("check")
def config_check() -> None:
    """Say everything that is wrong with the settings file, with its line; exit code 2 if anything is."""
    from tuimon.headless import settings
    from tuimon.ui.actions import BY_ID

    sys.exit(settings.check(tuple(BY_ID)))


def _ready_for_a_screen(*, keys: bool = True) -> None:
    console.need_terminal(keys=keys)
    sys.setswitchinterval(KEYS_FIRST)
    from tuimon.ui import garbage

    garbage.hold()


def _show(host: str, settings: Settings) -> None:
    _ready_for_a_screen()
    from tuimon.headless.attended import Attended
    from tuimon.ui.app import TuimonApp
    from tuimon.watch.recorded import record

    watching = Attended(host, settings)
    recorder = record(watching, host, settings)
    try:
        app = TuimonApp(watching, settings)
        watching.terminal = app.send
        app.run()
    finally:
        watching.stop()
        if recorder is not None:
            recorder.stop()


def _show_nodes(hosts: tuple[str, ...], settings: Settings) -> None:
    _ready_for_a_screen()
    from tuimon.headless.attended_nodes import AttendedNodes
    from tuimon.ui.nodesapp import NodesApp

    watching = AttendedNodes(hosts, settings)
    try:
        app = NodesApp(watching, settings)
        watching.terminal = app.send
        app.run()
    finally:
        watching.stop()


def main() -> None:
    """The console script: every error is one sentence on stderr."""
    console.run(lambda: cli(standalone_mode=False))
