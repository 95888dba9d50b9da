"""The adapter of mailgyc/doudizhu: recorded frames, hostile ones, every capability."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bothost import messages as m
from bothost.lobbies import bothost_lobbies
from bothost.lobbies.base import Capabilities
from bothost.lobbies.mailgyc import MailgycLobby
from bothost.lobbies.mailgyc import protocol as wire
from bothost.lobbies.mailgyc.hand import MailgycHand

from ..adapter_bench import told
from .bench import HANDS, Bench, Transcript, picture

# ------------------------------------------------------------------------------------------------------- transcripts


@pytest.mark.parametrize("name", ["mailgyc_full_game", "mailgyc_edge_cases"])
def test_every_recorded_frame_is_understood(name):
    count = 0
    for _, direction, data in Transcript(name).lines:
        if direction == "in":
            wire.decode(data if isinstance(data, str) else json.dumps(data))
            count += 1
    assert count > 30


def test_recorded_hands_fold_and_ask_whom_the_lobby_asked():
    transcript = Transcript("mailgyc_full_game")
    sent = {}
    for conn, direction, data in transcript.lines:
        if direction == "out" and data[0] in (wire.CALL, wire.SHOOT):
            sent[conn] = sent.get(conn, 0) + 1
    benches = transcript.replay()
    asked = {uid: len(told(bench.out, m.ActionRequest)) for uid, bench in benches.items()}
    assert asked == {2: sent["alice"], 3: sent["bob"], 4: sent["carol"] - 1}  # its last move came after the end


def test_recorded_edge_cases_fold():
    """rob = 7 was broadcast, and counted as a refusal."""
    benches = Transcript("mailgyc_edge_cases").replay()
    assert {bench.view.phase for bench in benches.values()} == {"play"}
    assert benches[5].view.to_json()["bids"] == [[0, "bid0"], [1, "bid0"], [2, "bid0"]]
    assert not any(told(bench.out, m.Unknown) for bench in benches.values())


# ------------------------------------------------------------------------------------------------------- hostile frames


@given(st.one_of(st.text(max_size=60), st.binary(max_size=60)))
def test_any_frame_is_survived(data):
    bench = Bench().play()
    bench.feed(m.Frame(bench.conn, data))


values = st.recursive(
    st.none() | st.integers(-5, 60) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["uid", "rob", "pokers", "room", "id", "players", "landlord", "reason"]), inner, max_size=4
        )
    ),
    max_leaves=8,
)


@given(st.sampled_from([0, 1002, 1006, 1008, 2002, 2004, 2006, 3002, 4002, 9999]), values)
def test_any_content_of_a_known_frame_is_survived(code, body):
    bench = Bench().play()
    bench.feed(m.Frame(bench.conn, json.dumps([code, body])))
    bench.feed(m.Frame(bench.conn, json.dumps([code, {"uid": 3, "pokers": [1, 1], "rob": 1}])))


@given(
    st.integers(1, 4),
    st.integers(-1, 5),
    st.lists(st.integers(0, 54), max_size=20),
    st.lists(st.integers(1, 54), max_size=5),
)
def test_any_room_is_survived(state, turn, own, last):
    bench = Bench(uid=3)
    bench.log_in(room=1)
    bench.hear(
        wire.JOINED, **picture(1, 3, state, {2: [1] * 20, 3: own, 4: [1]}, turn, (2, last), (1, 0, 0), landlord=2)
    )


# -------------------------------------------------------------------------------------------------------- capabilities


def test_it_is_registered():
    assert MailgycLobby in [lazy.load() for lazy in bothost_lobbies()]


PROVEN = {
    "games": ("doudizhu",),  # test_a_wish_that_the_lobby_cannot_fulfil_costs_no_word
    "tables_per_connection": 1,  # test_trap_leaving_is_not_answered_…
    "connections_per_identity": 1,  # test_trap_a_second_socket_takes_over_…
    "acks_moves": True,  # test_the_landlord_plays_…_the_echo_acknowledges
    "rejects_illegal": "error",  # test_trap_errors_name_neither_request_nor_table
    "sends_turn": False,  # test_trap_nothing_says_whose_turn_it_is
    "sends_legal_actions": False,  # test_no_request_lists_legal_actions
    "takes_composites": False,  # test_one_action_at_a_time
    "clock": "per_move",  # test_trap_nothing_says_whose_turn_it_is
    "resume": "identity",  # test_a_fresh_process_remembers_the_whole_hand
    "resume_delivers": "snapshot",  # test_trap_a_snapshot_tells_neither_bottom_nor_history
    "heartbeat": "app",  # test_ping_is_a_text
    "messages_per_second": None,  # the lobby has no limit: test_three_accounts_of_ours_at_one_table at full speed
    "on_rate_limit": "none",
    "plays_for_us": False,  # test_trap_a_dead_opponent_stalls_the_table_for_ever
    "transport": "websocket",
    "chat": False,  # the conformance kit: Say sends nothing
    "needs_secret": False,  # test_the_name_is_all_that_the_lobby_asks_for
}


def test_every_capability_is_proven():
    assert {name: getattr(MailgycLobby.capabilities, name) for name in Capabilities.__struct_fields__} == PROVEN


def test_no_request_lists_legal_actions():
    assert Bench().play().request().legal is None


def test_one_action_at_a_time():
    bench = Bench().play()
    with pytest.raises(ValueError, match="too many values"):
        bench.feed(m.Act("1", bench.request().request_id, ("4", "5")))


def test_ping_is_a_text():
    bench = Bench().connect()
    assert bench.feed(m.Ping()) == [m.SendFrame(bench.conn, "ping")]
    assert bench.feed(m.Frame(bench.conn, "pong")) == [m.Alive()]


def test_a_hand_is_named_by_its_cards():
    hand, _ = MailgycHand.begin(0, (2, 3, 4), wire.Dealt(2, tuple(HANDS[2])))
    assert hand.dealt == set(HANDS[2])
