"""Tracks which players are offline, as far as the lobby reports it. The lobby moves for them."""

from __future__ import annotations

from bothost.messages import PlayerInfo, Presence, ServerActedFor
from bothost.tables.hand import Hand


class Attendance:
    """Who is away at a table, over all of its hands. Seats change between hands, so it keeps players and not seats."""

    __slots__ = ("_away",)

    def __init__(self) -> None:
        self._away: frozenset[str | int] = frozenset()
        """Players who are away; seats if the lobby does not name the player."""

    def receive(self, event: Presence | ServerActedFor, hand: Hand | None, players: tuple[PlayerInfo, ...]) -> None:
        """Record a report about a player. Between hands the seats are those of ``players``, of the last hand."""
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
        """Which of the seats 0 … ``seats`` - 1 have a player who is away when a hand starts."""
        if not self._away:
            return frozenset()
        return frozenset(seat for seat in range(seats) if _at(seat, players) in self._away)


def _at(seat: int, players: tuple[PlayerInfo, ...]) -> str | int:
    return next((player.player for player in players if player.seat == seat), "") or seat
