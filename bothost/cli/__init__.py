"""The command line: ``bothost NOUN [VERB]``.

A noun is one module of this package, imported when it is run. It has ``app`` (a ``typer.Typer`` with verbs) or
``command`` (a function). Plugins add nouns through the hook ``bothost_commands``.

Errors are one message with its fix on stderr and an exit code (see ``bothost.errors``): 0 clean, 1 failed, 2 usage,
75 unreachable, 77 credentials refused, 78 configuration. Under ``--json`` they are one JSON object on stderr. If the
reader of stdout goes away, the command ends silently with 141, as if by SIGPIPE.
"""

from __future__ import annotations

import gc
import importlib
import io
import os
import select
import signal
import sys
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from bothost.cli import output

NOUNS: dict[str, tuple[str, str]] = {
    "demo": ("bothost.cli.demo", "Watch bots play: a lobby and a host on this machine."),
    "init": ("bothost.cli.init", "Write a commented config.toml to start from."),
    "doctor": ("bothost.cli.doctor", "Check this machine and configuration, and show fixes."),
    "run": ("bothost.cli.run", "Connect to the lobbies and play."),
    "web": ("bothost.cli.web", "Watch tables and replay hands in a browser."),
    "status": ("bothost.cli.status", "Show what the running host does."),
    "drain": ("bothost.cli.drain", "Let the running host finish its tables and end."),
    "account": ("bothost.cli.account", "Pause and resume an account of the running host."),
    "config": ("bothost.cli.config", "Check, find and show the configuration."),
    "plugin": ("bothost.cli.plugin", "List, scaffold and check plugins."),
    "lobby": ("bothost.cli.lobby", "Run the embedded lobby; list and check lobbies."),
    "play": ("bothost.cli.play", "Run any strategy as a program that speaks the exec protocol, or Botzone's."),
    "games": ("bothost.cli.games", "List the hands in the log; show one with the bots' reasons."),
    "opponent": ("bothost.cli.opponent", "Note something about an opponent; list the notes."),
    "import": ("bothost.cli.importing", "Import recorded games of others into the log."),
    "export": ("bothost.cli.export", "Write logged decisions as Parquet or JSONL."),
    "train": ("bothost.cli.train", "Train a strategy's models."),
    "reproduce": ("bothost.cli.reproduce", "Run an experiment of the checkout: tables and plots of a source."),
    "model": ("bothost.cli.model", "The model registry: list, show, import, promote, roll back, push, pull."),
    "retrain": ("bothost.cli.retrain", "Make a challenger from the log."),
    "replay": ("bothost.cli.replay", "Replay logged decisions, with the same model or another."),
    "arena": ("bothost.cli.arena", "Play a match between strategies on duplicate deals."),
    "tournament": ("bothost.cli.tournament", "Play a tournament between strategies and programs."),
    "ladder": ("bothost.cli.ladder", "Rate strategies and opponents from logged hands and matches."),
    "db": ("bothost.cli.db", "Create, upgrade, inspect, back up and restore the database."),
    "bench": ("bothost.cli.bench", "Measure this machine."),
}
"""Noun → (module, one line of help), in the order of ``bothost --help``."""


class LazyGroup(TyperGroup):
    """Lists nouns from ``NOUNS``, and imports a noun's module only when it runs."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*NOUNS, *sorted(_plugin_commands())]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a stub with the help line."""
        if cmd_name in NOUNS:
            return typer.core.TyperCommand(cmd_name, short_help=NOUNS[cmd_name][1])
        app = _plugin_commands().get(cmd_name)
        return None if app is None else _plugin_command(cmd_name, app)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Import the command, to run it or complete its arguments."""
        name = args[0]
        if name in NOUNS:
            return name, _load(name), args[1:]
        command = None if name.startswith("-") else self.get_command(ctx, name)
        if command is None and not ctx.resilient_parsing:
            from bothost.config import nearest

            ctx.fail(f"there is no command {name!r}; {nearest(name, self.list_commands(ctx))}")
        return name, command, args[1:]


def _load(noun: str) -> Any:
    module = importlib.import_module(NOUNS[noun][0])
    if hasattr(module, "app"):
        return _group(module.app)
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    settings, cls = getattr(module, "CONTEXT_SETTINGS", None), getattr(module, "COMMAND", None)
    app.command(noun, cls=cls, help=NOUNS[noun][1], context_settings=settings)(module.command)
    return typer.main.get_command(app)


def _plugin_commands() -> dict[str, Any]:
    """Return the nouns of plugins, except those with a used name. Failures of plugins do not propagate."""
    from bothost.cli.options import plugins_for_help

    return {name: app for name, app in plugins_for_help().commands.items() if name not in NOUNS}


def _group(app: typer.Typer) -> Any:
    """Make the command of an app with verbs, without rich markup: it can be piped and starts faster."""
    app.rich_markup_mode = None
    group = typer.main.get_group(app)
    for command in group.commands.values():  # else the list of verbs cuts their help at the end of the line
        command.short_help = _first_sentence(command.help or "")
    return group


def _first_sentence(text: str) -> str:
    sentence = " ".join(text.partition("\n\n")[0].split()).partition(". ")[0]
    return f"{sentence.removesuffix('.')}."


def _plugin_command(name: str, app: Any) -> Any:
    try:
        return _group(app)
    except Exception as error:
        return typer.core.TyperCommand(name, help=f"broken: {type(error).__name__}: {error}", hidden=True)


app = typer.Typer(
    cls=LazyGroup,
    name="bothost",
    help="A host for game bots: you write decide(), it does everything else.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from bothost import __version__

        typer.echo(f"bothost {__version__}")
        raise typer.Exit()


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    """A host for game bots: you write decide(), it does everything else."""
    gc.enable()  # `bothost.__main__` disables it for the imports, which are done now


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code. Raises nothing except SystemExit for shell completion."""
    args = list(sys.argv[1:] if argv is None else argv)
    previous = os.umask(0o077)  # other users must not read databases, logs and exports
    as_json = "--json" in args
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        # Latin-1 and GBK lack some of our characters. JSON is UTF-8.
        sys.stdout.reconfigure(encoding="utf-8" if as_json else None, errors="replace")
    try:
        result = typer.main.get_command(app).main(args, prog_name="bothost", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except KeyboardInterrupt:
        typer.echo("", err=True)
        return 130
    except typer.Abort:  # Ctrl-C at a prompt
        return 130
    except (BrokenPipeError, SystemExit) as error:  # for a closed pipe, typer exits with code 1
        broken = error if isinstance(error, BrokenPipeError) else error.__context__
        if not isinstance(broken, BrokenPipeError):
            raise
        if not _reader_is_gone():
            return output.report(broken, as_json=as_json)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # avoid an error when stdout is flushed at exit
        return 128 + signal.SIGPIPE
    except BaseException as error:  # a panic of a Rust extension is no Exception
        return output.report(error, as_json=as_json)
    finally:
        os.umask(previous)


def _reader_is_gone() -> bool:
    """Whether stdout or stderr is a pipe or a socket whose reader is gone."""
    poll = select.poll()
    for number in (1, 2):
        poll.register(number, 0)  # errors and hang-ups are reported in any case
    return bool(poll.poll(0))
