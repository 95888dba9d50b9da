"""The Botzone adapter, input by input: every trap of the lobby by name, and every capability."""

import json

import pytest

from bothost import messages as m
from bothost.lobbies.botzone import Botzone
from bothost.lobbies.botzone import protocol as wire
from bothost.lobbies.botzone.adapter import MAX_REQUESTS, MAX_UNSEATED

from . import test_resume
from .bench import BLACK, LEAD, SECRET, TOKEN, A, B, Line, begun, kinds

# ------------------------------------------------------------------------------------------------------------ polls


def test_the_get_blocks_until_something_is_to_do():
    line = Line()
    assert line.poll.method == "GET" and line.poll.url == TOKEN
    assert line.poll.timeout_s == 120.0
    assert line.events == []
    assert kinds(line.fire("hello")) == ["Connected"], "that it stands is all that logging in can be"
    assert line.polls == 1


def test_answers_go_as_headers_on_the_next_get():
    line = begun()
    assert kinds(line.events) == ["Connected", "Seated", "HandStarted", "Delta", "ActionRequest"]
    assert line.polls == 1, "the next poll waits for the answer"
    line.play("d3")
    assert line.polls == 2 and line.carried() == {A: '{"x":3,"y":2}'}


def test_several_matches_at_once_share_a_poll():
    line = Line()
    line.answered((A, BLACK), (B, '{"x":2,"y":3}'))
    questions = [event for event in line.events if isinstance(event, m.ActionRequest)]
    assert [question.table for question in questions] == [A, B]
    line.do(m.Act(A, questions[0].request_id, ("d3",)))
    assert line.polls == 1
    line.do(m.Act(B, questions[1].request_id, ("c3",)))
    assert line.carried().keys() == {A, B}


def test_a_host_that_does_not_answer_holds_up_no_other_match():
    line = Line()
    line.answered((A, BLACK), (B, '{"x":2,"y":3}'))
    line.play("c3")
    assert line.polls == 1
    line.fire("gather")
    assert line.carried() == {B: '{"x":2,"y":2}'} and line.poll.timeout_s < 30


def test_an_echo_is_the_next_request_or_a_poll_that_stands():
    line = begun()
    line.play("d3")
    assert kinds(line.fire("taken")) == ["MoveAcknowledged"]
    told = line.answered((A, '{"x":2,"y":2}'))
    assert kinds(told) == ["Delta", "ActionRequest"]
    assert told[0].events == ("move 0 d3", "move 1 c3")


def test_an_aborted_match_is_neither_won_nor_lost():
    line = begun()
    line.play("d3")
    told = line.answered(finished=[f"{A} 0 0"])
    assert kinds(told) == ["HandEnded", "TableEnded"]
    assert (told[0].scores, told[1].reason) == (None, "aborted")


def test_the_end_tells_the_scores_by_seat():
    line = begun()
    line.play("d3")
    told = line.answered(finished=[f"{A} 0 2 2 0"])
    assert [e.scores for e in told if isinstance(e, m.TableEnded | m.HandEnded)] == [(2.0, 0.0)] * 2
    assert line.memo["matches"] == {}


@pytest.mark.parametrize("status", [502, 504])
def test_502_and_504_are_retried_after_five_seconds(status):
    line = begun()
    line.play("d3")
    assert line.failed(status) == []
    assert line.timers["again"] == 5.0 and line.polls == 2
    line.fire("again")
    assert line.polls == 3 and line.carried() == {}, "an answer that was heard would count as the next move"


def test_an_answer_that_was_not_heard_is_asked_for_again():
    line = begun()
    line.play("d3")
    line.failed(502)
    line.fire("again")
    assert line.answered((A, BLACK)) == []
    assert line.carried() == {A: '{"x":3,"y":2}'}


def test_a_request_that_is_told_again_and_again_is_answered_once_a_second():
    line = begun()
    line.play("d3")
    assert line.answered((A, BLACK)) == [] and line.polls == 3
    for polls in (4, 5):
        line.answered((A, BLACK))
        assert line.polls == polls - 1
        line.fire("again")
        assert line.carried() == {A: '{"x":3,"y":2}'}


def test_an_answer_that_was_heard_is_not_said_again():
    line = begun()
    line.play("d3")
    line.failed(504)
    line.fire("again")
    assert kinds(line.answered((A, '{"x":2,"y":2}'))) == ["MoveAcknowledged", "Delta", "ActionRequest"]
    line.play("b3")
    assert line.carried() == {A: '{"x":1,"y":2}'}


