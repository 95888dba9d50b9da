"""The adapter of open_mahjong_unity: a lobby that answers what it does not like with silence."""

from bothost import messages as m
from bothost.lobbies.open_mahjong.asking import MOST_ATTEMPTS

from ..adapter_bench import told
from .bench import Bench, said


def test_trap_an_illegal_move_is_met_by_silence():
    """After ``echo_s`` another action is asked for, under a new id, and less time is left."""
    bench = Bench(echo_s=3.0).turn()
    first = bench.request()
    bench.act("play:W4")
    out = bench.fire("echo")
    (rejected,) = told(out, m.Rejected)
    assert rejected.request_id == first.request_id and rejected.reason.startswith("the lobby did not echo")
    again = bench.request()
    assert again.request_id != first.request_id
    assert (again.grant_ms, again.bank_ms) == (2_000.0, 20_000.0)
    bench.act("play:J1")
    out = bench.do(["cut"], 1, 5, cut_tile=45, cut_class=False)
    assert told(out, m.MoveAcknowledged) == [m.MoveAcknowledged("room-1", again.request_id)]


def test_silence_is_asked_about_a_few_times_only():
    bench = Bench().turn()
    moves = ["W4", "W1", "W2", "W3", "B1", "B2", "B3", "T1", "T2"]
    for _, tile in zip(range(MOST_ATTEMPTS), moves, strict=False):
        bench.act(f"play:{tile}")
        bench.fire("echo")
    assert len(told(bench.out, m.ActionRequest)) == MOST_ATTEMPTS
    assert "echo" not in bench.timers


def test_trap_a_stale_tick_is_met_by_silence_so_every_answer_carries_the_tick_of_its_question():
    bench = Bench().turn()
    assert said(bench.act("play:W4"))[0]["action_tick"] == 4
    assert bench.feed(m.Act("room-1", "another", ("play:W1",))) == []


def test_what_the_lobby_does_not_offer_is_not_even_said():
    bench = Bench().turn()
    out = bench.act("angang:W1")
    assert not said(out) and told(out, m.Rejected) and told(out, m.ActionRequest)


def test_trap_an_unknown_type_is_met_by_silence_and_told_by_us():
    bench = Bench().turn()
    assert bench.hear("fireworks") == [m.Unknown('{"type": "fireworks", "success": true}')]


def test_trap_server_made_moves_carry_is_timeout_action():
    bench = Bench().turn()
    out = bench.do(["cut"], 1, 5, cut_tile=14, cut_class=True, is_timeout_action=True)
    assert told(out, m.ServerActedForUs) == [m.ServerActedForUs("room-1", bench.request().request_id, "play:W4")]
    assert told(out, m.Delta)[0].events == ("play 1 W4",)


def test_a_server_made_move_of_another_is_told_before_its_events():
    bench = Bench().opened()
    bench.do(["deal_tile"], 1, 3, deal_tile=14)
    bench.do(["cut"], 1, 4, cut_tile=45, cut_class=False)
    bench.do(["deal_tile"], 2, 5)
    out = bench.do(["cut"], 2, 6, cut_tile=44, cut_class=True, is_timeout_action=True)
    hand = told(bench.out, m.HandStarted)[0].hand
    assert out[:2] == [m.ServerActedFor("room-1", hand, 2), m.Delta("room-1", hand, out[1].seq, ("play 2 F4",))]


def test_trap_a_clock_that_ran_out_on_a_claim_is_a_pass():
    bench = Bench().opened(tile=41)
    bench.ask_claims(1, ["peng", "pass"], 41, 3)
    out = bench.do(["deal_tile"], 1, 4, deal_tile=19)
    assert told(out, m.ServerActedForUs) == [m.ServerActedForUs("room-1", bench.request().request_id, "pass")]


def test_trap_the_same_is_told_twice():
    bench = Bench().turn()
    before = len(bench.out)
    bench.do(["deal_tile"], 1, 3, deal_tile=14)
    bench.ask_hand(1, ["cut"], 4)
    assert bench.out[before:] == []


def test_a_discard_that_a_later_question_overtook_is_not_lost():
    """The lobby tells some players late of a discard, to give nothing away about claims."""
    bench = Bench().opened()
    bench.do(["deal_tile"], 1, 3, deal_tile=14)
    bench.ask_hand(1, ["cut"], 4)
    bench.act("play:W4")
    bench.ask_hand(2, [], 6)
    assert told(bench.do(["cut"], 1, 5, cut_tile=14, cut_class=True), m.MoveAcknowledged)


def test_trap_the_lobby_lets_who_is_offline_discard_a_flower():
    """Our rules know no such move: the lobby's picture takes over at the next draw."""
    bench = Bench().opened()
    bench.do(["deal_tile"], 1, 3, deal_tile=14)
    bench.ask_hand(1, ["cut"], 4)
    bench.act("play:W4")
    bench.do(["cut"], 1, 5, cut_tile=14, cut_class=True)
    bench.do(["deal_tile"], 2, 6)
    bench.do(["cut"], 2, 7, cut_tile=51, cut_class=True)
    out = bench.do(["deal_tile"], 3, 8)
    (snapshot,) = told(out, m.Snapshot)
    assert (snapshot.view["phase"], snapshot.view["actor"]) == ("turn", 3)
    assert told(bench.do(["cut"], 3, 9, cut_tile=44, cut_class=True), m.Delta)


def test_a_flower_that_nothing_can_replace_is_discarded():
    bench = Bench().play(tile_count=1)
    bench.ask_hand(0, [], 1, opening_buhua_complete=True)
    bench.do(["cut"], 0, 2, cut_tile=43, cut_class=False)
    bench.do(["deal_tile"], 1, 3, deal_tile=58)
    out = bench.ask_hand(1, ["cut"], 4, deal_tile_type="deal_tile")
    assert [(frame["TileId"], frame["cutClass"]) for frame in said(out)] == [(58, True)]
    assert not told(out, m.ActionRequest)
