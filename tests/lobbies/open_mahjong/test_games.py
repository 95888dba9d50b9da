"""Whole matches at a lobby that behaves like open_mahjong_unity, played by the whole host with the rule player."""

import asyncio

import pytest

import bothost_baselines
from bothost import messages as m
from bothost.config import AccountSettings, RouteSettings, Secret, WishSettings
from bothost.errors import AuthError
from bothost.host.account import Timeouts
from bothost.host.reconnect import ConnectionSettings
from bothost.lobbies.base import Account
from bothost.lobbies.open_mahjong import OpenMahjong, OpenMahjongOptions, rooms
from bothost.testing.adapter_driver import AdapterDriver
from bothost.testing.fake_open_mahjong import FakeOpenMahjong, Traps
from bothost.testing.hosting import Hosting, until

PASSWORD = "planted-Passw0rd!m"
FAST = ConnectionSettings(heartbeat_s=0.5, connect_s=5.0, backoff_first_s=0.02, backoff_most_s=0.1)
SHORT = Timeouts(seek_s=20.0, settle_s=0.05, confirm_s=5.0, idle_s=30.0)
SECOND = 0.2
"""The lobby's pauses are this short, and the clocks of our rooms longer in return."""
OPTIONS = {"ready_after_s": 0.02, "settle_s": 0.2, "look_s": 0.2, "round_timer": 100, "step_timer": 25}
NAMES = ("ada", "bob", "cyd", "dan")


class Kit(Hosting):
    """Hosts for one fake lobby and one database."""

    def hosting(self, *args, **settings):
        return self.running(self.at(*args, **settings), bothost_baselines, drain=False)

    def at(self, lobby, names=NAMES, wishes=None, **options):
        wishes = wishes or {}
        accounts = [
            AccountSettings(
                name=name,
                password=Secret(PASSWORD, "test"),
                wishes=(WishSettings(game="mahjong", attributes=wishes.get(name, wishes.get("all", {}))),),
            )
            for name in names
        ]
        return self.settings(
            self.lobby("omj", "open_mahjong", lobby.url, accounts, options={**OPTIONS, **options}),
            routes=(RouteSettings(strategy="rule-mahjong"),),
            tables=10,
        )


@pytest.fixture
def kit(tmp_path):
    return Kit(tmp_path, connection=FAST, timeouts=SHORT)


def opened(traps=None, second=SECOND, **settings):
    lobby = FakeOpenMahjong(traps, second=second, **settings)
    for name in NAMES:
        lobby.add(name, PASSWORD)
    return lobby


async def play(kit, matches, *, traps=None, seed=0, seconds=80.0, **settings):
    async with opened(traps, seed=seed) as lobby, kit.hosting(lobby, **settings) as host:
        await until(lambda: lobby.matches >= matches, seconds)
    assert lobby.repeated == []
    return lobby, host


async def test_players_whom_the_lobby_forgot_while_their_sockets_stay_open_connect_again(kit):
    """It forgets them before they choose a room: they wait for ``settle_s`` first, and its cleanup takes less."""
    async with opened(Traps(cleanup_s=0.1)) as lobby, kit.hosting(lobby, NAMES[:3]):
        await until(lambda: len(lobby.lines) == 3)
        for line in list(lobby.lines.values()):
            line.abort()
        await until(lambda: lobby.struck.count("forgotten") == 3)
        await until(
            lambda: len(lobby.lines) == 3 and [len(room["player_list"]) for room in lobby.rooms.listed()] == [3]
        )


@pytest.mark.parametrize("count", [3, 4])
async def test_players_whom_the_lobby_forgot_in_a_room_find_out(kit, monkeypatch, count):
    """All have said ready, and the lobby answers as before. With four, it starts a game of which it tells no one."""
    monkeypatch.setattr(rooms, "REPEAT_S", 0.5)

    def all_ready():
        rooms = lobby.rooms.listed()
        return any((len(room["player_list"]), len(room["ready_list"])) == (count, count - 1) for room in rooms)

    async with opened() as lobby, kit.hosting(lobby, NAMES[:count], ready_after_s=0.3) as host:
        await until(all_ready)
        assert not lobby.playing
        lobby.lines.clear()
        if count < 4:
            await until(lambda: len(lobby.lines) >= count - 1 and all_ready())
        else:
            await until(lambda: all(account.connection.reconnects for account in host.accounts))


