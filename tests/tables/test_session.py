"""One seat at one table: folding, asking once, answering before the deadline."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table_seat import Seat

import bothost.rules as rules
from bothost.messages import (
    ActionRequest,
    Delta,
    HandEnded,
    HandStarted,
    MoveAcknowledged,
    PlayerInfo,
    Rejected,
    RequestWithdrawn,
    Seated,
    ServerActedForUs,
    TableEnded,
)
from bothost.strategy import Decision
from bothost.tables.clock import NEVER
from bothost.tables.conduct import Conduct, TableKey
from bothost.tables.hand import (
    Answer,
    Closed,
    GaveUp,
    HandClosed,
    HandOpening,
    Job,
    Late,
    NeedSnapshot,
    Outcome,
    SnapshotTaken,
)
from bothost.tables.requests import MAX_ATTEMPTS
from bothost.tables.session import Session
from bothost.tables.trust import MAX_RESYNCS


def kinds(outputs):
    return [type(output) for output in outputs]


def test_a_request_becomes_a_job_and_its_decision_an_answer(seat):
    job = seat.job(request_id="ask-1")
    assert list(job.legal) == list(seat.state.legal(seat.seat))
    assert job.seq == seat.session.hand.view.seq
    [answer] = seat.decide(job)
    assert answer.request_id == "ask-1"
    assert answer.actions == (seat.game.notation(int(job.legal[0])),)
    assert seat.session.requests.may_send(answer)


@pytest.mark.parametrize(
    ("wait_ms", "leaves_after_s"),
    [(None, 0.0), (0.0, 0.0), (-1.0, 0.0), (float("nan"), 0.0), (400.0, 0.4), (1e9, None)],
)
def test_a_decision_may_wait_but_not_beyond_the_deadline(seat, wait_ms, leaves_after_s):
    """``leaves_after_s`` None: at the deadline."""
    job = seat.job(grant_ms=5000.0)
    decision = Decision(action=int(job.legal[0]), wait_ms=wait_ms)
    [answer] = seat.session.requests.decided(job, job.ticket, decision, None, seat.now)
    window = job.window
    assert answer.not_before == (window.answer if leaves_after_s is None else window.arrival + leaves_after_s)


@pytest.mark.parametrize(
    "scores", [(1.0,), (), (1.0, 2.0, 3.0, 4.0), (float("nan"), 0.0, 0.0), (float("inf"), 0.0, 0.0)]
)
def test_scores_that_are_none_are_dropped(scores):
    for event in (HandEnded("t", "h", scores), TableEnded("t", "normal", scores)):
        seat = Seat().start()
        closed = next(output for output in seat.feed(event) if isinstance(output, HandClosed))
        assert (closed.reason, closed.scores) == ("normal", None)


def test_our_seat_is_that_of_the_hand_and_after_it_of_the_last():
    players = PlayerInfo("17", 0, "ada"), PlayerInfo("666", 1, "ada")
    session = Session(TableKey("l", "a", "t"), Seated("t", "othello", {}, None), rules.game("othello"), Conduct())
    assert session.seat is None
    session.feed(HandStarted("t", "h", 1, players), 0.0)
    session.feed(HandEnded("t", "h", (1.0, -1.0)), 0.0)
    session.feed(Seated("t", "othello", {}, None), 0.0)  # a resume that names no one
    assert (session.seat, session.players) == (1, players)
    session.feed(Seated("t", "othello", {}, None, players), 0.0)
    assert session.seat is None


def test_what_belongs_to_no_known_hand_is_dropped():
    seat = Seat()
    assert seat.feed(Delta("t", "unknown", 0, ("x",))) == []
    assert seat.feed(ActionRequest("t", "unknown", "r", 1000.0)) == []
    seat.start()
    seat.feed(HandEnded("t", "h", None))
    assert seat.ask() == []


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000), st.randoms(use_true_random=False))
def test_a_whole_hand_the_view_follows_the_truth(seed, rng):
    seat = Seat(seed=seed).start()
    for _ in range(400):
        if seat.state.terminal:
            break
        if seat.seat not in seat.state.to_act:
            seat.other()
            continue
        seat.tell()
        job = seat.job()
        [answer] = seat.decide(job, int(rng.choice(list(job.legal))))
        assert seat.session.requests.may_send(answer)
        seat.play(answer.actions[0])
        assert seat.session.hand.view.to_bytes() == seat.state.view(seat.seat).to_bytes()
    assert seat.state.terminal
    outputs = seat.feed(HandEnded("t", "h", seat.state.returns))
    assert kinds(outputs) == [HandClosed]
    assert seat.session.hand is None


def test_a_gap_needs_a_snapshot_before_anything_is_decided(seat):
    seq = seat.session.hand.view.seq
    assert kinds(seat.feed(Delta("t", "h", seq + 1, ("pass 0",)))) == [NeedSnapshot]
    assert seat.ask() == [], "asked on a view that may be wrong"
    [job] = seat.snapshot()
    assert list(job.legal) == list(seat.state.legal(seat.seat))


def test_an_impossible_event_needs_a_snapshot(seat):
    seq = seat.session.hand.view.seq
    assert kinds(seat.feed(Delta("t", "h", seq, ("no such event",)))) == [NeedSnapshot]


def test_events_that_came_twice_count_once(seat):
    events = tuple(seat.state.events(seat.seat))
    assert seat.feed(Delta("t", "h", 0, events)) == []
    assert seat.session.hand.view.seq == len(events)


def test_a_lobby_that_never_mends_is_met_with_silence_not_a_loop(seat):
    outputs = []
    for _ in range(20):
        outputs += seat.feed(Delta("t", "h", 999, ("x",)))
        outputs += seat.snapshot()
    assert kinds(outputs).count(NeedSnapshot) == MAX_RESYNCS
    assert kinds(outputs).count(GaveUp) == 1


def test_a_request_is_answered_once(seat):
    answer = seat.answer(request_id="r")
    assert seat.session.requests.may_send(answer)
    assert not seat.session.requests.may_send(answer)
    assert seat.ask("r") == [], "the lobby repeats the request that we answered"
    [job] = seat.ask("s")
    assert seat.ask("r") == []
    [other] = seat.decide(job)
    assert seat.session.requests.may_send(other), "the open request is still open"
    assert seat.ask("r") == seat.ask("s") == []


def test_the_answer_to_a_superseded_request_is_discarded(seat):
    job = seat.job(request_id="old")
    ticket = job.ticket
    [newer] = seat.ask("new")
    assert seat.session.requests.decided(job, ticket, Decision(action=int(job.legal[0])), None, seat.now) == []
    assert kinds(seat.decide(newer)) == [Answer]


def test_a_withdrawn_request_is_not_answered(seat):
    job = seat.job(request_id="r")
    ticket = job.ticket
    assert seat.feed(RequestWithdrawn("t", "r")) == []
    assert seat.session.requests.decided(job, ticket, Decision(action=int(job.legal[0])), None, seat.now) == []


def test_a_move_that_the_server_made_is_noted(seat):
    answer = seat.answer(request_id="r")
    [outcome] = seat.feed(ServerActedForUs("t", "r", "pass"))
    assert isinstance(outcome, Outcome) and outcome.kind == "server_acted"
    assert seat.session.hand.away == {seat.seat}
    assert not seat.session.requests.may_send(answer)


@pytest.mark.parametrize("action", [-1, 10**9, np.int64(-3)])
def test_an_illegal_decision_falls_back_and_then_replaced_by_the_first_legal_one(seat, action):
    job = seat.job()
    [again] = seat.decide(job, action)
    assert again is job and job.link and job.reason == "illegal"
    [answer] = seat.decide(job, action, by="fallback")
    assert answer.steps[0].decided_by == "first-legal"
    assert answer.steps[0].reason == "illegal"
    assert answer.actions == (seat.game.notation(int(seat.state.legal(seat.seat)[0])),)


def test_numpy_integers_are_actions(seat):
    job = seat.job()
    assert kinds(seat.decide(job, np.int32(job.legal[-1]))) == [Answer]


def test_an_error_goes_down_the_chain_and_the_reason_stays(seat):
    job = seat.job()
    [again] = seat.session.requests.decided(job, job.ticket, None, "error", seat.now)
    assert again is job
    [answer] = seat.decide(job, by="quick")
    assert (job.decided_by, job.reason) == ("quick", "error")
    assert answer.steps == (job,)


def test_before_the_deadline_there_is_an_answer_even_if_nobody_decides(seat):
    job = seat.job(grant_ms=1000.0)
    hand, first_ticket = job.hand, job.ticket
    assert hand.due_at == job.window.late
    seat.now = hand.due_at
    assert kinds(seat.session.requests.expire(hand, seat.now)) == [Late, Job]
    seat.now = hand.due_at
    assert seat.now == job.window.fallback
    [answer] = seat.session.requests.expire(hand, seat.now)
    assert answer.steps[0].decided_by == "first-legal" and answer.steps[0].reason == "late"
    assert seat.now < job.window.answer
    late = Decision(action=int(job.legal[1]))
    assert seat.session.requests.decided(job, first_ticket, late, None, seat.now) == [], "what comes later is void"


def test_a_rejected_move_is_followed_by_another_legal_one_and_bounded(seat):
    tried = []
    for attempt in range(MAX_ATTEMPTS):
        job = seat.job()
        assert job.attempt == attempt
        [answer] = seat.decide(job)
        assert seat.session.requests.may_send(answer)
        tried.append(answer.actions[0])
        [outcome] = seat.feed(Rejected("t", answer.request_id, "illegal"))
        assert outcome.kind == "rejected"
    assert len(set(tried)) == MAX_ATTEMPTS
    assert kinds(seat.ask()) == [GaveUp]
    assert seat.ask() == []


@pytest.mark.parametrize("news", [[RequestWithdrawn("t", "r")], [ServerActedForUs("t", "r", None)], []])
def test_each_decision_at_a_position_has_a_number_of_its_own(seat, news):
    """It is a part of the row's key: with the number of the first, the second would not be logged."""
    first = seat.answer(request_id="r")
    assert seat.session.requests.may_send(first)
    for message in news:
        seat.feed(message)
    for attempt in range(1, MAX_ATTEMPTS + 3):
        answer = seat.answer()
        assert answer.attempt == attempt, "the lobby has refused nothing, so it may go on"
        assert seat.session.requests.may_send(answer)


