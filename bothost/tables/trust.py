"""Whether our view of a table can be trusted, and what happens when it cannot."""

from __future__ import annotations

from bothost.tables.clock import NEVER
from bothost.tables.hand import GaveUp, Hand, NeedSnapshot, Output

MAX_RESYNCS = 3
"""Snapshots in a row that do not help before we fall silent."""


class Trust:
    """Whether a table's view and clock are the lobby's. Nothing is decided while they may not be."""

    __slots__ = ("_table", "epoch", "fresh", "lookup")

    def __init__(self, table: str, *, resumed: bool) -> None:
        self._table = table
        self.fresh = not resumed
        self.lookup = resumed
        """Whether the next hand may have started in an earlier process."""
        self.epoch = 0
        """How often the connection was lost."""

    def distrust(self, hand: Hand, reason: str, out: list[Output]) -> None:
        """Our view may be wrong: ask for a snapshot. After some snapshots that did not help, fall silent."""
        hand.drop_job()
        self.fresh = False
        hand.due_at = NEVER
        if hand.resyncs >= MAX_RESYNCS:
            self.give_up(hand, reason, out)
            return
        hand.resyncs += 1
        out.append(NeedSnapshot(self._table, reason))

    def give_up(self, hand: Hand, reason: str, out: list[Output]) -> None:
        """Answer no more at this position; the lobby's clock decides."""
        hand.held = None
        if not hand.given_up:
            hand.given_up = True
            out.append(GaveUp(self._table, reason))
