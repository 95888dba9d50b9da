"""What a session promises for any messages of a lobby, in any order: tried with random ones."""

import random
import types
from collections import deque

from hypothesis import given, settings
from hypothesis import strategies as st
from table_seat import Seat

from bothost.messages import (
    Delta,
    HandEnded,
    HandStarted,
    MoveAcknowledged,
    Rejected,
    RequestWithdrawn,
    ServerActedForUs,
)
from bothost.strategy import Decision
from bothost.tables.actor import Actor
from bothost.tables.clock import NEVER, ClockPolicy
from bothost.tables.conduct import Conduct
from bothost.tables.hand import Answer, HandOpening, Job

GAMES = ("doudizhu", "mahjong", "othello", "pairing")
REQUESTS = ("r1", "r2", "r3", None, None, None)
"""None: a new one."""


class Lobby:
    """A lobby that says anything, workers that answer in any order, and a log of any speed."""

    def __init__(self, seed):
        self.rng = rng = random.Random(seed)
        conduct = Conduct(ClockPolicy(), takes_composites=rng.random() < 0.3, acks_moves=rng.random() < 0.6)
        self.seat = Seat(seed=seed, game=rng.choice(GAMES), conduct=conduct, resumed=rng.random() < 0.2)
        self.session = self.seat.session
        self.jobs, self.answers, self.looked_up = deque(), deque(), deque()
        self.decided = set()
        self.sent = set()
        if self.session.trust.fresh:
            self.take(self.seat.feed(HandStarted("t", "h", self.seat.seat)))

    def take(self, outputs):
        """Perform what the session asks for."""
        for output in outputs:
            if isinstance(output, HandOpening):
                output.hand.actor = Actor(types.SimpleNamespace(strategy="s", fallback=None, reason=None))
                self.looked_up.append(output.hand)
            elif isinstance(output, Job):
                self.jobs.append((output, output.ticket))
            elif isinstance(output, Answer):
                for step in output.steps if output.state == "new" else ():
                    key = (output.hand.name, step.seq, step.substep, step.attempt)
                    assert key not in self.decided, "two decisions have one key, so the second would not be logged"
                    self.decided.add(key)
                output.state = "logged"
                self.answers.append(output)

    def step(self):
        rng, seat, hand = self.rng, self.seat, self.session.hand
        seat.now += rng.choice((0.0, 0.1, 1.0, 5.0))
        getattr(self, rng.choice([name for name in dir(self) if name.startswith("do_")]))(rng, seat, hand)
        hand = self.session.hand
        if hand is not None and hand.job is not None:
            assert hand.due_at < NEVER, "nothing would wake us"
            assert self.session.trust.fresh, "we decide on a view that may be wrong"

    def do_ask(self, rng, seat, hand):
        seq = rng.choice((None, None, None if hand is None else hand.view.seq, 3))
        self.take(seat.ask(rng.choice(REQUESTS), rng.choice((5000.0, 0.0, None, float("nan"))), seq=seq))

    def do_tell(self, rng, seat, hand):
        if hand is not None:
            self.take(seat.tell())

    def do_gap(self, rng, seat, hand):
        if hand is not None and rng.random() < 0.3:
            self.take(seat.feed(Delta("t", rng.choice("hg"), rng.choice((0, hand.view.seq + 2)), ("pass 0",))))

    def do_snapshot(self, rng, seat, hand):
        self.take(seat.snapshot())

    def do_lose(self, rng, seat, hand):
        self.session.disconnected()

    def do_end(self, rng, seat, hand):
        if rng.random() < 0.1:
            self.take(seat.feed(HandEnded("t", "h", None)))

    def do_open(self, rng, seat, hand):
        if self.looked_up:
            self.take(seat.open(self.looked_up.popleft()))

    def do_move(self, rng, seat, hand):
        if not seat.state.terminal:
            other = seat.state.to_act[0]
            seat.state.apply(other, int(rng.choice(list(seat.state.legal(other)))))

    def do_decide(self, rng, seat, hand):
        if self.jobs:
            self.jobs.rotate(rng.randrange(len(self.jobs)))
            job, ticket = self.jobs.popleft()
            action = rng.choice((None, -1, *(int(action) for action in job.legal)))
            decision = None if action is None else Decision(action=action)
            self.take(self.session.requests.decided(job, ticket, decision, "error", seat.now))

    def do_send(self, rng, seat, hand):
        if self.answers:
            answer = self.answers.popleft()
            if answer.hand is hand and self.session.requests.may_send(answer):
                key = (self.session.trust.epoch, answer.request_id)
                assert key not in self.sent, "a request is answered twice"
                self.sent.add(key)
                self.session.requests.expect_echo(answer, seat.now)

    def do_expire(self, rng, seat, hand):
        if hand is not None and hand.due_at < NEVER:
            seat.now = max(seat.now, hand.due_at)
            self.take(self.session.requests.expire(hand, seat.now))

    def do_report(self, rng, seat, hand):
        ours = [] if hand is None else [of.request_id for of in (hand.job, hand.answer) if of is not None]
        name = rng.choice((*ours, *ours, "r1", "r2"))
        reports = (RequestWithdrawn("t", name), ServerActedForUs("t", rng.choice((name, None)), None))
        answered = (MoveAcknowledged("t", name), Rejected("t", name, "no", resync=rng.random() < 0.3))
        report = rng.choice((*reports, *answered))
        if not isinstance(report, MoveAcknowledged):  # the lobby may ask for it again
            self.sent = {key for key in self.sent if report.request_id not in (None, key[1])}
        self.take(seat.feed(report))


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 2**31))
def test_an_open_request_has_a_deadline_every_decision_a_key_of_its_own_and_every_request_one_answer(seed):
    lobby = Lobby(seed)
    for _ in range(60):
        lobby.step()
