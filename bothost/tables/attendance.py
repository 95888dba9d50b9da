"""Which players are away, as far as the lobby reports: the lobby moves for them."""

from __future__ import annotations

from bothost.messages import PlayerInfo, Presence, ServerActedFor
from bothost.tables.hand import Hand


class Attendance:
    """The players of a table over all of its hands. Seats change from hand to hand, so players are remembered."""

    __slots__ = ("_away",)

    def __init__(self) -> None:
        self._away: frozenset[str | int] = frozenset()
        """Players; seats where the lobby names no player."""

    def receive(self, event: Presence | ServerActedFor, hand: Hand | None, players: tuple[PlayerInfo, ...]) -> None:
        """The lobby reports on a player of the running hand or, between hands, of the last one's ``players``."""
        if isinstance(event, ServerActedFor):
            if hand is not None and hand.name == event.hand:
                hand.away |= {event.seat}
            return
        who = {_at(event.seat, hand.players if hand is not None else players)}
        if event.online:
            self._away -= who
            return
        self._away |= who
        if hand is not None:
            hand.away |= {event.seat}

    def away_from(self, players: tuple[PlayerInfo, ...], seats: int) -> frozenset[int]:
        """The seats, of ``seats`` in all, whose players are away when a hand starts."""
        if not self._away:
            return frozenset()
        return frozenset(seat for seat in range(seats) if _at(seat, players) in self._away)


def _at(seat: int, players: tuple[PlayerInfo, ...]) -> str | int:
    return next((player.player for player in players if player.seat == seat), "") or seat
