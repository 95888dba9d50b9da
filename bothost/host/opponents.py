"""Reads data about opponents from the log for the accounts' manners: ladder ratings, and today's hands."""

from __future__ import annotations

import asyncio

import structlog

from bothost.config import AccountSettings, LobbySettings
from bothost.errors import BothostError
from bothost.host.manners import Manners
from bothost.host.memory import Ratings, StoreMemory
from bothost.host.tasks import BackgroundTasks

_log = structlog.get_logger("bothost.host")

REFRESH_S = 60.0
"""How often ratings are read again."""


def _own(lobby: LobbySettings) -> frozenset[str]:
    return frozenset((*(account.name for account in lobby.accounts), *lobby.own_accounts))


class Opponents:
    """Makes the manners of accounts, and updates their ratings."""

    def __init__(self, memory: StoreMemory) -> None:
        self._memory = memory
        self._ratings: Ratings = {}
        self._tasks = BackgroundTasks()
        self._following = False

    async def manners(self, lobby: LobbySettings, settings: AccountSettings) -> Manners:
        """The manners of an account, including today's hands of earlier processes."""
        manners = Manners(
            settings.manners,
            settings.name,
            _own(lobby),
            lambda player, game: self._ratings.get((lobby.name, player, game)),
        )
        await self._prepare(lobby.name, settings.name, manners)
        return manners

    def reload(self, lobby: LobbySettings, settings: AccountSettings, manners: Manners) -> None:
        """Apply new settings to the manners of an account. What they need of the log is read soon."""
        manners.settings, manners.own = settings.manners, _own(lobby)
        self._tasks.spawn(self._prepare(lobby.name, settings.name, manners))

    async def _prepare(self, lobby: str, account: str, manners: Manners) -> None:
        """Read what the settings ask for: hands of today, and ratings, which are kept fresh from then on."""
        if manners.settings.hands_per_opponent_a_day is not None:
            since_us = int(manners.midnight().timestamp() * 1e6)
            try:
                manners.remember(await asyncio.to_thread(self._memory.met, lobby, account, since_us))
            except BothostError as error:
                _log.warning("hands_of_today_not_read", account=account, error=str(error), advice=error.advice)
        if not self._following and manners.window(0.0) is not None:
            self._following = True
            await self._read()
            self._tasks.spawn(self._follow())

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(REFRESH_S)
            await self._read()

    async def _read(self) -> None:
        try:
            self._ratings = await asyncio.to_thread(self._memory.ratings)
        except BothostError as error:
            _log.warning("ratings_not_read", error=str(error), advice=error.advice)

    async def aclose(self) -> None:
        """Stop reading."""
        await self._tasks.aclose()
