"""The options that choose hands, the same for ``games list``, ``export`` and ``retrain``."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from bothost.cli import output
from bothost.config import Settings, nearest
from bothost.errors import UsageError
from bothost.store.partitions import EPOCH
from bothost.store.query import HandQuery, id_range

if TYPE_CHECKING:
    from bothost.plugins import Plugins
    from bothost.store import Store

Since = Annotated[str | None, typer.Option(help="Started at or after: a date, a time, or an age such as 7d or 12h.")]
Until = Annotated[str | None, typer.Option(help="Started before: a date, a time, or an age such as 7d or 12h.")]
Lobby = Annotated[list[str] | None, typer.Option(help="Lobby, by its name in the configuration; may be repeated.")]
GameName = Annotated[list[str] | None, typer.Option("--game", help="Game; may be repeated.")]
PlayerName = Annotated[
    list[str] | None, typer.Option("--player", help="Account, or id or name of a player at the table; may be repeated.")
]
OpponentName = Annotated[
    list[str] | None, typer.Option("--opponent", help="Id or name of an opponent; may be repeated.")
]
StrategyName = Annotated[
    list[str] | None, typer.Option("--strategy", help="Strategy that decided in the hand; may be repeated.")
]

MOST_MET = 1000
"""Newest hands among whose players the nearest to an unknown one is looked for."""
_AGE = re.compile(r"(\d+(?:\.\d+)?)\s*(m|h|d|w)")
_SECONDS = {"m": 60, "h": 3600, "d": 86400, "w": 604800}


def hand_query(
    since: str | None,
    until: str | None,
    lobbies: list[str] | None,
    games: list[str] | None,
    players: list[str] | None,
    strategies: list[str] | None,
    *,
    opponents: list[str] | None = None,
    closed: bool = False,
    scored: bool = False,
) -> HandQuery:
    """The query that these options ask for. Raises UsageError for a time that is none, or two that no hand meets."""
    since_us, until_us = (None if text is None else moment(text) for text in (since, until))
    if since_us is not None and until_us is not None and since_us >= until_us:
        raise UsageError(f"no hand starts after {since} and before {until}", advice="exchange --since and --until")
    return HandQuery(
        since_us=since_us,
        until_us=until_us,
        lobbies=tuple(lobbies or ()),
        games=tuple(games or ()),
        players=tuple(players or ()),
        opponents=tuple(opponents or ()),
        strategies=tuple(strategies or ()),
        closed=closed,
        scored=scored,
    )


def moment(text: str) -> int:
    """Microseconds since 1970 of a date, a time (UTC unless it says otherwise) or an age. Raises UsageError."""
    if (age := _AGE.fullmatch(text.strip())) is not None:
        return int(max(0.0, time.time() - float(age[1]) * _SECONDS[age[2]]) * 1e6)
    try:
        when = datetime.fromisoformat(text.strip())
        when = when.astimezone(UTC) if when.tzinfo else when.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:  # such as midnight of the year 1, east of Greenwich
        advice = "write 2026-05-01, 2026-05-01T12:00, or an age: 30m, 12h, 7d, 2w"
        raise UsageError(f"{text!r} is no time", advice=advice) from error
    return (when - EPOCH) // timedelta(microseconds=1)


def ids_from(prefix: str) -> tuple[bytes, bytes]:
    """The least and the greatest id that begin with these digits. Raises UsageError."""
    try:
        return id_range(prefix)
    except ValueError as error:
        raise UsageError(str(error), advice="see: bothost games list") from error


def only_lobby(settings: Settings) -> str:
    """Return the only configured lobby. Raises UsageError if there are none or several."""
    names = [lobby.name for lobby in settings.lobbies]
    if len(names) != 1:
        found = f"the configuration has {', '.join(names)}" if names else "the configuration has none"
        raise UsageError(f"which lobby? {found}", advice="name one with --lobby")
    return names[0]


def check_lobby(store: Store, settings: Settings, name: str) -> None:
    """Raise UsageError if the configuration has no lobby of this name and no logged hand is of it."""
    from bothost.store.reader import logged_lobbies

    configured = [lobby.name for lobby in settings.lobbies]
    if name not in configured and name not in (logged := logged_lobbies(store)):
        known = dict.fromkeys([*configured, *logged])
        advice = nearest(name, known) if known else "configure it, or import its hands first"
        raise UsageError(f"no lobby {name!r} is configured or in the log", advice=advice)


def check_players(store: Store, settings: Settings, query: HandQuery) -> None:
    """Raise UsageError if a query names a player who sat at no logged hand and is no account of ours."""
    from bothost.store.reader import latest_hands, players_met

    accounts = [account.name for lobby in settings.lobbies for account in lobby.accounts]
    for name in query.players:
        if name not in accounts and not latest_hands(store, HandQuery(players=(name,)), 1):
            advice = nearest(name, [*accounts, *players_met(store, MOST_MET)])
            advice = advice if advice.startswith("did") else "list hands with their players: bothost games list"
            raise UsageError(f"no logged hand has a player {name!r}", advice=advice)


def warn_of_unknown(store: Store, settings: Settings, lobby: str, player: str) -> None:
    """Warn if no player has this id at a lobby: a consent or its revocation would then count for no one."""
    from bothost.store.consent import sitters
    from bothost.store.reader import latest_hands, players_met

    accounts = [account.name for each in settings.lobbies if each.name == lobby for account in each.accounts]
    found = latest_hands(store, HandQuery(lobbies=(lobby,), players=(player,)), 1)
    sat = [sitter for hand in found for sitter in sitters(hand.game, {})]
    if player in accounts or any(player in sitter.names for sitter in sat):
        return
    if ids := [sitter.names[0] for sitter in sat if sitter.shown == player]:
        text = f"{player} is a name that {lobby} shows, and no id: repeat this with the id {ids[0]}"
    else:
        near = nearest(player, [*accounts, *players_met(store, MOST_MET)])
        text = f"no logged hand at {lobby} has a player {player}" + f"; {near}" * near.startswith("did")
    output.warn(output.printable(text))


def check_names(store: Store, settings: Settings, plugins: Plugins, query: HandQuery) -> None:
    """Raise UsageError if a query names a lobby, game or strategy that is neither in the log nor known here."""
    from bothost import rules
    from bothost.plugins import require
    from bothost.store.reader import latest_hands

    for name in query.lobbies:
        check_lobby(store, settings, name)
    _ = plugins.games  # the games of plugins are known from here on
    for name in query.games:
        if name not in rules.games() and not latest_hands(store, HandQuery(games=(name,)), 1):
            rules.game(name)
    for name in query.strategies:
        if name not in plugins.strategies and not latest_hands(store, HandQuery(strategies=(name,)), 1):
            require(plugins, plugins.strategies, "strategy", name)
