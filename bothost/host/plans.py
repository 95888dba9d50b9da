"""Chooses who plays a hand: resolves strategies, keeps them by version, and quarantines those that fail."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import structlog

from bothost.errors import ANY_FAILURE, BothostError, described
from bothost.plugins import Plugins, Resolved
from bothost.rules.game import Game
from bothost.tables.actor import Loaded, Plan
from bothost.tables.router import Router, leads_to

_log = structlog.get_logger("bothost.host")

REPORT_EVERY_S = 60.0
FRESH_S = 5.0
"""How long a resolved address is cached, unless the registry is followed (``bothost.host.models``)."""
MOST_ADDRESSES = 1000
"""About this many addresses are remembered. Tables can ask for any level."""


class Plans:
    """Turns the router's choices into plans."""

    def __init__(
        self,
        router: Router,
        plugins: Plugins,
        *,
        quarantine_after: int,
        quarantine_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.router = router
        self._plugins = plugins
        self._after = quarantine_after
        self._quarantine_s = quarantine_s
        self._clock = clock
        self.reported: dict[str, float] = {}
        """Unavailable addresses, and when they were last reported. Each new table tries them again."""
        self._recent: dict[tuple[str, str], tuple[float, Loaded, Mapping[str, Any]]] = {}
        self._loaded: dict[tuple[Any, ...], Loaded] = {}
        self.fresh_s = FRESH_S
        self.canary_selector: Callable[[Loaded, str], Loaded] = lambda loaded, address: loaded
        """Returns who plays at a new table for which a strategy with this address was chosen: it, or its canary."""

    def reload(self, router: Router, *, quarantine_after: int, quarantine_s: float) -> None:
        """Use other rules for tables that open from now on."""
        self.router = router
        self._after = quarantine_after
        self._quarantine_s = quarantine_s

    @property
    def loaded(self) -> list[Loaded]:
        """Every strategy that was loaded."""
        return list(self._loaded.values())

    def routes_of(self, loaded: Loaded) -> list[int]:
        """The indexes of the present routes that choose this strategy with its options."""
        keys = {key[:2] for key, kept in self._loaded.items() if kept is loaded}
        return [
            index
            for index, route in enumerate(self.router.routes)
            if leads_to(route, loaded.address) and _asked(loaded.address, route.options) in keys
        ]

    def plan(self, lobby: str, account: str, game: Game, attributes: Mapping[str, Any]) -> Plan | None:
        """Who plays a new hand; None if no route matches, or no strategy of the route can play."""
        choice = self.router.choose(lobby, account, game.name, attributes)
        if choice is None:
            return None
        fallback = self._try(choice.fallback, {}, game) if choice.fallback is not None else None
        strategy = self._try(choice.strategy, choice.options, game)
        if strategy is None and choice.level is not None:
            strategy = self._try(choice.plain, choice.options, game)  # the table's level may not exist
        if strategy is None or strategy.quarantined_until > self._clock():
            reason = "unavailable" if strategy is None else "quarantined"
            return Plan(fallback, None, choice.level, reason) if fallback is not None else None
        other = self.canary_selector(strategy, choice.strategy)
        if other is not strategy and (other.quarantined_until > self._clock() or not self._plays(other, game)):
            other = strategy
        return Plan(other, fallback, choice.level)

    def load(self, address: str, options: Mapping[str, Any], resolved: Resolved | None = None) -> Loaded:
        """The strategy that an address resolves to now, ``resolved`` if it is given.

        Raises as ``Plugins.resolve`` does.
        """
        now = self._clock()
        recent = self._recent.get(_asked(address, options))
        if recent is not None and now - recent[0] < self.fresh_s:
            return recent[1]
        return self.replace(address, options, Loaded(resolved or self._plugins.resolve(address, options)))

    def known(self) -> list[tuple[str, Mapping[str, Any], Loaded]]:
        """Every recent address with its options and its strategy."""
        return [(asked[0], options, loaded) for asked, (_, loaded, options) in self._recent.items()]

    def replace(self, address: str, options: Mapping[str, Any], loaded: Loaded) -> Loaded:
        """Resolve an address to this strategy from now on. Open hands keep their strategy. If an equal strategy is
        already loaded, returns and uses that object."""
        asked = _asked(address, options)
        loaded = self._loaded.setdefault(_key(address, options, loaded), loaded)
        if len(self._recent) > MOST_ADDRESSES:
            self._recent.clear()
        self._recent[asked] = (self._clock(), loaded, options)
        return loaded

    def equal(self, address: str, options: Mapping[str, Any], loaded: Loaded) -> Loaded:
        """The strategy that is already loaded for this address and equal to this one; otherwise this one."""
        return self._loaded.get(_key(address, options, loaded), loaded)

    def drop(self, address: str, options: Mapping[str, Any]) -> Loaded | None:
        """Forget what an address resolves to. Returns that strategy if no other address resolves to it."""
        recent = self._recent.pop(_asked(address, options), None)
        return None if recent is None or self._resolves(recent[1]) else recent[1]

    def forget(self, loaded: Loaded) -> bool:
        """Drop a strategy that no hand uses, unless an address still resolves to it. Returns whether it is dropped."""
        if self._resolves(loaded):
            return False
        self._loaded = {key: kept for key, kept in self._loaded.items() if kept is not loaded}
        return True

    def _resolves(self, loaded: Loaded) -> bool:
        """Whether an address resolves to this strategy."""
        return any(kept is loaded for _, kept, _ in self._recent.values())

    def failed(self, loaded: Loaded, cause: str) -> None:
        """Count a failure. After too many in ``quarantine_s``, the strategy is quarantined."""
        now = self._clock()
        loaded.failures = [at for at in loaded.failures if at > now - self._quarantine_s] + [now]
        if len(loaded.failures) >= self._after:
            self.quarantine(loaded, cause)

    def quarantine(self, loaded: Loaded, cause: str) -> None:
        """Give the strategy no new tables for ``quarantine_s``."""
        now = self._clock()
        if loaded.quarantined_until <= now:
            _log.error("strategy_quarantined", strategy=loaded.address, cause=cause, for_s=self._quarantine_s)
        loaded.quarantined_until, loaded.quarantine_cause = now + self._quarantine_s, cause
        loaded.failures = []

    def release(self, address: str) -> int:
        """End the quarantine of a strategy. Returns the number of its versions that were quarantined."""
        found = [kept for kept in self.loaded if kept.address == address and kept.quarantined_until > self._clock()]
        for loaded in found:
            _log.warning("quarantine_released", strategy=address, version=loaded.version)
            loaded.quarantined_until, loaded.failures = 0.0, []
        return len(found)

    @staticmethod
    def _plays(loaded: Loaded, game: Game) -> bool:
        try:
            return loaded.resolved.strategy.supports(game)
        except ANY_FAILURE:  # a bug in the plugin
            return False

    def _try(self, address: str, options: Mapping[str, Any], game: Game) -> Loaded | None:
        try:
            loaded = self.load(address, options)
            if loaded.resolved.strategy.supports(game):
                return loaded
            self._report(address, f"it does not play {game.name} by these rules", "change the route")
        except BothostError as error:
            self._report(address, str(error), error.advice)
        except ANY_FAILURE as error:
            self._report(address, described(error), "this is a bug in the plugin")
        return None

    def _report(self, address: str, error: str, advice: str) -> None:
        now = self._clock()
        if now - self.reported.get(address, -REPORT_EVERY_S) >= REPORT_EVERY_S:
            if len(self.reported) > MOST_ADDRESSES:
                self.reported.clear()
            self.reported[address] = now
            _log.error("strategy_unavailable", strategy=address, error=error, advice=advice)


def _key(address: str, options: Mapping[str, Any], loaded: Loaded) -> tuple[Any, ...]:
    return *_asked(address, options), loaded.version, loaded.resolved.pinned


def _asked(address: str, options: Mapping[str, Any]) -> tuple[str, str]:
    return address, repr(sorted(options.items()))
