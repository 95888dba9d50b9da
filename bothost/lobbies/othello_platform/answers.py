"""Our answers at othello_platform: the move that we sent, and how many moves the lobby refused at one board."""

from __future__ import annotations

from bothost import messages as m

RESENDS = 2
"""How many times a move without an echo is sent again."""
MAX_REJECTED = 4
"""After this many refused moves at one board, the lobby's clock decides."""


class Answers:
    """Tracks our answers. They are counted by board, because no board occurs twice in a game of Othello."""

    def __init__(self) -> None:
        self.sent: m.Act | None = None
        """The move that waits for its echo."""
        self.held: m.Act | None = None
        """An answer that came while we waited for the position. The host answers each request only once."""
        self._resent = 0
        self._board = ""
        self._refusals = 0

    def refusals(self, board: str) -> int:
        """The number of moves that the lobby refused at this board."""
        return self._refusals if board == self._board else 0

    def send(self, act: m.Act) -> None:
        self.sent, self._resent = act, 0

    def may_resend(self) -> bool:
        """Count another attempt with the same move. Returns whether it is allowed."""
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
        """Forget the answers, because the connection is lost. Our last move may or may not have arrived."""
        self.sent = self.held = None
