"""Logged decisions as Arrow tables, one row per decision.

Values of a whole hand are made once and taken by the index of the hand. All other columns come from the log.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bothost.export import rllib
from bothost.export.columns import KEY, SYMBOL, hexadecimal, key_bytes, read_columns
from bothost.export.hands import FIELDS as HAND_FIELDS
from bothost.export.hands import TIME, HandPage
from bothost.export.options import ExportOptions
from bothost.export.views import Decoder
from bothost.store.logged_games import GameCache
from bothost.store.reader import NOT_PLAYED, Key
from bothost.store.store import Store

TABLE_ROWS = 32_768
TABLE_BYTES = 64 << 20

_DECISION_FIELDS = [
    pa.field("seat", pa.int8(), nullable=False),
    pa.field("seq", pa.int32(), nullable=False),
    pa.field("substep", pa.int32(), nullable=False),
    pa.field("attempt", pa.int32(), nullable=False),
    pa.field("role", SYMBOL, nullable=False),
    pa.field("phase", SYMBOL, nullable=False),
    pa.field("request_id", pa.string(), nullable=False),
    pa.field("state_hash", pa.int64(), nullable=False),
    pa.field("view", pa.binary(), nullable=False),
    pa.field("legal", pa.list_(pa.int32()), nullable=False),
    pa.field("policy", pa.list_(pa.float32())),
    pa.field("action_values", pa.list_(pa.float32())),
    pa.field("value", pa.float64()),
    pa.field("action", pa.int32(), nullable=False),
    pa.field("notation", pa.string(), nullable=False),
    pa.field("strategy", SYMBOL, nullable=False),
    pa.field("strategy_version", SYMBOL, nullable=False),
    pa.field("model_sha256", SYMBOL),
    pa.field("encoder_version", pa.int32()),
    pa.field("stats", pa.string()),
    pa.field("fallback", SYMBOL),
    pa.field("budget_ms", pa.float64()),
    pa.field("elapsed_ms", pa.float64(), nullable=False),
    pa.field("seed", pa.int64(), nullable=False),
]
"""Columns with the same names as in the table ``decisions``."""

_FETCHED = [
    pa.field("id", KEY, nullable=False),
    pa.field("game_id", KEY, nullable=False),
    *_DECISION_FIELDS,
    pa.field("at_us", TIME, nullable=False),
]
_DROPPED = pa.field("dropped", SYMBOL)
"""Why a decision was not played, one of ``NOT_PLAYED``; null for the others."""
_DROPPED_SQL = (
    "(SELECT min(o.kind) FROM outcomes o WHERE o.decision_id = d.id AND o.kind IN ("  # min: rejected comes first
    + ", ".join(f"'{kind}'" for kind in NOT_PLAYED)
    + "))"
)


def schema_of(options: ExportOptions) -> pa.Schema:
    """Return the schema of an export."""
    fields = [pa.field("id", pa.string(), nullable=False), *HAND_FIELDS, *_DECISION_FIELDS]
    fields += [pa.field("at", TIME, nullable=False), pa.field("rejected", pa.bool_(), nullable=False)]
    fields.append(pa.field("played", pa.bool_(), nullable=False))
    if options.view_json:
        fields.append(pa.field("view_json", pa.string()))
    if options.raw:
        fields.append(pa.field("raw", pa.binary()))
    if options.rllib:
        fields += rllib.FIELDS
    return pa.schema(fields)


class Contents:
    """The contents of a shard, for the manifest."""

    def __init__(self) -> None:
        self.rows = 0
        self.splits: Counter[str] = Counter()
        self.encoders: set[tuple[str, int]] = set()
        self.undecoded = 0

    def as_json(self) -> dict[str, Any]:
        """Return plain data in a fixed order."""
        return {
            "rows": self.rows,
            "splits": dict(sorted(self.splits.items())),
            "encoders": sorted(map(list, self.encoders)),
            "views_not_decoded": self.undecoded,
        }


def tables(
    store: Store, pages: Iterator[HandPage], options: ExportOptions, games: GameCache, contents: Contents
) -> Iterator[pa.Table]:
    """Yield the decisions of pages of hands in tables of about ``TABLE_ROWS`` rows or ``TABLE_BYTES`` bytes."""
    schema = schema_of(options)
    waiting: list[pa.RecordBatch] = []
    for page in pages:
        batch = batch_of(store, page, options, games, contents)
        if batch is not None:
            waiting.append(batch)
        if sum(b.num_rows for b in waiting) >= TABLE_ROWS or sum(b.nbytes for b in waiting) >= TABLE_BYTES:
            yield pa.Table.from_batches(waiting, schema).unify_dictionaries()
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting, schema).unify_dictionaries()


def batch_of(
    store: Store, page: HandPage, options: ExportOptions, games: GameCache, contents: Contents
) -> pa.RecordBatch | None:
    """Return the decisions of some hands, by game, seat, seq, substep, attempt and role; None if there are none."""
    keys = sorted({game_id for game_id, _ in page.keys})
    found = read_decisions(store, keys, raw=options.raw)
    hands = _numbers(found, {key: i for i, key in enumerate(page.keys)})
    if (hands < 0).any():  # the query may exclude another seat of ours
        found, hands = found.filter(pa.array(hands >= 0)), hands[hands >= 0]
    if not len(hands):
        return None
    columns = dict(zip(found.schema.names, found.columns, strict=True))
    columns["rejected"] = pc.fill_null(pc.equal(columns["dropped"].dictionary_decode(), "rejected"), False)
    columns["played"] = _played(columns, hands)
    made = columns | page.columns(hands)
    made |= {"id": hexadecimal(columns["id"]), "at": columns["at_us"]}
    if options.view_json:
        decoders = [Decoder(games.get(*game)) for game in page.games]
        views = columns["view"].to_pylist()
        texts = [decoders[i].json(view) for i, view in zip(hands.tolist(), views, strict=True)]
        contents.undecoded += texts.count(None)
        made["view_json"] = pa.array(texts, pa.string())
    if options.rllib:
        made |= rllib.columns_of(page, hands.tolist(), columns, games)
    contents.rows += len(hands)
    for split, count in zip(page.splits, np.bincount(hands, minlength=len(page)).tolist(), strict=True):
        contents.splits[split] += count
    contents.encoders |= _encoders(columns["strategy"], columns["encoder_version"])
    schema = schema_of(options)
    return pa.RecordBatch.from_arrays([made[name] for name in schema.names], schema=schema)


def read_decisions(store: Store, game_ids: Sequence[bytes], *, raw: bool) -> pa.RecordBatch:
    """Read the exported columns of all decisions of some games, in order. ``raw``: with the frames of the requests."""
    fetched = pa.schema([*_FETCHED, *([pa.field("raw", pa.binary())] if raw else [])])
    names = ", ".join(f'd."{name}"' for name in fetched.names)
    query = (
        f"SELECT {names}, {_DROPPED_SQL} FROM decisions d WHERE d.game_id IN ({{keys}}) "
        "ORDER BY d.game_id, d.seat, d.seq, d.substep, d.attempt, d.role"
    )
    return read_columns(store, query, game_ids, fetched.append(_DROPPED))


def _played(columns: dict[str, pa.Array], hands: npt.NDArray[np.int64]) -> pa.Array:
    """Whether each decision was played, as ``bothost.store.reader.played``. ``hands``: the index of each row's hand."""
    live = pc.equal(columns["role"].dictionary_decode(), "live").to_numpy(zero_copy_only=False)
    gone = columns["dropped"].is_valid().to_numpy(zero_copy_only=False)
    seq, attempts = columns["seq"].to_numpy(), np.where(live, columns["attempt"].to_numpy(), 0)
    first = np.flatnonzero((np.diff(hands, prepend=-1) != 0) | (np.diff(seq, prepend=-1) != 0))
    last = np.repeat(np.maximum.reduceat(attempts, first), np.diff(first, append=len(seq)))
    return pa.array(live & (attempts == last) & ~gone)


def _numbers(found: pa.RecordBatch, number: dict[Key, int]) -> npt.NDArray[np.int64]:
    """Return the index of each row's hand, or -1. The rows of a hand are consecutive."""
    ids, seats = found["game_id"], found["seat"].to_numpy()
    halves = key_bytes(ids).view(np.int64)
    begins = np.ones(len(seats), np.bool_)
    begins[1:] = (halves[1:] != halves[:-1]).any(axis=1) | (seats[1:] != seats[:-1])
    first = np.flatnonzero(begins)
    groups = zip(ids.take(pa.array(first)).to_pylist(), seats[first].tolist(), strict=True)
    numbers = np.array([number.get(key, -1) for key in groups], np.int64)
    return np.repeat(numbers, np.diff(first, append=len(seats)))


def _encoders(strategy: pa.DictionaryArray, version: pa.Array) -> set[tuple[str, int]]:
    """Return the distinct pairs (strategy, encoder version)."""
    pairs = pa.table([strategy.indices, version], names=["strategy", "version"]).drop_null()
    found = pairs.group_by(["strategy", "version"]).aggregate([]).to_pylist()
    return {(strategy.dictionary[pair["strategy"]].as_py(), pair["version"]) for pair in found}
