"""Asking othello_platform for the position of a game, and for our seat in it after a lost connection."""

from __future__ import annotations

from bothost import messages as m
from bothost.lobbies.othello_platform.options import SYNC, WINDOW
from bothost.lobbies.othello_platform.session import Session

SYNC_S = 10.0
"""The lobby must answer ``reconnect`` by then."""
SYNCS = 3
WINDOW_S = 12.0
"""The lobby gives 30 s from the end of any connection of ours, also of an old one that it notices late. So
``reconnect`` is repeated for a while."""
WINDOWS = 8


class PositionSync:
    """Whether our position is known to be the lobby's, and what is done to get there."""

    def __init__(self, session: Session, game_id: str) -> None:
        self.done = False
        self._session = session
        self._game_id = game_id
        self._asked = 0
        self._windows = 0
        self._cut = False
        """Whether we closed a connection because the lobby did not send the position."""

    def ask(self, *, watch: bool = False) -> list[m.Output]:
        """Nothing is decided before the position has come. ``watch``: an old connection may still be open."""
        self.done = False
        self._asked += 1
        if watch:
            self._windows = WINDOWS
        return [self._reconnect(), m.SetTimer(SYNC, SYNC_S)]

    def received(self) -> list[m.Output]:
        """The position has come."""
        self.done, self._asked, self._cut = True, 0, False
        return [m.CancelTimer(SYNC), *self._watch()]

    def lost(self) -> list[m.Output]:
        """The connection is gone."""
        self.done = False
        self._asked, self._windows = 0, WINDOWS
        return [m.CancelTimer(SYNC), m.CancelTimer(WINDOW)]

    def repeat(self) -> list[m.Output]:
        """Say ``reconnect`` once more."""
        return [self._reconnect(), *self._watch()]

    def timed_out(self) -> list[m.Output] | None:
        """The position did not come: ask again, then on a new connection; None when that did not help either."""
        if self.done:
            return []
        if self._asked < SYNCS:
            return self.ask()
        if self._cut:
            return None
        self._cut = True
        return self._session.cut("the lobby does not send the position")

    def _watch(self) -> list[m.Output]:
        if self._windows <= 0:
            return []
        self._windows -= 1
        return [m.SetTimer(WINDOW, WINDOW_S)]

    def _reconnect(self) -> m.SendFrame:
        return self._session.send("reconnect", gameId=self._game_id, lastSeq=0)
