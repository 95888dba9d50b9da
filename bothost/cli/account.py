"""``bothost account``: pause and resume an account of the running host."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from bothost.cli import options, output
from bothost.cli.status import host_settings

app = typer.Typer(help="Pause and resume an account of the running host.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="LOBBY/ACCOUNT, as bothost status prints it.")]


@app.command()
def pause(account: Name, config_file: options.Config = None, json: options.Json = False) -> None:
    """Take no new tables with an account. It finishes its open tables. A restart of the host resumes it."""
    found = _ask("pause", account, config_file)
    output.emit(found, json, f"{account} is paused, with {found['tables']} tables to finish")


@app.command()
def resume(account: Name, config_file: options.Config = None, json: options.Json = False) -> None:
    """Take new tables again."""
    output.emit(_ask("resume", account, config_file), json, f"{account} takes tables again")


def _ask(command: str, account: str, config_file: Path | None) -> dict[str, Any]:
    from bothost.host.control import ask

    return ask(host_settings(config_file).data_dir, command, account=account)
