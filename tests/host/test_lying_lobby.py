"""A lobby that sends any events in any order: no account has more seats than it may, and every hand ends once."""

import asyncio
import random
import time
from collections import Counter

import pytest

from bothost import messages as m
from bothost.config import AccountSettings, Secret, WishSettings
from bothost.lobbies.embedded import EmbeddedLobby, EmbeddedOptions
from bothost.rules import game

TABLES = ("t1", "t2", "t3", "t4")
START = "start - ---------------------------OX------XO--------------------------- 0"
NAN = float("nan")


class Lying(EmbeddedLobby):
    """Says what the test wants, and answers commands at random."""

    name = "lying"
    Options = EmbeddedOptions

    def __init__(self, account, options):
        super().__init__(account, options)
        self.rng, self.says, self.seeks = random.Random(0), [], ["unknown"]

    def feed(self, item):
        says, self.says = self.says, []
        match item:
            case m.Seek() | m.Accept():
                self.seeks.append(item.seek)
            case m.CancelSeek() if self.rng.random() < 0.5:
                says.append(seated(self.rng, item.seek))  # it crosses
            case m.Leave() if self.rng.random() < 0.5:
                says.append(m.TableEnded(item.table, "left"))
            case m.Act():
                answers = (
                    m.MoveAcknowledged(item.table, item.request_id),
                    m.Rejected(item.table, item.request_id, "no", self.rng.random() < 0.5),
                    m.ServerActedForUs(item.table, item.request_id, "pass"),
                    m.RequestWithdrawn(item.table, item.request_id, "no"),
                )
                says.append(self.rng.choice(answers))
        return says


def seated(rng, seek):
    name = rng.choice(("othello", "pairing", "no-such-game"))
    rules = {} if name == "no-such-game" else game(name).rules
    players = (m.PlayerInfo("bob", rng.choice((None, -1, 0, 9))),)
    return m.Seated(rng.choice(TABLES), name, rules, rng.choice((-1, 0, 1, 9)), players, {}, seek)


def lie(rng, seeks):
    """One event."""
    table, hand, request = rng.choice(TABLES), rng.choice("hi"), rng.choice("qrs")
    seat, seq = rng.choice((-1, 0, 1, 9)), rng.choice((0, 1, 2, 2**62))
    scores = rng.choice((None, (), (1.0, -1.0), (NAN, NAN)))
    return rng.choice(
        (
            seated(rng, rng.choice((None, *seeks[-5:]))),
            m.HandStarted(table, hand, seat),
            m.Snapshot(table, hand, seat, {**game("othello").new_view(0).to_json(), "seq": seq}),
            m.Delta(table, hand, seq, (rng.choice(("nonsense", START, "pass 0")),)),
            m.ActionRequest(table, hand, request, rng.choice((None, NAN, -1.0, 0.0, 1e300)), NAN, seq),
            m.RequestWithdrawn(table, request, ""),
            m.HandEnded(table, hand, scores),
            m.TableEnded(table, "normal", scores),
            m.SeekEnded(rng.choice(seeks), "no"),
            m.Invitation("i", m.TableInfo(table, "othello"), rng.choice((NAN, -1.0, 1e300)), ()),
            m.Presence(table, seat, False),
            m.Throttled(NAN),
        )
    )


def question(rng):
    """Events that lead to a decision."""
    table, hand = rng.choice(TABLES), rng.choice("hi")
    return [
        m.HandStarted(table, hand, 0),
        m.Delta(table, hand, 0, (START,)),
        m.ActionRequest(table, hand, rng.choice("qrs"), rng.choice((None, 0.0, 5000.0)), 0.0, 1),
    ]


async def session(host, rng):
    """300 steps of both accounts; after each, their books are checked."""
    for _ in range(300):
        account = rng.choice(host.accounts)
        adapter = account.connection.adapter
        adapter.rng = rng
        adapter.says = [lie(rng, adapter.seeks) for _ in range(3)]
        match rng.randrange(40):
            case 0 | 1 | 2:
                adapter.says = [m.Connected("ada", rng.random() < 0.5), *adapter.says]
            case 3:
                adapter.says.append(m.Disconnected("lost"))
            case 4:
                account.seeking.pause()
            case 5 | 6:
                account.seeking.resume(time.monotonic())
            case 7:
                account.roll_call.end()
            case n if n < 20:
                adapter.says = question(rng)
        account.connection.feed(m.Ping())
        await asyncio.sleep(0.001 if rng.random() < 0.3 else 0.0)
        for each in host.accounts:
            assert set(each.tables.sessions) == each.slots.held and each.slots.used <= each.slots.cap == 2
        assert host.capacity.used == sum(each.slots.used for each in host.accounts) <= 3
        seats = Counter(table for each in host.accounts for table in each.tables.sessions)
        assert seats.keys() == {table for _, table in host.seated} and set(seats.values()) <= {1}


@pytest.mark.parametrize("seed", range(4))
async def test_accounts_keep_their_books_whatever_a_lobby_says(kit, seed):
    wish = (WishSettings(game="othello"),)
    accounts = [AccountSettings(name=n, token=Secret(n * 3, "test"), tables=2, wishes=wish) for n in ("ada", "bob")]
    parent = super(type(kit), kit)
    settings = parent.settings(
        parent.lobby("home", "lying", "ws://127.0.0.1:9/", accounts, allow_same_table=False), tables=3
    )
    async with kit.running(settings, kit.module("lying", bothost_lobbies=lambda: [Lying]), drain=False) as host:
        await kit.until(lambda: len(host.accounts) == 2)
        await session(host, random.Random(seed))
        for account in host.accounts:
            for table in TABLES:
                account.event(m.TableEnded(table, "aborted"), time.monotonic())
        assert host.capacity.used == sum(len(account.slots.reserved) for account in host.accounts)
    ((games, ends),) = kit.rows("SELECT (SELECT count(*) FROM games), (SELECT count(*) FROM game_ends)")
    assert games == ends > 5


async def test_a_seat_that_crosses_with_the_cancel_of_its_seek_is_taken_once(kit):
    """The lobby seats us unasked while all slots wait for seeks. One is cancelled, and the answer names that table."""

    def at_t1(name, seek):
        return m.Seated("t1", name, {}, 0, (m.PlayerInfo("bob", 1),), {}, seek)

    class Crossing(Lying):
        def feed(self, item):
            crossed = [at_t1("othello", item.seek)] if isinstance(item, m.CancelSeek) else []
            return [*super().feed(item), *crossed]

    account = AccountSettings(
        name="ada", token=Secret("x" * 8, "test"), tables=1, wishes=(WishSettings(game="othello"),)
    )
    parent = super(type(kit), kit)
    settings = parent.settings(parent.lobby("home", "lying", "ws://127.0.0.1:9/", [account]))
    async with kit.running(settings, kit.module("lying", bothost_lobbies=lambda: [Crossing]), drain=False) as host:
        await kit.until(lambda: len(host.accounts) == 1)
        (ada,) = host.accounts
        adapter = ada.connection.adapter
        adapter.rng = random.Random(1)
        adapter.says = [m.Connected("ada", False)]
        ada.connection.feed(m.Ping())
        await kit.until(lambda: ada.slots.reserved)
        adapter.says = [at_t1("no-such-game", None)]
        ada.connection.feed(m.Ping())
        assert set(ada.tables.sessions) == ada.slots.held == {"t1"}
        assert ada.tables.sessions["t1"].game.name == "othello"
