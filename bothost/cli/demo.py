"""``bothost demo``: an embedded lobby, a host and the pages for the browser in one process, to watch."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from bothost import config
from bothost.cli import init, options, output
from bothost.cli.run import start_logs
from bothost.errors import ConfigError

if TYPE_CHECKING:
    from bothost.cli.demo_view import Board
    from bothost.host.supervisor import Host
    from bothost.lobby_server import ServerSettings
    from bothost.plugins import Plugins

DRAIN_S = 5.0
ROBOTS_AFTER_S = 1.0
"""How long a table of ``--game`` waits before robots take its free seats, if our accounts cannot fill it."""
LOOK_S = 0.25
"""How often the demo checks whether it is over, and draws."""
REPORT_S = 5.0
"""How often a status line is printed without a terminal."""


def command(
    config_file: options.Config = None,
    seconds: Annotated[
        float | None, typer.Option(min=0, callback=options.finite, help="Stop after this many seconds.")
    ] = None,
    hands: Annotated[int | None, typer.Option(min=1, help="Stop after this many finished hands.")] = None,
    game: Annotated[
        list[str] | None, typer.Option(help="Play this game instead of the configured ones; may be repeated.")
    ] = None,
    web: Annotated[bool, typer.Option("--web/--no-web", help="Serve the web pages, if web.enabled is set.")] = True,
    json: options.Json = False,
) -> None:
    """Watch bots play: a lobby on this machine, several accounts, every decision logged. Ctrl-C ends it.

    Without a configuration this writes config.toml first, as `bothost init` does.
    """
    if not options.is_configured(config_file):
        init.write(Path(config.FILE_NAME))
        typer.echo(f"wrote {config.FILE_NAME}", err=True)
    settings = options.settings(config_file)
    from bothost.plugins import Plugins

    plugins = Plugins.load(settings.host.plugins_dir)  # first: they may bring the games
    settings = demo_settings(settings, tuple(game or ()))
    log = msgspec.structs.replace(settings.log, file=settings.log.file or settings.host.data_dir / "demo.log")
    start_logs(msgspec.structs.replace(settings, log=log), stream_level="error")
    from bothost.host import launch
    from bothost.store import schema

    schema.upgrade(settings.store)
    status = launch.run(_demo(settings, plugins, seconds, hands, web=web and settings.web.enabled))
    output.emit(status, json, farewell(settings, status))


def demo_settings(settings: config.Settings, games: tuple[str, ...] = ()) -> config.Settings:
    """Return settings for a demo: only embedded lobbies, with new tokens where they are missing, and a short drain.

    Raises ConfigError if no account plays at one.
    """
    change = msgspec.structs.replace
    embedded = (lobby for lobby in settings.lobbies if lobby.adapter == "embedded")
    lobbies = tuple(change(lobby, accounts=_with_tokens(lobby.accounts)) for lobby in embedded)
    if not any(lobby.accounts for lobby in lobbies):
        advice = "for the lobbies of this configuration: bothost run; for a demo: bothost init FILE, then --config FILE"
        raise ConfigError("no account plays at a lobby of the adapter embedded", key="lobby", advice=advice)
    names = (None, *(lobby.name for lobby in lobbies))
    routes = tuple(route for route in settings.routes if route.lobby in names)
    host = change(settings.host, drain_timeout_s=DRAIN_S)
    settings = change(settings, host=host, lobbies=lobbies, routes=routes)
    return _with_games(settings, games) if games else settings


def _with_games(settings: config.Settings, games: tuple[str, ...]) -> config.Settings:
    """Keep only these games. All accounts play a game without wishes, on routes without an account."""
    from bothost import rules

    for name in games:
        rules.game(name)  # raises for an unknown game
    wished = {wish.game for lobby in settings.lobbies for account in lobby.accounts for wish in account.wishes}
    extra = tuple(config.WishSettings(game=name) for name in games if name not in wished)

    def only(account: config.AccountSettings) -> config.AccountSettings:
        wishes = tuple(wish for wish in account.wishes if wish.game in games)
        return msgspec.structs.replace(account, wishes=wishes + extra)

    lobbies = tuple(
        msgspec.structs.replace(
            lobby, accounts=tuple(account for account in map(only, lobby.accounts) if account.wishes)
        )
        for lobby in settings.lobbies
    )
    routes = tuple(
        msgspec.structs.replace(route, game=name)
        for route in settings.routes
        for name in ([route.game] if route.game or not route.account or not extra else sorted(wished & set(games)))
    )
    server = settings.lobby_server
    if any(_is_short_of_players(lobby, games) for lobby in lobbies):
        server = msgspec.structs.replace(server, robots_after_s=ROBOTS_AFTER_S)
    return msgspec.structs.replace(settings, lobbies=lobbies, routes=routes, lobby_server=server)


def _is_short_of_players(lobby: config.LobbySettings, games: tuple[str, ...]) -> bool:
    """Whether a table of one of the games needs more players than our accounts."""
    from bothost import rules

    wishes = Counter(wish.game for account in lobby.accounts for wish in account.wishes)
    seats = {name: rules.game(name).num_seats for name in games}
    return not lobby.allow_same_table or any(0 < wishes[name] < seats[name] for name in games)


def _with_tokens(accounts: tuple[config.AccountSettings, ...]) -> tuple[config.AccountSettings, ...]:
    """Give each account a token of its own: the configured one, or a new one where it is missing or shared."""
    given = [account.token.reveal() if account.token and account.token.present else None for account in accounts]
    return tuple(
        account
        if token is not None and given.count(token) == 1
        else msgspec.structs.replace(account, token=config.Secret(secrets.token_urlsafe(24), "made for this run"))
        for account, token in zip(accounts, given, strict=True)
    )


async def _demo(
    settings: config.Settings, plugins: Plugins, seconds: float | None, hands: int | None, *, web: bool
) -> dict[str, Any]:
    from bothost.cli.demo_view import Board
    from bothost.host import launch
    from bothost.host.status import status_of
    from bothost.lobby_server import serve
    from bothost.store import Store
    from bothost.web.server import serving
    from bothost.web.site import Site

    async with contextlib.AsyncExitStack() as stack:
        server = await stack.enter_async_context(_served(serve, _server_settings(settings), "lobby_server.port"))
        change = msgspec.structs.replace
        settings = change(settings, lobbies=tuple(change(lobby, url=server.url) for lobby in settings.lobbies))
        store = stack.enter_context(Store.open(settings.store))
        board = Board(store, settings.routes, plugins, since_us=time.time_ns() // 1000)
        pages = None
        if web:
            serve_pages = partial(serving, Site(settings, store, plugins))
            pages = await stack.enter_async_context(_served(serve_pages, settings.web, "web.port"))
            typer.echo(f"Open {pages} in a browser. Ctrl-C ends the demo.", err=True)
        host = await stack.enter_async_context(launch.opened(settings, plugins))
        watching = asyncio.create_task(_watch(host, board, seconds, hands, pages))
        try:
            await host.run()
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
        await asyncio.to_thread(board.read, everything=True)
        return {**status_of(host), "finished_hands": board.finished, "scores": board.scores(), "web": pages}


def _server_settings(settings: config.Settings) -> ServerSettings:
    """The embedded lobby with the configured accounts."""
    from bothost.lobby_server import ServerSettings

    tokens = {
        account.name: account.token.reveal()
        for lobby in settings.lobbies
        for account in lobby.accounts
        if account.token is not None
    }
    return ServerSettings.configured(msgspec.structs.replace(settings.lobby_server, tokens=None), tokens=tokens)


@contextlib.asynccontextmanager
async def _served(
    serve: Callable[[Any], AbstractAsyncContextManager[Any]], settings: Any, key: str
) -> AsyncIterator[Any]:
    """Enter ``serve(settings)``; if the port of ``key`` is in use, take any free port."""
    async with contextlib.AsyncExitStack() as stack:
        try:
            served = await stack.enter_async_context(serve(settings))
        except ConfigError as error:
            if error.key != key:
                raise
            served = await stack.enter_async_context(serve(msgspec.structs.replace(settings, port=0)))
        yield served


async def _watch(host: Host, board: Board, seconds: float | None, hands: int | None, pages: str | None) -> None:
    """Show the live view, and stop after ``seconds`` or ``hands``."""

    async def enough(status: dict[str, Any]) -> bool:
        if hands is None or status["hands"] < hands:  # the host counts each of our seats, and aborted hands
            return False
        await asyncio.to_thread(board.read, everything=True)
        return board.finished >= hands

    from bothost.cli.demo_view import live_view, one_line
    from bothost.host.status import status_of

    clock = asyncio.get_running_loop().time
    started, reported, before = clock(), 0.0, 0
    with contextlib.ExitStack() as stack:
        draw = stack.enter_context(live_view()) if output.is_terminal() else None
        period = 1.0 if draw is not None else REPORT_S
        while True:
            await asyncio.sleep(LOOK_S)
            now, status = clock() - started, status_of(host)
            if now - reported >= period:
                rate = (status["decisions"] - before) / (now - reported)
                reported, before = now, status["decisions"]
                await asyncio.to_thread(board.read)
                if draw is None:
                    typer.echo(one_line(board, status, rate), err=True)
                else:
                    draw(board, status, rate, pages)
            if (seconds is not None and now >= seconds) or await enough(status):
                host.drain()


def farewell(settings: config.Settings, status: dict[str, Any]) -> str:
    """The scores, where the log is, and what to try next."""
    from bothost.cli.demo_view import SCORES, score_rows

    fallbacks = sum(status["fallbacks"].values())
    count = f"{status['decisions']:,} decisions in {status['finished_hands']:,} finished hands"
    scores = score_rows(status["scores"])
    learns = any(strategy.partition(":")[0] == "phase-ppo" for _, strategy, *_ in scores)
    retrain = "  bothost retrain phase-ppo --minutes 2    a new model from them\n" if learns else ""
    parts = [
        f"{count}, {fallbacks or 'no'} fallbacks",
        output.table(scores, SCORES) if scores else "no hand was finished",
        f"Every decision is in {settings.store.url}",
        "Try next:\n"
        "  bothost games list                       the hands that were played\n"
        "  bothost games show HAND                  one hand, with what each bot considered\n"
        "  bothost web                              tables and replays in the browser\n"
        "  bothost export --out exports             the decisions as training data\n"
        f"{retrain}"
        "  bothost plugin new my-bot                a strategy of your own",
    ]
    return "\n\n".join(part for part in parts if part)