def test_an_answer_that_nobody_asks_for_again_is_said_again_once():
    """If the lobby sends a request only once, it would wait for ever."""
    line = begun()
    line.play("d3")
    line.failed(502)
    line.fire("again")
    assert line.poll.timeout_s == 10.0
    line.failed(0, b"ReadTimeout")
    assert line.carried() == {A: '{"x":3,"y":2}'}


def test_the_same_words_may_be_another_request():
    """We led, both passed: the request is what it was before."""
    line = Line()
    line.answered((A, LEAD))
    line.play("4")
    line.answered((A, '{"history":[[],[]]}'))
    line.play("5")
    told = line.answered((A, '{"history":[[],[]]}'))
    assert [e.events for e in told if isinstance(e, m.Delta)] == [("play 0 5", "pass 1", "pass 2")]
    line.play("6")
    line.failed(504)
    line.fire("again")
    told = line.answered((A, '{"history":[[],[]]}'))
    assert [e.events for e in told if isinstance(e, m.Delta)] == [("play 0 6", "pass 1", "pass 2")]


@pytest.mark.parametrize(
    ("requests", "words", "said"),
    [
        ([LEAD], ["4"], "[4]"),
        (["0 1 2"], [], "PASS"),
        (["0 1 2", "1 0 0 0 0 W1 W1 W4 W5 T1 T2 T3 B1 B2 B3 F1 F2 J1"], [], "PASS"),
    ],
    ids=["cards", "seat", "tiles"],
)
def test_a_deal_that_is_told_again_is_no_new_request(requests, words, said):
    """A 504 may hide that the answer was lost."""
    line = Line()
    for request in requests:
        line.answered((A, request))
    if words:
        line.play(*words)
    line.failed(504)
    line.fire("again")
    assert line.answered((A, requests[-1])) == []
    assert line.carried() == {A: said}


def test_polls_that_fail_for_long_are_a_lost_connection():
    line = begun()
    line.play("d3")
    for _ in range(3):
        assert line.failed(502) == []
        line.fire("again")
    (lost,) = line.failed(502)
    assert isinstance(lost, m.Disconnected) and lost.retry_after_s == 5.0
    line.do(m.Resume((A,), line.memo))
    assert line.carried() == {}
    told = line.answered((A, BLACK))
    assert kinds(told) == ["Connected", "Seated", "Snapshot"] and told[0].resumed
    assert line.carried() == {A: '{"x":3,"y":2}'}


def test_polls_that_bring_nothing_new_are_not_repeated_at_once():
    line = Line()
    line.answered()
    assert line.polls == 1 and line.timers["again"] == 1.0


# ----------------------------------------------------------------------------------------------------------- secrets


def test_the_whole_url_is_a_secret():
    line = begun()
    line.play("d3")
    line.failed(0, b"ConnectError")
    line.do(m.HttpResult(line.poll.request, 200, (), b"<html>"))
    assert SECRET not in repr(line.events) and SECRET not in repr(line.adapter.account)
    assert SECRET not in json.dumps(line.memo)


@pytest.mark.parametrize("token", [TOKEN, TOKEN.removesuffix("/localai"), f"5f0000/{SECRET}"])
def test_the_address_may_be_given_whole(token):
    assert Line(token=token).poll.url == TOKEN


def test_a_bare_secret_needs_the_users_id_as_name():
    assert wire.address("https://b.example", "5f0000", SECRET) == f"https://b.example/api/5f0000/{SECRET}"


def test_the_address_of_a_websocket_stands_for_that_of_http():
    assert wire.address("wss://b.example/", "5f0000", SECRET) == f"https://b.example/api/5f0000/{SECRET}"


def test_a_secret_in_the_url_is_refused_without_being_quoted():
    with pytest.raises(ValueError, match="token") as refused:
        wire.address(TOKEN, "ada", "x")
    assert SECRET not in str(refused.value)
    assert kinds(Line(token="").events) == ["AuthFailed"]


def test_a_wrong_secret_ends_the_account():
    line = Line()
    assert kinds(line.failed(404)) == ["AuthFailed"]
    line = Line()
    line.fire("hello")
    assert kinds(line.failed(403)) == ["AuthFailed"], "that a poll stood for a while proves no secret"
    line = begun()
    line.play("d3")
    assert line.failed(404) == [], "it was good: the lobby is in trouble"


# ---------------------------------------------------------------------------------------------------------- matches


def order(**attributes):
    line = Line()
    line.fire("hello")
    line.do(m.Seek("s", m.Wish("othello", {}, {"opponents": ["bot-1"], "slot": 1, **attributes})))
    return line


