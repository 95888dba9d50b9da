"""``bothost demo``: an embedded lobby and a host with several accounts in one process, to watch."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from bothost import config
from bothost.cli import options, output
from bothost.cli.run import start_logs

if TYPE_CHECKING:
    from bothost.host.supervisor import Host
    from bothost.plugins import Plugins

DRAIN_S = 5.0
ROBOTS_AFTER_S = 1.0
"""How long a table of ``--game`` waits for our own accounts before robots fill it: mahjong takes four."""
REPORT_S = 5.0
"""How often a line is printed where there is no terminal."""

BUILT_IN = """
[host]
name = "demo"
[limits]
tables = 64
[lobby_server]
port = 0
hands = 10
[[lobby]]
name = "home"
adapter = "embedded"
url = "ws://127.0.0.1:8765/ws"
min_move_ms = 50
allow_same_table = true
{accounts}
[[route]]
account = "cyd"
strategy = "random"
[[route]]
game = "doudizhu"
strategy = "rule-doudizhu"
fallback = "random"
[[route]]
game = "pairing"
strategy = "rule-pairing"
fallback = "random"
[[route]]
game = "othello"
strategy = "rule-othello"
[[route]]
game = "mahjong"
strategy = "rule-mahjong"
[[route]]
strategy = "random"
"""
ACCOUNT = """
[[lobby.account]]
name = "{name}"
tables = 4
[[lobby.account.wish]]
game = "doudizhu"
[[lobby.account.wish]]
game = "pairing"
"""


def command(
    config_file: options.Config = None,
    seconds: Annotated[float | None, typer.Option(help="Stop after so many seconds.")] = None,
    hands: Annotated[int | None, typer.Option(help="Stop after so many hands.")] = None,
    game: Annotated[
        list[str] | None, typer.Option(help="Play this game instead of the configured ones; may be repeated.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Watch bots play: a lobby on this machine, several accounts, every decision logged. Ctrl-C ends it."""
    settings = demo_settings(config_file, tuple(game or ()))
    start_logs(quiet(settings))
    from bothost.host import launch
    from bothost.plugins import Plugins
    from bothost.store import schema

    plugins = Plugins.load(settings.host.plugins_dir)
    schema.upgrade(settings.store)
    status = launch.run(_demo(settings, plugins, seconds, hands))
    output.emit(status, json, farewell(settings, status))


def demo_settings(config_file: Path | None, games: tuple[str, ...] = ()) -> config.Settings:
    """The configuration where there is one, else one of our own; missing tokens are made for this run.

    With ``games`` every account wishes these instead, and the lobby's robots take the seats that stay empty.
    """
    if config_file is None and not os.environ.get("BOTHOST_CONFIG") and not Path(config.FILE_NAME).exists():
        accounts = "".join(ACCOUNT.format(name=name) for name in ("ada", "bob", "cyd"))
        settings = config.parse(BUILT_IN.format(accounts=accounts), base=Path.cwd())
    else:
        settings = options.settings(config_file)
    lobbies = tuple(
        msgspec.structs.replace(lobby, accounts=tuple(_with_token(account) for account in lobby.accounts))
        if lobby.adapter == "embedded"
        else lobby
        for lobby in settings.lobbies
    )
    host = msgspec.structs.replace(settings.host, drain_timeout_s=DRAIN_S)
    settings = msgspec.structs.replace(settings, host=host, lobbies=lobbies)
    return _with_games(settings, games) if games else settings


def _with_games(settings: config.Settings, games: tuple[str, ...]) -> config.Settings:
    from bothost import rules

    for name in games:
        rules.game(name)  # an unknown one is refused here, with its nearest name
    wishes = tuple(config.WishSettings(game=name) for name in games)
    lobbies = tuple(
        msgspec.structs.replace(
            lobby, accounts=tuple(msgspec.structs.replace(account, wishes=wishes) for account in lobby.accounts)
        )
        for lobby in settings.lobbies
    )
    server = msgspec.structs.replace(settings.lobby_server, robots_after_s=ROBOTS_AFTER_S)
    return msgspec.structs.replace(settings, lobbies=lobbies, lobby_server=server)


def _with_token(account: config.AccountSettings) -> config.AccountSettings:
    if account.token is not None and account.token.present:
        return account
    return msgspec.structs.replace(account, token=config.Secret(secrets.token_urlsafe(24), "made for this run"))


