"""Our move at a game of othello_platform, until its echo or its refusal."""

from __future__ import annotations

from bothost import messages as m
from bothost.lobbies.othello_platform import protocol as wire
from bothost.lobbies.othello_platform.position import Position
from bothost.lobbies.othello_platform.session import Session

RESENDS = 2
"""How many times a move without an echo is sent again."""


class Sending:
    """The move that was sent; there is at most one."""

    def __init__(self, session: Session, game_id: str) -> None:
        self.act: m.Act | None = None
        """The move that waits for its echo."""
        self._session = session
        self._game_id = game_id
        self._resent = 0
        """How many times it was sent again."""
        self._refused = ("", 0)
        """A board, and how many moves the lobby refused there. No board occurs twice in a game of Othello."""

    def send(self, act: m.Act, position: Position, seat: int) -> m.SendFrame:
        """Send a move."""
        frame = self._frame(act, position, seat)
        self.act, self._resent = act, 0
        return frame

    def resend(self, position: Position, seat: int) -> m.SendFrame | None:
        """Send the move again; None after ``RESENDS`` attempts."""
        self._resent += 1
        return self._frame(self.act, position, seat) if self.act is not None and self._resent <= RESENDS else None

    def acknowledge(self) -> list[m.Output]:
        """The move was echoed."""
        act, self.act = self.act, None
        return [] if act is None else [m.MoveAcknowledged(act.table, act.request_id)]

    def refuse(self, act: m.Act, board: str, reason: str, *, resync: bool) -> m.Rejected:
        """The lobby refused the move at this board."""
        self.act, self._refused = None, (board, self.refusals(board) + 1)
        return m.Rejected(act.table, act.request_id, reason, resync=resync)

    def refusals(self, board: str) -> int:
        """How many moves the lobby refused at this board."""
        refused, count = self._refused
        return count if refused == board else 0

    def _frame(self, act: m.Act, position: Position, seat: int) -> m.SendFrame:
        (square,) = act.actions
        return self._session.send_text(wire.move(self._game_id, position.view.seq, seat, square))