def test_a_match_is_ordered_by_headers():
    line = order(initdata={"seed": 1})
    call = line.calls[-1]
    assert call.url.endswith("/runmatch") and call.method == "GET"
    assert dict(call.headers) == {
        "User-Agent": "bothost",
        "X-Game": "Reversi",
        "X-Player-0": "bot-1",
        "X-Player-1": "me",
        "X-Initdata": '{"seed":1}',
        "X-UseSimpleIO": "false",
        "X-Timelimit": "10",
    }
    assert line.do(m.HttpResult(call.request, 200, (), A.encode())) == []
    told = line.answered((A, '{"x":2,"y":3}'))
    assert told[0] == m.Seated(
        A, "othello", {}, 1, told[0].players, {"botzone": "Reversi", "players": ["bot-1", "me"]}, "s"
    )


def test_without_a_slot_we_sit_at_one_seat_after_another():
    line = Line()
    line.fire("hello")
    seats = []
    for number in range(4):
        line.do(m.Seek(f"s{number}", m.Wish("othello", {}, {"opponents": ["bot-1"]})))
        call = line.calls[-1]
        seats += [slot for slot in (0, 1) if (f"X-Player-{slot}", "me") in call.headers]
        line.do(m.HttpResult(call.request, 403, (), b"too many matches"))
        line.fire("start")
        line.answered()
        line.fire("again")
    assert seats == [0, 1, 0, 1]


def test_a_first_request_may_be_faster_than_the_orders_answer():
    line = order()
    call = line.calls[-1]
    assert line.answered((A, '{"x":2,"y":3}')) == []
    told = line.do(m.HttpResult(call.request, 200, (), A.encode()))
    assert told[0].seek == "s"


def test_a_refused_order_ends_the_seek():
    line = order()
    (ended,) = line.do(m.HttpResult(line.calls[-1].request, 403, (), b"too many matches"))
    assert ended == m.SeekEnded("s", "no match: HTTP 403 too many matches")
    assert "start" in line.timers, "orders keep their distance"


def test_a_match_that_people_made_fulfils_a_seek_without_opponents():
    line = Line()
    line.fire("hello")
    line.do(m.Seek("s", m.Wish("othello")))
    assert len(line.calls) == 1
    told = line.answered((A, BLACK))
    assert told[0].seek == "s"


@pytest.mark.parametrize(
    "attributes",
    [{"opponents": []}, {"opponents": ["a", "b"]}, {"botzone": "Gomoku"}, {"oponents": ["a"]}]
    + [{"opponents": ["a"], "slot": slot} for slot in (2, -1, "1")],
)
def test_wishes_that_make_no_sense(attributes):
    line = Line()
    line.fire("hello")
    assert kinds(line.do(m.Seek("s", m.Wish("othello", {}, attributes)))) == ["SeekEnded"]


def test_leaving_aborts_the_match():
    line = begun()
    assert kinds(line.do(m.Leave(A))) == ["TableEnded"]
    assert line.calls[-2].url.endswith("/abortmatch") and ("X-Matchid", A) in line.calls[-2].headers
    assert line.answered((A, BLACK)) == [], "what is still said of it does not concern us"


def test_a_match_that_has_ended_does_not_begin_again():
    """An old answer to a poll, which a proxy repeats."""
    line = begun()
    line.play("d3")
    line.answered(finished=[f"{A} 0 2 2 0"])
    assert line.answered((A, BLACK)) == []
    line.fire("again")
    assert line.answered(finished=[f"{A} 0 2 2 0"]) == []
    assert line.timers["again"] == 1.0, "nothing new, so the next poll is not sent at once"


def test_a_match_of_which_nothing_is_heard_is_given_up():
    line = begun()
    line.play("d3")
    (ended,) = line.fire(f"stall:{A}")
    assert ended.reason == "aborted"


def test_a_match_that_was_never_understood_is_given_up_after_a_reconnect_too():
    line = Line()
    line.answered((A, "another game"))
    for _ in range(3):
        line.failed(502)
        line.fire("again")
    line.failed(502)
    assert f"stall:{A}" not in line.timers
    line.do(m.Resume((), line.memo))
    line.answered()
    line.fire(f"stall:{A}")
    assert line.memo["matches"] == {}


def test_matches_and_requests_without_end_do_not_pile_up():
    line = Line()
    line.answered(*((f"m{number}", "another game") for number in range(500)))
    assert len(line.memo["matches"]) == MAX_UNSEATED
    line = begun()
    line.play("d3")
    for number in range(MAX_REQUESTS):
        line.answered((A, f"another request {number}"))
    assert line.events[-1] == m.TableEnded(A, "aborted", detail=f"more than {MAX_REQUESTS} requests")
    assert line.memo["matches"] == {} and any(call.url.endswith("/abortmatch") for call in line.calls)


