"""The adapter of open_mahjong_unity: recorded frames, hostile ones, every capability."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bothost import messages as m
from bothost.lobbies import bothost_lobbies
from bothost.lobbies.base import Capabilities
from bothost.lobbies.open_mahjong import OpenMahjong
from bothost.lobbies.open_mahjong import protocol as wire

from ..adapter_bench import told
from .bench import ROOM, TRANSCRIPTS, Bench, said

# -------------------------------------------------------------------------------------------------------- transcripts


def lines_of(name):
    return [json.loads(line) for line in (TRANSCRIPTS / f"open_mahjong_{name}.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(("name", "least"), [("full_match", 1500), ("edge_cases", 400)])
def test_every_recorded_frame_is_understood(name, least):
    frames = [line["data"] for line in lines_of(name) if line["dir"] == "in"]
    for frame in frames:
        wire.decode(json.dumps(frame))
    assert len(frames) > least - 400


def replay(name, conn, until=None):
    """A player's connection: our adapter hears what that one heard, and decides what that one decided."""
    bench, wrong = None, []
    for line in lines_of(name)[:until]:
        if line["conn"] != conn:
            continue
        data, way = line["data"], line["dir"]
        if way == "in" and data["type"] == "login":
            if bench is not None and told(bench.out, m.HandStarted):
                break  # a second connection
            bench = Bench(user=data["login_info"]["user_id"])
            bench.dial()
            bench.feed(m.Frame(bench.conn, json.dumps(data)))
            bench.fire("settle")
        elif way == "in" and bench is not None:
            bench.feed(m.Frame(bench.conn, json.dumps(data)))
        elif way == "out" and bench is not None and data["type"].startswith("gamestate/GB/"):
            mine = said(bench.out)[-1:] if data.get("action") == "buhua" else said(bench.act(action_of(data)))
            if mine != [data]:
                wrong.append((data, mine))
    return bench, wrong


def action_of(frame):
    if frame["type"].endswith("cut_tile"):
        return f"play:{wire.word(frame['TileId'])}"
    return {"pass": "pass"}[frame["action"]]


@pytest.mark.parametrize("conn", ["mjbota", "mjbotb", "mjbotc", "guest"])
def test_a_recorded_hand_folds_and_we_say_what_the_recorded_client_said(conn):
    """The first of the match; of the others only a part was kept."""
    bench, wrong = replay("full_match", conn, until=1270)
    assert wrong == []
    assert len(told(bench.out, m.HandEnded)) == 1 and bench.view.terminal
    assert len(said(bench.out)) > 20
    assert not any(isinstance(o, m.Notice | m.Snapshot | m.Unknown | m.Rejected) for o in bench.out)


@pytest.mark.parametrize("conn", ["mjbotb", "mjbota"])
def test_recorded_edge_cases_fold(conn):
    """An offline player discards a flower, which our rules do not know."""
    bench, wrong = replay("edge_cases", conn)
    assert wrong == []
    assert len(told(bench.out, m.Snapshot)) == 1
    assert any("a flower was discarded" in notice.text for notice in told(bench.out, m.Notice))


def test_the_recorded_reconnect():
    """The snapshot, the pending question, and the discarded flower among our own discards."""
    bench = None
    for line in lines_of("edge_cases")[330:450]:
        if line["conn"] == "mjbotc" and line["dir"] == "in":
            data = line["data"]
            if data["type"] == "login":
                bench = Bench(user=data["login_info"]["user_id"], settle_s=9.0)
                bench.dial()
            bench.feed(m.Frame(bench.conn, json.dumps(data)))
    (snapshot,) = told(bench.out, m.Snapshot)
    assert snapshot.view["discards"][2] == ["W3", "T1", "F1", "T5", "W2"]
    (request,) = told(bench.out, m.ActionRequest)
    assert request.bank_ms == 0.0 and request.grant_ms == 1_500.0


# ------------------------------------------------------------------------------------------------------ hostile frames


@given(st.one_of(st.text(max_size=60), st.binary(max_size=60)))
def test_any_frame_is_survived(data):
    bench = Bench().turn()
    bench.feed(m.Frame(bench.conn, data))


