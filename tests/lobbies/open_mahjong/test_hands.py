"""The adapter of open_mahjong_unity: hands, from the deal to the scores."""

import pytest

from bothost import messages as m
from bothost.lobbies.open_mahjong import protocol as wire

from ..adapter_bench import told
from .bench import GAME_ID, HAND, ME, Bench, game_info, said


def test_trap_a_rooms_id_is_a_text_in_the_lobby_and_a_number_in_the_game():
    """One table, and one hand under the game's own name."""
    bench = Bench().play()
    (started,) = told(bench.out, m.HandStarted)
    assert (started.table, started.hand) == ("room-1", f"{GAME_ID}.1")
    assert len(told(bench.out, m.Seated)) == 1


def test_trap_seats_are_shuffled_between_hands():
    bench = Bench().play(seat=1)
    bench.hear("gamestate/guobiao/game_start", game_info=game_info(3, HAND, current_round=2))
    assert [started.seat for started in told(bench.out, m.HandStarted)] == [1, 3]
    assert [player.player for player in told(bench.out, m.HandStarted)[1].players][3] == str(ME)


def test_trap_our_frames_say_gb_and_theirs_guobiao():
    bench = Bench().turn()
    assert said(bench.act("play:W4")) == [
        {
            "type": "gamestate/GB/cut_tile",
            "gamestate_id": GAME_ID,
            "cutClass": True,
            "TileId": 14,
            "cutIndex": 13,
            "action_tick": 4,
        }
    ]


def test_trap_the_white_dragon_comes_before_the_green_one():
    """45 is the red, 46 the white, 47 the green dragon."""
    assert [wire.word(tile) for tile in (45, 46, 47)] == ["J1", "J3", "J2"]
    assert all(wire.number(wire.word(tile)) == tile for tile in range(11, 59) if tile % 10 and (tile < 48 or tile > 50))


def test_the_dealer_holds_fourteen_tiles_before_flowers_are_replaced():
    """Our rules deal thirteen: the fourteenth is drawn when no flower is left, and it is the last that came."""
    bench = Bench().play(seat=0, hand=[*HAND[:12], 52, 51])
    out = bench.ask_hand(0, ["buhua", "pass"], 1)
    frame = {"type": "gamestate/GB/send_action", "gamestate_id": GAME_ID, "action": "buhua", "targetTile": None}
    assert said(out) == [frame | {"action_tick": 1}]
    assert not told(out, m.ActionRequest), "a flower is no decision"
    bench.do(["buhua", "deal_buhua_tile"], 0, 2, buhua_tile=52, deal_tile=55)
    bench.ask_hand(0, ["buhua", "pass"], 3)
    bench.do(["buhua", "deal_buhua_tile"], 0, 4, buhua_tile=55, deal_tile=19)
    bench.ask_hand(0, ["buhua", "pass"], 5)
    bench.do(["buhua", "deal_buhua_tile"], 0, 6, buhua_tile=51, deal_tile=18)
    out = bench.ask_hand(0, ["cut"], 7, opening_buhua_complete=True)
    assert bench.view.phase == "turn" and bench.view.to_json()["drawn"] == "W8"
    assert bench.view.to_json()["flowers"] == [3, 0, 0, 0]
    assert told(out, m.ActionRequest)[0].raw is not None


def test_trap_remaining_time_is_the_bank_and_the_step_comes_on_top():
    request = Bench().turn().request()
    assert (request.grant_ms, request.bank_ms) == (5_000.0, 20_000.0)


def test_trap_drawn_tiles_are_told_to_the_drawer_alone():
    bench = Bench().turn()
    assert told(bench.out, m.Delta)[-1].events == ("draw 1 W4",)
    bench.act("play:W4")
    bench.do(["cut"], 1, 5, cut_tile=14, cut_class=True, cut_tile_index=13)
    bench.do(["deal_tile"], 2, 6)
    assert told(bench.out, m.Delta)[-1].events == ("draw 2",)


