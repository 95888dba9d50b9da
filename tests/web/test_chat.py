"""Chat: who reads it, at live tables, in logged hands and at their own table."""

import json
import time

import pytest
import uuid_utils

from bothost import rules
from bothost.lobbies.embedded import protocol as wire
from bothost.store.records import ChatRecord
from bothost.web.live import Live, line, seen
from bothost.web.seat import Seat
from bothost.web.viewers import MOST_CHAT, Viewer


def now_us():
    """Older hands are not shown as live."""
    return time.time_ns() // 1000 - 1_000_000


def chat(rows, text, player="eve"):
    """A line of chat at the table of a hand."""
    return ChatRecord(uuid_utils.uuid7().bytes, rows[0].game_id, rows[0].seat, player, text, now_us())


@pytest.mark.parametrize(
    ("viewer", "hears"),
    [(Viewer(kind="operator"), True), (Viewer(kind="spectator"), False), (Viewer(kind="player", player="bob"), False)],
    ids=["operator", "spectator", "player"],
)
def test_operators_alone_read_the_chat_of_a_live_table(site, logged, played, viewer, hears):
    rows = played("othello", lambda number, legal: legal[0], started_us=now_us())
    logged(rows[:3])
    live = Live(site)
    assert live.read()
    (hand,) = live.hands.values()
    assert seen(hand, viewer)["chat"] == []
    before = hand.version
    logged([chat(rows, "good luck")])
    assert live.read() and hand.version > before
    assert seen(hand, viewer)["chat"] == ([{"player": "eve", "text": "good luck"}] if hears else [])
    assert "good luck" not in json.dumps(line(hand, knows_seat=True))
    assert seen(hand, Viewer(kind="operator", plays_at=frozenset({rows[0].table})))["chat"] == []
    assert not live.read()
    logged([chat(rows, f"line {number}") for number in range(MOST_CHAT)])
    assert live.read() and len(hand.chat) == MOST_CHAT and hand.chat[-1]["text"] == f"line {MOST_CHAT - 1}"


@pytest.mark.parametrize("where", ["table", "hand"])
def test_markup_in_the_chat_is_text(page, served, logged, played, where):
    rows = played("othello", lambda number, legal: legal[0], started_us=now_us())
    markup, name = '<img src="/x" onerror="document.title=1"><b>hi</b> &amp;', "<i>eve</i>"
    logged([*(rows[:3] if where == "table" else rows), chat(rows, markup, name)])
    page.goto(f"{served}/{where}/{rows[0].game_id.hex()}-{rows[0].seat}")
    page.wait_for_selector(".said")
    assert page.locator(".said td").all_inner_texts() == [name, markup]
    assert page.locator(".said :is(img, b, i)").count() == 0
    if where == "table":
        logged([chat(rows, "well played")])
        page.wait_for_selector(".said td:has-text('well played')")


def test_a_player_reads_what_the_others_at_the_table_say():
    seat = Seat(rules.game("othello"), "token", {})
    seat.table = "t1"
    assert seat.receive(wire.encode(wire.Chat("t1", "bob", "good\u202e luck\x1b[31m")), 0.0) == []
    assert seat.receive(wire.encode(wire.Chat("t2", "bob", "elsewhere")), 0.0) == []
    assert seat.shown(0.0)["chat"] == [{"player": "bob", "text": "good luck"}]
    for number in range(100):
        seat.receive(wire.encode(wire.Chat("t1", "bob", str(number))), 0.0)
    assert [line["text"] for line in seat.shown(0.0)["chat"]] == [str(number) for number in range(50, 100)]
