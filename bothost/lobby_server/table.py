"""One playing table: hands, questions, clocks, and who gets to see what. Sans-IO: time comes in as an argument."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec
import structlog

from bothost.lobbies.embedded import protocol as wire
from bothost.rules.game import Game, State

log = structlog.get_logger("bothost.lobby_server")

AUTOMATIC_MOVES = 20_000
"""Moves in a row that the server may make at one table before it takes the game for endless."""


class TableRules(msgspec.Struct, frozen=True, kw_only=True):
    """What a table was opened with; times in ms."""

    game_name: str
    game: Game
    attributes: wire.Attributes
    grant_ms: int
    bank_ms: int
    lag_ms: int
    hands: int
    pause_ms: int
    max_rejects: int
    idle_s: float


class Audience(Protocol):
    """What a table needs of the lobby around it."""

    def send(self, player: str, frame: wire.ServerFrame) -> None:
        """To the player's connection, if there is one."""
        ...

    def online(self, player: str) -> bool: ...


SILENT_HANDS = 3
"""A table at which the server played so many hands in a row for silent players is given up; one, if all are away."""


class Member(msgspec.Struct):
    """A player or a robot who has a seat."""

    player: str
    seek: str = ""
    robot: bool = False
    resigned: bool = False
    """For the rest of the hand."""
    left: bool = False
    total: float = 0.0

    @property
    def automatic(self) -> bool:
        return self.robot or self.resigned or self.left


class Ask(msgspec.Struct):
    """A question that waits for its answer."""

    id: str
    since: float
    grant_ms: float
    bank_ms: float
    """What was in the bank at ``since``."""
    rejects: int = 0
    told: bool = False
    """Whether it was sent."""

    def left(self, now: float) -> tuple[float, float]:
        """(grant, bank) in ms that are left at ``now``."""
        over = (now - self.since) * 1000.0 - self.grant_ms
        return (max(0.0, -over), self.bank_ms) if over < 0 else (0.0, max(0.0, self.bank_ms - over))


class ServerHand:
    """One hand: the truth, the members by seat, and how much each was told."""

    def __init__(self, number: str, state: State, seats: list[Member], bank_ms: float, began: float) -> None:
        self.number = number
        self.began = began
        self.state = state
        self.seats = seats
        self.sent = [0] * len(seats)
        self.banks = [bank_ms] * len(seats)
        self.asks: dict[int, Ask] = {}
        self.played_for: set[int] = set()
        """Seats at which the server moved in a player's place."""
        self.scores: tuple[float, ...] | None = None
        self.reason: wire.HandEndReason = "normal"
        self.over = False

    def seat_of(self, player: str) -> int:
        """The seat of a player who sits here. Raises KeyError."""
        for seat, member in enumerate(self.seats):
            if member.player == player and not member.left:
                return seat
        raise KeyError(player)


