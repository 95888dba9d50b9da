"""A seat after a reconnect or a crash: the answers and refusals from before it."""

from table_seat import Seat

from bothost.messages import RequestWithdrawn
from bothost.tables.hand import HandOpening, Logged, SnapshotTaken


def test_a_clock_of_0_after_a_reconnect_waits_for_the_snapshot_and_stays_legal(seat):
    """lichess-bot#1053."""
    seat.session.disconnected()
    assert seat.ask(grant_ms=0.0) == []
    [job] = seat.snapshot()
    seat.now = job.window.fallback
    job.link = 1
    [answer] = seat.session.requests.expire(job.hand, seat.now)
    assert seat.game.parse(answer.actions[0]) in seat.state.legal(seat.seat)


def test_after_a_reconnect_the_same_request_gets_the_same_answer(seat):
    answer = seat.answer(request_id="r")
    assert seat.session.requests.may_send(answer)
    seat.session.disconnected()
    assert not seat.session.requests.may_send(answer)
    assert seat.snapshot() == []
    assert seat.ask("r") == [answer]
    assert seat.session.requests.may_send(answer)


def test_after_a_reconnect_the_same_position_under_a_new_request_gets_the_same_answer(seat):
    answer = seat.answer(request_id="old")
    assert seat.session.requests.may_send(answer)
    seat.session.disconnected()
    seat.snapshot()
    assert seat.ask("new") == [answer]
    assert answer.request_id == "new"


def test_after_a_crash_a_pending_request_gets_the_logged_answer():
    seat = Seat(resumed=True)
    outputs = seat.snapshot()
    assert list(map(type, outputs)) == [HandOpening, SnapshotTaken]
    assert outputs[0].lookup
    assert seat.ask("r") == [], "nothing is decided before the log was asked"
    action = seat.game.notation(int(seat.state.legal(seat.seat)[-1]))
    logged = Logged("r", seat.session.hand.view.seq, 0, (b"id",), (action,))
    [answer] = seat.open(seat.session.hand, [logged])
    assert answer.actions == (action,) and answer.steps == () and answer.ids == (b"id",)
    assert seat.session.requests.may_send(answer)


def test_after_a_crash_a_rejected_move_is_not_tried_again():
    seat = Seat(resumed=True)
    seat.snapshot()
    first = int(seat.state.legal(seat.seat)[0])
    logged = Logged("r", seat.session.hand.view.seq, 0, (b"id",), (seat.game.notation(first),), rejected=True)
    seat.open(seat.session.hand, [logged])
    job = seat.job(request_id="r2")
    assert job.attempt == 1
    assert first not in job.legal


def test_after_a_crash_no_rejected_move_is_tried_again_although_their_requests_have_one_name():
    """An adapter may name a request by its position: a second one replaced the first."""
    seat = Seat(resumed=True)
    seat.snapshot()
    first, second = (int(action) for action in seat.state.legal(seat.seat)[:2])
    seq = seat.session.hand.view.seq
    logged = [
        Logged("r", seq, attempt, (b"id",), (seat.game.notation(action),), rejected=True)
        for attempt, action in enumerate((first, second))
    ]
    seat.open(seat.session.hand, logged)
    job = seat.job(request_id="r")
    assert job.attempt == 2
    assert not {first, second} & set(job.legal)


def test_after_a_crash_a_new_decision_has_another_number_than_the_logged_one():
    seat = Seat(resumed=True)
    seat.snapshot()
    action = seat.game.notation(int(seat.state.legal(seat.seat)[-1]))
    seat.open(seat.session.hand, [Logged("r", seat.session.hand.view.seq, 2, (b"id",), (action,))])
    [again] = seat.ask("r")
    assert seat.session.requests.may_send(again)
    seat.feed(RequestWithdrawn("t", "r"))
    assert seat.job(request_id="r2").attempt == 3