def test_trap_several_are_asked_at_once_and_a_higher_claim_goes_first():
    bench = Bench().opened(tile=24)
    bench.ask_claims(1, ["chi_left", "pass"], 24, 3)
    assert bench.request().legal == ("chi:B3", "pass")
    assert said(bench.act("chi:B3"))[0]["action"] == "chi_left"
    target = {"combination_target": "k24", "combination_mask": [0, 24, 1, 24, 0, 24]}
    out = bench.do(["peng"], 2, 4, cut_from_player=0, cut_tile=24, **target)
    assert told(out, m.RequestWithdrawn) and not told(out, m.MoveAcknowledged), "the lobby drops what was overtaken"
    assert told(out, m.Delta)[0].events == ("peng 2 B4",)


def test_a_claim_that_comes_too_late_is_not_ours():
    """It was silently dropped: the next seat draws all the same."""
    bench = Bench().opened(tile=41)
    bench.ask_claims(1, ["peng", "pass"], 41, 3)
    bench.act("peng:F1")
    out = bench.do(["deal_tile"], 1, 4, deal_tile=19)
    assert told(out, m.ServerActedForUs) and not told(out, m.MoveAcknowledged)
    assert told(out, m.Delta)[0].events == ("draw 1 W9",)


def test_a_pass_has_no_echo_and_is_acknowledged_by_what_happens_next():
    bench = Bench().opened(tile=41)
    bench.ask_claims(1, ["peng", "pass"], 41, 3)
    assert said(bench.act("pass"))[0]["targetTile"] == 41
    assert "echo" not in bench.timers
    assert told(bench.do(["deal_tile"], 1, 4, deal_tile=19), m.MoveAcknowledged)


def test_our_claim_then_our_discard():
    bench = Bench().opened(tile=41)
    bench.ask_claims(1, ["peng", "pass"], 41, 3)
    bench.act("peng:F1")
    target = {"combination_target": "k41", "combination_mask": [1, 41, 0, 41, 0, 41]}
    assert told(bench.do(["peng"], 1, 4, cut_from_player=0, cut_tile=41, **target), m.MoveAcknowledged)
    bench.ask_hand(1, ["cut"], 5)
    assert bench.view.phase == "discard"
    assert said(bench.act("play:J1"))[0] | {"cutClass": None} == {
        "type": "gamestate/GB/cut_tile",
        "gamestate_id": GAME_ID,
        "cutClass": None,
        "TileId": 45,
        "cutIndex": 9,
        "action_tick": 5,
    }


def test_kongs_of_ours_and_of_others():
    bench = Bench().play(seat=1, hand=[11, 11, 11, 12, 12, 13, 14, 15, 16, 17, 18, 21, 22])
    bench.ask_hand(0, [], 1, opening_buhua_complete=True)
    bench.do(["angang"], 0, 2, combination_target="G0", combination_mask=[2, 0] * 4)
    bench.do(["deal_gang_tile"], 0, 3)
    bench.do(["cut"], 0, 4, cut_tile=12, cut_class=True)
    bench.ask_claims(1, ["peng", "pass"], 12, 5)
    bench.act("peng:W2")
    bench.do(["peng"], 1, 6, combination_target="k12", combination_mask=[1, 12, 0, 12, 0, 12])
    bench.ask_hand(1, ["cut"], 7)
    bench.act("play:B2")
    bench.do(["cut"], 1, 8, cut_tile=22, cut_class=False)
    for tick, player in ((9, 2), (11, 3), (13, 0)):
        bench.do(["deal_tile"], player, tick)
        bench.do(["cut"], player, tick + 1, cut_tile=47, cut_class=True)
    bench.do(["deal_tile"], 1, 15, deal_tile=11)
    bench.ask_hand(1, ["angang", "cut"], 16)
    assert "angang:W1" in bench.request().legal
    assert said(bench.act("angang:W1"))[0]["targetTile"] == 11
    bench.do(["angang"], 1, 17, combination_target="G11", combination_mask=[2, 11] * 4)
    bench.do(["deal_gang_tile"], 1, 18, deal_tile=12)
    bench.ask_hand(1, ["jiagang", "cut"], 19, deal_tile_type="deal_gang_tile")
    assert said(bench.act("bugang:W2"))[0] | {} == {
        "type": "gamestate/GB/send_action",
        "gamestate_id": GAME_ID,
        "action": "jiagang",
        "targetTile": 12,
        "action_tick": 19,
    }
    assert told(bench.do(["jiagang"], 1, 20, combination_target="k12"), m.MoveAcknowledged)
    bench.do(["deal_gang_tile"], 1, 21, deal_tile=44)
    assert bench.view.to_json()["after_kong"] is True


