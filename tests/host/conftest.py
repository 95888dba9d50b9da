"""A host and an embedded lobby in one event loop, on a fresh SQLite file."""

import asyncio
import contextlib
import types
from pathlib import Path

import pytest
import sqlalchemy as sa

import bothost.lobbies
import bothost.rules as rules
from bothost import Decision, Player, Strategy, hookimpl
from bothost.config import (
    AccountSettings,
    HostSettings,
    LimitSettings,
    LobbySettings,
    RouteSettings,
    Secret,
    Settings,
    StoreSettings,
    WishSettings,
)
from bothost.host.account import Patience
from bothost.host.connection import ConnectionSettings
from bothost.host.memory import StoreMemory
from bothost.host.supervisor import Host
from bothost.lobby_server import ServerSettings, serve
from bothost.plugins import Plugins
from bothost.store import DecisionLog, Store, schema

NAMES = ("ada", "bob", "cyd", "dan")
SHORT = Patience(seek_s=2.0, settle_s=0.1, confirm_s=2.0, idle_s=3.0)
FAST = ConnectionSettings(heartbeat_s=0.3, connect_s=5.0, backoff_first_s=0.02, backoff_most_s=0.2)


class RandomPlayer(Player):
    def __init__(self, seed):
        self.state = seed

    def decide(self, view, legal, budget):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return Decision(action=int(legal[(self.state >> 33) % len(legal)]))


class RandomStrategy(Strategy):
    name = "test-random"
    version = "1"
    games = ("*",)

    def player(self, table):
        return RandomPlayer(table.seed)


def module(name, *strategies, **hooks):
    """A plugin module that brings these strategies."""
    made = types.ModuleType(name)
    made.bothost_strategies = hookimpl(lambda: list(strategies))
    made.bothost_strategies.__name__ = "bothost_strategies"
    for hook, function in hooks.items():
        setattr(made, hook, hookimpl(function))
    return made


class Kit:
    """Makes hosts for one lobby and one database."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.url = ""
        self.store_settings = StoreSettings(url=f"sqlite:///{folder}/log.db")
        schema.upgrade(self.store_settings)

    def settings(self, wishes=("doudizhu",), accounts=3, tables=1, routes=None, durability="before_send", **lobby):
        made = tuple(
            AccountSettings(
                name=name,
                token=Secret(name * 3, "test"),
                tables=tables,
                wishes=tuple(wish if isinstance(wish, WishSettings) else WishSettings(game=wish) for wish in wishes),
            )
            for name in NAMES[:accounts]
        )
        lobby = {"allow_same_table": True, "margin_ms": 50.0, **lobby}
        return Settings(
            host=HostSettings(name="test", data_dir=self.folder, drain_timeout_s=10.0),
            store=StoreSettings(url=self.store_settings.url, durability=durability),
            limits=LimitSettings(tables=1000, quarantine_after=3),
            lobbies=(LobbySettings(name="home", adapter="embedded", url=self.url, accounts=made, **lobby),),
            routes=routes or (RouteSettings(strategy="test-random"),),
        )

    def host(self, settings, *plugins):
        found = Plugins.load(entry_points=False, modules=[bothost.lobbies, module("given", RandomStrategy), *plugins])
        log = DecisionLog.open(settings.store, "test", self.folder / "spool")
        memory = StoreMemory(Store.open(settings.store))
        return Host(settings, found, log, memory, rules.game, config_hash="0" * 8, connection=FAST, patience=SHORT)

    @contextlib.asynccontextmanager
    async def lobby(self, port=0, **settings):
        tokens = {name: name * 3 for name in NAMES}
        async with serve(
            ServerSettings(tokens=tokens, port=port, **settings), games=rules.games(testing=True)
        ) as server:
            self.url = server.url
            yield server

    @contextlib.asynccontextmanager
    async def running(self, settings, *plugins):
        """A running host; drained at the end."""
        host = self.host(settings, *plugins)
        task = asyncio.create_task(host.run())
        try:
            yield host
        finally:
            host.interrupt()
            if not host.draining:
                host.interrupt()
            await asyncio.wait_for(task, 20)

    def rows(self, query):
        engine = sa.create_engine(self.store_settings.url)
        try:
            with engine.begin() as connection:
                return connection.execute(sa.text(query)).all()
        finally:
            engine.dispose()

    def count(self, query):
        return self.rows(f"SELECT count(*) FROM {query}")[0][0]


async def until(condition, seconds=20.0):
    """Wait for a condition that the event loop will make true."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 (what is waited for is anything)
            await asyncio.sleep(0.01)


@pytest.fixture
def kit(tmp_path):
    made = Kit(tmp_path)
    made.module, made.until = module, until
    made.random, made.fast = module("given", RandomStrategy), FAST
    return made
