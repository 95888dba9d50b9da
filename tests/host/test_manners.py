"""With whom an account plays: the answers of the sans-IO core, and what a host does with them at an embedded lobby."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from zoneinfo import ZoneInfo

import msgspec
import pytest
import structlog

from bothost.config import MannersSettings, WishSettings
from bothost.host import reload
from bothost.host.fleet import share
from bothost.host.manners import Manners
from bothost.ladder.logged import LoggedOutcomes
from bothost.ladder.update import Ladder
from bothost.messages import PlayerInfo, Seated
from bothost.store import Store

NOON = datetime(2026, 5, 1, 12, 0, tzinfo=ZoneInfo("UTC"))
ME, BOB, CYD = PlayerInfo("ada", 0, "ada"), PlayerInfo("bob", 1, "bob"), PlayerInfo("u-7", 2, "cyd", bot=True)
RATINGS = {("bob", "othello"): 30.0}


def manners(clock=lambda: NOON, own=(), **settings):
    made = MannersSettings(**settings)
    return Manners(made, "ada", own, lambda player, game: RATINGS.get((player, game)), clock)


def company(players=(ME, BOB), now=0.0, **settings):
    return manners(**settings).company("othello", players, 0, now)


def test_without_settings_everybody_is_welcome_at_any_time():
    assert company((ME, BOB, CYD)) is None
    assert manners().pauses() is None
    assert manners().challenge("othello", {"rated": True}, (ME, BOB), 0.0) is None


@pytest.mark.parametrize(
    ("settings", "players", "reason"),
    [
        ({"block": ("bo*",)}, (ME, BOB), "bob is on the block list"),
        ({"block": ("cyd",)}, (ME, CYD), "cyd is on the block list"),
        ({"allow": ("dan",)}, (ME, BOB), "bob is not on the allow list"),
        ({"allow": ("b?b", "u-*")}, (ME, BOB, CYD), None),
        ({"opponents": "people"}, (ME, BOB, CYD), "a bot sits there"),
        ({"opponents": "people", "bots": ("bob",)}, (ME, BOB), "a bot sits there"),
        ({"opponents": "bots"}, (ME, BOB, CYD), "a person sits there"),
        ({"opponents": "bots"}, (ME, CYD), None),
        ({"own_accounts": False, "own": ("bob",)}, (ME, BOB), "bob is our own account"),
        ({"allow": ("dan",), "own": ("bob",)}, (ME, BOB), None),
        ({"unrated": False, "max_rating": 99.0}, (ME, CYD), "cyd has no rating"),
        ({"max_rating": 20.0}, (ME, BOB), "bob is rated 30.0, outside -inf to 20.0"),
        ({"max_rating": 20.0}, (ME, CYD), None),
        ({"min_rating": 29.0, "max_rating": 31.0}, (ME, BOB), None),
    ],
)
def test_who_is_welcome(settings, players, reason):
    assert company(players, **settings) == reason


def test_block_goes_before_allow_and_never_means_ourselves():
    assert company((ME, BOB), allow=("*",), block=("bob",)) == "bob is on the block list"
    assert company((ME,), block=("*",)) is None


def test_a_blocked_player_who_takes_our_name_is_not_taken_for_us():
    """At lobbies with free display names. Where our seat is not known, either of the two may be the other."""
    me, named = PlayerInfo("17", 0, "ada"), PlayerInfo("666", 1, "ada")
    made = manners(block=("666",))
    assert made.company("othello", (me, named), 0, 0.0) == "ada is on the block list"
    assert made.company("othello", (me, named), None, 0.0) == "ada is on the block list"
    assert made.company("othello", (me, BOB), None, 0.0) is None
    assert made.company("othello", (ME, named), None, 0.0) == "ada is on the block list"
    assert made.others((me, named), 0) == [named]


def test_a_rating_window_widens_while_the_account_waits_and_is_narrow_again_after_it_sat_down():
    made = manners(max_rating=28.0, widen_per_minute=1.0)
    made.waits(100.0)
    made.waits(190.0)  # the second seek of the same wait
    assert made.company("othello", (ME, BOB), 0, 219.0) is not None
    assert made.company("othello", (ME, BOB), 0, 220.0) is None
    made.sat_down()
    assert made.company("othello", (ME, BOB), 0, 230.0) is not None


def test_hands_with_one_opponent_are_counted_by_day():
    now = [NOON]
    made = manners(lambda: now[0], hands_per_opponent_a_day=2)
    made.remember(Counter({"bob": 1}))
    assert made.company("othello", (ME, BOB), 0, 0.0) is None
    made.played((ME, BOB), 0)
    assert made.company("othello", (ME, BOB), 0, 0.0) == "2 hands with bob today"
    assert made.company("othello", (ME, CYD), 0, 0.0) is None
    now[0] = NOON.replace(day=2)
    assert made.company("othello", (ME, BOB), 0, 0.0) is None


@pytest.mark.parametrize(
    ("hours", "hour", "pauses"),
    [("23:00-07:30", 23, True), ("23:00-07:30", 3, True), ("23:00-07:30", 8, False), ("11:00-13:00", 12, True)],
)
def test_pause_hours_may_pass_midnight(hours, hour, pauses):
    made = manners(lambda: NOON.replace(hour=hour), pause=(hours,))
    assert (made.pauses() is not None) == pauses


def test_tables_and_challenges():
    assert manners(rated="casual").challenge("othello", {"rated": True}, (), 0.0) == "rated"
    assert manners(rated="rated").challenge("othello", {}, (), 0.0) == "not rated"
    assert manners(games=("pairing",)).challenge("othello", {}, (), 0.0) == "game othello"
    assert manners(min_grant_ms=1000.0).challenge("othello", {"grant_ms": 200}, (), 0.0) == "a clock of 200 ms"
    assert manners(min_grant_ms=1000.0).challenge("othello", {"grant_ms": "quick"}, (), 0.0) is None
    assert manners(pause=("11:00-13:00",)).challenge("othello", {}, (), 0.0) == "pause hours 11:00-13:00"


def test_slots_for_people_are_kept_free_of_bots():
    made = manners(slots_for_people=1)

    def judged(*players: PlayerInfo, without_people: int) -> str | None:
        return made.table(Seated("t", "othello", {}, 0, players), 0.0, without_people=without_people, slots=3)

    assert judged(ME, CYD, without_people=1) is None
    assert judged(ME, CYD, without_people=2) == "1 of 3 slots are for people"
    assert judged(ME, BOB, without_people=2) is None


def with_manners(settings, **of):
    """The kit's settings with manners of some accounts."""
    change = msgspec.structs.replace
    lobby = settings.lobbies[0]
    accounts = tuple(
        change(account, manners=MannersSettings(**of[account.name])) if account.name in of else account
        for account in lobby.accounts
    )
    return change(settings, lobbies=(change(lobby, accounts=accounts),))