WINNING = [11, 11, 11, 12, 12, 12, 13, 13, 13, 14, 14, 14, 15]
"""Waits for 15, among others: four concealed pungs."""


@pytest.mark.parametrize("next_status", ["round_end_by_ready", "match_end"])
def test_a_win_then_ready_for_the_next_hand(next_status):
    bench = Bench().opened(hand=WINNING, tile=15)
    bench.ask_claims(1, ["hu_first", "pass"], 15, 3)
    assert said(bench.act("hu"))[0] | {"targetTile": 15} == {
        "type": "gamestate/GB/send_action",
        "gamestate_id": GAME_ID,
        "action": "hu_first",
        "targetTile": 15,
        "action_tick": 3,
    }
    result = {"hu_class": "hu_first", "hepai_player_index": 1, "hu_score": 64, "hu_fan": ["四暗刻*1", "清一色"]}
    result |= {"hepai_player_hand": [*WINNING, 15], "action_tick": 4, "next_status": next_status}
    changes = {"0": -72, "1": 88, "2": -8, "3": -8}
    out = bench.hear("gamestate/guobiao/show_result", show_result_info=result | {"score_changes": changes})
    assert told(out, m.MoveAcknowledged)
    assert told(out, m.HandEnded)[0].scores == (-72.0, 88.0, -8.0, -8.0)
    assert bench.view.terminal
    if next_status == "match_end":
        return
    ready = {str(i): False for i in range(4)}
    out = bench.hear("gamestate/guobiao/ready_status", ready_status_info={"player_to_ready": ready})
    assert said(out)[0] | {} == {
        "type": "gamestate/GB/send_action",
        "gamestate_id": GAME_ID,
        "action": "ready",
        "targetTile": None,
        "action_tick": 4,
    }
    assert "next" not in bench.timers, "said once"


def test_trap_claimed_discards_of_earlier_hands_are_told_again():
    """The lobby does not clear ``discard_origin_tiles`` between the hands of a match."""
    stale = {"discard_origin_tiles": [11, 12, 13, 11]}
    bench = Bench().play(seat=2, current_round=2, p0=stale)
    out = bench.ask_hand(0, [], 1, opening_buhua_complete=True)
    bench.do(["cut"], 0, 2, cut_tile=41, cut_class=False)
    out = bench.ask_claims(2, ["peng", "pass"], 41, 3)
    assert told(out, m.ActionRequest) and not told(bench.out, m.Notice)
    bench.lose()
    info = game_info(
        2,
        HAND,
        tick=3,
        current_round=2,
        current_player_index=0,
        p0=stale | {"hand_tiles_count": 13, "discard_tiles": [41]},
    )
    bench.come_back(info)
    assert bench.view.to_json()["discards"] == [["F1"], [], [], []]


def test_claimed_discards_are_read_from_the_melds():
    """Seat 1 took a chow and seat 3 a pung from seat 0; seat 0 took a kong from seat 1 and added to a pung from 2."""
    melds = {
        "p1": {"combination_tiles": ["s12"], "combination_mask": [[1, 11, 0, 12, 0, 13]], "hand_tiles_count": 11},
        "p3": {"combination_tiles": ["k29"], "combination_mask": [[0, 29, 0, 29, 1, 29]], "hand_tiles_count": 10},
        "p0": {
            "combination_tiles": ["g37", "g44"],
            "combination_mask": [[0, 37, 0, 37, 0, 37, 1, 37], [0, 44, 3, 44, 1, 44, 0, 44]],
            "hand_tiles_count": 7,
        },
    }
    own = [*HAND[:10], 14]
    info = game_info(1, own, tick=40, current_player_index=1, tile_count=60, **melds)
    info["players_info"][1]["has_draw_slot"] = True
    bench = Bench().turn()
    bench.lose()
    bench.come_back(info)
    assert bench.view.to_json()["discards"] == [["W1", "B9"], ["T7"], ["F4"], []]


