"""Whole games at a lobby that behaves like mailgyc/doudizhu, played by the whole host over HTTP and a websocket."""

import msgspec
import pytest

from bothost import config
from bothost import messages as m
from bothost.config import AccountSettings, WishSettings
from bothost.errors import AuthError
from bothost.host.account import Timeouts
from bothost.host.reconnect import ConnectionSettings
from bothost.lobbies.base import Account
from bothost.lobbies.mailgyc import MailgycLobby, MailgycOptions
from bothost.lobbies.mailgyc import protocol as wire
from bothost.testing.adapter_driver import AdapterDriver
from bothost.testing.fake_mailgyc import MailgycFake, Traps
from bothost.testing.fake_mailgyc.parts import OVER
from bothost.testing.hosting import Hosting, RandomPlayer, RandomStrategy, until

FAST = ConnectionSettings(heartbeat_s=0.5, connect_s=5.0, backoff_first_s=0.02, backoff_most_s=0.2)
SHORT = Timeouts(seek_s=5.0, settle_s=0.05, confirm_s=2.0, idle_s=20.0)
OPTIONS = {"ready_after_s": 0.02, "pause_s": 0.05}


class ShortStrategy(RandomStrategy):
    """Plays at random, and what leaves fewer cards more often: hands end soon."""

    def player(self, table):
        return RandomPlayer(table.seed, last=3)


@pytest.fixture
def kit(tmp_path):
    return Hosting(tmp_path, ShortStrategy, connection=FAST, timeouts=SHORT)


def hosting(kit, lobby, names=("ada",), level=1, **options):
    wish = WishSettings(game="doudizhu", attributes={"level": level})
    accounts = [AccountSettings(name=name, wishes=(wish,)) for name in names]
    settings = kit.settings(
        kit.lobby("mailgyc", "mailgyc", lobby.url, accounts, options={**OPTIONS, **options}), tables=10
    )
    return kit.running(settings, drain=False)


async def play(kit, hands, *, names=("ada",), level=1, traps=None, seed=0, seconds=80.0):
    async with MailgycFake(traps, seed=seed) as lobby, hosting(kit, lobby, names, level) as host:
        await until(lambda: lobby.play.played >= hands, seconds)
    assert lobby.repeated == []
    return lobby, host


async def test_hand_after_hand_with_the_servers_robots(kit):
    lobby, host = await play(kit, 6)
    assert lobby.errors == []
    assert host.runner.counters.fallbacks == {}
    assert host.runner.counters.aborted <= 1  # the hand that the end of the test cuts off


async def test_three_accounts_of_ours_at_one_table(kit):
    lobby, host = await play(kit, 5, names=("ada", "bob", "cyd"), level=2)
    assert lobby.errors == []
    assert host.runner.counters.fallbacks == {}


TRAPS = Traps(drop_every=9, refuse=0.05, noise=0.05)


async def test_games_with_all_traps(kit):
    lobby, host = await play(kit, 8, traps=TRAPS, seed=3)
    every_trap_was_survived(lobby, host)


@pytest.mark.long
async def test_two_hundred_games_with_all_traps(kit):
    lobby, host = await play(kit, 200, traps=TRAPS, seed=4, seconds=1500)
    every_trap_was_survived(lobby, host)


def every_trap_was_survived(lobby, host):
    assert set(lobby.errors) <= {"Poker does not comply with the rules"}
    assert lobby.logins > 2
    assert host.runner.counters.fallbacks == {}


async def test_every_decision_is_logged_once_with_the_frame_that_led_to_it(kit):
    _, host = await play(kit, 4)
    ((decisions, distinct),) = kit.rows(
        "SELECT count(*), count(DISTINCT hex(game_id) || seq || '.' || attempt) FROM decisions"
    )
    assert decisions == distinct == host.runner.counters.decisions > 0
    ((sent,),) = kit.rows("SELECT count(*) FROM outcomes WHERE kind = 'sent'")
    ((acknowledged,),) = kit.rows("SELECT count(*) FROM outcomes WHERE kind = 'acknowledged'")
    assert sent - 1 <= acknowledged <= sent
    assert kit.rows("SELECT 1 FROM decisions WHERE raw IS NOT NULL LIMIT 1")


