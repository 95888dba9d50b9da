"""A whole host plays at a faithful fake of othello-platform, its traps on, over real HTTP and websockets."""

import collections
import json

import pytest

from bothost.config import AccountSettings, Secret, WishSettings
from bothost.host.account import Timeouts
from bothost.host.reconnect import ConnectionSettings
from bothost.testing.fake_othello_platform import FakeOthelloPlatform, Traps
from bothost.testing.hosting import Hosting, RandomPlayer, RandomStrategy, until

PASSWORD = "planted-Passw0rd!x"
CONNECTION = ConnectionSettings(heartbeat_s=1.0, connect_s=5.0, backoff_first_s=0.02, backoff_most_s=0.1)
TIMEOUTS = Timeouts(seek_s=5.0, settle_s=0.05, confirm_s=5.0, idle_s=30.0)


class PlacingPlayer(RandomPlayer):
    def decide(self, view, legal, budget):
        assert 64 not in legal, "a pass that cannot be sent reached the strategy"
        return super().decide(view, legal, budget)


class PlacingStrategy(RandomStrategy):
    def player(self, table):
        return PlacingPlayer(table.seed)


class Kit(Hosting):
    """Hosts for one fake lobby and one database."""

    def at(self, url, names=("ada", "bob"), options=None, **attributes):
        accounts = [
            AccountSettings(
                name=name,
                password=Secret(PASSWORD, "test"),
                wishes=(WishSettings(game="othello", attributes=attributes),),
            )
            for name in names
        ]
        chosen = {"register": True, **(options or {})}
        return self.settings(self.lobby("oth", "othello_platform", url, accounts, options=chosen))

    def running_at(self, *args, **settings):
        return self.running(self.at(*args, **settings), drain=False)


@pytest.fixture
def kit(tmp_path):
    return Kit(tmp_path, PlacingStrategy, connection=CONNECTION, timeouts=TIMEOUTS)


EVERYTHING = Traps(drop_every=53, refuse_every=31, repeat_every=7, noise_every=11, lie_every=47, text_ids=True)
NAMES = ("ada", "bob", "cyd", "dan", "eve", "fay", "gus", "hal", "ida", "jon")


async def many_games(kit, games, **settings):
    """Games at several tables at once, as two of our players at one table would need the rate limit's pauses."""
    async with FakeOthelloPlatform(traps=EVERYTHING, **settings) as lobby:
        for name in NAMES:
            lobby.add(name, PASSWORD)
        async with kit.running_at(lobby.url, names=NAMES) as host:
            await until(lambda: len(lobby.ended) >= games, seconds=60 + 3 * games)
            await until(lambda: host.runner.counters.hands >= 2 * games)
    return lobby, host


def nothing_went_wrong(kit, lobby, host):
    assert set(lobby.struck) == {"drop", "refuse", "repeat", "noise", "lie"}
    assert {reason for _, _, reason in lobby.ended} == {"normal"}, "a table was abandoned, or a clock ran out"
    assert lobby.most_per_second <= 20
    errors = collections.Counter(code for _, code in lobby.errors)
    assert set(errors) <= {"ILLEGAL_MOVE", "GAME_NOT_FOUND"}
    assert host.runner.counters.aborted <= errors["GAME_NOT_FOUND"] < lobby.struck.count("drop"), (
        "a game is given up only where it ended while we were away"
    )
    logins = [call for call in lobby.calls if "/auth/" in call]
    assert len(logins) == len(NAMES), "tokens are kept over reconnects"
    assert "illegal" not in host.runner.counters.fallbacks
    moves = [(user, said["payload"]) for user, said in lobby.heard if said["type"] == "move"]
    sends = collections.Counter((user, move["gameId"], move["seq"], str(move["pos"])) for user, move in moves)
    assert max(sends.values()) == 1, "a refused move was repeated at the same position"
    decisions = kit.rows("SELECT count(*) FROM decisions")[0][0]
    assert decisions == host.runner.counters.decisions > 0
    assert kit.rows("SELECT count(*) FROM (SELECT DISTINCT game_id, seat, seq, substep, attempt, role FROM decisions)")[
        0
    ] == (decisions,)
    assert kit.rows("SELECT count(*) FROM decisions WHERE raw IS NULL OR length(raw) < 20")[0][0] == 0