def test_scores_are_told_by_the_index_of_the_first_hand():
    """Seats rotate; in the second hand, index 0 is who sat at 1 first."""
    originals = {f"p{index}": {"original_player_index": (index + 1) % 4} for index in range(4)}
    bench = Bench().play(current_round=2, **originals)
    changes = {"0": -8, "1": -20, "2": 36, "3": -8}
    result = {"hu_class": "hu_self", "hepai_player_index": 1, "hu_fan": [], "action_tick": 9, "score_changes": changes}
    out = bench.hear("gamestate/guobiao/show_result", show_result_info=result)
    assert told(out, m.HandEnded)[0].scores == (-20.0, 36.0, -8.0, -8.0)


def test_trap_a_win_that_another_win_overtook_is_not_acknowledged():
    bench = Bench().opened(hand=WINNING, tile=15)
    bench.ask_claims(1, ["hu_second", "pass"], 15, 3)
    bench.act("hu")
    result = {"hu_class": "hu_first", "hepai_player_index": 2, "hu_fan": [], "action_tick": 4}
    out = bench.hear("gamestate/guobiao/show_result", show_result_info=result)
    assert told(out, m.RequestWithdrawn) and not told(out, m.MoveAcknowledged)


def test_a_claim_that_we_had_no_time_for_is_withdrawn_when_another_wins():
    bench = Bench().opened(tile=41)
    bench.ask_claims(1, ["peng", "pass"], 41, 3)
    result = {"hu_class": "hu_second", "hepai_player_index": 2, "hu_fan": [], "action_tick": 4}
    out = bench.hear("gamestate/guobiao/show_result", show_result_info=result)
    assert told(out, m.RequestWithdrawn) and not told(out, m.ServerActedForUs)


def test_a_false_win_of_another_does_not_end_the_hand():
    bench = Bench().turn()
    result = {"hu_class": "hu_self", "hepai_player_index": 2, "hu_fan": ["错和"], "action_tick": 5}
    out = bench.hear("gamestate/guobiao/show_result", show_result_info=result)
    assert not told(out, m.HandEnded) and told(out, m.Notice)
    (ready,) = said(bench.fire("next"))
    assert (ready["action"], ready["action_tick"]) == ("ready", 5), "the others wait for us"


@pytest.mark.parametrize("lost", [False, True])
def test_the_scores_of_a_hand_include_those_of_its_false_wins(lost):
    bench = Bench().turn()
    changes = {"0": 10, "1": 10, "2": -30, "3": 10}
    result = {"hu_class": "hu_self", "hepai_player_index": 2, "action_tick": 5, "score_changes": changes}
    bench.hear("gamestate/guobiao/show_result", show_result_info=result | {"hu_fan": ["错和"]})
    if lost:
        history = [{"score_history": [text], "round_number_history": [1]} for text in ("+10", "+10", "-30", "+10")]
        bench.lose()
        players = {f"p{index}": player for index, player in enumerate(history)}
        info = game_info(1, [*HAND, 14], tick=5, current_player_index=1, **players)
        info["players_info"][1]["has_draw_slot"] = True
        bench.come_back(info)
    won = {"0": -8, "1": 24, "2": -8, "3": -8}
    out = bench.hear(
        "gamestate/guobiao/show_result",
        show_result_info=result | {"hepai_player_index": 1, "action_tick": 9, "score_changes": won},
    )
    assert told(out, m.HandEnded)[0].scores == (2.0, 34.0, -38.0, 2.0)


def test_the_end_of_a_match_gives_the_room_up():
    bench = Bench().turn()
    data = {str(i): {"score": i, "rank": 1} for i in range(4)}
    out = bench.hear("gamestate/guobiao/game_end", game_end_info={"player_final_data": data})
    assert [(end.reason, end.scores) for end in told(out, m.TableEnded)] == [("normal", (0.0, 1.0, 2.0, 3.0))]
    assert said(out) == [{"type": "room/leave_room", "room_id": "1"}]
    assert bench.memo == {}
