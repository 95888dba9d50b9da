"""The adapter of open_mahjong_unity: coming back to a hand, and what ends a connection."""

import msgspec
import pytest

from bothost import messages as m

from ..adapter_bench import told
from .bench import GAME_ID, HAND, ME, Bench, game_info, said


def back_info(tick=4, seat=1, own=(*HAND, 14), **changes):
    """The position of ``Bench.turn``."""
    mine = {"hand_tiles_count": 14, "has_draw_slot": True}
    dealer = {"hand_tiles_count": 13, "discard_tiles": [43]}
    info = {"current_player_index": 1, "tile_count": 90, **changes}
    return game_info(seat, list(own), tick=tick, p0=dealer, p1=mine, **info)


def test_trap_coming_back_is_offered_and_must_be_accepted():
    bench = Bench().turn()
    bench.lose()
    bench.log_in(m.Resume(("room-1",), bench.memo))
    out = bench.hear("message", message="reconnect_ask", message_info={"title": "-", "content": "-"})
    assert said(out) == [{"type": "reconnect_response", "reconnect": True}]
    assert not told(bench.out[-3:], m.Connected), "proven by a snapshot only"
    out = bench.hear("gamestate/guobiao/game_start", game_info=back_info())
    kinds = [type(o) for o in out if isinstance(o, m.Connected | m.Seated | m.Snapshot)]
    assert kinds == [m.Connected, m.Seated, m.Snapshot]
    before = told(bench.out, m.ActionRequest)[-1]
    out = bench.ask_hand(1, ["cut"], 4, deal_tile_type="deal_tile")
    (again,) = told(out, m.ActionRequest)
    assert again.request_id == before.request_id, "the same question keeps its id"
    assert again.grant_ms == 2_500.0, "part of the step is gone"


def test_what_happened_while_we_were_away_is_taken_from_the_snapshot():
    bench = Bench().turn()
    bench.lose()
    info = back_info(tick=30, own=HAND, current_player_index=2)
    info["players_info"][1] |= {"hand_tiles_count": 13, "has_draw_slot": False, "discard_tiles": [14]}
    info["players_info"][2] |= {"hand_tiles_count": 14, "has_draw_slot": True}
    info["tile_count"] = 89
    out = bench.come_back(info)
    (snapshot,) = told(out, m.Snapshot)
    assert snapshot.view["actor"] == 2 and snapshot.view["seq"] > 1000
    assert not told(out, m.Notice)


def test_a_snapshot_that_is_not_our_picture_is_logged_and_wins():
    bench = Bench().turn()
    bench.lose()
    out = bench.come_back(back_info(own=(*HAND[:-1], 47, 14)))
    assert any("using the lobby's" in notice.text for notice in told(out, m.Notice))
    assert "J2" in bench.view.to_json()["hand"]


def test_trap_the_lobby_keeps_a_flower_in_our_hand_while_we_are_away():
    """No rule of ours knows such a hand: claims are passed until it is our turn to lay the flower down."""
    bench = Bench().sit()
    bench.hear("gamestate/guobiao/game_start", game_info=game_info(1, [*HAND[:12], 52]))
    bench.lose()
    info = back_info(tick=5, own=(*HAND[:12], 52), current_player_index=0, tile_count=91)
    info["players_info"][1] |= {"hand_tiles_count": 13, "has_draw_slot": False}
    out = bench.come_back(info)
    assert told(out, m.Connected) and not told(out, m.Snapshot)
    out = bench.ask_claims(1, ["peng", "pass"], 43, 6)
    assert [frame["action"] for frame in said(out)] == ["pass"]
    assert not told(out, m.Disconnected)
    bench.do(["deal_tile"], 1, 7, deal_tile=14)
    assert [frame["action"] for frame in said(bench.ask_hand(1, ["buhua", "cut"], 8))] == ["buhua"]
    assert told(bench.do(["buhua"], 1, 9, buhua_tile=52), m.Snapshot)
    bench.do(["deal_buhua_tile"], 1, 10, deal_tile=15)
    assert told(bench.ask_hand(1, ["cut"], 11), m.ActionRequest)


