"""One playing table: its hands, its members and its end. Sans-IO: time is an argument."""

from __future__ import annotations

from collections.abc import Callable

from bothost.lobbies.embedded import protocol as wire
from bothost.lobby_server.hand import EndlessHand, ServerHand
from bothost.lobby_server.seating import Audience, Member, Seating, TableRules

SILENT_HANDS = 3
"""A table ends after this many hands in a row with only silent players; after one if all are away."""


class ServerTable:
    """A table from the moment its seats are drawn. Once it is over, ``ended`` says how."""

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
        self.hand: ServerHand | None = None
        self.hands_played = 0
        self.ended: wire.TableEnded | None = None
        self._seating = Seating(name, rules, members, audience, seed())
        self._seed = seed
        self._last: ServerHand | None = None
        """The hand before this one, for those who missed its end."""
        self._active = now
        """When a player last acted, or came back."""
        self._next_hand_at: float | None = None
        self._silent_hands = 0
        """Hands in a row in which the server moved for players, and no player said anything."""

    def open(self, now: float) -> None:
        """Tell everybody where they sit and deal the first hand."""
        for member in self._seating.humans():
            self._seating.send(member.player, self._seating.seated(member, self._seats()))
        self._start_hand(now)

    def _seats(self) -> list[Member]:
        """The members by seat, in the current or last hand, or else in the first."""
        return self.members if self.hand is None else self.hand.seats

    # --------------------------------------------------------------------------------------------------------- hands

    def _start_hand(self, now: float) -> None:
        turn = self.hands_played % len(self.members)
        self._last, self._next_hand_at = self.hand or self._last, None
        for member in self.members:
            member.resigned = False
        self.hands_played += 1
        seats = self.members[turn:] + self.members[:turn]  # the deal goes round
        hand = self.hand = ServerHand(self.hands_played, self._seating, seats, self._seed(), now)
        self._play(hand, lambda: hand.start(now), now)

    def _play(self, hand: ServerHand, do: Callable[[], object], now: float) -> None:
        """Do something in the hand. Then see whether it is over."""
        try:
            do()
        except EndlessHand as error:
            self.abort(str(error))
        if hand.state.terminal and not hand.over:
            self._end_hand(hand, now)

    def _end_hand(self, hand: ServerHand, now: float) -> None:
        hand.end()
        silent = bool(hand.played_for) and self._active <= hand.began
        self._silent_hands = self._silent_hands + 1 if silent else 0
        present = any(self._seating.audience.online(member.player) for member in self._seating.humans())
        if any(member.left for member in self.members):
            self._end("left", "a player left")
        elif self._silent_hands >= (SILENT_HANDS if present else 1):
            self._end("aborted", "no player answers")
        elif self.hands_played >= self.rules.hands:
            self._end("normal")
        else:
            self._next_hand_at = now + self.rules.pause_ms / 1000.0

    def _end(self, reason: wire.TableEndReason, detail: str = "") -> None:
        counts = self.hand is not None and reason not in ("aborted", "kicked")
        scores = tuple(member.total for member in self._seats()) if counts else None
        self.ended = wire.TableEnded(table=self.name, reason=reason, scores=scores, detail=detail)
        self._next_hand_at = None
        self._seating.send_all(self.ended)

    def abort(self, detail: str) -> None:
        """End the table: a running hand is void."""
        if self.ended is None:
            if self.hand is not None:
                self.hand.end(void=True)
            self._end("aborted", detail)

    # ------------------------------------------------------------------------------------------------------- players

    def sat(self, player: str) -> bool:
        """Whether this player ever had a seat here."""
        return any(member.player == player and not member.robot for member in self.members)

    def is_asked(self, player: str, ask_id: str) -> bool:
        """Whether this question to this player is open."""
        hand = self.hand
        return hand is not None and any(
            ask.id == ask_id and hand.seats[seat].player == player for seat, ask in hand.questions.open.items()
        )

    def act(self, player: str, ask_id: str, notation: str, now: float) -> None:
        """A player answers. A stale or illegal answer changes nothing, and is rejected."""
        self._active = now
        hand = self.hand
        if hand is None or not self.is_asked(player, ask_id):
            message = "this question is answered, withdrawn or was never asked"
            self._seating.send(player, wire.Rejected(self.name, ask_id, "stale", message))
            return
        self._play(hand, lambda: hand.act(hand.seat_of(player), notation, now), now)

    def resign(self, player: str, now: float) -> None:
        """The server plays the rest of the hand for this player."""
        self._active = now
        hand = self.hand
        if hand is None or hand.over:
            error = wire.Error("not_playing", "no hand is being played", "$.table", table=self.name)
            self._seating.send(player, error)
            return
        self._seating.member(player).resigned = True
        seat = hand.seat_of(player)
        self._seating.send_all(wire.Resigned(self.name, hand.number, seat), but=player)
        self._play(hand, lambda: hand.hand_over(seat, now), now)

    def leave(self, player: str, now: float) -> None:
        """The server plays the rest of the hand for this player. Then the table ends."""
        self._active = now
        member, hand = self._seating.member(player), self.hand
        self._seating.send(player, wire.TableEnded(self.name, "left", None, "you left"))
        member.left = True
        if not self._seating.humans():
            self._end("left", "everybody left")
        elif hand is None or hand.over:
            self._end("left", "a player left")
        else:
            self.presence(player, False)
            self._play(hand, lambda: hand.hand_over(hand.seats.index(member), now), now)

    def presence(self, player: str, online: bool) -> None:
        """Tell the others that a player came or went."""
        seat = next((seat for seat, member in enumerate(self._seats()) if member.player == player), None)
        if seat is not None:
            self._seating.send_all(wire.Presence(self.name, player, seat, online), but=player)

    def resume(self, player: str, known: wire.Known | None, now: float) -> None:
        """A client returns: its seat, what it missed of the hand that it knew, and the position."""
        self._active = now
        self._seating.send(player, self._seating.seated(self._seating.member(player), self._seats()))
        if known is not None:
            self.catch_up(player, known)
        if self.hand is not None:
            self.hand.resume(player, known, now)

    def sync(self, player: str, known: wire.Known, now: float) -> None:
        """A connected client asks for its position. A host does so for ever, so this keeps no table alive."""
        self.catch_up(player, known)
        if self.hand is not None:
            self.hand.snapshot(player, now)

    def catch_up(self, player: str, known: wire.Known) -> None:
        """The events that the client missed of a hand that it knows."""
        for hand in (self._last, self.hand):
            if hand is not None and hand.number == known.hand:
                hand.catch_up(player, known.seq)

    # -------------------------------------------------------------------------------------------------------- clocks

    def wake_at(self) -> float:
        """Return the latest time for the next ``tick``."""
        times = [self._active + self.rules.idle_s]
        if self._next_hand_at is not None:
            times.append(self._next_hand_at)
        return min(times + (list(self.hand.questions.deadlines().values()) if self.hand is not None else []))

    def tick(self, now: float) -> None:
        """Move for those who are late, deal the next hand, abort a silent table."""
        if self.ended is not None:
            return
        if now >= self._active + self.rules.idle_s:
            self.abort("no player said anything")
            return
        if self._next_hand_at is not None and now >= self._next_hand_at:
            self._start_hand(now)
        hand = self.hand
        if hand is not None and not hand.over:
            self._play(hand, lambda: hand.tick(now), now)