async def test_a_blocked_player_gets_no_hand_and_others_do(kit):
    async with kit.lobby():
        settings = with_manners(kit.settings(wishes=("othello",), accounts=3), ada={"block": ["bob"]})
        with structlog.testing.capture_logs() as logs:
            async with kit.running(settings) as host:
                await kit.until(lambda: host.runner.counters.hands >= 6)
    assert kit.count("games WHERE account = 'ada' AND players LIKE '%\"bob\"%'") == 0
    assert kit.count("games WHERE account = 'ada'") + kit.count("games WHERE account = 'bob'") > 0
    declined = [entry for entry in logs if entry["event"] == "seat_declined"]
    assert all(entry["reason"] == "bob is on the block list" for entry in declined if entry["account"] == "ada")


async def test_a_challenge_of_a_blocked_player_is_declined_before_any_hand(kit):
    wish = WishSettings(game="othello", attributes={"accept": True})
    async with kit.lobby():
        settings = with_manners(kit.settings(wishes=(wish,), accounts=2), ada={"block": ["bob"]})
        with structlog.testing.capture_logs() as logs:
            async with kit.running(settings, drain=False):
                await kit.until(lambda: any(entry["event"] == "challenge_declined" for entry in logs))
    assert kit.count("games") == 0
    (reason,) = {entry["reason"] for entry in logs if entry["event"] == "challenge_declined"}
    assert reason == "bob is on the block list"