def test_melds_are_read_from_a_snapshot():
    bench = Bench().turn()
    bench.lose()
    info = back_info(tick=40, own=(*HAND[:10], 14))
    combos = {"combination_tiles": ["s32"], "combination_mask": [[1, 33, 0, 31, 0, 32]], "hand_tiles_count": 11}
    info["players_info"][1] |= combos
    hidden = {"combination_tiles": ["G0", "g29"], "combination_mask": [[2, 0] * 4, [1, 29, 0, 29, 0, 29, 0, 29]]}
    info["players_info"][2] |= hidden | {"hand_tiles_count": 7, "huapai_list": [51, 52]}
    info["players_info"][3] |= {"discard_origin_tiles": [33, 29]}
    info["tile_count"] = 70
    bench.come_back(info)
    told_view = bench.view.to_json()
    assert told_view["melds"][1] == [{"kind": "chi", "tile": "T2", "claimed": "T3"}]
    assert [meld["kind"] for meld in told_view["melds"][2]] == ["angang", "gang"]
    assert told_view["flowers"] == [0, 0, 2, 0]


def test_what_a_resume_needs_is_remembered_before_the_first_move():
    bench = Bench().turn()
    places = {type(o): i for i, o in enumerate(bench.out)}
    assert places[m.Remember] < places[m.ActionRequest]
    assert bench.memo["gamestate"] == GAME_ID and bench.memo["table"] == "room-1"


def test_a_fresh_process_comes_back_to_its_table_at_the_same_count():
    """The move that it logged before the crash is then given again."""
    bench = Bench().turn()
    before = bench.request()
    fresh = Bench(memo=bench.memo)
    fresh.log_in(m.Authenticate(bench.memo))
    fresh.hear("message", message="reconnect_ask", message_info={"title": "-", "content": "-"})
    out = fresh.hear("gamestate/guobiao/game_start", game_info=back_info())
    assert told(out, m.Seated)[0].table == "room-1"
    fresh.ask_hand(1, ["cut"], 4, deal_tile_type="deal_tile")
    again = fresh.request()
    assert (again.request_id, again.seq, again.hand) == (before.request_id, before.seq, before.hand)


@pytest.mark.parametrize("seat", [1, 2])
def test_trap_the_lobby_draws_the_tile_for_a_flower_before_it_reports_that(seat):
    """Who comes back in the 0.3 s between is shown a hand that has the tile already."""
    bench = Bench().turn()
    bench.act("play:W4")
    bench.do(["cut"], 1, 5, cut_tile=14, cut_class=True)
    bench.lose()
    info = back_info(tick=20, own=HAND, current_player_index=seat, tile_count=60)
    info["players_info"][1] |= {"hand_tiles_count": 13, "has_draw_slot": False, "discard_tiles": [14, 15]}
    info["players_info"][2] |= {"discard_tiles": [16, 17]}
    mine = {"hand_tiles": [*HAND, 47]} if seat == 1 else {}
    info["players_info"][seat] |= {"hand_tiles_count": 14, "has_draw_slot": True, "huapai_list": [51], **mine}
    bench.come_back(info)
    drawn = {"deal_tile": 47} if seat == 1 else {}
    assert bench.do(["deal_buhua_tile"], seat, 21, **drawn) == []
    bench.ask_hand(seat, ["cut"] if seat == 1 else [], 22, deal_tile_type="deal_buhua_tile")
    out = bench.do(["cut"], seat, 23, cut_tile=47, cut_class=True)
    assert told(out, m.Delta)[0].events == (f"play {seat} J2",) and not told(bench.out, m.Notice)


def won(bench):
    """Seat 2 discards, and seat 0 wins."""
    result = {"hepai_player_index": 0, "hu_class": "hu_third", "action_tick": 9, "hu_fan": [], "hu_score": 8}
    result |= {"hepai_player_hand": [], "score_changes": {}, "next_status": "round_end_by_ready"}
    return bench.hear("gamestate/guobiao/show_result", show_result_info=result)


