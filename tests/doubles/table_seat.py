"""A session at a table, with a native state as the lobby's truth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bothost import rules
from bothost.messages import ActionRequest, Delta, HandStarted, Seated, Snapshot, TableEvent
from bothost.strategy import Decision
from bothost.tables.clock import ClockPolicy
from bothost.tables.conduct import Conduct, TableKey
from bothost.tables.hand import Answer, Hand, HandOpening, Job, Logged, Output
from bothost.tables.session import Session


class Seat:
    """Sends a session the messages of a lobby. The table is "t", its first hand "h"."""

    def __init__(
        self, *, resumed: bool = False, seed: int = 1, conduct: Conduct | None = None, game: str = "doudizhu"
    ) -> None:
        self.game = rules.game(game)
        self.state = self.game.new_state(seed)
        self.seat = self.state.to_act[0]
        self.now = 100.0
        self.asked = 0
        conduct = conduct or Conduct(ClockPolicy(margin_s=0.25))
        seated = Seated("t", game, self.game.rules, self.seat)
        self.session = Session(TableKey("lobby", "me", "t"), seated, self.game, conduct, resumed=resumed)

    def feed(self, message: TableEvent) -> list[Output]:
        return self.session.feed(message, self.now)

    def start(self) -> Seat:
        [opening] = self.feed(HandStarted("t", "h", self.seat))
        assert isinstance(opening, HandOpening) and not opening.lookup
        self.open(opening.hand)
        self.tell()
        return self

    def open(self, hand: Hand, logged: Sequence[Logged] = ()) -> list[Output]:
        hand.game_id = b"g" * 16
        return self.session.opened(hand, logged)

    def tell(self) -> list[Output]:
        assert self.session.hand is not None
        seen = self.session.hand.view.seq
        events = tuple(self.state.events(self.seat, seen))
        return self.feed(Delta("t", "h", seen, events)) if events else []

    def snapshot(self) -> list[Output]:
        view = self.state.view(self.seat).to_json()
        return self.feed(Snapshot("t", "h", self.seat, view))

    def ask(self, request_id: str | None = None, grant_ms: float | None = 5000.0, **more: Any) -> list[Output]:
        self.asked += 1
        return self.feed(ActionRequest("t", "h", request_id or f"r{self.asked}", grant_ms, **more))

    def job(self, **more: Any) -> Job:
        [job] = self.ask(**more)
        assert isinstance(job, Job)
        return job

    def decide(self, job: Job, action: Any = None, **more: Any) -> list[Output]:
        action = int(job.legal[0]) if action is None else action
        return self.session.requests.decided(job, job.ticket, Decision(action=action), None, self.now, **more)

    def answer(self, **more: Any) -> Answer:
        [answer] = self.decide(self.job(**more))
        assert isinstance(answer, Answer)
        return answer

    def play(self, notation: str) -> list[Output]:
        """Apply our move and moves of the others, until we are asked again."""
        self.state.apply(self.seat, self.game.parse(notation))
        while not self.state.terminal and self.seat not in self.state.to_act:
            self.other()
        return self.tell()

    def other(self) -> None:
        seat = self.state.to_act[0]
        self.state.apply(seat, int(self.state.legal(seat)[0]))
