"""``bothost account``: pause and resume an account of the running host."""

from __future__ import annotations

from typing import Annotated

import typer

from bothost.cli import options, output
from bothost.cli.status import ask_host

app = typer.Typer(help="Pause and resume an account of the running host.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="LOBBY/ACCOUNT, as bothost status prints it.")]


@app.command()
def pause(account: Name, config_file: options.Config = None, json: options.Json = False) -> None:
    """Take no new tables with an account. It finishes its open tables. A restart of the host resumes it."""
    found = ask_host(config_file, "pause", account=account)
    output.emit(found, json, f"{account} is paused, with {output.counted(found['tables'], 'table')} to finish")


@app.command()
def resume(account: Name, config_file: options.Config = None, json: options.Json = False) -> None:
    """Take new tables again."""
    output.emit(ask_host(config_file, "resume", account=account), json, f"{account} takes tables again")
