"""The Botzone adapter after a restart: what a fresh process makes of its memo and of what the lobby repeats."""

import msgspec
import pytest

from bothost import messages as m

from .bench import BLACK, LEAD, A, B, Line, begun, kinds


def test_a_fresh_process_finds_its_matches_and_its_question():
    first = begun()
    first.play("d3")
    first.answered((A, '{"x":2,"y":2}'))
    second = Line(first.memo)
    told = second.answered((A, '{"x":2,"y":2}'))
    assert kinds(told) == ["Connected", "Seated", "Snapshot", "ActionRequest"]
    assert told[0].resumed and told[3].request_id == f"{A}.2" and told[3].seq == 3
    assert msgspec.json.encode(first.memo)
    second.play("b3")
    assert second.carried() == {A: '{"x":1,"y":2}'}


def test_a_fresh_process_does_not_say_again_what_the_lobby_has():
    """The earlier process answered, and was killed: the lobby is a request further."""
    first = begun()
    second = Line(first.memo)
    second.fire("hello")
    assert second.answered((A, '{"x":2,"y":2}')) == []
    told = second.play("d3")
    assert kinds(told) == ["MoveAcknowledged", "Delta", "ActionRequest"]
    assert told[1].events == ("move 0 d3", "move 1 c3")


def test_a_request_that_comes_twice_before_a_fresh_process_is_ready_is_one():
    """We led, and were killed; both passed. The log is slow to show our lead, and the lobby repeats its request."""
    first = Line()
    first.answered((A, LEAD))
    second = Line(first.memo)
    second.fire("hello")
    second.answered((A, '{"history":[[],[]]}'))
    second.fire("gather")
    second.answered((A, '{"history":[[],[]]}'))
    assert kinds(second.play("4")) == ["MoveAcknowledged", "Delta", "ActionRequest"]
    assert second.play("5") == []
    assert second.memo["matches"][A]["turns"][1:] == [['{"history":[[],[]]}', [8]]]


def test_a_fresh_process_waits_to_be_asked_again():
    first = begun()
    second = Line(first.memo)
    second.fire("hello")
    second.play("d3")
    second.answered()
    second.fire("again")
    assert second.carried() == {}
    second.answered((A, BLACK))
    assert second.carried() == {A: '{"x":3,"y":2}'}


def test_a_fresh_process_knows_that_it_answered():
    """We led, and were killed; both passed: the request is what it was before, and the next one."""
    first = Line()
    first.answered((A, LEAD))
    first.play("4")
    first.answered((A, '{"history":[[],[]]}'))
    first.play("5")
    second = Line(first.memo)
    told = second.answered((A, '{"history":[[],[]]}'))
    assert kinds(told) == ["Connected", "Seated", "Snapshot", "Delta", "ActionRequest"]
    assert told[3].events == ("play 0 5", "pass 1", "pass 2")
    third = Line(first.memo)
    third.fire("hello")
    third.failed(0, b"ReadTimeout")
    assert third.carried() == {A: "[8]"}, "where nothing comes, it was not heard"


def test_a_fresh_process_knows_which_answers_never_left():
    """We led, and were stopped while another match's answer was due: the same request again is the same one."""
    first = Line()
    first.answered((A, LEAD))
    first.play("4")
    first.answered((A, '{"history":[[],[]]}'), (B, BLACK))
    request = next(e for e in reversed(first.events) if isinstance(e, m.ActionRequest) and e.table == A)
    first.do(m.Act(A, request.request_id, ("5",)))
    assert first.polls == 2, "the next poll waits for the other match"
    second = Line(first.memo)
    told = second.answered((A, '{"history":[[],[]]}'), (B, BLACK))
    assert "Delta" not in kinds(told)
    second.play("d3")
    assert second.carried() == {A: "[8]", B: '{"x":3,"y":2}'}
    assert [*second.memo["matches"][A]["turns"][-1]] == ['{"history":[[],[]]}', [8]]


def test_an_answer_that_waited_for_a_timer_is_remembered_as_sent():
    first = begun()
    first.play("d3")
    first.failed(502)
    first.fire("again")
    first.answered((A, BLACK))
    assert first.carried() == {A: '{"x":3,"y":2}'} and first.memo["matches"][A]["sent"]


def test_memos_of_earlier_versions_do_not_say_what_was_sent():
    first = begun()
    first.play("d3")
    del first.memo["matches"][A]["sent"]
    second = Line(first.memo)
    told = second.answered((A, '{"x":2,"y":2}'))
    assert kinds(told) == ["Connected", "Seated", "Snapshot", "Delta", "ActionRequest"]


@pytest.mark.parametrize(
    "memo", [{}, {"matches": 3}, {"matches": {A: None, "no id!": {}}}, {"matches": {A: {"game": 1}}}]
)
def test_a_memo_that_makes_no_sense_is_passed_over(memo):
    assert kinds(Line(memo).fire("hello")) == ["Connected"]


def test_tables_of_which_nothing_is_remembered_are_aborted():
    line = Line()
    line.fire("hello")
    told = line.do(m.Resume((B,), {}))
    assert told == [m.TableEnded(B, "aborted", detail="the memo has no record of this match")]


def test_a_snapshot_is_ours_to_tell():
    line = begun(time_limit_s=10.0)
    told = line.do(m.Resync(A))
    assert kinds(told) == ["Snapshot", "ActionRequest"]
    assert told[1].grant_ms == 5000.0, "part of it has passed, and nothing says how much"
