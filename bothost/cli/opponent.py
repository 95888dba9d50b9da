"""``bothost opponent``: what the operator noted about opponents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from bothost.cli import hand_query as hands
from bothost.cli import options, output
from bothost.errors import UsageError
from bothost.store.records import short_time

if TYPE_CHECKING:
    from bothost.store.notes import Note

app = typer.Typer(no_args_is_help=True, help="Notes about opponents.")
LobbyName = Annotated[str | None, typer.Option("--lobby", help="Lobby of the opponent; default: the only one.")]


@app.command()
def note(
    player: Annotated[str, typer.Argument(help="Id or name of the opponent at the lobby.")],
    text: Annotated[str | None, typer.Argument(help="What to note; default: show the notes.")] = None,
    lobby: LobbyName = None,
    delete: Annotated[int | None, typer.Option("--delete", min=1, help="Delete the note of this number.")] = None,
    config: options.Config = None,
    json: options.Json = False,
) -> None:
    """Note something about an opponent, or show the notes. `games list --opponent` and `games show` show them, too."""
    from bothost.store import Store, notes

    settings = options.settings(config)
    where = lobby or hands.only_lobby(settings)
    if text is not None and delete is not None:
        raise UsageError("a note is added or deleted, not both", advice="leave out the text, or --delete")
    with Store.open(settings.store) as store:
        if delete is not None:
            notes.delete(store, where, player, delete)
        if text is not None:
            hands.check_lobby(store, settings, where)
            notes.add(store, where, player, text)
        _emit(notes.listed(store, lobbies=[where], players=[player]), json)


@app.command("list")
def list_(
    lobby: Annotated[str | None, typer.Option("--lobby", help="Only opponents at this lobby.")] = None,
    config: options.Config = None,
    json: options.Json = False,
) -> None:
    """List all notes about opponents."""
    from bothost.store import Store, notes

    with Store.open(options.settings(config).store) as store:
        _emit(notes.listed(store, lobbies=[lobby] if lobby else []), json)


def _emit(found: Sequence[Note], json: bool) -> None:
    rows = [
        (*map(output.printable, (one.player, one.lobby)), one.number, short_time(one.at_us), output.printable(one.text))
        for one in found
    ]
    header = ("OPPONENT", "LOBBY", "NUMBER", "NOTED (UTC)", "NOTE")
    output.emit(list(found), json, output.table(rows, header) if rows else "no notes")
