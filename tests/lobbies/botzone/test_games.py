"""A whole host plays at a faithful fake of Botzone, its traps on, over real HTTP."""

import collections
import time

import pytest

from bothost.config import AccountSettings, Secret, WishSettings
from bothost.host.account import Timeouts
from bothost.host.reconnect import ConnectionSettings
from bothost.testing.fake_botzone import FakeBotzone, Traps
from bothost.testing.hosting import Hosting, until

CONNECTION = ConnectionSettings(heartbeat_s=1.0, connect_s=5.0, backoff_first_s=0.02, backoff_most_s=0.1)
TIMEOUTS = Timeouts(seek_s=5.0, settle_s=0.05, confirm_s=5.0, idle_s=30.0)
OPTIONS = {"hello_s": 0.05, "retry_s": 0.05, "start_every_s": 0.01}
WISHES = {
    "FightTheLandlord": WishSettings(game="doudizhu", attributes={"opponents": ["bot-1", "bot-2"]}),
    "FightTheLandlord2": WishSettings(
        game="doudizhu", rules={"preset": "botzone-bid"}, attributes={"opponents": ["bot-1", "bot-2"]}
    ),
    "Chinese-Standard-Mahjong": WishSettings(game="mahjong", attributes={"opponents": ["bot-1", "bot-2", "bot-3"]}),
    "Reversi": WishSettings(game="othello", attributes={"opponents": ["bot-1"]}),
}
MADE_BY_PEOPLE = {name: WishSettings(game=wish.game, rules=wish.rules) for name, wish in WISHES.items()}


class Kit(Hosting):
    def at(self, lobby, wishes, tables=1, users=("ada",), **options):
        for user in users:
            if user not in lobby.secrets:
                lobby.add(user)
        accounts = [
            AccountSettings(name=user, token=Secret(lobby.token(user), "test"), tables=tables, wishes=tuple(wishes))
            for user in users
        ]
        return self.settings(
            self.lobby("bz", "botzone", "https://botzone.example", accounts, options={**OPTIONS, **options})
        )


@pytest.fixture
def kit(tmp_path):
    return Kit(tmp_path, connection=CONNECTION, timeouts=TIMEOUTS)


def all_is_well(kit, lobby, host, ended):
    assert lobby.illegal == []
    assert lobby.unasked == [], "an answer was said twice"
    assert lobby.at_once == 1, "one poll at a time"
    assert {match.aborted for match in lobby.ended[:ended]} <= {False, bool(lobby.traps.abort_every)}
    assert host.runner.counters.fallbacks == {}
    assert kit.count("decisions WHERE raw IS NULL OR length(raw) < 3") == 0
    distinct = "(SELECT DISTINCT game_id, seat, seq, substep, attempt, role FROM decisions)"
    assert kit.count("decisions") == kit.count(distinct) == host.runner.counters.decisions > 0


@pytest.mark.parametrize("game", WISHES)
async def test_whole_matches_of_every_game(kit, game):
    async with FakeBotzone(seed=1) as lobby, kit.running(kit.at(lobby, [WISHES[game]])) as host:
        await until(lambda: len(lobby.ended) >= 4, 60)
        await until(lambda: host.runner.counters.hands >= 4)
    all_is_well(kit, lobby, host, 4)
    assert {match.game for match in lobby.ended} == {game}


EVERYTHING = Traps(
    bad_gateway_every=41, gateway_timeout_every=53, break_every=67, garble_every=97, noise_every=11, abort_every=9
)
STRIKES = {"bad gateway", "gateway timeout", "break", "garble", "noise", "abort"}
USERS = ("ada", "bob", "cyd")


