"""``bothost lobby``: run the embedded lobby, list the adapters, check a lobby and its credentials."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from bothost import children, config
from bothost.cli import options, output
from bothost.cli.run import start_logs
from bothost.errors import AuthError, BothostError, ConfigError, UsageError

if TYPE_CHECKING:
    from bothost.lobbies.base import LobbyAdapter
    from bothost.lobby_server import ServerSettings

app = typer.Typer(no_args_is_help=True, help="Lobbies: the embedded one, and the adapters.")


@app.command()
def serve(
    config_file: options.Config = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on; default: loopback.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Port; 0: any free one.")] = None,
    as_json: options.Json = False,
) -> None:
    """Run the embedded lobby until Ctrl-C. Accounts: $BOTHOST_LOBBY_TOKENS = "name:token,name:token"."""
    children.hide()  # the tokens of all accounts
    settings = options.settings(config_file) if options.is_configured(config_file) else None
    server_settings = _server_settings(settings, host, port)
    options.plugins(config_file)  # games of plugins
    start_logs(settings or config.Settings())
    asyncio.run(_serve(server_settings, as_json))


def _server_settings(settings: config.Settings | None, host: str | None, port: int | None) -> ServerSettings:
    from bothost.lobby_server import ServerSettings
    from bothost.lobby_server.settings import TOKENS_ADVICE

    overrides = {key: value for key, value in (("host", host), ("port", port)) if value is not None}
    if settings is not None:
        server = settings.lobby_server
        if server.tokens is not None and not server.tokens.present:
            raise ConfigError("the lobby has no accounts", key="lobby_server.tokens", advice=TOKENS_ADVICE)
    else:
        tokens = os.environ.get("BOTHOST_LOBBY_TOKENS")
        secret = config.Secret(tokens, "$BOTHOST_LOBBY_TOKENS") if tokens else None
        server = config.LobbyServerSettings(tokens=secret)
    return ServerSettings.configured(server, **overrides)


async def _serve(settings: ServerSettings, as_json: bool) -> None:
    from bothost import lobby_server

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with lobby_server.serve(settings) as server:
        names = sorted(settings.tokens)
        lines = [
            f"lobby at {server.url}  (games: {', '.join(server.games)})",
            f"accounts: {', '.join(names)}; their tokens are what $BOTHOST_LOBBY_TOKENS or config.toml says",
            f"health: http{server.url[2:-3]}/healthz   Ctrl-C stops it",
        ]
        output.emit({"url": server.url, "accounts": names, "games": server.games}, as_json, "\n".join(lines))
        await stop.wait()


@app.command(name="list")
def list_(config_file: options.Config = None, as_json: options.Json = False) -> None:
    """List the lobby adapters and what their lobbies can do."""
    adapters = sorted(options.plugins(config_file).lobbies.items())
    data = [{"name": name, **msgspec.to_builtins(adapter.capabilities)} for name, adapter in adapters]
    header = ("ADAPTER", "GAMES", "TRANSPORT", "CLOCK", "RESUME", "ILLEGAL MOVE", "RATE LIMIT")
    rows = [(name, *_capability_columns(adapter)) for name, adapter in adapters]
    output.emit(data, as_json, output.table(rows, header))


def _capability_columns(adapter: type[LobbyAdapter]) -> tuple[str, ...]:
    c = adapter.capabilities
    games = "all" if "*" in c.games else ", ".join(c.games)
    resume = c.resume if c.resume == "none" else f"{c.resume}, {c.resume_delivers}"
    rate = f"{c.messages_per_second:g}/s, {c.on_rate_limit}" if c.messages_per_second else "none"
    return games, c.transport, c.clock, resume, c.rejects_illegal, rate


@app.command()
def check(
    name: Annotated[str, typer.Argument(help="A lobby of config.toml, or an adapter.")],
    url: Annotated[str | None, typer.Option(help="URL of the lobby; default: the configured one.")] = None,
    account: Annotated[str | None, typer.Option(help="Account; default: the first configured one.")] = None,
    timeout: Annotated[
        float, typer.Option(min=0.1, callback=options.finite, help="Seconds to wait for each answer.")
    ] = 10.0,
    kick: Annotated[bool, typer.Option("--kick", help="Log in although a host uses the account now.")] = False,
    config_file: options.Config = None,
    as_json: options.Json = False,
) -> None:
    """Connect, log in, list the tables and ping, without playing.

    Secrets come from the configuration, $BOTHOST_<NAME>_<ACCOUNT>_TOKEN or _PASSWORD, or $BOTHOST_<NAME>_TOKEN or
    _PASSWORD. The check registers no account if the adapter can avoid it.

    Exit codes: 0 all works, 75 unreachable, 77 credentials refused.
    """
    settings = options.settings(config_file) if options.is_configured(config_file) else config.Settings()
    adapter = _adapter(name, url, account, config_file, settings)
    notes = _side_effects(adapter)
    if not kick:
        _refuse_if_used(settings, name, adapter.account.name)
    for note in notes:
        typer.echo(f"note: {note}", err=True)
    try:
        report = asyncio.run(try_lobby(adapter, timeout))
    except AuthError as error:
        if any(lobby.name == name and lobby.options.get("register") is True for lobby in settings.lobbies):
            error.advice = "check the account's password; if the account is new, bothost run registers it"
        raise
    lines = [f"{step}: {'ok' if result is True else output.printable(result)}" for step, result in report.items()]
    output.emit({"lobby": name, "url": adapter.account.url, "notes": notes, **report}, as_json, "\n".join(lines))


def _adapter(
    name: str, url: str | None, account: str | None, config_file: Any, settings: config.Settings
) -> LobbyAdapter:
    """An adapter for one account. Raises UsageError and ConfigError."""
    from bothost.host.supervisor import login_of
    from bothost.lobbies.base import Account
    from bothost.plugins import check_options, require

    plugins = options.plugins(config_file)
    lobby = next((x for x in settings.lobbies if x.name == name), None)
    if lobby is None:
        if name not in plugins.lobbies:
            known = sorted([*(x.name for x in settings.lobbies), *plugins.lobbies])
            raise UsageError(f"there is neither a lobby nor an adapter {name!r}", advice=config.nearest(name, known))
        adapter_class: type[LobbyAdapter] = plugins.lobbies[name]
        if url is None:
            raise UsageError("an adapter needs the URL of a lobby", advice="add --url ws://…")
        user = account or "check"
        secrets = {kind: _environment_secret(name, user, kind) for kind in ("token", "password")}
        if not any(secrets.values()) and adapter_class.capabilities.needs_secret:
            variable = config.variable(name, user, "token")
            advice = f"set ${variable}, or …_PASSWORD; never write a secret on the command line"
            raise ConfigError("no token", key=config.variable(name, "token"), advice=advice)
        return adapter_class(Account(name=user, url=url, **secrets), _no_registration(adapter_class.Options()))
    mine = next((a for a in lobby.accounts if account in (None, a.name)), None)
    if mine is None:
        raise UsageError(f"lobby {name!r} has no such account", advice="see [[lobby.account]] in config.toml")
    adapter_class = require(plugins, plugins.lobbies, "adapter", lobby.adapter)
    login = login_of(lobby, mine, adapter_class.capabilities.needs_secret)
    made = msgspec.structs.replace(login, url=url or lobby.url)
    return adapter_class(made, _no_registration(check_options(adapter_class, lobby.options)))


def _environment_secret(lobby: str, account: str, kind: str) -> str:
    names = (config.variable(lobby, account, kind), config.variable(lobby, kind))
    return next((os.environ[name] for name in names if os.environ.get(name)), "")


def _no_registration(chosen: Any) -> Any:
    """A check must not register an account that does not exist."""
    return msgspec.structs.replace(chosen, register=False) if getattr(chosen, "register", False) is True else chosen


def _side_effects(adapter: LobbyAdapter) -> list[str]:
    """Notes for the operator about logging in at this lobby."""
    notes = []
    if adapter.login_registers:
        notes.append(f"this lobby registers an unknown name: {adapter.account.name!r} may be a new account")
    if adapter.capabilities.connections_per_identity == 1:
        notes.append("one connection per account: a host that uses this account elsewhere is disconnected")
    return notes


def _refuse_if_used(settings: config.Settings, lobby: str, account: str) -> None:
    """Raises UsageError if a host on this database holds the account."""
    from bothost.errors import StoreError
    from bothost.store import Store
    from bothost.store.leases import Leases

    try:
        with Store.open(settings.store) as store:
            holder = Leases(store, "lobby check", 1.0).holder_of((lobby, account))
    except StoreError:
        return  # without a database no host runs here
    if holder is not None:
        advice = "stop that host, name another --account, or add --kick"
        raise UsageError(f"the host {holder} uses account {account!r}; the check would disconnect it", advice=advice)


async def try_lobby(adapter: LobbyAdapter, timeout_s: float) -> dict[str, Any]:
    """Check the lobby step by step. Raises AuthError and LobbyUnreachable."""
    from bothost import messages as m
    from bothost.testing.adapter_driver import AdapterDriver

    report: dict[str, Any] = {}
    async with AdapterDriver(adapter, open_timeout_s=timeout_s) as driver:
        driver.do(m.Authenticate())
        connected = await driver.expect(m.Connected, timeout_s)
        report["connect"] = report["log in"] = True
        report["player"] = connected.player
        for step, command, answer in (("list tables", m.ListTables(), m.Tables), ("ping", m.Ping(), m.Alive)):
            before = len(driver.outputs)
            driver.do(command)
            if len(driver.outputs) == before:
                report[step] = "the adapter does not do this"
                continue
            try:
                await driver.expect(answer, timeout_s)
                report[step] = True
            except BothostError as error:
                report[step] = str(error)
        driver.do(m.Close())
        await asyncio.sleep(0.05)
    return report