def test_coming_back_after_a_hand_says_ready_and_does_not_begin_that_hand_again():
    """The lobby waits for all players, and shows the tiles of the hand that ended. Also to a new process."""
    bench = Bench().turn()
    (ended,) = told(won(bench), m.HandEnded)
    bench.lose()
    for back in (bench, Bench(memo=bench.memo)):
        out = back.come_back(back_info(tick=9))
        assert told(out, m.Seated) and not told(out, m.Snapshot | m.HandStarted | m.HandEnded)
        (ready,) = said(back.fire("next"))
        assert (ready["action"], ready["action_tick"]) == ("ready", 9)
        out = back.hear("gamestate/guobiao/game_start", game_info=game_info(1, HAND, current_round=2))
        assert told(out, m.HandStarted)[0].hand != ended.hand


def test_coming_back_before_the_next_hand_is_dealt_waits_for_it():
    """Between two rounds the lobby takes four seconds to switch the seats."""
    bench = Bench().turn()
    won(bench)
    bench.lose()
    nothing = {f"p{i}": {"hand_tiles_count": 0} for i in range(4)}
    out = bench.come_back(game_info(1, [], tick=9, current_round=5, **nothing))
    assert told(out, m.Seated) and not told(out, m.Snapshot | m.Notice)
    out = bench.hear("gamestate/guobiao/game_start", game_info=game_info(1, HAND, current_round=5))
    assert told(out, m.HandStarted)


@pytest.mark.parametrize(
    ("histories", "end"),
    [
        (("-08", "+32", "-16", "-8"), ("normal", (-8.0, 32.0, -16.0, -8.0))),
        (("0", "0", "0", "0"), ("normal", (0.0, 0.0, 0.0, 0.0))),
        (("-08", "+32", "-16", "--"), ("aborted", None)),
        (("-08", "+32", "-16", "²"), ("aborted", None)),
    ],
)
def test_the_scores_of_a_hand_whose_end_we_missed_are_read_from_the_next_position(histories, end):
    """Seats change between the hands: a score belongs to the player."""
    bench = Bench().turn()
    bench.lose()
    players = {
        f"p{(seat - 1) % 4}": {
            "original_player_index": seat,
            "score_history": ["+99", text],
            "round_number_history": [7, 1],
        }
        for seat, text in enumerate(histories)
    }
    out = bench.come_back(game_info(0, [*HAND, 14], current_round=2, **players))
    (ended,) = told(out, m.HandEnded)
    assert (ended.reason, ended.scores) == end
    assert told(out, m.HandStarted)


def test_trap_indices_change_before_the_next_hand_begins():
    """Who is offline between two rounds is known when the next hand begins."""
    bench = Bench().turn()
    won(bench)
    bench.hear("switch_seat", switch_seat_info={"current_round": 5})
    tags = {"player_to_tag_list": {"0": [], "1": ["offline"], "2": [], "3": []}}
    assert bench.hear("refresh_player_tag_list", refresh_player_tag_list_info=tags) == []
    info = game_info(2, HAND, current_round=5, p1={"tag_list": ["offline"]})
    out = bench.hear("gamestate/guobiao/game_start", game_info=info)
    assert [event.seat for event in told(out, m.Presence) if not event.online] == [1]
    final = {str(i): {"score": 0} for i in range(4)}
    out = bench.hear("gamestate/guobiao/game_end", game_end_info={"player_final_data": final})
    assert [frame["type"] for frame in said(out)] == ["room/leave_room"], "we are still in the room"


def test_trap_a_game_that_is_not_offered_again_is_aborted_not_lost():
    bench = Bench().turn()
    bench.lose()
    bench.log_in(m.Resume(("room-1",), bench.memo))
    out = bench.fire("settle")
    assert [end.reason for end in told(out, m.TableEnded)] == ["aborted"]


def contradict(bench):
    """We are said to have discarded what we do not hold."""
    return bench.do(["cut"], 1, 5, cut_tile=29, cut_class=False) + bench.fire("resync")