@pytest.mark.parametrize(
    "late", [Rejected("t", "r", "stale"), RequestWithdrawn("t", "r"), ServerActedForUs("t", "r", None)]
)
def test_late_news_of_an_earlier_answer_leaves_the_open_request_its_deadline_and_its_actions(seat, late):
    answer = seat.answer(request_id="r")
    assert seat.session.requests.may_send(answer)
    seat.play(answer.actions[0])
    [job] = seat.ask("next")
    due_at = job.hand.due_at
    assert kinds(seat.feed(late)) == [Outcome]
    assert job.hand.due_at == due_at < NEVER
    assert job.hand.rejected == [], "nothing was refused at this position"


def test_an_answer_that_waited_through_a_reconnect_is_not_sent_at_another_position(seat):
    """It waited for the database or the tempo of a person, and the lobby moved for us."""
    answer = seat.answer(request_id="r")
    seat.session.disconnected()
    seat.state.apply(seat.seat, seat.game.parse(answer.actions[0]))
    outputs = seat.snapshot()
    assert [output.kind for output in outputs if isinstance(output, Outcome)] == ["superseded"]
    assert not seat.session.requests.may_send(answer)


def test_an_answer_that_still_waits_when_play_goes_on_without_it_is_not_sent(seat):
    answer = seat.answer()
    seat.state.apply(seat.seat, seat.game.parse(answer.actions[0]))  # the lobby moved for us
    [superseded] = seat.tell()
    assert superseded == Outcome(answer, "superseded")
    assert not seat.session.requests.may_send(answer)


