"""Our answers at othello_platform: the move that was sent, and how often the lobby refused moves at one board."""

from __future__ import annotations

from bothost import messages as m

RESENDS = 2
"""How often a move without an echo is sent again."""
MAX_REJECTED = 4
"""Moves that the lobby may refuse at one board before its clock decides."""


class Answers:
    """What was answered, and what became of it. A board never comes twice in a game of Othello."""

    def __init__(self) -> None:
        self.sent: m.Act | None = None
        """The move that waits for its echo."""
        self.held: m.Act | None = None
        """An answer that came while the position was being asked for: the host answers a question only once."""
        self._resent = 0
        self._board = ""
        self._refusals = 0

    def refusals(self, board: str) -> int:
        """Moves that the lobby refused at this board."""
        return self._refusals if board == self._board else 0

    def send(self, act: m.Act) -> None:
        self.sent, self._resent = act, 0

    def may_resend(self) -> bool:
        """Count another attempt with the same move, if one is left."""
        self._resent += 1
        return self._resent <= RESENDS

    def acknowledge(self) -> m.MoveAcknowledged | None:
        """Our move was echoed."""
        sent, self.sent = self.sent, None
        return None if sent is None else m.MoveAcknowledged(sent.table, sent.request_id)

    def refuse(self, board: str, reason: str, *, resync: bool) -> m.Rejected | None:
        """The lobby refused the move that was sent; None if there is none."""
        sent, self.sent = self.sent, None
        if sent is None:
            return None
        self._board, self._refusals = board, self.refusals(board) + 1
        return m.Rejected(sent.table, sent.request_id, reason, resync=resync)

    def take_held(self) -> m.Act | None:
        held, self.held = self.held, None
        return held

    def lost(self) -> None:
        """The connection is gone: a move that was sent may have arrived or not."""
        self.sent = self.held = None
