"""Who sits at a table of mailgyc, and the watch for tables where nothing happens."""

from __future__ import annotations

from bothost import messages as m
from bothost.lobbies.mailgyc import protocol as wire
from bothost.lobbies.mailgyc.hand import uids_of
from bothost.lobbies.mailgyc.options import STALL

LOOKS = 4
"""Least number of checks without progress after which a table counts as stalled."""
MOST_CHECK_S = 15.0
"""Most time between two checks. A connection must last as long to be counted."""


class Seats:
    """The players of a table. Once all seats were taken, the lobby fills no seat that becomes empty."""

    def __init__(self, frame: wire.Joined) -> None:
        self._players: tuple[wire.PlayerBody, ...] = ()
        self._away: set[int] = set()
        """Players who have left or lost their connection. The lobby removes them when the hand ends."""
        self._filled = False
        """Whether all seats were ever taken."""
        self.look(frame)

    @property
    def uids(self) -> tuple[int, ...]:
        """By seat; -1: empty."""
        return uids_of(self._players)

    @property
    def deserted(self) -> bool:
        """Whether a player is away, and the lobby will give the seat to no one else."""
        return self._filled and bool(self._away)

    @property
    def broken(self) -> bool:
        """Whether a seat is empty for good."""
        return self._filled and -1 in self.uids

    def look(self, frame: wire.Joined) -> bool:
        """See who sits here. Returns whether a player came or went."""
        before, self._players = self.uids, frame.players
        self._away = {player.uid for player in frame.players if player.uid is not None and player.leave}
        self._filled = self._filled or -1 not in self.uids
        return self.uids != before

    def fill(self) -> None:
        """All seats were taken, because a hand was dealt. We may not have seen it."""
        self._filled = True

    def seat_of(self, uid: int) -> int | None:
        return self.uids.index(uid) if uid in self.uids else None

    def is_ready(self, uid: int) -> bool:
        return any(player.uid == uid and player.ready for player in self._players)

    def left(self, table: str, uid: int) -> list[m.Output]:
        """Another player left."""
        seat = self.seat_of(uid)
        if seat is None:
            return []
        self._away.add(uid)
        return [m.Presence(table, seat, False)]

    def infos(self) -> tuple[m.PlayerInfo, ...]:
        return tuple(
            m.PlayerInfo(str(p.uid), seat, p.name) for seat, p in enumerate(self._players) if p.uid is not None
        )

    def presence(self, table: str) -> list[m.Output]:
        return [m.Presence(table, seat, not p.leave) for seat, p in enumerate(self._players) if p.uid is not None]


class StallWatch:
    """Detects a table where nothing happens. The lobby does not enforce its clock."""

    def __init__(self) -> None:
        self._limit_s = 0.0
        self._quiet_s = 0.0
        """Time without progress."""

    def progress(self) -> None:
        self._quiet_s = 0.0

    def start(self, limit_s: float) -> list[m.Output]:
        """From now on the table has stalled after ``limit_s`` without progress. 0: never."""
        self._limit_s = limit_s
        return self.wait() if limit_s > 0 else [m.CancelTimer(STALL)]

    def wait(self) -> list[m.Output]:
        """Set the timer for the next check."""
        return [m.SetTimer(STALL, self._check_s)]

    def stalled(self) -> bool:
        """Count the time since the last check. Returns whether the table has stalled."""
        self._quiet_s += self._check_s
        return self._quiet_s >= self._limit_s

    @property
    def _check_s(self) -> float:
        return min(self._limit_s / LOOKS, MOST_CHECK_S)