def test_a_rejection_that_needs_a_resync_waits_for_it(seat):
    answer = seat.answer()
    seat.session.requests.may_send(answer)
    outputs = seat.feed(Rejected("t", answer.request_id, "stale", resync=True))
    assert kinds(outputs) == [Outcome, NeedSnapshot]
    assert seat.ask() == []
    assert kinds(seat.snapshot()) == [Job]


def test_no_sign_that_our_move_arrived_asks_for_a_snapshot(seat):
    answer = seat.answer()
    seat.session.requests.may_send(answer)
    seat.session.requests.expect_echo(answer, seat.now)
    hand = seat.session.hand
    assert kinds(seat.session.requests.expire(hand, hand.due_at)) == [NeedSnapshot]


def test_the_echo_of_our_move_is_the_acknowledgement_where_the_lobby_sends_no_other():
    seat = Seat(conduct=Conduct(acks_moves=False)).start()
    answer = seat.answer()
    seat.session.requests.may_send(answer)
    seat.session.requests.expect_echo(answer, seat.now)
    outputs = seat.play(answer.actions[0])
    assert [output.kind for output in outputs] == ["acknowledged"]


def test_an_acknowledged_move_is_not_waited_for(seat):
    answer = seat.answer()
    seat.session.requests.may_send(answer)
    seat.session.requests.expect_echo(answer, seat.now)
    [outcome] = seat.feed(MoveAcknowledged("t", answer.request_id))
    assert outcome.kind == "acknowledged"
    assert seat.session.requests.expire(seat.session.hand, seat.now + 1000) == []


def test_while_a_worker_reads_the_view_it_is_not_changed(seat):
    job = seat.job()
    before = job.view.to_bytes()
    seat.play(seat.game.notation(int(job.legal[0])))
    assert job.view.to_bytes() == before
    assert seat.session.hand.view is not job.view


