"""What earlier processes left in the database: hands that go on, and what adapters asked to remember."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import msgspec

from bothost.store import Store
from bothost.tables.conduct import TableKey
from bothost.tables.hand import Logged

Json = dict[str, Any]


class FoundHand(msgspec.Struct, frozen=True):
    """A hand of an earlier process that has not ended."""

    game_id: bytes
    seed: int
    moves: tuple[Logged, ...]


class StoreMemory:
    """The memory of a host in its database. Synchronous: called in threads."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def find(self, key: TableKey, hand: str, seat: int) -> FoundHand | None:
        """The hand of this name that goes on, with the moves that were decided in it."""
        game = self._store.find_game(key.lobby, key.account, key.table, hand)
        if game is None or game.seat != seat:
            return None
        decisions = self._store.decisions_of(game.game_id, seat)
        refused = self._store.rejected(game.game_id, seat)
        moves = []
        decisions.sort(key=lambda d: (d.seq, d.attempt, d.substep))
        for (seq, attempt), steps in groupby(decisions, key=lambda d: (d.seq, d.attempt)):
            move = list(steps)
            moves.append(
                Logged(
                    request_id=move[0].request_id,
                    seq=seq,
                    attempt=attempt,
                    decision_ids=tuple(step.decision_id for step in move),
                    actions=tuple(step.notation for step in move),
                    rejected=any(step.decision_id in refused for step in move),
                )
            )
        return FoundHand(game.game_id, game.seed, tuple(moves))

    def memo(self, lobby: str, account: str) -> Json:
        return self._store.memo(lobby, account)

    def remember(self, lobby: str, account: str, memo: Json) -> None:
        self._store.remember(lobby, account, memo)