def test_a_contradiction_is_met_by_asking_for_the_position():
    out = contradict(Bench().turn())
    assert told(out, m.Disconnected) and told(out, m.Notice)


def test_more_draws_than_the_wall_has_tiles_are_a_contradiction():
    """Otherwise the discards, and the work for each frame, would grow without limit."""
    bench = Bench().play(tile_count=2)
    bench.ask_hand(0, [], 1, opening_buhua_complete=True)
    bench.do(["cut"], 0, 2, cut_tile=43, cut_class=False)
    for tick, player in ((3, 1), (5, 2)):
        bench.do(["deal_tile"], player, tick, **({"deal_tile": 14} if player == 1 else {}))
        bench.do(["cut"], player, tick + 1, cut_tile=14, cut_class=True)
    bench.do(["deal_tile"], 3, 7)
    assert "resync" in bench.timers
    assert bench.do(["cut"], 3, 8, cut_tile=14, cut_class=True) == [], "nothing is folded before the position comes"


@pytest.mark.parametrize("others", ["robots", "offline"])
def test_trap_all_people_offline_deletes_the_game_so_the_connection_is_kept(others):
    bench = Bench()
    users = [0, ME, 0, 2] if others == "robots" else None
    bench.sit()
    bench.hear("gamestate/guobiao/game_start", game_info=game_info(1, HAND, users=users))
    bench.ask_hand(0, [], 1, opening_buhua_complete=True)
    bench.do(["cut"], 0, 2, cut_tile=43, cut_class=False)
    bench.do(["deal_tile"], 1, 3, deal_tile=14)
    if others == "offline":
        tags = {str(i): ["offline"] if i != 1 else [] for i in range(4)}
        bench.hear("refresh_player_tag_list", refresh_player_tag_list_info={"player_to_tag_list": tags})
        assert [p.online for p in told(bench.out, m.Presence)][-3:] == [False] * 3
    out = contradict(bench)
    assert not told(out, m.Disconnected) and not told(out, m.CloseSocket)
    bench.hear("gamestate/guobiao/game_start", game_info=game_info(2, HAND, users=None, current_round=2))
    assert told(bench.out, m.HandStarted)[-1].seat == 2, "the next hand is reported whole"


def test_trap_the_last_one_in_the_room_must_not_disconnect():
    """A player who disconnects leaves the room for good. An empty room deletes the game, although all play."""
    bench = Bench().turn()
    for offline in (0, 2, 3, None):
        tags = {str(i): ["offline"] if i == offline else [] for i in range(4)}
        bench.hear("refresh_player_tag_list", refresh_player_tag_list_info={"player_to_tag_list": tags})
    assert not told(contradict(bench), m.Disconnected)


def test_players_of_a_table_reconnect_one_after_the_other():
    """All four may see the same contradiction. The lobby deletes a game when all are offline."""
    bench = Bench().turn()
    bench.do(["cut"], 1, 5, cut_tile=29, cut_class=False)
    assert bench.timers["resync"] > 0, "the player at index 0 goes first"


def test_who_is_offline_is_told_with_every_position():
    bench = Bench().turn()
    tags = {"player_to_tag_list": {"0": [], "1": [], "2": ["offline"], "3": []}}
    assert bench.hear("refresh_player_tag_list", refresh_player_tag_list_info=tags) == [m.Presence("room-1", 2, False)]
    info = game_info(1, HAND, current_round=2, p3={"tag_list": ["offline"]})
    out = bench.hear("gamestate/guobiao/game_start", game_info=info)
    present = [(event.seat, event.online) for event in told(out, m.Presence)]
    assert present == [(0, True), (1, True), (2, True), (3, False)]
    assert out.index(told(out, m.HandStarted)[0]) < out.index(told(out, m.Presence)[0])