def test_a_fallback_decides_while_the_late_strategy_still_reads_the_view(seat):
    job = seat.job()
    before = job.view.to_bytes()
    seat.now = job.window.late
    assert kinds(seat.session.requests.expire(job.hand, seat.now)) == [Late, Job]
    seat.decide(job, by="quick")
    seat.play(seat.game.notation(job.decision.action))
    assert job.view.to_bytes() == before


def test_a_request_from_before_the_present_position_is_dropped_and_one_from_after_it_waits(seat):
    seq = seat.session.hand.view.seq
    assert seat.ask(seq=seq - 1) == []
    assert kinds(seat.ask(seq=seq + 3)) == [NeedSnapshot]


def test_server_loss_is_aborted_not_lost(seat):
    outputs = seat.session.abort()
    assert kinds(outputs) == [HandClosed, Closed]
    assert outputs[0].reason == "aborted" and outputs[0].scores is None


def test_a_table_that_the_lobby_aborts_has_no_scores(seat):
    outputs = seat.feed(TableEnded("t", "aborted", (1.0, 0.0, 0.0)))
    assert outputs[0].scores is None


def test_a_new_hand_closes_the_one_whose_end_we_missed(seat):
    outputs = seat.feed(HandStarted("t", "h2", seat.seat))
    assert kinds(outputs) == [HandClosed, HandOpening]


def test_a_late_snapshot_of_a_hand_that_is_over_opens_no_hand(seat):
    """On a new connection the lobby may use the name again."""
    seat.feed(HandEnded("t", "h", None))
    assert seat.snapshot() == []
    seat.session.disconnected()
    assert kinds(seat.snapshot()) == [HandOpening, SnapshotTaken]


def test_the_events_come_to_the_log_without_gap_or_overlap(seat):
    hand = seat.session.hand
    told = len(seat.state.events(seat.seat))
    assert hand.take_events() == (0, seat.state.events(seat.seat))
    answer = seat.answer()
    seat.session.requests.may_send(answer)
    seat.play(answer.actions[0])
    seq, events = hand.take_events()
    assert seq == told and events == seat.state.events(seat.seat, told)


def test_only_a_snapshot_of_another_position_is_logged(seat):
    told = seat.state.events(seat.seat)
    for _ in range(3):
        assert seat.snapshot() == []
    seat.state.apply(seat.seat, int(seat.state.legal(seat.seat)[0]))
    [taken] = seat.snapshot()
    assert (taken.seq, taken.before) == (len(seat.state.events(seat.seat)), (0, told))
    assert seat.session.hand.take_events() == (taken.seq, [])


def test_a_lobby_that_takes_composites_gets_all_selections_in_one_answer():
    seat = Seat(game="pairing", conduct=Conduct(takes_composites=True)) if "pairing" in rules.games() else None
    if seat is None:
        pytest.skip("the pairing game is not there")
    seat.start()
    [output] = seat.decide(seat.job())
    steps = 1
    while isinstance(output, Job):
        assert output.substep == steps
        [output] = seat.decide(output)
        steps += 1
    assert isinstance(output, Answer) and len(output.actions) == steps == len(output.steps)
    assert [job.substep for job in output.steps] == list(range(steps))


def test_a_composite_whose_time_is_up_is_complete_without_any_worker():
    """No worker may be left, and nothing would wake us for its next step."""
    seat = Seat(game="pairing", conduct=Conduct(takes_composites=True)).start()
    hand = seat.job().hand
    outputs = seat.session.requests.expire(hand, hand.due_at)
    assert kinds(outputs) == [Late, Job]
    [answer] = seat.session.requests.expire(hand, hand.due_at)
    assert isinstance(answer, Answer) and len(answer.actions) == len(answer.steps) > 1
    assert {job.decided_by for job in answer.steps} == {"first-legal"} and hand.job is None


def test_an_account_that_consents_is_marked_at_its_hands_and_nobody_else():
    game = rules.game("doudizhu")
    others = (PlayerInfo("bob", 1), PlayerInfo("cyd", 2, consents=True))
    for players, conduct, expected in (
        ((PlayerInfo("id-7", 0, "Ada"), *others), Conduct(consents=True), {"id-7", "cyd"}),
        (others, Conduct(consents=True), {"me", "cyd"}),
        ((PlayerInfo("id-7", 0), *others), Conduct(), {"cyd"}),
    ):
        session = Session(TableKey("lobby", "me", "t"), Seated("t", "doudizhu", game.rules, 0), game, conduct)
        [opening] = session.feed(HandStarted("t", "h", 0, players), 1.0)
        assert {player.player for player in opening.hand.players if player.consents} == expected
