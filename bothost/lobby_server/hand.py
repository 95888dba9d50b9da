"""One hand at a table: its state, its open questions and their clocks, and what each seat has received."""

from __future__ import annotations

import structlog

from bothost.lobbies.embedded import protocol as wire
from bothost.lobby_server.questions import Questions
from bothost.lobby_server.seating import Member, Seating
from bothost.tables.hand import valid_scores

log = structlog.get_logger("bothost.lobby_server")

AUTOMATIC_MOVES = 20_000
"""Moves in a row that the server may make before it gives the hand up as endless."""


class EndlessHand(Exception):
    """Only the server moved for a very long time."""


class ServerHand:
    """One hand. ``seats``: the members by seat."""

    def __init__(self, number: int, seating: Seating, seats: list[Member], seed: int, now: float) -> None:
        self.number = str(number)
        self.began = now
        self.seats = seats
        self.state = seating.rules.game.new_state(seed)
        self.questions = Questions(seating)
        self.scores: tuple[float, ...] | None = None
        self.reason: wire.HandEndReason = "normal"
        self.over = False
        self.played_for: set[int] = set()
        """Seats where the server moved in a player's place."""
        self._seating = seating
        self._rules = seating.rules
        self._table = seating.name
        self._sent = [0] * len(seats)
        """How many events each seat has received."""

    def seat_of(self, player: str) -> int:
        """The seat of a player who sits here. Raises KeyError."""
        for seat, member in enumerate(self.seats):
            if member.player == player and not member.left:
                return seat
        raise KeyError(player)

    # ------------------------------------------------------------------------------------------------------- playing

    def start(self, now: float) -> None:
        """Tell everybody their seat, then ask for the first moves. Raises EndlessHand."""
        for member in self.seats:
            if member.connected:
                self._seating.send(member.player, self._started(member.player))
        self.advance(now)

    def _started(self, player: str) -> wire.HandStarted:
        return wire.HandStarted(self._table, self.number, self.seat_of(player), self._seating.infos(self.seats))

    def advance(self, now: float, done: tuple[int, str] | None = None) -> None:
        """Play on until people must answer. Ask them, and send each seat its events. Raises EndlessHand.

        ``done``: the seat and the question that was just answered.
        """
        state = self.state
        for _ in range(AUTOMATIC_MOVES):
            if state.terminal:
                break
            to_act = state.to_act
            seat = next((s for s in to_act if self.seats[s].automatic), None)
            if seat is None:
                for s in to_act:
                    self.questions.ask(s, now)
                break
            self._play_for(seat)
        else:
            raise EndlessHand("the game does not end")
        self._send_events(now, done)

    def _play_for(self, seat: int) -> int:
        """A move by the server: random for robots, the first legal one for people."""
        robot = self.seats[seat].robot
        if not robot:
            self.played_for.add(seat)
        legal = self.state.legal(seat)
        action = int(self._seating.rng.choice(legal) if robot else legal[0])
        self.state.apply(seat, action)
        return action

    def _send_events(self, now: float, done: tuple[int, str] | None) -> None:
        """One frame to each seat that has something new. Those who are away catch up when they resume."""
        for seat, member in enumerate(self.seats):
            if not member.connected:
                continue
            since = self._sent[seat]
            events = self.state.events(seat, since)
            acked = done[1] if done is not None and done[0] == seat else None
            ask = self.questions.open.get(seat)
            if ask is not None and ask.sent:
                ask = None
            if events or acked or ask:
                self._sent[seat] = since + len(events)
                shown = self.questions.frame(ask, now)
                frame = wire.Events(self._table, self.number, since, tuple(events), acked, shown)
                self._seating.send(member.player, frame)

    def end(self, *, void: bool = False) -> None:
        """The hand is over: count the scores, and tell everybody. ``void``: the table is aborted, no one scores."""
        if self.over:
            return
        scores = None if void else self._scores()
        self.over = True
        for seat, ask in self.questions.open.items():
            self._withdraw(seat, ask.id, "the table is given up" if void else "the hand is over")
        self.questions.open.clear()
        if void:
            self.reason = "void"
        else:
            self.scores = scores
            if any(member.resigned for member in self.seats):
                self.reason = "resigned"
            for member, score in zip(self.seats, self.scores or (), strict=True):
                member.total += score
        self._seating.send_all(self._ended())

    def _scores(self) -> tuple[float, ...]:
        """Raises ValueError for a game that gives no finite number for each seat: no client could read it."""
        scores = tuple(float(score) for score in self.state.returns)
        if valid_scores(scores, len(self.seats)) is None:
            raise ValueError(f"{self._rules.game.name} gives the scores {scores}")
        return scores

    def _ended(self) -> wire.HandEnded:
        return wire.HandEnded(self._table, self.number, self.scores, self.reason, tuple(sorted(self.played_for)))

    # ----------------------------------------------------------------------------------------------------- questions

    def act(self, seat: int, notation: str, now: float) -> None:
        """The answer to the open question of a seat. Raises EndlessHand."""
        try:
            self.state.apply(seat, self._rules.game.parse(notation))
        except (ValueError, OverflowError) as error:
            self._reject(seat, str(error)[:300], now)
        else:
            self.advance(now, (seat, self.questions.close(seat, now).id))

    def _reject(self, seat: int, why: str, now: float) -> None:
        """Ask again, or move for a player who had enough attempts."""
        ask, again = self.questions.open[seat], self.questions.ask_again(seat)
        rejected = wire.Rejected(self._table, ask.id, "illegal", why, self.questions.frame(again, now))
        self._seating.send(self.seats[seat].player, rejected)
        if again is None:
            self._act_for(seat, "rejects", now)

    def _act_for(self, seat: int, reason: wire.ServerActedReason, now: float) -> None:
        ask = self.questions.close(seat, now)
        notation = self._rules.game.notation(self._play_for(seat))
        player = self.seats[seat].player
        log.info("server acted", table=self._table, player=player, ask=ask.id, action=notation, reason=reason)
        self._seating.send(player, wire.ServerActed(self._table, ask.id, notation, reason))
        self.advance(now)

    def hand_over(self, seat: int, now: float) -> None:
        """The server plays this seat for the rest of the hand. Raises EndlessHand."""
        ask = self.questions.open.pop(seat, None)
        if ask is not None:
            self._withdraw(seat, ask.id, "resigned")
            self.advance(now)

    def _withdraw(self, seat: int, ask_id: str, reason: str) -> None:
        member = self.seats[seat]
        if not member.left:
            self._seating.send(member.player, wire.Withdrawn(table=self._table, id=ask_id, reason=reason))

    def tick(self, now: float) -> None:
        """Move for those who are late. Raises EndlessHand."""
        for seat, deadline in self.questions.deadlines().items():
            if now >= deadline and self.questions.deadlines().get(seat) == deadline and not self.state.terminal:
                self._act_for(seat, "timeout", now)

    # ---------------------------------------------------------------------------------------------------- coming back

    def resume(self, player: str, known: wire.Known | None, now: float) -> None:
        """The hand's beginning, if the returning client does not know it, and the position."""
        if self.over:
            return
        if known is None or known.hand != self.number:
            self._seating.send(player, self._started(player))
        self.snapshot(player, now)

    def catch_up(self, player: str, seq: int) -> None:
        """The events that the client missed, and the hand's end."""
        seat = next(s for s, member in enumerate(self.seats) if member.player == player)
        events = self.state.events(seat, seq) if 0 <= seq <= self._sent[seat] else []
        if events:
            self._seating.send(player, wire.Events(self._table, self.number, seq, tuple(events)))
        if self.over:
            self._seating.send(player, self._ended())

    def snapshot(self, player: str, now: float) -> None:
        """The whole position, and the open question with the time that is left."""
        if self.over:
            return
        seat = self.seat_of(player)
        view = self.state.view(seat)
        self._sent[seat] = view.seq
        ask = self.questions.frame(self.questions.open.get(seat), now)
        self._seating.send(player, wire.Snapshot(self._table, self.number, seat, view.seq, view.to_json(), ask))