def quiet(settings: config.Settings) -> config.Settings:
    """Where a live summary is shown, the log goes to a file alone, and only errors to the terminal."""
    file = settings.log.file or settings.host.data_dir / "demo.log"
    log = msgspec.structs.replace(settings.log, file=file, level="error" if output.is_terminal() else "warning")
    return msgspec.structs.replace(settings, log=log)


async def _demo(
    settings: config.Settings, plugins: Plugins, seconds: float | None, hands: int | None
) -> dict[str, Any]:
    from bothost.host import launch

    async with _lobby(settings) as url:
        embedded = tuple(
            msgspec.structs.replace(lobby, url=url) if lobby.adapter == "embedded" else lobby
            for lobby in settings.lobbies
        )
        settings = msgspec.structs.replace(settings, lobbies=embedded)
        async with launch.opened(settings, plugins) as host:
            watching = asyncio.create_task(_watch(host, seconds, hands))
            try:
                await host.run()
            finally:
                watching.cancel()
                await asyncio.gather(watching, return_exceptions=True)
            return host.status()


@contextlib.asynccontextmanager
async def _lobby(settings: config.Settings) -> AsyncIterator[str]:
    """The embedded lobby, for the accounts of the configuration; gives its URL."""
    from bothost.lobby_server import ServerSettings, serve

    tokens = {
        account.name: account.token.reveal()
        for lobby in settings.lobbies
        if lobby.adapter == "embedded"
        for account in lobby.accounts
        if account.token is not None
    }
    lobby = msgspec.structs.replace(settings.lobby_server, tokens=None)
    async with serve(ServerSettings.configured(lobby, tokens=tokens)) as server:
        yield server.url


async def _watch(host: Host, seconds: float | None, hands: int | None) -> None:
    """Show what happens, and stop in time."""
    from rich.live import Live

    clock = asyncio.get_running_loop().time
    started, last, before = clock(), 0.0, 0
    with contextlib.ExitStack() as stack:
        live = None
        if output.is_terminal():
            from rich.console import Console

            live = stack.enter_context(Live(console=Console(stderr=True), refresh_per_second=4, transient=True))
        while True:
            await asyncio.sleep(0.25 if live is not None or hands else 0.5)
            now, status = clock() - started, host.status()
            if live is not None:
                rate = (status["decisions"] - before) / (now - last)
                live.update(_summary(status, rate))
                last, before = now, status["decisions"]
            elif now - last >= REPORT_S:
                rate = (status["decisions"] - before) / (now - last)
                typer.echo(one_line(status, rate), err=True)
                last, before = now, status["decisions"]
            if (seconds is not None and now >= seconds) or (hands is not None and status["hands"] >= hands):
                host.drain()


def one_line(status: dict[str, Any], rate: float) -> str:
    """A status in one line."""
    fallbacks = sum(status["fallbacks"].values())
    return (
        f"{status['tables']} tables, {status['decisions']} decisions ({rate:.0f}/s), "
        f"{status['hands']} hands, {fallbacks} fallbacks"
    )


def _summary(status: dict[str, Any], rate: float) -> Any:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    head = Text(f"{one_line(status, rate)}, {status['log']['rows']} rows logged", style="bold")
    if status["draining"]:
        head.append("  finishing open hands; Ctrl-C again stops at once", style="yellow")
    results = Table("strategy", "hands", "mean score", box=None, header_style="dim")
    for name, result in status["results"].items():
        results.add_row(name, str(result["hands"]), f"{result['mean_score']:+.3f}")
    accounts = Table("account", "tables", "state", box=None, header_style="dim")
    for account in status["accounts"]:
        state = "playing" if account["connected"] else account["problem"] or "connecting"
        accounts.add_row(f"{account['lobby']}/{account['account']}", str(account["tables"]), state)
    return Group(head, Text(), results, Text(), accounts, Text(), Text("Ctrl-C ends the demo", style="dim"))


def farewell(settings: config.Settings, status: dict[str, Any]) -> str:
    """Where the log is, and what to try next."""
    rows = [
        (name, f"{result['hands']} hands", f"mean score {result['mean_score']:+.3f}")
        for name, result in status["results"].items()
    ]
    played = f"{status['decisions']} decisions in {status['hands']} hands; fallbacks: {status['fallbacks'] or 'none'}"
    parts = [
        played,
        output.table(rows),
        f"Every decision is in {settings.store.url}",
        "Try next:\n"
        "  bothost games list                 the hands that were played\n"
        "  bothost export --format parquet    the decisions as training data\n"
        "  bothost plugin new my-bot          a strategy of your own",
    ]
    return "\n\n".join(part for part in parts if part)
