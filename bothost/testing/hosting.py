"""A whole host in the running event loop with its own SQLite file, for tests of adapters and strategies.

::

    kit = Hosting(tmp_path, MyStrategy)
    lobby = kit.lobby("mine", "my-lobby", url, accounts)
    async with kit.running(kit.settings(lobby)) as host:
        await until(lambda: host.runner.counters.hands >= 10)
    assert kit.count("decisions WHERE raw IS NULL") == 0
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import random
import tempfile
import time
import types
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import sqlalchemy as sa

import bothost.lobbies
from bothost.config import (
    AccountSettings,
    HostSettings,
    LimitSettings,
    LobbySettings,
    RouteSettings,
    Settings,
    StoreSettings,
)
from bothost.hookspecs import hookimpl
from bothost.host.account import Timeouts
from bothost.host.memory import StoreMemory
from bothost.host.reconnect import ConnectionSettings
from bothost.host.supervisor import Host
from bothost.plugins import Plugins
from bothost.rules.game import ActionArray, View
from bothost.store import DecisionLog, Store, schema
from bothost.strategy import Budget, Decision, Player, Strategy, Table

FAST = ConnectionSettings(heartbeat_s=0.3, connect_s=5.0, backoff_first_s=0.02, backoff_most_s=0.2)
SHORT = Timeouts(seek_s=2.0, settle_s=0.1, confirm_s=2.0, idle_s=3.0)


class RandomPlayer(Player):
    """Chooses random legal actions by the table's seed. ``last``: only from this many last ones; 0: from all."""

    def __init__(self, seed: int, last: int = 0) -> None:
        self.rng = random.Random(seed)
        self.last = last

    def decide(self, view: View, legal: ActionArray, budget: Budget) -> Decision:
        return Decision(action=int(self.rng.choice(legal[-self.last :])))


class RandomStrategy(Strategy):
    """Plays every game at random."""

    name = "test-random"
    version = "1"
    games = ("*",)

    def player(self, table: Table) -> Player:
        return RandomPlayer(table.seed)


def module(name: str, *strategies: type[Strategy], **hooks: Callable[..., Any]) -> types.ModuleType:
    """A plugin module with these strategies and hooks."""
    made: Any = types.ModuleType(name)

    def bothost_strategies() -> list[type[Strategy]]:
        return list(strategies)

    made.bothost_strategies = hookimpl(bothost_strategies)
    for hook, function in hooks.items():
        setattr(made, hook, hookimpl(function))
    return made  # type: ignore[no-any-return]


@functools.cache
def _empty_database() -> bytes:
    """A SQLite database with the current schema: a copy is made faster than the schema."""
    with tempfile.TemporaryDirectory() as folder:
        schema.upgrade(StoreSettings(url=f"sqlite:///{folder}/empty.db"))
        return Path(folder, "empty.db").read_bytes()


class Hosting:
    """Makes hosts that share one database."""

    def __init__(
        self,
        folder: Path,
        *strategies: type[Strategy],
        connection: ConnectionSettings = FAST,
        timeouts: Timeouts = SHORT,
    ) -> None:
        """Without routes, the first strategy plays everything. Default: ``RandomStrategy``."""
        self.folder = folder
        self.strategies = strategies or (RandomStrategy,)
        self.connection = connection
        self.timeouts = timeouts
        self.store_settings = StoreSettings(url=f"sqlite:///{folder}/log.db")
        if (database := Path(folder, "log.db")).exists():
            schema.upgrade(self.store_settings)
        else:
            database.write_bytes(_empty_database())

    def lobby(
        self, name: str, adapter: str, url: str, accounts: Sequence[AccountSettings], **settings: Any
    ) -> LobbySettings:
        """Settings of a lobby. Our accounts may sit at the same table."""
        chosen = {"allow_same_table": True, "margin_ms": 50.0, **settings}
        return LobbySettings(name=name, adapter=adapter, url=url, accounts=tuple(accounts), **chosen)

    def settings(
        self,
        *lobbies: LobbySettings,
        routes: Sequence[RouteSettings] = (),
        durability: Any = "before_send",
        tables: int = 1000,
    ) -> Settings:
        return Settings(
            host=HostSettings(name="test", data_dir=self.folder, drain_timeout_s=60.0),
            store=StoreSettings(url=self.store_settings.url, durability=durability),
            limits=LimitSettings(tables=tables, quarantine_after=3),
            lobbies=lobbies,
            routes=tuple(routes) or (RouteSettings(strategy=self.strategies[0].name),),
        )

    def host(self, settings: Settings, *plugins: types.ModuleType) -> Host:
        """A host that does not run yet. ``plugins`` are added to the strategies of this kit."""
        found = Plugins.load(entry_points=False, modules=[bothost.lobbies, module("given", *self.strategies), *plugins])
        log = DecisionLog.open(settings.store, "test", self.folder / "spool")
        memory = StoreMemory(Store.open(settings.store))
        return Host(
            settings,
            found,
            log,
            memory,
            config_hash="0" * 8,
            connection=self.connection,
            timeouts=self.timeouts,
        )

    @contextlib.asynccontextmanager
    async def running(self, settings: Settings, *plugins: types.ModuleType, drain: bool = True) -> AsyncIterator[Host]:
        """A running host. At the end it drains, or quits if ``drain`` is False."""
        host = self.host(settings, *plugins)
        task = asyncio.create_task(host.run())
        try:
            yield host
        finally:
            if drain:
                host.interrupt()
                if not host.draining:
                    host.interrupt()
            else:
                host.quit()
            async with asyncio.timeout(90):
                await task

    def rows(self, query: str) -> Sequence[Any]:
        engine = sa.create_engine(self.store_settings.url)
        try:
            with engine.begin() as connection:
                return connection.execute(sa.text(query)).all()
        finally:
            engine.dispose()

    def count(self, of: str) -> int:
        """The number of rows ``FROM of``."""
        return int(self.rows(f"SELECT count(*) FROM {of}")[0][0])


async def until(condition: Callable[[], Any], seconds: float = 60.0) -> None:
    """Ask again and again: the longer the answer takes, the less often."""
    async with asyncio.timeout(seconds):
        asked = time.monotonic()
        while not condition():
            await asyncio.sleep(min(0.2, max(0.01, 5 * (time.monotonic() - asked))))
            asked = time.monotonic()
