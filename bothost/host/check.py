"""Checks the settings against the plugins: names and options of strategies, lobby adapters and games."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from bothost.config import (
    AccountSettings,
    LobbySettings,
    RouteSettings,
    Settings,
    WishSettings,
    find_line,
    line_numbers,
    nearest,
    problems,
    variable,
)
from bothost.errors import BothostError, ConfigError, ConfigErrors, StoreError, UsageError
from bothost.lobbies.base import LobbyAdapter
from bothost.plugins.address import EXEC, Resolved
from bothost.plugins.manager import Plugins
from bothost.strategy import plays
from bothost.tables.router import address, matches, wished_level

Found = tuple[str, Mapping[str, Any], Resolved]
"""An address, the options of its route, and what both resolve to."""


def check_settings(settings: Settings, plugins: Plugins, *, file: str | None = None) -> list[str]:
    """Check the settings, and return warnings. Raises ConfigError or ConfigErrors for settings that cannot work."""
    found = [*_routes(settings, plugins), *_lobbies(settings, plugins), *_wishes(settings, plugins)]
    found = list({(error.key, str(error)): error for error in found}.values())  # a database that is away: once
    _raise(found, file)
    failed = (f"plugin {f.plugin} failed to load: {f.cause}" for f in plugins.failures)
    return [*_unrouted(settings), *_misrouted(settings, plugins), *_misspelt(settings, plugins), *failed]


def resolve_routes(
    routes: Sequence[RouteSettings], plugins: Plugins, file: str | None = None
) -> tuple[list[Found], list[Found]]:
    """What the strategies of the routes resolve to, and what their fallbacks do.

    Raises ConfigError or ConfigErrors, which name the keys and the lines of ``file``, and StoreError.
    """
    strategies: list[Found] = []
    fallbacks: list[Found] = []
    wrong: list[ConfigError] = []
    for key, field, named, options in addresses(routes):
        try:
            found = named, options, _resolved(plugins, key, field, named, options)
        except ConfigError as error:
            wrong += _each(error)
        else:
            (strategies if field == "strategy" else fallbacks).append(found)
    _raise(wrong, file)
    return strategies, fallbacks


def check_wishes(settings: Settings, plugins: Plugins) -> None:
    """Raises ConfigError or ConfigErrors for wishes that cannot be met: their game is not installed, or the lobby does
    not know the game or an attribute.

    The keys name the accounts: a worker has only some of them, so their numbers are not those of the file.
    """
    _raise(list(_wishes(settings, plugins, by_name=True)))


def _raise(found: Sequence[ConfigError], file: str | None = None) -> None:
    lines = _lines(file) if found else {}
    for error in found:
        error.file, error.line = file, find_line(lines, error.key or "")
    if found:
        raise found[0] if len(found) == 1 else ConfigErrors(found)


SECRET_ADVICE = "set it, or name a file: token = { file = … }"


def missing_secrets(settings: Settings, plugins: Plugins) -> list[str]:
    """Return a message for each lobby with accounts that need a secret and have none."""
    missing = []
    for lobby in settings.lobbies:
        adapter = plugins.lobbies.get(lobby.adapter)
        if adapter is None or not adapter.capabilities.needs_secret:
            continue
        without = [
            account
            for account in lobby.accounts
            if not any(secret is not None and secret.present for secret in (account.token, account.password))
        ]
        if without:
            names = ", ".join(account.name for account in without)
            missing.append(f"{lobby.name} has no token for {names}{_missing_variables(lobby, without)}")
    return missing


def _missing_variables(lobby: LobbySettings, without: Sequence[AccountSettings]) -> str:
    token = without[0].token
    if token is None:
        return ""
    if token.reference is not None or len(lobby.accounts) == 1:
        return f": {token.problem}"
    # One variable for the whole lobby would give several accounts the same token.
    own = f": ${variable(lobby.name, without[0].name, 'token')} is not set"
    return own if len(without) == 1 else f"{own}; each account has its own variable"


def _lines(file: str | None) -> dict[str, int]:
    try:
        return line_numbers(Path(file).read_text("utf-8")) if file is not None else {}
    except (OSError, ValueError):
        return {}


def addresses(routes: Sequence[RouteSettings]) -> Iterator[tuple[str, str, str, Mapping[str, Any]]]:
    """Yield the key of the route, "strategy" or "fallback", the address, and its options."""
    for index, route in enumerate(routes):
        key = f"route[{index}]"
        yield key, "strategy", address(route.strategy, wished_level(route.level, {})), route.options
        if route.fallback is not None:
            yield key, "fallback", route.fallback, {}


def _routes(settings: Settings, plugins: Plugins) -> Iterator[ConfigError]:
    for index, route in enumerate(settings.routes):
        key = f"route[{index}]"
        if route.game is not None:
            yield from _game(f"{key}.game", route.game, {})
        for _, field, named, options in addresses([route]):
            yield from _strategy(plugins, key, field, route, named, options)


def _strategy(
    plugins: Plugins, key: str, field: str, route: RouteSettings, address: str, options: Mapping[str, Any]
) -> Iterator[ConfigError]:
    try:
        resolved = _resolved(plugins, key, field, address, options)
    except ConfigError as error:
        yield from _each(error)
        return
    except StoreError as error:  # the database may have the alias
        yield ConfigError(str(error), key="store.url", advice=error.advice)
        return
    games = resolved.strategy.games
    if route.game is not None and not plays(games, route.game):
        message = f"{resolved.strategy.name} does not play {route.game}; it plays {', '.join(games)}"
        yield ConfigError(message, key=f"{key}.{field}", value=address, advice="route the game to another strategy")


def _resolved(plugins: Plugins, key: str, field: str, address: str, options: Mapping[str, Any]) -> Resolved:
    """Resolve an address of a route. Raises ConfigError or ConfigErrors, which name the key, and StoreError."""
    try:
        resolved = plugins.resolve(address, options)
        check_program(resolved)
    except ConfigError as error:
        for part in _each(error):
            part.key = f"{key}.{part.key or field}"
        raise
    except StoreError:
        raise
    except BothostError as error:
        raise ConfigError(str(error), key=f"{key}.{field}", value=address, advice=error.advice) from error
    return resolved


def _each(error: ConfigError) -> Sequence[ConfigError]:
    return error.errors if isinstance(error, ConfigErrors) else (error,)


def check_program(resolved: Resolved) -> None:
    """Raise UsageError for a program, script or folder of an ``exec`` strategy that does not exist."""
    if resolved.strategy.name != EXEC:
        return
    (program, *arguments), folder = resolved.options.command, resolved.options.cwd or ""
    if folder and not os.path.isdir(folder):
        raise UsageError(f"{resolved.address}: there is no folder {folder!r}", advice="change cwd")
    if shutil.which(os.path.join(folder, program) if os.sep in program else program) is None:
        message = f"{resolved.address}: there is no program {program!r}"
        raise UsageError(message, advice="install it, or write its whole path")
    script = _script(arguments)
    if script is not None and not os.path.exists(os.path.join(folder, script)):
        message = f"{resolved.address}: there is no file {script!r} in {folder or os.getcwd()}"
        raise UsageError(message, advice="write its path from there, or its whole path")


_SCRIPT = re.compile(r"[^-].*\.(jar|js|jl|lua|mjs|php|pl|py|R|rb|sh|ts)")


def _script(arguments: Sequence[str]) -> str | None:
    """The script that an interpreter is to run: its first argument, behind options of one letter."""
    first = next((word for word in arguments if not re.fullmatch("-[A-Za-z]", word) or word in ("-c", "-m")), "")
    return first if _SCRIPT.fullmatch(first) else None


def _lobbies(settings: Settings, plugins: Plugins) -> Iterator[ConfigError]:
    for index, lobby in enumerate(settings.lobbies):
        key = f"lobby[{index}]"
        adapter = plugins.lobbies.get(lobby.adapter)
        if adapter is None:
            message = f"there is no lobby adapter {lobby.adapter!r}"
            advice = nearest(lobby.adapter, plugins.lobbies)
            yield ConfigError(message, key=f"{key}.adapter", value=lobby.adapter, advice=advice)
        else:
            for p in problems(lobby.options, adapter.Options, key=f"{key}.options"):
                yield ConfigError(p.message, key=p.key, value=p.value, advice=p.advice)


def _wishes(settings: Settings, plugins: Plugins, *, by_name: bool = False) -> Iterator[ConfigError]:
    for index, lobby in enumerate(settings.lobbies):
        adapter = plugins.lobbies.get(lobby.adapter)
        for a, account in enumerate(lobby.accounts):
            key = f"{lobby.name}/{account.name}" if by_name else f"lobby[{index}].account[{a}]"
            for w, wish in enumerate(account.wishes):
                yield from _wish(f"{key}.wish[{w}]", wish, adapter)


def _wish(key: str, wish: WishSettings, adapter: type[LobbyAdapter] | None) -> Iterator[ConfigError]:
    games = adapter.capabilities.games if adapter is not None else ("*",)
    if adapter is not None and not plays(games, wish.game):
        message = f"lobby adapter {adapter.name} does not play {wish.game}; it plays {', '.join(games)}"
        yield ConfigError(message, key=f"{key}.game", value=wish.game, advice="wish for one of these, or remove it")
    else:
        yield from _game(key, wish.game, wish.rules)
    schema = _attributes(adapter)
    if schema is not None:
        labels = _labels(wish, schema)
        understood = {name: value for name, value in wish.attributes.items() if name not in labels}
        for p in problems(understood, schema, key=f"{key}.attributes"):
            yield ConfigError(p.message, key=p.key, value=p.value, advice=p.advice)


def _attributes(adapter: type[LobbyAdapter] | None) -> type[msgspec.Struct] | None:
    return getattr(adapter, "Attributes", None)  # an adapter need not derive from the base class


def _labels(wish: WishSettings, schema: type[msgspec.Struct]) -> set[str]:
    """Attributes of a wish that mean nothing to the lobby, if it takes such."""
    refused = schema.__struct_config__.forbid_unknown_fields
    return set() if refused else wish.attributes.keys() - schema.__struct_fields__


def _misspelt(settings: Settings, plugins: Plugins) -> Iterator[str]:
    """Labels of wishes that look like an attribute with a meaning."""
    for lobby in settings.lobbies:
        schema = _attributes(plugins.lobbies.get(lobby.adapter))
        if schema is None:
            continue
        for account in lobby.accounts:
            labels = ((wish.game, name) for wish in account.wishes for name in sorted(_labels(wish, schema)))
            for game, name in labels:
                advice = nearest(name, schema.__struct_fields__)
                if advice.startswith("did you mean"):
                    yield f"{lobby.name}/{account.name} asks for {game} with the label {name!r}; {advice}"


def _game(key: str, name: str, options: Mapping[str, Any]) -> Iterator[ConfigError]:
    from bothost import rules

    try:
        rules.game(name, **options)
    except BothostError as error:
        field = key if key.endswith(".game") else f"{key}.game"
        yield ConfigError(str(error), key=field, value=name, advice=error.advice)
    except (ValueError, TypeError) as error:
        advice = f"presets of {name}: {', '.join(rules.presets(name))}"
        yield ConfigError(str(error), key=f"{key}.rules", value=dict(options), advice=advice)


def _chosen(settings: Settings) -> Iterator[tuple[str, WishSettings, int | None]]:
    """Yield LOBBY/ACCOUNT, the wish and the index of its route for each wish; None: no route matches."""
    for lobby in settings.lobbies:
        for account in lobby.accounts:
            for wish in account.wishes:
                asked = (lobby.name, account.name, wish.game, wish.attributes)
                found = (index for index, route in enumerate(settings.routes) if matches(route, *asked))
                yield f"{lobby.name}/{account.name}", wish, next(found, None)


def _unrouted(settings: Settings) -> Iterator[str]:
    for account, wish, index in _chosen(settings):
        if index is None:
            yield f"{account} asks for {wish.game}, which no [[route]] matches"


def _misrouted(settings: Settings, plugins: Plugins) -> Iterator[str]:
    """Routes to a strategy that does not play the game that an account asks for. It never decides there."""
    reported = set()
    for account, wish, index in _chosen(settings):
        if index is None or settings.routes[index].game is not None:  # `_routes` checks a route with a game
            continue
        route = settings.routes[index]
        for field, named in (("strategy", route.strategy), ("fallback", route.fallback)):
            strategy = plugins.strategies.get((named or "").partition(":")[0])
            asked = (index, field, wish.game)
            if strategy is None or plays(strategy.games, wish.game) or asked in reported:
                continue
            reported.add(asked)
            yield (
                f"route[{index}].{field}: {strategy.name} does not play {wish.game}, which {account} asks for; "
                f'write a route with game = "{wish.game}" above it'
            )
