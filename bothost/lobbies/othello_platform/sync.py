"""Asks othello_platform for a game's position, and for our seat in it after a lost connection."""

from __future__ import annotations

from bothost import messages as m
from bothost.lobbies.othello_platform.options import SYNC, WINDOW
from bothost.lobbies.othello_platform.session import Session

SYNC_S = 10.0
"""How long the lobby may take to answer ``reconnect``."""
SYNCS = 3
WINDOW_S = 12.0
"""Interval between repetitions of ``reconnect``. The lobby ends our game 30 s after the end of any connection of ours,
and it may notice the end of an old one late."""
WINDOWS = 8


class PositionSync:
    """Gets the lobby's position. ``done``: whether our position is the lobby's."""

    def __init__(self, session: Session, game_id: str) -> None:
        self.done = False
        self._session = session
        self._game_id = game_id
        self._asked = 0
        self._windows = 0
        self._cut = False
        """Whether we closed a connection because the lobby did not send the position."""

    def ask(self, *, watch: bool = False) -> list[m.Output]:
        """Ask for the position. ``watch``: repeat the request, because an old connection may still be open."""
        self.done = False
        self._asked += 1
        if watch:
            self._windows = WINDOWS
        return [self._reconnect(), m.SetTimer(SYNC, SYNC_S)]

    def received(self) -> list[m.Output]:
        """The position has arrived."""
        self.done, self._asked, self._cut = True, 0, False
        return [m.CancelTimer(SYNC), *self._watch()]

    def lost(self) -> list[m.Output]:
        """Stop asking, because the connection is lost."""
        self.done = False
        self._asked, self._windows = 0, WINDOWS
        return [m.CancelTimer(SYNC), m.CancelTimer(WINDOW)]

    def repeat(self) -> list[m.Output]:
        """Send ``reconnect`` again."""
        return [self._reconnect(), *self._watch()]

    def timed_out(self) -> list[m.Output] | None:
        """The position did not arrive: ask again, then on a new connection. Returns None if that failed too."""
        if self.done:
            return []
        if self._asked < SYNCS:
            return self.ask()
        if self._cut:
            return None
        self._cut = True
        return self._session.reconnect("the lobby does not send the position")

    def _watch(self) -> list[m.Output]:
        if self._windows <= 0:
            return []
        self._windows -= 1
        return [m.SetTimer(WINDOW, WINDOW_S)]

    def _reconnect(self) -> m.SendFrame:
        return self._session.send("reconnect", gameId=self._game_id, lastSeq=0)