HUGE = 10**400


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("gamestate/guobiao/game_end", {"game_end_info": {"player_final_data": {"0": {"score": HUGE}}}}),
        ("gamestate/guobiao/show_result", {"show_result_info": {"score_changes": dict.fromkeys("0123", HUGE)}}),
        ("room/refresh_room_info", {"room_info": {**ROOM, "room_id": "9" * 5000}}),
        ("room/refresh_room_info", {"room_info": {**ROOM, "step_timer": HUGE}}),
    ],
)
def test_numbers_that_cannot_be_are_not_understood(kind, body):
    assert told(Bench().turn().hear(kind, **body), m.Unknown)


MEMBERS = (
    "action_list",
    "action_player",
    "action_tick",
    "cut_tile",
    "deal_tile",
    "buhua_tile",
    "player_index",
    "combination_target",
    "hu_class",
    "hepai_player_index",
    "hand_tiles",
)
values = st.recursive(
    st.none()
    | st.integers(-5, 60)
    | st.sampled_from(["cut", "peng", "chi_left", "buhua", "deal_tile", "angang", "jiagang", "hu_self", "k14", "G0"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(MEMBERS), inner, max_size=6),
    max_leaves=12,
)
KINDS = (
    ("do_action", "do_action_info"),
    ("ask_other_action", "ask_other_action_info"),
    ("broadcast_hand_action", "ask_hand_action_info"),
    ("show_result", "show_result_info"),
    ("game_start", "game_info"),
)


@given(st.sampled_from(KINDS), values)
def test_any_content_of_a_known_frame_is_survived(kind, body):
    bench = Bench().turn()
    bench.feed(m.Frame(bench.conn, json.dumps({"type": f"gamestate/guobiao/{kind[0]}", kind[1]: body})))
    bench.do(["deal_tile"], 2, 50)


actions = st.sampled_from(
    ["cut", "peng", "gang", "chi_left", "chi_mid", "chi_right", "buhua", "deal_tile", "angang", "jiagang"]
)
tiles = st.sampled_from([11, 14, 23, 41, 43, 45, 51, 58])


@given(st.lists(st.tuples(actions, st.integers(0, 3), tiles), min_size=1, max_size=12))
def test_any_course_of_a_hand_is_survived(course):
    bench = Bench().turn()
    for tick, (action, player, tile) in enumerate(course, 5):
        members = {"cut_tile": tile, "deal_tile": tile, "buhua_tile": tile, "combination_target": f"k{tile}"}
        bench.do([action], player, tick, **members)
        bench.ask_hand(player, ["cut"], tick)


# -------------------------------------------------------------------------------------------------------- capabilities


PROVEN = {
    "games": ("mahjong",),  # test_a_wish_that_the_lobby_cannot_fulfil_costs_no_word
    "tables_per_connection": 1,  # test_one_table_at_a_time
    "connections_per_identity": 1,  # test_trap_a_second_login_kicks_the_first_…
    "acks_moves": True,  # test_trap_an_illegal_move_is_met_by_silence, test_a_pass_has_no_echo_…
    "rejects_illegal": "silence",  # test_trap_an_illegal_move_is_met_by_silence
    "sends_turn": True,  # test_a_recorded_hand_folds_…: a question is asked where the lobby asks, and only there
    "sends_legal_actions": True,  # test_trap_several_are_asked_at_once_…
    "takes_composites": False,  # test_one_action_at_a_time
    "clock": "bank_and_step",  # test_trap_remaining_time_is_the_bank_…
    "resume": "identity",  # test_trap_coming_back_is_offered_and_must_be_accepted: by the login alone
    "resume_delivers": "snapshot",  # the same
    "heartbeat": "app",  # test_trap_the_dead_loops_socket_answers_protocol_pings_…
    "messages_per_second": None,  # none was met: test_a_match_of_four_accounts_of_ours at full speed
    "on_rate_limit": "none",
    "plays_for_us": True,  # test_trap_server_made_moves_carry_is_timeout_action
    "transport": "websocket",
    "chat": True,  # test_chat.py
    "needs_secret": False,  # test_an_account_without_a_password_is_refused_but_a_guest_needs_none
}


def test_every_capability_is_proven():
    assert {name: getattr(OpenMahjong.capabilities, name) for name in Capabilities.__struct_fields__} == PROVEN


def test_one_action_at_a_time():
    bench = Bench().turn()
    with pytest.raises(ValueError, match="too many values"):
        bench.feed(m.Act("room-1", bench.request().request_id, ("play:W4", "play:W1")))


def test_it_is_registered():
    assert OpenMahjong in [lazy.load() for lazy in bothost_lobbies()]
