"""``bothost games generate``: let strategies play, and log their hands as a host does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bothost.cli import options, output
from bothost.cli.arena import game_with
from bothost.config import StoreSettings, sqlite_url
from bothost.config.names import MOST_LOGGED, is_loggable
from bothost.errors import UsageError

if TYPE_CHECKING:
    from bothost.plugins import Plugins
    from bothost.reproduction import Contestant
    from bothost.retrain.players import Players
    from bothost.store import Store
    from bothost.strategy import ReportProgress


def command(
    game: Annotated[str, typer.Argument(help="Game, as in: doudizhu.")],
    player: Annotated[
        list[str], typer.Option("--player", help="NAME=ADDRESS, as in ada=styled-doudizhu; may be repeated.")
    ],
    hands: Annotated[
        int, typer.Option("--hands", "-n", min=1, max=10**6, help="Total number of hands, including earlier calls.")
    ],
    seed: Annotated[int, typer.Option(min=0, help="Seed of the deals, the seats and the play.")] = 0,
    option: Annotated[list[str] | None, typer.Option(help="Option of a player, NAME.KEY=VALUE.")] = None,
    rule: options.Rule = None,
    consents: Annotated[
        bool, typer.Option("--consent/--no-consent", help="Whether the players agree to be imitated.")
    ] = True,
    config: options.Config = None,
    json: options.Json = False,
) -> None:
    """Let strategies play without a lobby, and log their hands as a host does.

    Use it to try what learns from a log. Each hand is logged from one seat, as an account at the lobby "generated".
    """
    from bothost.host.check import check_program
    from bothost.retrain.generate import LOBBY, Population, generate

    settings, plugins = options.settings(config), options.plugins(config)
    addresses = _players(player)
    given = options.nested_by_name(option or [], addresses)
    resolved = {name: plugins.resolve(address, given[name]) for name, address in addresses.items()}
    for each in resolved.values():
        check_program(each)
    population = Population(game_with(game, options.nested(rule or [], "--rule"), plugins), resolved, seed)
    with output.progress(hands, f"games of {game}") as advance:
        spool = settings.host.data_dir / "spool"
        played = generate(
            settings.store, spool, population, hands, consents=consents, progress=lambda done, _: advance(done)
        )
    done = {"game": game, "lobby": LOBBY, "table": population.table, "hands": hands, "played": played}
    earlier = "" if played == hands else f", {hands - played:,} logged before"
    text = f"{output.counted(played, 'hand')} played and logged{earlier}: bothost games list --lobby {LOBBY}"
    output.emit(done, json, text)


class Recordings:
    """Logs the games of a reproduction. Each population has its own database in ``folder``."""

    def __init__(self, plugins: Plugins, folder: Path) -> None:
        self._plugins = plugins
        self._folder = folder
        self._stores: list[Store] = []

    def __call__(
        self,
        game: str,
        players: Mapping[str, Contestant],
        *,
        hands: int,
        seed: int = 0,
        rules: Mapping[str, Any] | None = None,
        report: ReportProgress | None = None,
    ) -> Players:
        """See :class:`bothost.RecordGames`."""
        from bothost.retrain.generate import Population, generate
        from bothost.retrain.players import Players
        from bothost.store import Store, schema

        resolved = {name: self._plugins.resolve(one.address, one.options, one.weights) for name, one in players.items()}
        population = Population(game_with(game, rules or {}, self._plugins), resolved, seed)
        settings = StoreSettings(url=sqlite_url(self._folder.absolute() / f"{game}-{population.table}.db"))
        schema.upgrade(settings)

        def advance(done: int, total: int) -> None:
            if report is not None:
                report(done, f"games of {game}", total)

        generate(settings, self._folder / "spool", population, hands, progress=advance)
        self._stores.append(Store.open(settings))
        return Players(self._stores[-1])

    def close(self) -> None:
        for store in self._stores:
            store.close()


def _players(texts: Sequence[str]) -> dict[str, str]:
    players: dict[str, str] = {}
    for text in texts:
        name, equals, address = text.partition("=")
        if not equals or not address or not is_loggable(name):
            advice = f"as in ada=styled-doudizhu; a name has at most {MOST_LOGGED} characters"
            raise UsageError(f"--player {text!r} is not NAME=ADDRESS", advice=advice)
        if name in players:
            raise UsageError(f"two players are named {name!r}", advice="name each once")
        players[name] = address
    return players