async def test_a_fresh_process_goes_on_with_the_same_hand(kit):
    """The first host is cut off in the middle of a hand; the second finds the seat, and logs under the same game."""
    async with MailgycFake(Traps(dead_after=30), seed=2) as lobby:
        async with hosting(kit, lobby) as host:
            await until(lambda: lobby.play.moves >= 30 and host.runner.counters.decisions > 3)
            await until(lambda: any(robot_is_to_move(room) for room in lobby.rooms.values()))
            host.accounts[0].connection.adapter.feed = lambda item: []  # deaf and mute from here on, as if killed
        lobby.traps = Traps()
        for player in lobby.players.values():
            player.line.abort()
        played = lobby.play.played
        games = kit.rows("SELECT count(*) FROM games")[0][0]
        async with hosting(kit, lobby) as host:
            await until(lambda: host.accounts and host.accounts[0].tables.sessions)
            lobby.play.wake_robots()
            await until(lambda: lobby.play.played > played)
            assert kit.rows("SELECT count(*) FROM games")[0][0] <= games + 1
    assert lobby.errors == []


def robot_is_to_move(room):
    return room.mover is not None and room.mover.robot


async def test_a_lobby_that_is_slow_to_notice_lost_connections(kit):
    """Until it notices, it answers a reconnect with an error; the hand continues afterwards."""
    traps = Traps(drop_every=25, notices_after_s=1.5)
    lobby, host = await play(kit, 4, traps=traps, seed=7)
    assert set(lobby.errors) & {"TURN ERROR", "STATE[1]", "STATE[2]", "STATE[3]"}
    assert host.runner.counters.fallbacks == {}
    assert host.runner.counters.aborted <= 1, "only the hand that the end of the test cuts off"


async def test_a_stalled_table_is_left_for_another(kit):
    async with (
        MailgycFake(Traps(dead_after=25), seed=5) as lobby,
        hosting(kit, lobby, stall_s=1.0) as host,
    ):
        await until(lambda: len(lobby.players) == 1 and any(line == [wire.LEAVE] for line in said_codes(lobby)))
        lobby.traps = Traps()
        await until(lambda: lobby.play.played >= 2)
    assert host.runner.counters.aborted >= 1


@pytest.mark.parametrize("notices_after_s", [0.0, 0.5])
async def test_a_player_whose_seat_was_taken_meanwhile_finds_another(kit, notices_after_s):
    """The lobby removes the absent at the end of a hand. It still names their room, but does not answer there.

    While it keeps the dead socket, it answers with an error.
    """
    async with MailgycFake(Traps(notices_after_s=notices_after_s)) as lobby, hosting(kit, lobby):
        await until(lambda: lobby.play.moves >= 5)
        (ada,) = lobby.players.values()
        lost = ada.room
        lobby.remove(ada, lost)
        ada.state = OVER
        ada.line.abort()
        await until(lambda: ada.room not in (None, lost) and ada.state == wire.PLAYING)


def said_codes(lobby):
    return [[msgspec.json.decode(text)[0]] for _, way, text in lobby.frames if way == "in" and text != wire.PING]


async def test_a_refused_login_ends_the_account(kit):
    async with MailgycFake(Traps(login_status=403)) as lobby:
        with pytest.raises(AuthError, match="HTTP 403"):
            async with hosting(kit, lobby) as host:
                await until(lambda: host.accounts and host.accounts[0].refused is not None)
    assert lobby.logins == 1


async def test_the_name_is_all_that_the_lobby_asks_for(kit, tmp_path):
    """No token is configured, and none is missed."""
    async with MailgycFake() as lobby:
        account = '[[lobby.account]]\nname = "bot-ada"\n'
        (tmp_path / "config.toml").write_text(
            f'[[lobby]]\nname = "ddz"\nadapter = "mailgyc"\nurl = "{lobby.url}"\n{account}'
        )
        settings = config.load(tmp_path / "config.toml", {})
        async with kit.running(kit.settings(*settings.lobbies)) as host:
            await until(lambda: host.accounts and host.accounts[0].connection.connected)
    assert list(lobby.players) == ["bot-ada"]


async def test_the_lobby_lists_its_levels_and_answers_pings():
    async with (
        MailgycFake() as lobby,
        AdapterDriver(MailgycLobby(Account(name="bot-ada", url=lobby.url), MailgycOptions())) as driver,
    ):
        driver.do(m.Authenticate())
        assert (await driver.expect(m.Connected)).name == "bot-ada"
        driver.do(m.ListTables())
        assert len((await driver.expect(m.Tables)).tables) == 3
        driver.do(m.Ping())
        await driver.expect(m.Alive)
