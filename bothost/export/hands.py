"""The columns of an export whose values are the same for all decisions of a hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bothost.export.columns import KEY, SYMBOL, hexadecimal, read_columns
from bothost.export.options import ExportOptions
from bothost.store.consent import Consent, holds
from bothost.store.query import players_of
from bothost.store.reader import Key, decode_away, decode_scores
from bothost.store.store import Store

TIME = pa.timestamp("us", tz="UTC")

_NAMES = [
    pa.field(name, SYMBOL, nullable=False) for name in ("lobby", "host", "account", "table", "hand", "game", "rules")
]
FIELDS = [
    pa.field("game_id", SYMBOL, nullable=False),
    *_NAMES,
    pa.field("format_version", pa.int32(), nullable=False),
    pa.field("config_hash", SYMBOL, nullable=False),
    pa.field("player", SYMBOL),
    pa.field("consents", pa.bool_()),
    pa.field("consented", pa.bool_()),
    pa.field("opponents", pa.list_(pa.string()), nullable=False),
    pa.field("outcome", pa.float32()),
    pa.field("scores", pa.list_(pa.float32())),
    pa.field("end", SYMBOL),
    pa.field("away", pa.list_(pa.int8())),
    pa.field("split", SYMBOL, nullable=False),
    pa.field("started", TIME, nullable=False),
]
"""The columns."""

_FETCHED = pa.schema(
    [
        pa.field("game_id", KEY, nullable=False),
        pa.field("seat", pa.int16(), nullable=False),
        *_NAMES,
        pa.field("format_version", pa.int32(), nullable=False),
        pa.field("config_hash", SYMBOL, nullable=False),
        pa.field("players", pa.string(), nullable=False),
        pa.field("started_us", TIME, nullable=False),
        pa.field("reason", SYMBOL),
        pa.field("scores", pa.string()),
        pa.field("away", pa.string()),
    ]
)
_OF_END = ("reason", "scores", "away")
_QUERY = (
    "SELECT "
    + ", ".join(f'{"e" if name in _OF_END else "g"}."{name}"' for name in _FETCHED.names)
    + " FROM games g LEFT JOIN game_ends e ON e.game_id = g.game_id AND e.seat = g.seat "
    "WHERE g.game_id IN ({keys}) ORDER BY g.game_id, g.seat"
)

Consents = Mapping[tuple[str, str], Consent]
"""(lobby, player) → last record of consent."""


class HandPage:
    """Some hands in the order of their keys. Lists and columns have one value per hand."""

    def __init__(self, found: pa.RecordBatch, options: ExportOptions, consents: Consents) -> None:
        self._options = options
        self._consents = consents
        self._found = found
        self.keys: list[Key] = list(zip(found["game_id"].to_pylist(), found["seat"].to_pylist(), strict=True))
        self.games: list[tuple[str, str]] = list(zip(*map(self._texts, ("game", "rules")), strict=True))
        """Name and rules (JSON)."""
        names = zip(*map(self._texts, ("lobby", "table", "hand")), strict=True)
        self.splits = [options.split_of(*name) for name in names]
        self.scores = [decode_scores(text) for text in found["scores"].to_pylist()]
        self.away = [decode_away(text) for text in found["away"].to_pylist()]

    @classmethod
    def read(cls, store: Store, keys: Sequence[Key], options: ExportOptions, consents: Consents) -> HandPage:
        """Read the hands with these keys. Missing hands are left out."""
        found = read_columns(store, _QUERY, sorted({game_id for game_id, _ in keys}), _FETCHED)
        page = cls(found, options, consents)
        if page.keys == list(keys):
            return page
        wanted = set(keys)
        return cls(found.filter(pa.array([key in wanted for key in page.keys])), options, consents)

    def __len__(self) -> int:
        return len(self.keys)

    def _texts(self, name: str) -> list[str]:
        texts: list[str] = self._found[name].dictionary_decode().to_pylist()
        return texts

    def score_of(self, hand: int) -> float | None:
        """Return the score of the hand's seat; None if the hand has no scores."""
        scores, seat = self.scores[hand], self.keys[hand][1]
        return scores[seat] if scores is not None and seat < len(scores) else None

    def columns(self, hands: npt.NDArray[np.int64]) -> dict[str, pa.Array]:
        """Return the columns for rows of these hands, given by index."""
        indices = pa.array(hands)
        columns = {**{name: self._found[name] for name in self._found.schema.names}, **self._made()}
        return {name: _taken(columns[name], indices) for name in (field.name for field in FIELDS)}

    def _made(self) -> dict[str, pa.Array]:
        """The columns whose exported form differs from the log."""
        found, name_of = self._found, self._options.name_of
        players, consents, consented, opponents = [], [], [], []
        owners = zip(self._texts("lobby"), self._texts("account"), strict=True)
        for text, (_, seat), (lobby, account) in zip(found["players"].to_pylist(), self.keys, owners, strict=True):
            mine, others = _seated(players_of(text), seat)
            name = mine.get("player") if isinstance(mine.get("player"), str) else None
            mark = mine.get("consents") if isinstance(mine.get("consents"), bool) else None
            players.append(None if name is None else name_of(name))
            consents.append(holds(lobby, {account, name or account}, mark, self._consents))
            consented.append(mark)
            opponents.append([name_of(other) for other in others])
        accounts = found["account"]
        return {
            "game_id": hexadecimal(found["game_id"]).dictionary_encode(),
            "account": pa.DictionaryArray.from_arrays(
                accounts.indices, pa.array([name_of(name) for name in accounts.dictionary.to_pylist()], pa.string())
            ),
            "player": _symbols(players),
            "consents": pa.array(consents, pa.bool_()),
            "consented": pa.array(consented, pa.bool_()),
            "opponents": pa.array(opponents, pa.list_(pa.string())),
            "outcome": pa.array([self.score_of(hand) for hand in range(len(self))], pa.float32()),
            "scores": pa.array(self.scores, pa.list_(pa.float32())),
            "end": found["reason"],
            "away": pa.array(self.away, pa.list_(pa.int8())),
            "split": _symbols(self.splits),
            "started": found["started_us"],
        }


def _seated(players: list[dict[str, Any]], seat: int) -> tuple[dict[str, Any], list[str]]:
    """Return the player of the seat ({} if unknown), and the names of the others, by seat."""
    mine = next((player for player in players if player.get("seat") == seat), {})
    others = [player for player in players if player.get("seat") != seat]
    others.sort(key=lambda player: str(player.get("seat")))
    return mine, [str(player.get("player", "")) for player in others]


def _symbols(texts: Sequence[str | None]) -> pa.DictionaryArray:
    return pa.array(texts, pa.string()).dictionary_encode()


def _taken(column: pa.Array, indices: pa.Array) -> pa.Array:
    if not isinstance(column, pa.DictionaryArray):
        return column.take(indices)
    return pa.DictionaryArray.from_arrays(column.indices.take(indices), column.dictionary)