async def test_a_match_of_four_accounts_of_ours(kit):
    """One finds no room and opens one; the others find it; hand after hand until the match ends, then another room."""
    lobby, host = await play(kit, 1)
    assert lobby.silences == {}
    assert host.runner.counters.fallbacks == {}
    assert lobby.hands == 4


async def test_one_account_and_three_robots(kit):
    lobby, host = await play(kit, 2, names=("ada",), wishes={"all": {"robots": 3}}, seed=1)
    assert lobby.silences == {}
    assert lobby.stale == []
    assert host.runner.counters.fallbacks == {}


TRAPS = Traps(drop_every=61, ignore=0.02, repeat=0.05, noise=0.02)


async def many_games(kit, hands, seed, seconds):
    """``hands`` hands, in matches of four."""
    patient = {"round_timer": 300, "step_timer": 300, "echo_s": 1.0}  # on a loaded machine, too
    lobby, host = await play(kit, (hands + 3) // 4, traps=TRAPS, seed=seed, seconds=seconds, **patient)
    assert set(lobby.struck) == {"drop", "ignore", "repeat", "noise"}
    assert lobby.deleted == 0, "a table was abandoned"
    assert host.runner.counters.fallbacks == {}
    silent = [what.split()[0] for _, _, what in lobby.silences]
    assert len(silent) <= lobby.struck.count("ignore") and set(silent) <= {"cut"}, "only what the trap ignored"
    every_decision_is_logged_with_its_frame(kit, host)
    return lobby, host


def every_decision_is_logged_with_its_frame(kit, host):
    ((decisions,),) = kit.rows("SELECT count(*) FROM decisions")
    assert decisions == host.runner.counters.decisions > 0
    keys = "game_id, seat, seq, substep, attempt, role"
    assert kit.rows(f"SELECT count(*) FROM (SELECT DISTINCT {keys} FROM decisions)") == [(decisions,)]
    assert kit.rows("SELECT count(*) FROM decisions WHERE raw IS NULL OR length(raw) < 20") == [(0,)]


async def test_eight_games_with_every_trap_on(kit):
    await many_games(kit, 8, 3, 80.0)


@pytest.mark.long
async def test_two_hundred_games_with_every_trap_on(kit):
    lobby, _ = await many_games(kit, 200, 4, 7000.0)
    assert lobby.hands >= 200


async def test_a_fresh_process_comes_back_to_its_game(tmp_path):
    """One host of two is cut off in the middle of a hand; its successor finds the seat, under the same game."""
    for name in ("one", "rest"):
        (tmp_path / name).mkdir()
    one, rest = Kit(tmp_path / "one"), Kit(tmp_path / "rest")
    async with opened(seed=5) as lobby, rest.hosting(lobby, names=NAMES[1:]):
        async with one.hosting(lobby, names=("ada",)) as host:
            await until(lambda: host.runner.counters.decisions > 10)
            host.accounts[0].connection.adapter.feed = lambda item: []  # deaf and mute from here on, as if killed
            lobby.break_line(10_000_001)
            board = lobby.playing[10_000_001].board  # the others play on
        before = one.rows("SELECT count(*) FROM decisions")[0][0]
        async with one.hosting(lobby, names=("ada",)) as host:
            await until(lambda: host.runner.counters.decisions > 0)
            assert one.rows("SELECT count(*) FROM games")[0][0] <= board.round  # one game for each hand dealt
            await until(lambda: lobby.matches >= 1)
        assert lobby.deleted == 0 and lobby.repeated == []
        assert one.rows("SELECT count(*) FROM decisions")[0][0] > before


async def test_who_was_away_while_the_seats_were_switched_plays_on(kit):
    async with opened(seed=2) as lobby, kit.hosting(lobby, game_round=2) as host:
        await until(lambda: lobby.playing)
        board = lobby.playing[10_000_001].board
        board.round = 4  # the next hand begins a round
        await until(lambda: board.round == 5)
        lobby.break_line(10_000_001)
        await until(lambda: board.round == 6)
        assert lobby.deleted == 0
    assert lobby.silences == {}
    assert host.runner.counters.fallbacks == {}
    assert kit.count("events JOIN games USING (game_id) WHERE account = 'ada' AND hand LIKE '%.5' AND seq = 0") == 1, (
        "the hand is logged from its deal"
    )


async def test_trap_server_made_moves_when_our_clock_ran_out(kit):
    """A host that decides nothing: the lobby plays for it, and the match ends all the same."""
    async with (
        opened(seed=6, second=0.002) as lobby,
        kit.hosting(lobby, names=("ada",), wishes={"all": {"robots": 3}}) as host,
    ):
        await until(lambda: lobby.playing)
        adapter = host.accounts[0].connection.adapter
        feed = adapter.feed
        adapter.feed = lambda item: [] if isinstance(item, m.Act) else feed(item)
        await until(lambda: lobby.matches >= 1, 80.0)
    moves = [f["do_action_info"] for _, way, f in lobby.frames if way == "out" and f["type"].endswith("do_action")]
    assert any(move.get("is_timeout_action") for move in moves)


async def test_trap_all_people_offline_deletes_the_game(kit):
    async with opened(seed=7) as lobby, kit.hosting(lobby, names=("ada",), wishes={"all": {"robots": 3}}) as host:
        await until(lambda: host.runner.counters.decisions > 5)
        lobby.break_line(10_000_001)
        assert lobby.deleted == 1
        await until(lambda: lobby.matches >= 1)
    assert host.runner.counters.aborted >= 1


async def test_trap_a_frame_without_a_type_ends_the_servers_loop_while_the_socket_answers_protocol_pings(kit):
    """An open socket is not a live session: the lobby's own ping finds it out, and the host connects again."""
    async with opened(seed=8) as lobby, kit.hosting(lobby, names=("ada",), wishes={"all": {"robots": 3}}) as host:
        await until(lambda: lobby.lines)
        lobby.lines[10_000_001].dead = True
        await until(lambda: lobby.logins >= 2)
        await until(lambda: lobby.matches >= 1)
    assert host.runner.counters.fallbacks == {}


async def test_trap_a_second_login_elsewhere_is_not_fought(kit):
    async with opened() as lobby:
        running = asyncio.create_task(kit.host(kit.at(lobby, names=("ada",)), bothost_baselines).run())
        await until(lambda: lobby.lines)
        account = Account(name="ada", url=lobby.url, password=PASSWORD)
        async with AdapterDriver(OpenMahjong(account, OpenMahjongOptions(settle_s=0.1))) as driver:
            driver.do(m.Authenticate())
            await driver.expect(m.Connected)
            with pytest.raises(AuthError, match="another client logged in: omj/ada"):  # no clean end: it was unwanted
                await running
            assert lobby.logins == 2
            driver.do(m.Ping())
            await driver.expect(m.Alive)


async def test_checking_the_lobby(kit):
    async with opened() as lobby:
        account = Account(name="ada", url=lobby.url, password=PASSWORD)
        async with AdapterDriver(OpenMahjong(account, OpenMahjongOptions(settle_s=0.1))) as driver:
            driver.do(m.Authenticate())
            assert (await driver.expect(m.Connected)).name == "ada"
            driver.do(m.ListTables())
            assert (await driver.expect(m.Tables)).tables == ()
            driver.do(m.Ping())
            await driver.expect(m.Alive)


@pytest.mark.parametrize(("version", "password"), [(19, PASSWORD), (20, "wrong")])
async def test_a_refused_login_ends_the_account(kit, version, password):
    async with opened() as lobby:
        account = Account(name="ada", url=lobby.url, password=password)
        async with AdapterDriver(OpenMahjong(account, OpenMahjongOptions(release_version=version))) as driver:
            driver.do(m.Authenticate())
            with pytest.raises(AuthError):
                await driver.expect(m.Connected)


async def test_trap_three_registrations_a_day(kit):
    async with opened() as lobby:
        for number in range(4):
            account = Account(name=f"new-{number}", url=lobby.url, password=PASSWORD)
            async with AdapterDriver(OpenMahjong(account, OpenMahjongOptions(settle_s=0.05))) as driver:
                driver.do(m.Authenticate())
                if number < 3:
                    await driver.expect(m.Connected)
                else:
                    with pytest.raises(AuthError):
                        await driver.expect(m.Connected)


async def test_a_draining_host_leaves_after_the_hand(kit):
    async with opened(seed=9) as lobby, kit.hosting(lobby, names=("ada",), wishes={"all": {"robots": 3}}) as host:
        await until(lambda: host.runner.counters.decisions > 5)
        host.interrupt()
        await until(lambda: not lobby.playing)
    assert host.runner.counters.fallbacks == {}