async def many_matches(kit, matches, seed, traps=EVERYTHING):
    """Every game, several matches of each user at once."""
    async with (
        FakeBotzone(traps=traps, seed=seed) as lobby,
        kit.running(kit.at(lobby, WISHES.values(), tables=4, users=USERS), drain=False) as host,
    ):
        # Mahjong takes longest: by the time that so many have ended, none of its matches may have. And a match that
        # would be aborted may end first.
        await until(
            lambda: (
                len(lobby.ended) >= matches
                and len({match.game for match in lobby.ended}) == 4
                and set(lobby.struck) == STRIKES
            ),
            seconds=60 + 4 * matches,
        )
        await until(lambda: host.runner.counters.hands >= matches - len(lobby.matches) // 9 - 12)
    all_is_well(kit, lobby, host, matches)
    games = collections.Counter(match.game for match in lobby.ended)
    assert len(games) == 4
    assert set(lobby.struck) == STRIKES
    assert sum(match.aborted for match in lobby.ended) == lobby.struck.count("abort"), "no match was given up by us"
    assert lobby.aborts == []


async def test_twenty_matches_with_every_trap_on(kit):
    await many_matches(kit, 20, seed=2)


@pytest.mark.long
async def test_two_hundred_matches_with_every_trap_on(kit):
    await many_matches(kit, 200, seed=3)


async def test_requests_that_are_told_once(kit):
    traps = Traps(asks_once=True, gateway_timeout_every=31, think_s=0.002)
    async with FakeBotzone(traps=traps, seed=4) as lobby:
        wishes = [WISHES["Reversi"], WISHES["FightTheLandlord"]]
        async with kit.running(kit.at(lobby, wishes, tables=2), drain=False) as host:
            await until(lambda: len(lobby.ended) >= 4, 60)
    all_is_well(kit, lobby, host, 4)


async def test_mahjong_with_flowers(kit):
    async with (
        FakeBotzone(traps=Traps(flowers=True), seed=5) as lobby,
        kit.running(kit.at(lobby, [WISHES["Chinese-Standard-Mahjong"]]), drain=False) as host,
    ):
        await until(lambda: len(lobby.ended) >= 2, 60)
    all_is_well(kit, lobby, host, 2)


async def test_matches_that_people_make(kit):
    async with (
        FakeBotzone(seed=6) as lobby,
        kit.running(kit.at(lobby, MADE_BY_PEOPLE.values(), tables=8), drain=False) as host,
    ):
        await until(lambda: host.accounts and host.accounts[0].slots.reserved)
        for simple in (False, True):
            for game in WISHES:
                lobby.begin("ada", game, slot=1, simple=simple)
        await until(lambda: len(lobby.ended) == 8, 60)
        await until(lambda: host.runner.counters.hands >= 4)
    assert lobby.orders == [] and lobby.illegal == []


async def test_a_fresh_process_goes_on_with_its_matches(kit):
    """Stopped at any moment: what was answered is not answered again, what is asked is answered as it was logged."""
    async with FakeBotzone(traps=Traps(think_s=0.01), seed=7) as lobby:
        settings = kit.at(lobby, WISHES.values(), tables=4)
        for _ in range(3):
            answers = len(lobby.answers)
            async with kit.running(settings, drain=False):
                await until(lambda answers=answers: len(lobby.answers) >= answers + 40)
        async with kit.running(settings, drain=False) as host:
            await until(lambda: len(lobby.ended) >= 6, 60)
    assert lobby.illegal == [] and lobby.unasked == [] and host.runner.counters.fallbacks == {}
    assert len(lobby.aborts) <= 3, "only an order whose answer was lost may come when no slot is free"
    assert sum(match.aborted for match in lobby.ended) == len(lobby.aborts)
    twice = "SELECT count(*) FROM decisions GROUP BY game_id, seat, seq, substep, attempt HAVING count(*) > 1"
    assert kit.rows(twice) == []


async def test_a_wrong_secret_ends_the_account_and_is_not_told(kit, capsys):
    async with FakeBotzone(seed=8) as lobby:
        settings = kit.at(lobby, [WISHES["Reversi"]], hello_s=5.0)
        planted, lobby.secrets["ada"] = lobby.secrets["ada"], "another"
        with pytest.raises(Exception, match="login refused"):
            await kit.host(settings).run()
    said = capsys.readouterr()
    assert planted not in said.out + said.err


async def test_the_matches_of_a_user_keep_their_distance(kit):
    """No limit is known: orders are as far apart as the options say, and there is one poll at a time."""
    began = time.monotonic()
    async with (
        FakeBotzone(seed=9) as lobby,
        kit.running(kit.at(lobby, [WISHES["Reversi"]], tables=3, start_every_s=0.4), drain=False),
    ):
        await until(lambda: len(lobby.orders) >= 3)
        after = [at - began for at in lobby.ordered_at]  # on a busy machine any of them may arrive late
    assert after[1] > 0.4 and after[2] > 0.8
    assert lobby.at_once == 1
