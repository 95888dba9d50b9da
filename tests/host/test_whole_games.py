"""Whole games over a real websocket, every decision logged."""

import time

import pytest

import bothost.rules as rules
from bothost.messages import ActionRequest


async def play(kit, hands, **settings):
    async with kit.lobby() as server, kit.running(kit.settings(**settings)) as host:
        await kit.until(lambda: host.runner.counters.hands >= hands)
        assert server.lobby.playing.hands_played >= 1
    return host


@pytest.mark.parametrize("durability", ["before_send", "async"])
async def test_whole_hands_of_dou_dizhu(kit, durability):
    host = await play(kit, hands=9, durability=durability)
    assert host.runner.counters.fallbacks == {}
    every_decision_is_logged(kit, host)


async def test_whole_hands_of_the_pairing_game(kit):
    host = await play(kit, hands=4, wishes=("pairing",), accounts=2)
    assert host.runner.counters.fallbacks == {}
    every_decision_is_logged(kit, host)


async def test_two_games_at_several_tables_at_once(kit):
    host = await play(kit, hands=12, wishes=("pairing", "doudizhu"), accounts=3, tables=4)
    every_decision_is_logged(kit, host)


async def test_a_request_that_comes_again_before_its_answer_was_sent_is_one_decision(kit):
    """The lobby repeats its request after a snapshot, for which the host asks at a silent table."""

    def unsent(hand):
        return hand is not None and hand.answer is not None and hand.answer.sent_in < 0

    def waiting():
        return [
            (account, session.hand)
            for account in host.accounts
            for session in account.tables.sessions.values()
            if unsent(session.hand)
        ]

    async with kit.lobby(), kit.running(kit.settings(wishes=("claims",), min_move_ms=50.0)) as host:
        await kit.until(waiting)
        for account, hand in waiting():
            again = ActionRequest(hand.key.table, hand.name, hand.answer.request_id, 5000.0)
            account.tables.event(again, time.monotonic())
        await kit.until(lambda: host.runner.counters.hands >= 3)
    every_decision_is_logged(kit, host)


def every_decision_is_logged(kit, host):
    """One row per move that was sent, of which the lobby acknowledged all; and the rows tell the whole hand."""
    decisions = kit.count("decisions")
    assert decisions == host.runner.counters.decisions > 0
    assert kit.count("outcomes WHERE kind = 'sent'") == decisions
    assert kit.count("outcomes WHERE kind = 'acknowledged'") == decisions
    assert kit.count("(SELECT DISTINCT game_id, seat, seq, substep, attempt, role FROM decisions)") == decisions
    ends = kit.rows("SELECT reason, scores FROM game_ends")
    assert len(ends) == kit.count("games")
    assert any(reason == "normal" and scores for reason, scores in ends)
    for game_id, seat, name, text in kit.rows("SELECT game_id, seat, game, rules FROM games"):
        the_event_stream_gives_every_logged_view(kit, game_id, seat, name, text)


def the_event_stream_gives_every_logged_view(kit, game_id, seat, name, text):
    import msgspec

    game = rules.game(name, **msgspec.json.decode(text))
    key = f"game_id = x'{game_id.hex()}' AND seat = {seat}"
    events, next_seq = [], 0
    for seq, lines in kit.rows(f"SELECT seq, events FROM events WHERE {key} ORDER BY seq"):
        assert seq == next_seq, "a gap or an overlap in the event stream"
        events += lines.split("\n")
        next_seq = len(events)
    view = game.new_view(seat)
    for seq, logged, action in kit.rows(f"SELECT seq, view, action FROM decisions WHERE {key} ORDER BY seq"):
        view.observe_all(events[view.seq : seq])
        assert view.to_bytes() == logged
        assert view.is_legal(action)
