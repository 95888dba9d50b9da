"""Reads what earlier processes left in the database: open hands, adapters' memos, ratings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import msgspec

from bothost.host.lookup import HandKey
from bothost.store import Store
from bothost.store.query import HandQuery, players_of
from bothost.store.ratings import all_ratings
from bothost.store.reader import iter_hands
from bothost.store.records import GameRecord, LoggedMove
from bothost.tables.hand import Logged

Json = dict[str, Any]
HANDS_PER_QUERY = 500


class RecoveredHand(msgspec.Struct, frozen=True):
    """A hand of an earlier process that has not ended."""

    game_id: bytes
    seed: int
    moves: tuple[Logged, ...]


class StoreMemory:
    """The memory of a host in its database. Synchronous, so it is called in threads."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def find(self, keys: Sequence[HandKey]) -> list[RecoveredHand | None]:
        """For each key, the open hand of that name with its decided moves."""
        found: dict[HandKey, RecoveredHand] = {}
        by_account: dict[tuple[str, str], list[HandKey]] = {}
        for one in keys:
            by_account.setdefault((one.key.lobby, one.key.account), []).append(one)
        for (lobby, account), all_of_it in by_account.items():
            for at in range(0, len(all_of_it), HANDS_PER_QUERY):
                self._find(lobby, account, all_of_it[at : at + HANDS_PER_QUERY], found)
        return [found.get(one) for one in keys]

    def _find(self, lobby: str, account: str, keys: list[HandKey], found: dict[HandKey, RecoveredHand]) -> None:
        games = self._store.open_hands(lobby, account, {(one.key.table, one.hand) for one in keys})
        if not games:
            return
        game_ids = [game.game_id for game in games.values()]
        moves, refused = self._store.moves_of(game_ids), self._store.rejected(game_ids)
        for one in keys:
            game = games.get((one.key.table, one.hand))
            if game is not None and game.seat == one.seat:
                logged = _logged(moves.get((game.game_id, one.seat), []), refused)
                found[one] = RecoveredHand(game.game_id, game.seed, logged)

    def unfinished(self, lobby: str, account: str, before_us: int) -> list[GameRecord]:
        """The account's open hands that started before a time in microseconds."""
        return self._store.unfinished_hands(lobby, account, before_us)

    def ratings(self) -> dict[tuple[str, str, str], float]:
        """(lobby, player, game) → rating of all players on the ladder."""
        return {
            (who.lobby, who.name, game): rating.mu
            for game, rated in all_ratings(self._store).items()
            for who, rating in rated.items()
            if who.kind == "player"
        }

    def met(self, lobby: str, account: str, since_us: int) -> Counter[str]:
        """Number of the account's ended hands since a time, by the lobby's id of each other player."""
        found: Counter[str] = Counter()
        for hand in iter_hands(self._store, HandQuery(since_us=since_us, lobbies=(lobby,), closed=True)):
            if hand.game.account == account:
                found.update({str(player.get("player")) for player in players_of(hand.game.players)})
        return found

    def memo(self, lobby: str, account: str) -> Json:
        return self._store.memo(lobby, account)

    def remember(self, lobby: str, account: str, memo: Json) -> None:
        self._store.remember(lobby, account, memo)


def _logged(decisions: list[LoggedMove], refused: set[bytes]) -> tuple[Logged, ...]:
    """Group a seat's decisions into moves."""
    moves = []
    for (seq, attempt), steps in groupby(
        sorted(decisions, key=lambda d: (d.seq, d.attempt, d.substep)), key=lambda d: (d.seq, d.attempt)
    ):
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
    return tuple(moves)
