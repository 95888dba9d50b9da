"""Chooses the strategy for a table: the first matching rule decides."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from bothost.config import RouteSettings, Settings, nearest

_LEVEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


class Choice(msgspec.Struct, frozen=True):
    """The strategy for a table."""

    strategy: str
    """Address with the level (``NAME:level-3``)."""
    plain: str
    """Address without the level."""
    level: str | None
    options: Mapping[str, Any]
    fallback: str | None
    """Address of the fallback strategy; None: only the first legal action."""


class Router:
    """The ordered rules. ``has_strategy`` returns whether a strategy of that name is registered."""

    def __init__(self, routes: Sequence[RouteSettings], has_strategy: Callable[[str], bool]) -> None:
        self.routes = tuple(routes)
        self._has_strategy = has_strategy

    def choose(self, lobby: str, account: str, game: str, attributes: Mapping[str, Any]) -> Choice | None:
        """The strategy for a table; None if no rule matches."""
        for route in self.routes:
            if matches(route, lobby, account, game, attributes):
                level = wished_level(route.level, attributes)
                strategy = address(route.strategy, level)
                return Choice(strategy, route.strategy, level, route.options, self._fallback(route, game))
        return None

    def _fallback(self, route: RouteSettings, game: str) -> str | None:
        if route.fallback is not None:
            return route.fallback
        rule_player = f"rule-{game}"
        return rule_player if self._has_strategy(rule_player) else None


def matches(
    route: RouteSettings, lobby: str | None, account: str | None, game: str | None, attributes: Mapping[str, Any]
) -> bool:
    """Whether a route matches a table of this account. A key that the route leaves out matches everything.

    None: a table of any lobby, account or game.
    """
    return (
        route.lobby in (None, lobby)
        and route.account in (None, account)
        and route.game in (None, game)
        and all(key in attributes and attributes[key] == value for key, value in route.attributes.items())
    )


def unreached(settings: Settings) -> Iterator[str]:
    """Describe the routes that no table reaches."""
    for index, route in enumerate(settings.routes):
        lobbies = [lobby for lobby in settings.lobbies if route.lobby in (None, lobby.name)]
        names = [name for lobby in lobbies for name in (*(a.name for a in lobby.accounts), *lobby.own_accounts)]
        if route.account is not None and route.account not in names:
            where = f" at {route.lobby}" if route.lobby is not None else ""
            advice = nearest(route.account, names)
            yield f"route[{index}] is never used: there is no account {route.account!r}{where}; {advice}"
    for index, route in enumerate(settings.routes):
        widest = (route.lobby, route.account, route.game, route.attributes)
        first = next((n for n, before in enumerate(settings.routes[:index]) if matches(before, *widest)), None)
        if first is not None:
            yield f"route[{index}] is never tried: route[{first}] matches all of its tables"
        elif matches(route, None, None, None, {}) and index + 1 < len(settings.routes):
            yield f"route[{index}] matches every table; the routes after it are never tried"
            break


def leads_to(route: RouteSettings, strategy: str) -> bool:
    """Whether a route chooses this address for a table that wishes for its level."""
    wish = {"level": strategy.partition(":")[2]}
    return strategy == address(route.strategy, wished_level(route.level, wish))


def wished_level(level: str | int | None, attributes: Mapping[str, Any]) -> str | None:
    """The alias of a level: 3 is ``level-3``. "table" uses the table's attribute; None if that is not a level."""
    wished = attributes.get("level") if level == "table" else level
    if isinstance(wished, bool) or not isinstance(wished, str | int) or not _LEVEL.fullmatch(str(wished)):
        return None
    return f"level-{wished}" if str(wished).isdecimal() else str(wished)


def address(strategy: str, level: str | None) -> str:
    """``NAME:LEVEL``. An address that already has an alias, or names a program, stays as it is."""
    if level is None or ":" in strategy:
        return strategy
    return f"{strategy}:{level}"
