"""A whole host plays at a faithful fake of othello-platform, its traps on, over real HTTP and websockets."""

import asyncio
import collections
import contextlib
import json
import types

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
from bothost.plugins import Plugins
from bothost.store import DecisionLog, Store, schema
from bothost.testing.fake_othello_platform import FakeOthelloPlatform, Traps

PASSWORD = "planted-Passw0rd!x"
CONNECTION = ConnectionSettings(heartbeat_s=1.0, connect_s=5.0, backoff_first_s=0.02, backoff_most_s=0.1)
PATIENCE = Patience(seek_s=5.0, settle_s=0.05, confirm_s=5.0, idle_s=30.0)


class RandomPlayer(Player):
    def __init__(self, seed):
        self.state = seed

    def decide(self, view, legal, budget):
        assert 64 not in legal, "a pass that nobody can say reached the strategy"
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return Decision(action=int(legal[(self.state >> 33) % len(legal)]))


class RandomStrategy(Strategy):
    name = "test-random"
    version = "1"
    games = ("othello",)

    def player(self, table):
        return RandomPlayer(table.seed)


class Kit:
    """Hosts for one fake lobby and one database."""

    def __init__(self, folder):
        self.folder = folder
        self.store_settings = StoreSettings(url=f"sqlite:///{folder}/log.db")
        schema.upgrade(self.store_settings)

    def host(self, url, names=("ada", "bob"), options=None, **attributes):
        accounts = tuple(
            AccountSettings(
                name=name,
                password=Secret(PASSWORD, "test"),
                wishes=(WishSettings(game="othello", attributes=attributes),),
            )
            for name in names
        )
        lobby = LobbySettings(
            name="oth",
            adapter="othello_platform",
            url=url,
            accounts=accounts,
            allow_same_table=True,
            margin_ms=50.0,
            options={"register": True, **(options or {})},
        )
        settings = Settings(
            host=HostSettings(name="test", data_dir=self.folder, drain_timeout_s=10.0),
            store=self.store_settings,
            limits=LimitSettings(tables=10, quarantine_after=3),
            lobbies=(lobby,),
            routes=(RouteSettings(strategy="test-random"),),
        )
        given = types.ModuleType("given")
        given.bothost_strategies = hookimpl(lambda: [RandomStrategy])
        given.bothost_strategies.__name__ = "bothost_strategies"
        plugins = Plugins.load(entry_points=False, modules=[bothost.lobbies, given])
        log = DecisionLog.open(settings.store, "test", self.folder / "spool")
        memory = StoreMemory(Store.open(settings.store))
        made = Host(
            settings, plugins, log, memory, rules.game, config_hash="0" * 8, connection=CONNECTION, patience=PATIENCE
        )
        # Two programs of ours are faster than any people: the rate limit is kept, but its pause would make the test
        # slow. What it does is tested by itself.
        return made

    @contextlib.asynccontextmanager
    async def running(self, *args, **settings):
        host = self.host(*args, **settings)
        task = asyncio.create_task(host.run())
        try:
            yield host
        finally:
            host.quit()
            await asyncio.wait_for(task, 20)

    def rows(self, query):
        engine = sa.create_engine(self.store_settings.url)
        try:
            with engine.begin() as connection:
                return connection.execute(sa.text(query)).all()
        finally:
            engine.dispose()


async def until(condition, seconds=60.0):
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 (what is waited for is anything)
            await asyncio.sleep(0.01)


@pytest.fixture
def kit(tmp_path):
    return Kit(tmp_path)


async def test_one_game(kit):
    async with FakeOthelloPlatform() as lobby, kit.running(lobby.url) as host:
        await until(lambda: len(lobby.ended) >= 2)
        print(lobby.ended, lobby.calls, lobby.errors, lobby.most_per_second, host.floor.tally.fallbacks)