def test_requests_that_only_want_to_be_heard_are_passed():
    line = Line()
    line.answered((A, "0 1 2"))
    assert line.carried() == {A: "PASS"} and kinds(line.events) == ["Connected"]
    line.answered((A, "1 0 0 0 0 W1 W1 W4 W5 T1 T2 T3 B1 B2 B3 F1 F2 J1"))
    assert line.carried() == {A: "PASS"}
    line.answered((A, "3 0 DRAW"))
    line.answered((A, "3 0 PLAY W1"))
    line.play("peng:W1", "play:J1")
    assert line.carried() == {A: "PENG J1"}


def test_flowers_that_come_late_open_the_table_anew():
    line = Line()
    line.answered((A, "0 1 2"))
    line.answered((A, "1 0 0 0 0 W1 W1 W4 W5 T1 T2 T3 B1 B2 B3 F1 F2 J1"))
    told = line.answered((A, "3 0 BUHUA H3"))
    assert kinds(told) == ["TableEnded", "Seated", "Snapshot"] and told[1].rules["flowers"] is True
    assert line.carried() == {A: "PASS"}


def test_a_match_that_is_not_understood_is_played_on():
    line = Line()
    line.answered((A, "0 1 2"))
    line.answered((A, "1 0 0 0 0 W1 W1 W4 W5 T1 T2 T3 B1 B2 B3 F1 F2 J1"))
    told = line.answered((A, "3 2 WHAT"))
    assert kinds(told) == ["Notice"] and line.carried() == {A: "PASS"}
    line.answered((A, "2 T7"))
    assert line.carried() == {A: "PLAY T7"}


def test_cards_that_were_led_without_a_view_are_not_led_again():
    line = Line()
    line.answered((A, LEAD))
    line.play("4")
    assert kinds(line.answered((A, '{"history":[[52],[53]]}'))) == ["MoveAcknowledged", "Delta", "ActionRequest"]
    line.play("pass")
    assert kinds(line.answered((A, '{"history":[[52],[]]}'))) == ["MoveAcknowledged", "Notice"]
    led = []
    for _ in range(3):
        line.answered((A, '{"history":[[],[]]}'))
        led += line.carried().values()
    assert len({*led}) == 3 and "[4]" not in led


@pytest.mark.parametrize("tile", ["T\x00", "東", "\x7f"])
def test_a_tile_that_no_header_can_carry_is_not_said_back(tile):
    line = Line()
    line.answered((A, "0 1 2"))
    line.answered((A, "1 0 0 0 0 W1 W1 W4 W5 T1 T2 T3 B1 B2 B3 F1 F2 J1"))
    line.answered((A, "3 2 WHAT"))
    line.answered((A, f"2 {tile}"))
    assert line.polls == 5 and line.carried() == {}
    line.answered((A, "2 T7"))
    assert line.carried() == {A: "PLAY T7"}


def test_illegal_answers_are_told_by_nothing_but_the_end():
    """rejects_illegal: silence."""
    line = begun()
    line.play("d3")
    assert "Rejected" not in kinds(line.answered(finished=[f"{A} 0 2 0 2"]))


# ----------------------------------------------------------------------------------------------------- capabilities


def test_nobody_can_talk():
    assert not Botzone.capabilities.chat
    assert Line().do(m.Say("t", "hello")) == []


PROVEN = {
    "games": test_the_get_blocks_until_something_is_to_do,
    "tables_per_connection": test_several_matches_at_once_share_a_poll,
    "connections_per_identity": test_the_get_blocks_until_something_is_to_do,
    "acks_moves": test_an_echo_is_the_next_request_or_a_poll_that_stands,
    "rejects_illegal": test_illegal_answers_are_told_by_nothing_but_the_end,
    "sends_turn": test_requests_that_only_want_to_be_heard_are_passed,
    "sends_legal_actions": test_answers_go_as_headers_on_the_next_get,
    "takes_composites": test_requests_that_only_want_to_be_heard_are_passed,
    "clock": test_a_match_is_ordered_by_headers,
    "resume": test_resume.test_a_fresh_process_finds_its_matches_and_its_question,
    "resume_delivers": test_resume.test_a_fresh_process_waits_to_be_asked_again,
    "heartbeat": test_the_get_blocks_until_something_is_to_do,
    "messages_per_second": test_polls_that_bring_nothing_new_are_not_repeated_at_once,
    "on_rate_limit": test_polls_that_bring_nothing_new_are_not_repeated_at_once,
    "plays_for_us": test_a_host_that_does_not_answer_holds_up_no_other_match,
    "transport": test_the_get_blocks_until_something_is_to_do,
    "chat": test_nobody_can_talk,
    "needs_secret": test_a_secret_in_the_url_is_refused_without_being_quoted,
}


def test_every_capability_is_proven():
    assert PROVEN.keys() == set(Botzone.capabilities.__struct_fields__)