class ServerTable:
    """A table from the moment its seats are drawn. ``ended`` tells, after any call, that it is over."""

    def __init__(
        self,
        name: str,
        rules: TableRules,
        members: list[Member],
        audience: Audience,
        seed: Callable[[], int],
        now: float,
    ) -> None:
        self.name = name
        self.rules = rules
        self.members = members
        self.audience = audience
        self.seed = seed
        self.rng = random.Random(seed())
        self.hand: ServerHand | None = None
        self.last: ServerHand | None = None
        """The hand before this one, for those who missed its end."""
        self.hands_played = 0
        self.asks_made = 0
        self.active = now
        self.next_hand_at: float | None = None
        self.silent_hands = 0
        """Hands in a row in which the server moved for players, and no player said anything."""
        self.ended: wire.TableEnded | None = None

    # ------------------------------------------------------------------------------------------------------- seating

    def player_infos(self, seats: Sequence[Member]) -> tuple[wire.PlayerInfo, ...]:
        return tuple(
            wire.PlayerInfo(
                player=m.player,
                seat=seat,
                online=m.robot or (not m.left and self.audience.online(m.player)),
                robot=m.robot,
            )
            for seat, m in enumerate(seats)
        )

    def humans(self) -> list[Member]:
        """Those who still play here through a connection."""
        return [m for m in self.members if not m.robot and not m.left]

    def seats(self) -> list[Member]:
        """The members by seat, in the current or last hand, or else in the first."""
        return self.members if self.hand is None else self.hand.seats

    def seated(self, member: Member) -> wire.Seated:
        seats = self.seats()
        return wire.Seated(
            table=self.name,
            game=self.rules.game_name,
            rules=self.rules.game.rules,
            seat=seats.index(member),
            players=self.player_infos(seats),
            attributes=self.rules.attributes,
            seek=member.seek,
        )

    def open(self, now: float) -> None:
        """Tell everybody where they sit and deal the first hand."""
        for member in self.humans():
            self.audience.send(member.player, self.seated(member))
        self._start_hand(now)

    # --------------------------------------------------------------------------------------------------------- hands

    def _start_hand(self, now: float) -> None:
        turn = self.hands_played % len(self.members)
        seats = self.members[turn:] + self.members[:turn]  # the deal goes round
        self.last, self.next_hand_at = self.hand or self.last, None
        for member in seats:
            member.resigned = False
        self.hands_played += 1
        state = self.rules.game.new_state(self.seed())
        self.hand = ServerHand(str(self.hands_played), state, seats, float(self.rules.bank_ms), now)
        infos = self.player_infos(seats)
        for seat, member in enumerate(seats):
            if not member.robot and not member.left:
                frame = wire.HandStarted(table=self.name, hand=self.hand.number, seat=seat, players=infos)
                self.audience.send(member.player, frame)
        self._advance(self.hand, now)

    def _advance(self, hand: ServerHand, now: float, done: tuple[int, str] | None = None) -> None:
        """Play on until people must answer, ask them, and send everybody what they may know."""
        state = hand.state
        for _ in range(AUTOMATIC_MOVES):
            if state.terminal:
                break
            to_act = state.to_act
            seat = next((s for s in to_act if hand.seats[s].automatic), None)
            if seat is None:
                for s in to_act:
                    if s not in hand.asks:
                        hand.asks[s] = self._new_ask(hand, s, now)
                break
            self._play_for(hand, seat)
        else:
            self.abort("the game does not end")
            return
        self._flush(hand, now, done)
        if state.terminal:
            self._end_hand(hand, now)

    def _play_for(self, hand: ServerHand, seat: int) -> int:
        """A move by the server: random for robots, the first legal one for people who do not answer."""
        robot = hand.seats[seat].robot
        if not robot:
            hand.played_for.add(seat)
        legal = hand.state.legal(seat)
        action = int(self.rng.choice(legal) if robot else legal[0])
        hand.state.apply(seat, action)
        return action

    def _new_ask(self, hand: ServerHand, seat: int, now: float) -> Ask:
        self.asks_made += 1
        return Ask(f"r{self.asks_made}", now, float(self.rules.grant_ms), hand.banks[seat])

    def _wire_ask(self, ask: Ask | None, now: float) -> wire.Ask | None:
        if ask is None:
            return None
        ask.told = True
        if not self.rules.grant_ms:
            return wire.Ask(ask.id)
        grant, bank = ask.left(now)
        return wire.Ask(ask.id, int(grant), int(bank))

    def _flush(self, hand: ServerHand, now: float, done: tuple[int, str] | None) -> None:
        """One frame to each seat that has something new. Those who are away catch up when they resume."""
        for seat, member in enumerate(hand.seats):
            if member.robot or member.left:
                continue
            since = hand.sent[seat]
            events = hand.state.events(seat, since)
            acked = done[1] if done is not None and done[0] == seat else None
            ask = hand.asks.get(seat)
            if ask is not None and ask.told:
                ask = None
            if events or acked or ask:
                hand.sent[seat] = since + len(events)
                shown = self._wire_ask(ask, now)
                self.audience.send(
                    member.player, wire.Events(self.name, hand.number, since, tuple(events), acked, shown)
                )

    def _end_hand(self, hand: ServerHand, now: float) -> None:
        self._withdraw(hand, "the hand is over")
        hand.over = True
        hand.scores = tuple(float(score) for score in hand.state.returns)
        if any(m.resigned for m in hand.seats):
            hand.reason = "resigned"
        for member, score in zip(hand.seats, hand.scores, strict=True):
            member.total += score
        for member in self.humans():
            self.audience.send(member.player, self._hand_ended(hand))
        silent = bool(hand.played_for) and self.active <= hand.began
        self.silent_hands = self.silent_hands + 1 if silent else 0
        present = any(self.audience.online(member.player) for member in self.humans())
        if any(m.left for m in self.members):
            self._end("left", "a player left")
        elif self.silent_hands >= (SILENT_HANDS if present else 1):
            self._end("aborted", "no player answers")
        elif self.hands_played >= self.rules.hands:
            self._end("normal")
        else:
            self.next_hand_at = now + self.rules.pause_ms / 1000.0

    def _hand_ended(self, hand: ServerHand) -> wire.HandEnded:
        played_for = tuple(sorted(hand.played_for))
        return wire.HandEnded(self.name, hand.number, hand.scores, hand.reason, played_for)

    def _withdraw(self, hand: ServerHand, reason: str) -> None:
        for seat, ask in hand.asks.items():
            member = hand.seats[seat]
            if not member.left:
                self.audience.send(member.player, wire.Withdrawn(table=self.name, id=ask.id, reason=reason))
        hand.asks.clear()

    # ------------------------------------------------------------------------------------------------------- the end

    def _end(self, reason: wire.TableEndReason, detail: str = "") -> None:
        scores = tuple(m.total for m in self.hand.seats) if self.hand is not None else None
        if reason in ("aborted", "kicked"):
            scores = None
        self.ended = wire.TableEnded(table=self.name, reason=reason, scores=scores, detail=detail)
        self.next_hand_at = None
        for member in self.humans():
            self.audience.send(member.player, self.ended)

    def abort(self, detail: str) -> None:
        """Give the table up: a running hand is void."""
        if self.ended is not None:
            return
        if self.hand is not None and not self.hand.over:
            self._withdraw(self.hand, "the table is given up")
            self.hand.over, self.hand.reason = True, "void"
            for member in self.humans():
                self.audience.send(member.player, self._hand_ended(self.hand))
        self._end("aborted", detail)

    # ------------------------------------------------------------------------------------------------------- players

    def member(self, player: str) -> Member:
        """Who sits here under this name. Raises KeyError."""
        for member in self.members:
            if member.player == player and not member.robot and not member.left:
                return member
        raise KeyError(player)

    def sat(self, player: str) -> bool:
        """Whether this player ever had a seat here."""
        return any(m.player == player and not m.robot for m in self.members)

    def answers(self, player: str, ask_id: str) -> bool:
        """Whether this is the answer to a pending question to this player."""
        hand = self.hand
        if hand is None:
            return False
        return any(a.id == ask_id and hand.seats[s].player == player for s, a in hand.asks.items())

    def act(self, player: str, ask_id: str, notation: str, now: float) -> None:
        """A player answers. A stale or illegal answer changes nothing and is told so."""
        self.active = now
        hand = self.hand
        seat = hand.seat_of(player) if hand is not None else -1
        ask = hand.asks.get(seat) if hand is not None else None
        if hand is None or ask is None or ask.id != ask_id:
            message = "this question is answered, withdrawn or was never asked"
            self.audience.send(player, wire.Rejected(self.name, ask_id, "stale", message))
            return
        try:
            action = self.rules.game.parse(notation)
            hand.state.apply(seat, action)
        except (ValueError, OverflowError) as error:
            self._reject(hand, seat, ask, str(error), now)
            return
        del hand.asks[seat]
        hand.banks[seat] = ask.left(now)[1]
        self._advance(hand, now, (seat, ask_id))

    def _reject(self, hand: ServerHand, seat: int, ask: Ask, why: str, now: float) -> None:
        player = hand.seats[seat].player
        if ask.rejects + 1 >= self.rules.max_rejects:
            self.audience.send(player, wire.Rejected(self.name, ask.id, "illegal", why[:300]))
            self._act_for(hand, seat, "rejects", now)
            return
        self.asks_made += 1
        again = Ask(f"r{self.asks_made}", ask.since, ask.grant_ms, ask.bank_ms, ask.rejects + 1)
        hand.asks[seat] = again
        self.audience.send(player, wire.Rejected(self.name, ask.id, "illegal", why[:300], self._wire_ask(again, now)))

    def _act_for(self, hand: ServerHand, seat: int, reason: wire.ServerActedReason, now: float) -> None:
        ask = hand.asks.pop(seat)
        hand.banks[seat] = ask.left(now)[1]
        action = self._play_for(hand, seat)
        player, notation = hand.seats[seat].player, self.rules.game.notation(action)
        log.info("server acted", table=self.name, player=player, ask=ask.id, action=notation, reason=reason)
        frame = wire.ServerActed(self.name, ask.id, notation, reason)
        self.audience.send(player, frame)
        self._advance(hand, now)

    def resign(self, player: str, now: float) -> bool:
        """The server plays the rest of the hand for this player. False: there is no hand to resign."""
        self.active = now
        hand = self.hand
        if hand is None or hand.over:
            return False
        self.member(player).resigned = True
        for member in self.humans():
            if member.player != player:
                self.audience.send(member.player, wire.Resigned(self.name, hand.number, hand.seat_of(player)))
        self._hand_over_seat(hand, player, now)
        return True

    def leave(self, player: str, now: float) -> None:
        """The server plays the rest of the hand for this player, and then the table ends."""
        self.active = now
        member, hand = self.member(player), self.hand
        self.audience.send(player, wire.TableEnded(self.name, "left", None, "you left"))
        member.left = True
        if not self.humans():
            self._end("left", "everybody left")
        elif hand is None or hand.over:
            self._end("left", "a player left")
        else:
            self.presence(player, False)
            self._hand_over_seat(hand, player, now)

    def _hand_over_seat(self, hand: ServerHand, player: str, now: float) -> None:
        seat = next(s for s, m in enumerate(hand.seats) if m.player == player)
        ask = hand.asks.pop(seat, None)
        if ask is None:
            return
        if not hand.seats[seat].left:
            self.audience.send(player, wire.Withdrawn(table=self.name, id=ask.id, reason="resigned"))
        self._advance(hand, now)

    def presence(self, player: str, online: bool) -> None:
        """Tell the others that a player came or went."""
        seats = self.seats()
        seat = next((s for s, m in enumerate(seats) if m.player == player), None)
        if seat is None:
            return
        for member in self.humans():
            if member.player != player:
                self.audience.send(member.player, wire.Presence(self.name, player, seat, online))

    def resume(self, player: str, known: wire.Known | None, now: float) -> None:
        """All that a returning client needs: its seat, what it missed of the hand it knew, and a snapshot."""
        member = self.member(player)
        self.active = now
        self.audience.send(player, self.seated(member))
        if known is not None:
            self.catch_up(player, known)
        hand = self.hand
        if hand is not None and not hand.over:
            if known is None or known.hand != hand.number:
                frame = wire.HandStarted(self.name, hand.number, hand.seat_of(player), self.player_infos(hand.seats))
                self.audience.send(player, frame)
            self.snapshot(player, now)

    def sync(self, player: str, known: wire.Known, now: float) -> None:
        """A connected client wants to be sure of its position."""
        self.active = now
        self.catch_up(player, known)
        self.snapshot(player, now)

    def catch_up(self, player: str, known: wire.Known) -> None:
        """The events of a hand that the client knows, and the hand's end, if that was missed."""
        for hand in (self.last, self.hand):
            if hand is None or hand.number != known.hand:
                continue
            seat = next(s for s, m in enumerate(hand.seats) if m.player == player)
            events = hand.state.events(seat, known.seq) if 0 <= known.seq <= hand.sent[seat] else []
            if events:
                frame = wire.Events(self.name, hand.number, known.seq, tuple(events))
                self.audience.send(player, frame)
            if hand.over:
                self.audience.send(player, self._hand_ended(hand))

    def snapshot(self, player: str, now: float) -> None:
        """The whole position of the running hand, and the pending question with the time that is left."""
        hand = self.hand
        if hand is None or hand.over:
            return
        seat = hand.seat_of(player)
        view = hand.state.view(seat)
        hand.sent[seat] = view.seq
        ask = self._wire_ask(hand.asks.get(seat), now)
        frame = wire.Snapshot(self.name, hand.number, seat, view.seq, view.to_json(), ask)
        self.audience.send(player, frame)

    # -------------------------------------------------------------------------------------------------------- clocks

    def wake_at(self) -> float:
        """When ``tick`` must be called at the latest."""
        when = self.active + self.rules.idle_s
        if self.next_hand_at is not None:
            when = min(when, self.next_hand_at)
        if self.rules.grant_ms and self.hand is not None:
            for ask in self.hand.asks.values():
                when = min(when, self._deadline(ask))
        return when

    def _deadline(self, ask: Ask) -> float:
        return ask.since + (ask.grant_ms + ask.bank_ms + self.rules.lag_ms) / 1000.0

    def tick(self, now: float) -> None:
        """Do what time has brought: move for those who are late, deal the next hand, give up a forgotten table."""
        if self.ended is not None:
            return
        if now >= self.active + self.rules.idle_s:
            self.abort("nobody played")
            return
        if self.next_hand_at is not None and now >= self.next_hand_at:
            self._start_hand(now)
        hand = self.hand
        if hand is None or hand.over or not self.rules.grant_ms:
            return
        for seat, ask in list(hand.asks.items()):
            if now >= self._deadline(ask) and hand.asks.get(seat) is ask and self.ended is None:
                self._act_for(hand, seat, "timeout", now)
