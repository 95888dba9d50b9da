"""Strategies that advise a person in a game."""

from __future__ import annotations

import contextlib

from bothost.errors import UsageError
from bothost.host.strategy_thread import StrategyThread
from bothost.rules.game import Json, View
from bothost.strategy import Player, Table
from bothost.web.review import HANGS_S, adviser, blaming, decision_of, opinion
from bothost.web.site import Site

HINT_S = 3.0
"""Most time of a hint."""
CLOSE_S = 5.0
"""How long an adviser may take to close."""


class Adviser:
    """One strategy at one table."""

    def __init__(self, site: Site, address: str, table: Table) -> None:
        self._site = site
        self._address = address
        self._table = table
        self._player: Player | None = None
        self._opened = contextlib.ExitStack()
        self._thread = StrategyThread(f"strategy {address}")

    async def hint(self, view: View) -> Json:
        """What the strategy would play now, and why. Raises UsageError, and PluginError where it fails or hangs."""
        if self._thread.hangs:
            raise UsageError(f"{self._address} has not answered the last question yet", advice="choose another")
        known = view.clone()
        return await self._thread.call(self._address, HANGS_S, lambda: self._advice(known))

    async def aclose(self) -> None:
        """Close the strategy after its last hint. Raises PluginError if it hangs: then it closes when it answers."""
        with contextlib.closing(self._thread):
            await self._thread.call(self._address, CLOSE_S, self._opened.close)

    def _advice(self, view: View) -> Json:
        with blaming(self._address):
            if self._player is None:
                strategy = adviser(self._site, self._address)
                self._opened.callback(strategy.close)
                self._player = strategy.player(self._table)
                self._opened.callback(self._player.close)
            legal = view.legal()
            return {"address": self._address, **opinion(decision_of(self._player, view, legal, HINT_S), view, legal)}