async def test_games_with_every_trap_on(kit):
    nothing_went_wrong(kit, *await many_games(kit, 8, seed=1))


@pytest.mark.long
async def test_two_hundred_games_with_every_trap_on(kit):
    nothing_went_wrong(kit, *await many_games(kit, 200, seed=2))


async def test_a_fresh_process_comes_back_to_its_game(kit):
    async with FakeOthelloPlatform() as lobby:
        async with kit.running_at(lobby.url):
            await until(lambda: lobby.play.moves >= 12, 60)
            (game,) = lobby.play.running
        assert game in lobby.play.running, "the clock is frozen while we are away"
        async with kit.running_at(lobby.url):
            await until(lambda: lobby.ended)
    assert lobby.ended[0][0] == game
    assert lobby.ended[0][2] == "normal"
    assert kit.rows("SELECT count(*) FROM decisions GROUP BY game_id, seat, seq, attempt HAVING count(*) > 1") == []


async def test_the_lobbys_own_player(kit):
    async with FakeOthelloPlatform() as lobby, kit.running_at(lobby.url, names=("ada",), mode="ai", ai_level=3) as host:
        await until(lambda: lobby.ended and host.runner.counters.hands)
    assert lobby.ended[0][2] == "normal"


@pytest.mark.parametrize("password", [None, "sesame"])
async def test_rooms_by_rest(kit, password):
    attributes = {"mode": "room", "name": "ours", **({"password": password} if password else {})}
    async with FakeOthelloPlatform() as lobby:
        stranger = lobby.add("stranger")
        dead = lobby.rooms.open("ours", stranger, "human_vs_human", password or "")
        dead.seats[:] = [stranger, None]
        options = {"start_s": 1.0}
        async with kit.running_at(lobby.url, options=options, **attributes) as host:
            await until(lambda: lobby.ended and host.runner.counters.hands >= 2)
    assert lobby.ended[0][2] == "normal"
    assert dead.game is None
    assert f"POST /api/v1/rooms/{dead.id}/quit 200" in lobby.calls, "a room whose owner is gone is left"
    assert "planted" not in json.dumps([said for _, said in lobby.heard])


async def test_nobody_to_play_with_is_no_error(kit):
    async with FakeOthelloPlatform(queue_s=0.1) as lobby, kit.running_at(lobby.url, names=("ada",)):
        await until(lambda: sum(said["type"] == "match_join" for _, said in lobby.heard) >= 3)


async def test_a_wrong_password_ends_the_account_and_is_not_told(kit, capsys):
    async with FakeOthelloPlatform() as lobby:
        lobby.add("ada", "another-password")
        with pytest.raises(Exception, match="login refused"):
            await kit.host(kit.at(lobby.url, names=("ada",))).run()
    assert PASSWORD not in capsys.readouterr().out


async def test_a_draining_host_leaves_the_room_where_it_waits(kit):
    async with FakeOthelloPlatform() as lobby, kit.running_at(lobby.url, names=("ada",), mode="room") as host:
        await until(lambda: lobby.rooms.by_id and any(room.seats[0] for room in lobby.rooms.by_id.values()))
        await until(lambda: host.seated)
        host.drain()
        await until(lambda: all(room.seats == [None, None] for room in lobby.rooms.by_id.values()))


async def test_two_bots_that_open_rooms_at_once_meet_in_one(kit):
    """Each lists before the other's room is there, so each opens one."""
    async with FakeOthelloPlatform(list_s=0.3) as lobby:
        async with kit.running_at(lobby.url, options={"look_s": 0.4}, mode="room") as host:
            await until(lambda: lobby.ended and host.runner.counters.hands >= 2)
        assert len(lobby.rooms.by_id) >= 2, "both opened a room"
    assert lobby.ended[0][2] == "normal"


async def test_a_game_that_is_restored_without_its_forced_pass_is_left_to_the_clock(kit):
    traps = Traps(restart_on_pass=True)
    async with FakeOthelloPlatform(traps=traps, seed=3, move_s=1.5) as lobby, kit.running_at(lobby.url):
        await until(lambda: "restart" in lobby.struck, 60)
        played = len(lobby.ended)
        await until(lambda: len(lobby.ended) > played)
    assert lobby.ended[played][2] == "timeout"
    assert lobby.errors == [], "no move is tried that the lobby must refuse"
