"""Tracks whether our view of a table can be trusted, and asks for snapshots if not."""

from __future__ import annotations

from bothost.tables.clock import NEVER
from bothost.tables.hand import GaveUp, Hand, NeedSnapshot, Output

MAX_RESYNCS = 3
"""After this many useless snapshots in a row, we do not answer any more."""


class Trust:
    """Whether our view and clock of a table match the lobby's. Nothing is decided while they may not."""

    __slots__ = ("_table", "epoch", "fresh", "lookup")

    def __init__(self, table: str, *, resumed: bool) -> None:
        self._table = table
        self.fresh = not resumed
        self.lookup = resumed
        """Whether the next hand may have started in an earlier process."""
        self.epoch = 0
        """Number of times that the connection was lost."""

    def distrust(self, hand: Hand, reason: str, out: list[Output]) -> None:
        """Ask for a snapshot, because our view may be wrong. After ``MAX_RESYNCS`` useless ones, give up."""
        hand.drop_job()
        self.fresh = False
        hand.due_at = NEVER
        if hand.resyncs >= MAX_RESYNCS:
            self.give_up(hand, reason, out)
            return
        hand.resyncs += 1
        out.append(NeedSnapshot(self._table, reason))

    def give_up(self, hand: Hand, reason: str, out: list[Output]) -> None:
        """Stop answering at this position. The lobby's clock decides."""
        hand.held = None
        if not hand.given_up:
            hand.given_up = True
            out.append(GaveUp(self._table, reason))
