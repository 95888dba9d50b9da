"""Whole games at a lobby that behaves like mailgyc/doudizhu, played by the whole host over HTTP and a websocket."""

import asyncio
import contextlib

import msgspec
import pytest
import sqlalchemy as sa

import bothost.lobbies
import bothost.rules as rules
from bothost import Decision, Player, Strategy, config, hookimpl
from bothost import messages as m
from bothost.config import (
    AccountSettings,
    HostSettings,
    LimitSettings,
    LobbySettings,
    RouteSettings,
    Settings,
    StoreSettings,
    WishSettings,
)
from bothost.errors import AuthError
from bothost.host.account import Patience
from bothost.host.connection import ConnectionSettings
from bothost.host.memory import StoreMemory
from bothost.host.supervisor import Host
from bothost.lobbies import mailgyc_protocol as wire
from bothost.lobbies.mailgyc import MailgycLobby
from bothost.lobbies.mailgyc_session import MailgycOptions
from bothost.plugins import Plugins
from bothost.store import DecisionLog, Store, schema
from bothost.testing.adapter_driver import AdapterDriver
from bothost.testing.mailgyc_lobby import MailgycFake, Traps

FAST = ConnectionSettings(heartbeat_s=0.5, connect_s=5.0, backoff_first_s=0.02, backoff_most_s=0.2)
SHORT = Patience(seek_s=5.0, settle_s=0.05, confirm_s=2.0, idle_s=20.0)
OPTIONS = {"ready_after_s": 0.02, "pause_s": 0.05}


class ShortMoves(Player):
    """Plays at random, and what leaves fewer cards more often: hands end soon."""

    def __init__(self, seed):
        self.state = seed

    def decide(self, view, legal, budget):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return Decision(action=int(legal[-1 - (self.state >> 33) % min(3, len(legal))]))


class ShortStrategy(Strategy):
    name = "test-short"
    version = "1"
    games = ("doudizhu",)

    def player(self, table):
        return ShortMoves(table.seed)


class Given:
    @staticmethod
    @hookimpl
    def bothost_strategies():
        return [ShortStrategy]


def settings_of(folder, url, names, level, **options):
    accounts = tuple(
        AccountSettings(name=name, wishes=(WishSettings(game="doudizhu", attributes={"level": level}),))
        for name in names
    )
    lobby = LobbySettings(
        name="mailgyc",
        adapter="mailgyc",
        url=url,
        accounts=accounts,
        options={**OPTIONS, **options},
        margin_ms=50.0,
        allow_same_table=True,
    )
    return Settings(
        host=HostSettings(name="test", data_dir=folder, drain_timeout_s=10.0),
        store=StoreSettings(url=f"sqlite:///{folder}/log.db"),
        limits=LimitSettings(tables=10),
        lobbies=(lobby,),
        routes=(RouteSettings(strategy="test-short"),),
    )


@contextlib.asynccontextmanager
async def hosting(folder, lobby, names=("ada",), level=1, **options):
    settings = settings_of(folder, lobby.url, names, level, **options)
    schema.upgrade(settings.store)
    found = Plugins.load(entry_points=False, modules=[bothost.lobbies, Given])
    log = DecisionLog.open(settings.store, "test", folder / "spool")
    with Store.open(settings.store) as store:
        host = Host(
            settings, found, log, StoreMemory(store), rules.game, config_hash="0" * 8, connection=FAST, patience=SHORT
        )
        task = asyncio.create_task(host.run())
        try:
            yield host
        finally:
            host.interrupt()
            host.interrupt()
            await asyncio.wait_for(task, 20)


async def until(true, seconds=60.0):
    async with asyncio.timeout(seconds):
        while not true():  # noqa: ASYNC110 (what is waited for is anything)
            await asyncio.sleep(0.01)


async def play(folder, hands, *, names=("ada",), level=1, traps=None, seed=0, seconds=80.0):
    async with MailgycFake(traps, seed=seed) as lobby, hosting(folder, lobby, names, level) as host:
        await until(lambda: lobby.hands >= hands, seconds)
    assert lobby.repeated == []
    return lobby, host


async def test_hand_after_hand_with_the_servers_robots(tmp_path):
    lobby, host = await play(tmp_path, 6)
    assert lobby.errors == []
    assert host.floor.tally.fallbacks == {}
    assert host.floor.tally.aborted <= 1  # the hand that the end of the test cuts off


async def test_three_accounts_of_ours_at_one_table(tmp_path):
    lobby, host = await play(tmp_path, 5, names=("ada", "bob", "cyd"), level=2)
    assert lobby.errors == []
    assert host.floor.tally.fallbacks == {}


TRAPS = Traps(drop_every=9, refuse=0.05, noise=0.05)