def test_the_host_is_told_the_position_again_without_breaking_the_connection():
    bench = Bench()
    bench.opened()
    bench.do(["deal_tile"], 1, 3, deal_tile=14)
    (asked,) = told(bench.ask_hand(1, ["cut"], 4, deal_tile_type="deal_tile"), m.ActionRequest)
    out = bench.feed(m.Resync("room-1"))
    assert told(out, m.Snapshot) and not told(out, m.CloseSocket)
    (again,) = told(out, m.ActionRequest)
    assert again.grant_ms == asked.grant_ms / 2, "part of it has passed, and nothing says how much"
    (third,) = told(bench.feed(m.Resync("room-1")), m.ActionRequest)
    assert third == msgspec.structs.replace(again, seq=third.seq)


@pytest.mark.parametrize("heard", [False, True])
def test_trap_a_deleted_game_is_told_to_nobody_so_a_silent_one_is_looked_for(heard):
    """The host asks for the position of a table of which it has heard nothing for long."""
    bench = Bench().opened()
    for _ in range(2):
        assert not told(bench.feed(m.Resync("room-1")), m.Disconnected)
    if heard:
        bench.do(["deal_tile"], 1, 3, deal_tile=14)
    assert bool(told(bench.feed(m.Resync("room-1")), m.Disconnected)) is not heard
    if not heard:
        bench.log_in(m.Resume(("room-1",), bench.memo))
        assert [end.reason for end in told(bench.fire("settle"), m.TableEnded)] == ["aborted"]


@pytest.mark.parametrize("change", [{"hand": [*HAND[:12], 20]}, {"tick": 4, "p0": {"discard_tiles": [40]}}])
def test_a_position_with_a_number_that_is_no_tile_is_not_used(change):
    bench = Bench().sit()
    out = bench.hear("gamestate/guobiao/game_start", game_info=game_info(1, **({"hand": HAND} | change)))
    assert told(out, m.Notice)[-1].text.endswith("is not a tile") and not told(out, m.HandStarted | m.Snapshot)
    assert not told(bench.ask_hand(1, ["cut"], 5), m.ActionRequest)
    assert told(bench.hear("gamestate/guobiao/game_start", game_info=game_info(1, HAND)), m.HandStarted)


def test_a_game_that_the_players_vote_to_end_is_aborted():
    bench = Bench().turn()
    assert bench.hear("gamestate/vote_update", vote_info={"phase": "voting", "vote_type": "end"}) == []
    out = bench.hear("gamestate/vote_end", message="投票结束对局通过")
    assert [end.reason for end in told(out, m.HandEnded | m.TableEnded)] == ["aborted", "aborted"]
    assert said(out) == [{"type": "room/leave_room", "room_id": "1"}]


def test_leaving_a_game_gives_it_up_for_good():
    bench = Bench().turn()
    out = bench.feed(m.Leave("room-1"))
    assert [end.reason for end in told(out, m.TableEnded)] == ["left"]
    bench.log_in(m.Resume(()))
    out = bench.hear("message", message="reconnect_ask", message_info={"title": "-", "content": "-"})
    assert said(out) == [{"type": "reconnect_response", "reconnect": False}]


def test_a_game_that_was_given_up_and_is_gone_does_not_cost_the_next_one():
    bench = Bench().turn()
    bench.feed(m.Leave("room-1"))
    bench.log_in(m.Resume(()))
    bench.fire("settle")
    bench.hear("gamestate/guobiao/game_start", game_info=game_info(1, HAND, gamestate_id="another"))
    bench.lose()
    bench.log_in(m.Resume(("game-another",), bench.memo))
    out = bench.hear("message", message="reconnect_ask", message_info={"title": "-", "content": "-"})
    assert said(out) == [{"type": "reconnect_response", "reconnect": True}]


def test_trap_a_frame_without_a_type_ends_the_servers_loop_so_we_send_none():
    bench = Bench().turn()
    bench.act("play:W4")
    bench.feed(m.Ping())
    assert all(isinstance(frame, dict) and frame["type"] for frame in said(bench.out))


def test_trap_the_dead_loops_socket_answers_protocol_pings_so_the_heartbeat_is_the_lobbys_own():
    bench = Bench().turn()
    assert said(bench.feed(m.Ping())) == [{"type": "ping", "client_ts": 1}]
    assert bench.hear("pong", client_ts=1) == [m.Alive()]
