"""``bothost games``: the hands in the log, and what the bots considered."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from bothost.cli import generate, hand_list, options, output
from bothost.cli import hand_query as hands
from bothost.errors import UsageError
from bothost.store.records import short_time

app = typer.Typer(no_args_is_help=True, help="The hands in the log.")
app.command("generate")(generate.command)


@app.command("list")
def list_(
    since: hands.Since = None,
    until: hands.Until = None,
    lobby: hands.Lobby = None,
    game: hands.GameName = None,
    player: hands.PlayerName = None,
    opponent: hands.OpponentName = None,
    strategy: hands.StrategyName = None,
    closed: Annotated[bool, typer.Option("--closed", help="Only hands that have ended.")] = False,
    seats: Annotated[bool, typer.Option("--seats", help="One line for each seat of ours.")] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many to list.")] = 20,
    config: options.Config = None,
    json: options.Json = False,
) -> None:
    """List hands, newest first: who won, by how much, and against whom."""
    from bothost.store import Store, notes
    from bothost.store.reader import decision_counts, iter_latest, together

    query = hands.hand_query(since, until, lobby, game, player, strategy, opponents=opponent, closed=closed)
    settings = options.settings(config)
    with Store.open(settings.store) as store:
        newest = iter_latest(store, query)
        lines = ([seat] for seat in newest) if seats else together(newest)
        found = [line for _, line in zip(range(limit), lines, strict=False)]
        if not found:
            hands.check_names(store, settings, options.plugins(config), query)
        counted = decision_counts(store, [seat.key for line in found for seat in line])
        noted = notes.listed(store, lobbies=lobby or (), players=opponent) if opponent else []
    listed = [[hand_list.seat(seat, counted) for seat in line] for line in found]
    if seats:
        ours = [seat for (seat,) in listed]
        output.emit(ours, json, hand_list.seat_table(ours))
    else:
        joined = [hand_list.joined(line) for line in listed]
        output.emit(joined, json, "\n".join([hand_list.table(joined), *hand_list.note_lines(noted)]))


@app.command()
def show(
    game: Annotated[str, typer.Argument(help="Id of the hand, or a unique beginning of it.")],
    top: Annotated[int, typer.Option(min=1, help="How many other actions to list per decision.")] = 3,
    events: Annotated[
        bool, typer.Option("--events", help="Show what one seat received and decided, event by event.")
    ] = False,
    config: options.Config = None,
    json: options.Json = False,
) -> None:
    """Show a hand: the deal, the moves, and what each of our bots considered.

    A hand that was never revealed is shown as one seat saw it, event by event.
    """
    from bothost.cli import show_hand, show_moves
    from bothost.store import Store, notes
    from bothost.store.hand_report import report
    from bothost.store.query import players_of
    from bothost.store.reader import iter_timelines

    options.plugins(config)  # registers the games of plugins
    with Store.open(options.settings(config).store) as store:
        if not (found := hand_list.named(store, game)):
            raise UsageError(f"no hand's id starts with {game}", advice="see: bothost games list")
        timelines = list(iter_timelines(store, iter(found)))
        reports = [report(timeline) for timeline in timelines]
        at_table = players_of(found[0].game.players)
        names = {str(player.get(key)) for player in at_table for key in ("player", "name") if player.get(key)}
        noted = notes.listed(store, lobbies=[found[0].game.lobby], players=names) if names else []
        if json:
            reports = [{**item, "notes": [msgspec.to_builtins(note) for note in noted]} for item in reports]
            output.emit(reports, True)
            return
        if not events:
            whole = list(iter_timelines(store, iter(hand_list.of_same_hand(store, found[0]))))
            if show_moves.render(whole, top=top):
                reports = []
    for item in reports:
        show_hand.render(item, top=top)
    if noted:
        typer.echo("\n".join(hand_list.note_lines(noted)))


@app.command(name="consent")
def consent_(
    player: Annotated[
        str | None, typer.Argument(help="The lobby's id of a player, or an account of ours; default: list all.")
    ] = None,
    lobby: Annotated[str | None, typer.Option(help="Lobby of the player; default: the only one configured.")] = None,
    revoke: Annotated[bool, typer.Option("--revoke", help="Record that the player does not agree.")] = False,
    reason: Annotated[str, typer.Option(help="Reason, kept with the record.")] = "",
    config: options.Config = None,
    json: options.Json = False,
) -> None:
    """Record that a player agreed to be imitated, for all hands they sat at; without a player, list what was recorded.

    Only such players' decisions reach a training that imitates.
    """
    from bothost.store import Store, consent

    settings = options.settings(config)
    if player is None and (revoke or reason):
        raise UsageError("name the player", advice="bothost games consent PLAYER")
    with Store.open(settings.store) as store:
        if player is not None:
            where = lobby or hands.only_lobby(settings)
            if new := (where, player) not in consent.recorded(store):
                hands.check_lobby(store, settings, where)
            listed = [consent.record(store, where, player, granted=not revoke, reason=reason)]
            if new:
                hands.warn_of_unknown(store, settings, where, player)
        else:
            listed = [word for word in consent.recorded(store).values() if lobby in (None, word.lobby)]
    rows = [
        (
            *map(output.printable, (word.player, word.lobby)),
            word.kind,
            short_time(word.at_us),
            output.printable(word.reason),
        )
        for word in listed
    ]
    data = [{key: value for key, value in msgspec.to_builtins(word).items() if key != "number"} for word in listed]
    header = ("PLAYER", "LOBBY", "CONSENT", "SINCE (UTC)", "REASON")
    output.emit(data, json, output.table(rows, header) if rows else "no consent is recorded")


@app.command()
def forget(
    player: Annotated[str, typer.Argument(help="Account, or id or name of a player at the table.")],
    exports: Annotated[list[Path] | None, typer.Option(help="Folder of an export; may be repeated.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Delete; without it, only show what would be deleted.")] = False,
    config: options.Config = None,
    json: options.Json = False,
) -> None:
    """Delete every hand at which a player sat: from the log, from exports, and from retrainings' datasets.

    Their consent records, ratings, notes and memos go too, and log files lose the name. Backups and models stay.
    """
    from bothost import logs
    from bothost.export.forget import forget as forget_in
    from bothost.retrain.forget import forget as forget_in_job
    from bothost.store import Store, consent, erase, notes, ratings
    from bothost.store.forget import delete_hands, traces_of
    from bothost.store.query import HandQuery

    logs.configure(level="error")
    settings = options.settings(config)
    data_dir = settings.host.data_dir
    rows: dict[str, int] = {}
    masked: dict[str, int] = {}
    with Store.open(settings.store) as store:
        if yes:
            erase.replay_spool(settings.store, data_dir)
        found = traces_of(store, player, ended=yes)
        ids, names, shown = found.ids, found.names, found.shown
        if not ids:
            try:
                hands.check_players(store, settings, HandQuery(players=(player,)))
            except UsageError as error:  # there may be consent and notes
                output.warn(f"{error}; {error.advice}")
        if yes:
            # The log goes last: as long as it knows the hands, an interrupted command can be repeated.
            for folder in exports or ():
                rows[str(folder)] = forget_in(folder, ids, shown)
            for folder in sorted((data_dir / "retrain").glob("*/")):
                rows[str(folder / "dataset")] = forget_in_job(folder, ids, shown)
            for path, count in erase.mask_files(shown, erase.files_with_names(data_dir, settings.log.file)).items():
                masked[str(path)] = count
            erase.delete_memos(store, shown)
            consent.forget(store, names)
            ratings.forget(store, names)
            notes.forget(store, shown)
            delete_hands(store, ids)
    if yes:
        erase.rewrite_database(settings.store)
    done = {"player": player, "hands": found.hands, "deleted": yes, "rows_in_exports": rows, "masked": masked}
    lines = [f"{output.counted(found.hands, 'hand')} " + ("deleted" if yes else "would be deleted: add --yes")]
    lines += [f"  {folder}: {output.counted(count, 'row')} removed" for folder, count in rows.items()]
    lines += [f"  {path}: {output.counted(count, 'mention')} masked" for path, count in masked.items()]
    output.emit(done, json, "\n".join(lines))