async def test_twenty_games_with_all_traps(tmp_path):
    lobby, host = await play(tmp_path, 20, traps=TRAPS, seed=3)
    every_trap_was_survived(lobby, host)


@pytest.mark.long
async def test_two_hundred_games_with_all_traps(tmp_path):
    lobby, host = await play(tmp_path, 200, traps=TRAPS, seed=4, seconds=1500)
    every_trap_was_survived(lobby, host)


def every_trap_was_survived(lobby, host):
    assert set(lobby.errors) <= {"Poker does not comply with the rules"}
    assert lobby.logins > 2
    assert host.floor.tally.fallbacks == {}


def rows(folder, query):
    engine = sa.create_engine(f"sqlite:///{folder}/log.db")
    try:
        with engine.begin() as connection:
            return connection.execute(sa.text(query)).all()
    finally:
        engine.dispose()


async def test_every_decision_is_logged_once_with_the_frame_that_led_to_it(tmp_path):
    _, host = await play(tmp_path, 4)
    ((decisions, distinct),) = rows(
        tmp_path, "SELECT count(*), count(DISTINCT hex(game_id) || seq || '.' || attempt) FROM decisions"
    )
    assert decisions == distinct == host.floor.tally.decisions > 0
    ((sent,),) = rows(tmp_path, "SELECT count(*) FROM outcomes WHERE kind = 'sent'")
    ((acknowledged,),) = rows(tmp_path, "SELECT count(*) FROM outcomes WHERE kind = 'acknowledged'")
    assert sent - 1 <= acknowledged <= sent
    assert rows(tmp_path, "SELECT 1 FROM decisions WHERE raw IS NOT NULL LIMIT 1")


async def test_a_fresh_process_goes_on_with_the_same_hand(tmp_path):
    """The first host is cut off in the middle of a hand; the second finds the seat, and logs under the same game."""
    async with MailgycFake(Traps(dead_after=30), seed=2) as lobby:
        async with hosting(tmp_path, lobby) as host:
            await until(lambda: lobby.moves >= 30 and host.floor.tally.decisions > 3)
            await asyncio.sleep(0.1)
            host.accounts[0].connection.adapter.feed = lambda item: []  # deaf and mute from here on, as if killed
        lobby.traps = Traps()
        for line in list(lobby.lines.values()):
            line.abort()
        played = lobby.hands
        games = rows(tmp_path, "SELECT count(*) FROM games")[0][0]
        async with hosting(tmp_path, lobby) as host:
            await until(lambda: host.accounts and host.accounts[0].sessions)
            lobby.wake_robots()
            await until(lambda: lobby.hands > played)
            assert rows(tmp_path, "SELECT count(*) FROM games")[0][0] <= games + 1
    assert lobby.errors == []


async def test_a_stalled_table_is_left_for_another(tmp_path):
    async with (
        MailgycFake(Traps(dead_after=25), seed=5) as lobby,
        hosting(tmp_path, lobby, stall_s=0.4) as host,
    ):
        await until(lambda: len(lobby.uids) == 1 and any(line == [wire.LEAVE] for line in said_codes(lobby)))
        lobby.traps = Traps()
        await until(lambda: lobby.hands >= 2)
    assert host.floor.tally.aborted >= 1


def said_codes(lobby):
    return [[msgspec.json.decode(text)[0]] for _, way, text in lobby.frames if way == "in" and text != wire.PING]


async def test_a_refused_login_ends_the_account(tmp_path):
    async with MailgycFake(Traps(login_status=403)) as lobby:
        with pytest.raises(AuthError, match="HTTP 403"):
            async with hosting(tmp_path, lobby) as host:
                await until(lambda: host.accounts and host.accounts[0].refused is not None)
    assert lobby.logins == 1


async def test_the_name_is_all_that_the_lobby_asks_for(tmp_path):
    """No token is configured, and none is missed."""
    async with MailgycFake() as lobby:
        account = '[[lobby.account]]\nname = "bot-ada"\n'
        (tmp_path / "config.toml").write_text(
            f'[[lobby]]\nname = "ddz"\nadapter = "mailgyc"\nurl = "{lobby.url}"\n{account}'
        )
        settings = config.load(tmp_path / "config.toml", {})
        login = Host._login(
            settings.lobbies[0], settings.lobbies[0].accounts[0], MailgycLobby.capabilities.needs_secret
        )
        assert (login.name, login.token) == ("bot-ada", "")
        async with AdapterDriver(MailgycLobby(login, MailgycOptions())) as driver:
            driver.do(m.Authenticate())
            assert (await driver.expect(m.Connected)).name == "bot-ada"
            driver.do(m.ListTables())
            assert len((await driver.expect(m.Tables)).tables) == 3
            driver.do(m.Ping())
            await driver.expect(m.Alive)