async def test_an_account_with_one_table_accepts_the_challenge_that_answers_its_seek(kit):
    """The challenge takes the slot of the seek that it answers, and no other."""
    wish = WishSettings(game="othello", attributes={"accept": True})
    async with kit.lobby(), kit.running(kit.settings(wishes=(wish,), accounts=2)) as host:
        await kit.until(lambda: host.runner.counters.hands >= 2)
        assert max(account.slots.used for account in host.accounts) <= 1


async def test_the_account_leaves_a_long_table_when_a_day_s_hands_are_played(kit):
    wish = WishSettings(game="othello", attributes={"hands": 50})
    async with kit.lobby():
        settings = with_manners(
            kit.settings(wishes=(wish,), accounts=2), ada={"hands_per_opponent_a_day": 2, "own_accounts": True}
        )
        # To an account of the same configuration no limit applies: bob belongs to another host.
        change = msgspec.structs.replace
        lobby = settings.lobbies[0]
        ours = change(settings, lobbies=(change(lobby, accounts=lobby.accounts[:1]),))
        theirs = change(settings, lobbies=(change(lobby, accounts=lobby.accounts[1:]),))
        async with kit.running(theirs, drain=False), kit.running(ours, drain=False):
            await kit.until(lambda: kit.count("game_ends e JOIN games g USING (game_id) WHERE g.account = 'ada'") >= 2)
            with structlog.testing.capture_logs() as logs:
                await kit.until(lambda: any("hands with bob today" in str(entry.get("reason")) for entry in logs))
    assert kit.count("games WHERE account = 'ada'") <= 3


async def test_accounts_that_other_processes_play_are_our_own(kit):
    """As with ``bothost run --workers``: no limit a day, no rating window, and the ladder leaves the hands out."""
    change = msgspec.structs.replace
    wish = WishSettings(game="othello", attributes={"hands": 3})
    async with kit.lobby():
        settings = with_manners(
            kit.settings(wishes=(wish,), accounts=2),
            ada={"hands_per_opponent_a_day": 1, "unrated": False, "min_rating": 99.0},
        )
        first, second = (share(settings, number, 2) for number in (1, 2))
        first, second = (change(one, host=change(one.host, data_dir=kit.folder)) for one in (first, second))
        async with kit.running(second, drain=False), kit.running(first, drain=False):
            await kit.until(lambda: kit.count("game_ends e JOIN games g USING (game_id) WHERE g.account = 'ada'") >= 3)
    assert kit.rows("SELECT count(DISTINCT host) FROM games") == [(2,)]
    with Store.open(kit.store_settings) as store:
        logged = LoggedOutcomes(store, "others")
        assert Ladder(store, "others").count(logged) == 0
        assert set(logged.left_out) == {"among our own accounts"}


async def test_a_rating_window_that_sighup_adds_is_followed(kit, monkeypatch):
    async with kit.lobby():
        settings = kit.settings(wishes=("othello",), accounts=1)
        async with kit.running(settings, drain=False) as host:
            monkeypatch.setattr(host.memory, "ratings", lambda: {("home", "bob", "othello"): 30.0})
            window = with_manners(settings, ada={"max_rating": 20.0, "hands_per_opponent_a_day": 5})
            await kit.until(lambda: host.accounts)
            (account,) = host.accounts
            assert await reload.apply(host, lambda: window)
            await kit.until(lambda: account.seeking.manners.company("othello", (ME, BOB), 0, 0.0) is not None)
            reason = account.seeking.manners.company("othello", (ME, BOB), 0, 0.0)
    assert reason == "bob is rated 30.0, outside -inf to 20.0"
