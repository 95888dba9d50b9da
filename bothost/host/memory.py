"""Reads what earlier processes left in the database: open hands, ratings, opponents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import groupby

from bothost.errors import StoreUnavailable
from bothost.host.lookup import HandKey, RecoveredHand
from bothost.store import Store
from bothost.store.query import HandQuery, players_of
from bothost.store.ratings import all_ratings
from bothost.store.reader import iter_hands
from bothost.store.records import GameRecord, LoggedMove
from bothost.tables.hand import Logged

HANDS_PER_QUERY = 500
Ratings = dict[tuple[str, str, str], float]
"""(lobby, the lobby's id of the player, game) → rating."""


class StoreMemory:
    """The memory of a host in its database. Synchronous, so it is called in threads.

    ``recovered`` tells whether the rows that an earlier process left in the spool are in the database.
    """

    def __init__(self, store: Store, recovered: Callable[[], bool] = lambda: True) -> None:
        self.store = store
        self._recovered = recovered

    def unfinished_hands(self, lobby: str, account: str, before_us: int) -> list[GameRecord]:
        """The account's hands that started before this time and have not ended. Raises StoreUnavailable."""
        self._check()
        return self.store.unfinished_hands(lobby, account, before_us)

    def find(self, keys: Sequence[HandKey]) -> list[RecoveredHand | None]:
        """For each key, the open hand of that name with its decided moves. Raises StoreUnavailable."""
        self._check()
        found: dict[HandKey, RecoveredHand] = {}
        by_account: dict[tuple[str, str], list[HandKey]] = {}
        for one in keys:
            by_account.setdefault((one.key.lobby, one.key.account), []).append(one)
        for (lobby, account), all_of_it in by_account.items():
            for at in range(0, len(all_of_it), HANDS_PER_QUERY):
                self._find(lobby, account, all_of_it[at : at + HANDS_PER_QUERY], found)
        return [found.get(one) for one in keys]

    def _check(self) -> None:
        """Without the rows of the spool, hands would look open that have ended, and answered requests new."""
        if not self._recovered():
            raise StoreUnavailable("the spool of the last run is still being replayed")

    def _find(self, lobby: str, account: str, keys: list[HandKey], found: dict[HandKey, RecoveredHand]) -> None:
        games = self.store.open_hands(lobby, account, {(one.key.table, one.hand) for one in keys})
        if not games:
            return
        game_ids = [game.game_id for game in games.values()]
        moves, refused = self.store.moves_of(game_ids), self.store.rejected(game_ids)
        for one in keys:
            game = games.get((one.key.table, one.hand))
            if game is not None and game.seat == one.seat:
                logged = _logged(moves.get((game.game_id, one.seat), []), refused)
                found[one] = RecoveredHand(game.game_id, game.seed, logged)

    def ratings(self) -> Ratings:
        """The ratings of all players on the ladder."""
        return {
            (who.lobby, who.name, game): rating.mu
            for game, rated in all_ratings(self.store).items()
            for who, rating in rated.items()
            if who.kind == "player"
        }

    def met(self, lobby: str, account: str, since_us: int) -> Counter[str]:
        """Number of the account's ended hands since a time in microseconds, by the lobby's id of each other player."""
        found: Counter[str] = Counter()
        for hand in iter_hands(self.store, HandQuery(since_us=since_us, lobbies=(lobby,), closed=True)):
            if hand.game.account == account:
                found.update({str(player.get("player")) for player in players_of(hand.game.players)})
        return found


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
