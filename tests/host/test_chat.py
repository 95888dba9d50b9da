"""What an account says at its tables and what it hears: two texts a table, a log, and nothing else."""

from __future__ import annotations

from types import SimpleNamespace

import msgspec
import pytest

from bothost.config import MannersSettings, WishSettings
from bothost.host.chat import HEARD_PER_MINUTE, TableTalk, fill
from bothost.host.manners import Manners
from bothost.messages import Chat, PlayerInfo, Say
from bothost.store import Store
from bothost.store.hand_report import report
from bothost.store.query import HandQuery
from bothost.store.reader import iter_hands, iter_timelines

ADA, BOB, BOT = PlayerInfo("ada", 0), PlayerInfo("u-7", 1, "bob"), PlayerInfo("robot-1", 1, bot=True)
TEXTS = {"greeting": "Hello {opponents}, good luck!", "goodbye": "Thank you, {opponents}"}


class Table:
    """An account's talk, and what came of it."""

    def __init__(self, players=(ADA, BOB), own=(), chat=True, **settings):
        made = Manners(MannersSettings(**{**TEXTS, **settings}), "ada", own)
        self.said, self.kept, self.players = [], [], players
        self.talk = TableTalk("ada", made, self.said.append if chat else None, lambda *row: self.kept.append(row))

    def hand(self, table="t", number=1, now=0.0):
        key = SimpleNamespace(lobby="home", account="ada", table=table)
        hand = SimpleNamespace(key=key, players=self.players, game_id=b"%d" % number, seat=0)
        session = SimpleNamespace(key=key, hand=hand, game=SimpleNamespace(name="othello"))
        self.talk.hand_started(session, now)
        return session


def test_a_greeting_at_the_first_hand_and_a_goodbye_at_the_end():
    table = Table()
    for number in range(3):
        session = table.hand(number=number)
    table.talk.leaves(session, 1.0)
    assert table.said == [Say("t", "Hello bob, good luck!"), Say("t", "Thank you, bob")]
    assert table.kept == [(b"0", 0, "ada", "Hello bob, good luck!"), (b"2", 0, "ada", "Thank you, bob")]


@pytest.mark.parametrize(
    "table",
    [Table(chat=False), Table(greeting=""), Table((ADA, BOT)), Table(own=("u-7",)), Table(bots=("bob",))],
    ids=["lobby without chat", "no text", "a robot", "our own account", "a bot"],
)
def test_nobody_is_greeted(table):
    table.hand()
    assert table.said == []


def test_a_table_of_before_a_restart_is_not_greeted_again():
    table = Table()
    table.talk.resumed("t")
    table.hand()
    assert table.said == []


def test_texts_are_limited_by_the_minute():
    table = Table(chat_per_minute=2)
    for number in range(5):
        table.hand(table=f"t{number}", now=0.0)
    assert len(table.said) == 2
    table.hand(table="later", now=30.0)
    assert table.said[-1].table == "later"


def test_what_others_say_is_logged_as_one_line_of_text_and_answered_by_nothing():
    table = Table()
    session = table.hand()
    said = len(table.said)
    table.talk.heard(Chat("t", "u-7", "\x1b[31mhi\x1b[0m\n{account}\u202e" + "x" * 5000), 0.0)
    table.talk.forget(session.key.table)
    table.talk.heard(Chat("t", "u-7", "bye"), 0.0)
    table.talk.heard(Chat("elsewhere", "u-7", "no hand of ours"), 0.0)
    (_, seat, player, text), (*_, last) = table.kept[-2:]
    assert (seat, player, last) == (0, "u-7", "bye")
    assert text.startswith("hi {account}x") and len(text) == 300
    assert len(table.said) == said


def test_a_flood_is_dropped_and_counted():
    table = Table(greeting="")
    table.hand()
    for _ in range(200):
        table.talk.heard(Chat("t", "u-7", "spam"), 0.0)
    assert len(table.kept) == HEARD_PER_MINUTE and table.talk.dropped == 200 - HEARD_PER_MINUTE


def test_a_name_is_no_template():
    assert fill("{opponents}", "ada", [PlayerInfo("{account}", 1, "\x1b]0;evil\x07{game}")], "othello") == "{game}"


async def test_people_at_a_lobby_hear_the_texts_and_the_log_has_them(kit):
    change = msgspec.structs.replace
    wish = WishSettings(game="othello", attributes={"hands": 2})
    async with kit.lobby():
        settings = kit.settings(wishes=(wish,), accounts=2)
        lobby = settings.lobbies[0]
        ada, bob = (change(account, manners=MannersSettings(**TEXTS)) for account in lobby.accounts)
        # Own accounts do not greet each other: each belongs to a host of its own.
        ours, theirs = (change(settings, lobbies=(change(lobby, accounts=(one,)),)) for one in (ada, bob))
        async with kit.running(theirs, drain=False), kit.running(ours, drain=False):
            await kit.until(lambda: kit.count("chat WHERE text LIKE 'Thank%'") >= 4)
    with Store.open(kit.store_settings) as store:
        hands = iter_hands(store, HandQuery(closed=True))
        reports = [report(timeline) for timeline in iter_timelines(store, hands)]
    by_table = {}
    for item in reports:
        for line in item["chat"]:
            by_table.setdefault((item["table"], item["account"]), []).append((line["player"], line["text"]))
    lines = next(lines for lines in by_table.values() if len(lines) >= 4)
    other = {"ada": "bob", "bob": "ada"}
    for who in ("ada", "bob"):
        assert lines.count((who, f"Hello {other[who]}, good luck!")) == 1
        assert lines.count((who, f"Thank you, {other[who]}")) == 1
