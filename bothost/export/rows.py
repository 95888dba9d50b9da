"""Logged decisions as Arrow tables, one row per decision.

Everything that is the same for a whole hand is made once for the hand and taken by its number; the rest comes from the
log as columns and stays so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bothost.export import rllib
from bothost.export.columns import KEY, SYMBOL, ColumnReader
from bothost.export.hands import FIELDS as HAND_FIELDS
from bothost.export.hands import TIME, HandPage
from bothost.export.options import ExportOptions
from bothost.export.views import Games
from bothost.store.reader import Key

TABLE_ROWS = 32_768

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
"""Columns of ``decisions``, under their names there."""

_FETCHED = [
    pa.field("id", KEY, nullable=False),
    pa.field("game_id", KEY, nullable=False),
    *_DECISION_FIELDS,
    pa.field("at_us", TIME, nullable=False),
]


def schema_of(options: ExportOptions) -> pa.Schema:
    """The columns of an export."""
    fields = [pa.field("id", pa.string(), nullable=False), *HAND_FIELDS, *_DECISION_FIELDS]
    fields += [pa.field("at", TIME, nullable=False), pa.field("rejected", pa.bool_(), nullable=False)]
    if options.view_json:
        fields.append(pa.field("view_json", pa.string()))
    if options.raw:
        fields.append(pa.field("raw", pa.binary()))
    if options.rllib:
        fields += rllib.FIELDS
    return pa.schema(fields)


class Contents:
    """What a shard was made of: its part of the manifest."""

    def __init__(self) -> None:
        self.rows = 0
        self.splits: Counter[str] = Counter()
        self.encoders: set[tuple[str, int]] = set()
        self.undecoded = 0

    def as_json(self) -> dict[str, Any]:
        """Plain data, in a fixed order."""
        return {
            "rows": self.rows,
            "splits": dict(sorted(self.splits.items())),
            "encoders": sorted(map(list, self.encoders)),
            "views_not_decoded": self.undecoded,
        }


def tables(
    reader: ColumnReader, pages: Iterator[HandPage], options: ExportOptions, games: Games, contents: Contents
) -> Iterator[pa.Table]:
    """The decisions of pages of hands, in tables of at least ``TABLE_ROWS`` rows but for the last."""
    schema = schema_of(options)
    waiting: list[pa.RecordBatch] = []
    for page in pages:
        batch = batch_of(reader, page, options, games, contents)
        if batch is not None:
            waiting.append(batch)
        if sum(b.num_rows for b in waiting) >= TABLE_ROWS:
            yield pa.Table.from_batches(waiting, schema).unify_dictionaries()
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting, schema).unify_dictionaries()


def batch_of(
    reader: ColumnReader, page: HandPage, options: ExportOptions, games: Games, contents: Contents
) -> pa.RecordBatch | None:
    """The decisions of some hands, by game, seat, seq, substep, attempt and role; None where there are none."""
    keys = sorted({game_id for game_id, _ in page.keys})
    found = reader.read(_query(raw=options.raw), keys, _fetched(raw=options.raw))
    hands = _numbers(found, {key: i for i, key in enumerate(page.keys)})
    if (hands < 0).any():  # the query may leave out another seat of ours
        found, hands = found.filter(pa.array(hands >= 0)), hands[hands >= 0]
    if not len(hands):
        return None
    columns = dict(zip(found.schema.names, found.columns, strict=True))
    columns["rejected"] = columns["rejected"].cast(pa.bool_())
    arrays = columns | page.columns(hands)
    arrays |= {"id": _hexadecimal(columns["id"]), "at": columns["at_us"]}
    if options.view_json:
        decoders = [games.of(*game) for game in page.games]
        views = columns["view"].to_pylist()
        texts = [decoders[i].json(view) for i, view in zip(hands.tolist(), views, strict=True)]
        contents.undecoded += texts.count(None)
        arrays["view_json"] = pa.array(texts, pa.string())
    if options.rllib:
        arrays |= rllib.columns_of(page, hands.tolist(), columns, games)
    contents.rows += len(hands)
    for split, count in zip(page.splits, np.bincount(hands, minlength=len(page)).tolist(), strict=True):
        contents.splits[split] += count
    contents.encoders |= _encoders(columns["strategy"], columns["encoder_version"])
    schema = schema_of(options)
    return pa.RecordBatch.from_arrays([arrays[name] for name in schema.names], schema=schema)


def _fetched(*, raw: bool) -> pa.Schema:
    more = [pa.field("raw", pa.binary())] if raw else []
    return pa.schema([*_FETCHED, pa.field("rejected", pa.int8(), nullable=False), *more])


def _query(*, raw: bool) -> str:
    names = ", ".join(f'd."{field.name}"' for field in _FETCHED)
    refused = "EXISTS (SELECT 1 FROM outcomes o WHERE o.decision_id = d.id AND o.kind = 'rejected')"
    return (
        f"SELECT {names}, CASE WHEN {refused} THEN 1 ELSE 0 END{', d.raw' if raw else ''} FROM decisions d "
        "WHERE d.game_id IN ({keys}) ORDER BY d.game_id, d.seat, d.seq, d.substep, d.attempt, d.role"
    )


def _numbers(found: pa.RecordBatch, number: dict[Key, int]) -> npt.NDArray[np.int64]:
    """The number of the hand of each row, -1 for none; the rows of a hand follow each other."""
    ids, seats = found["game_id"], np.asarray(found["seat"])
    halves = np.frombuffer(ids.buffers()[1], np.int64).reshape(-1, 2)
    begins = np.ones(len(seats), np.bool_)
    begins[1:] = (halves[1:] != halves[:-1]).any(axis=1) | (seats[1:] != seats[:-1])
    first = np.flatnonzero(begins)
    groups = zip(ids.take(pa.array(first)).to_pylist(), seats[first].tolist(), strict=True)
    numbers = np.array([number.get(key, -1) for key in groups], np.int64)
    return np.repeat(numbers, np.diff(first, append=len(seats)))


def _encoders(strategy: pa.DictionaryArray, version: pa.Array) -> set[tuple[str, int]]:
    """The pairs that occur."""
    known = np.asarray(version.is_valid())
    codes = np.asarray(strategy.indices)[known].astype(np.int64) << 32
    codes |= np.asarray(version.drop_null()).astype(np.int64)
    names = strategy.dictionary.to_pylist()
    return {(names[code >> 32], code & 0xFFFFFFFF) for code in pc.unique(pa.array(codes)).to_pylist()}


def _hexadecimal(keys: pa.Array) -> pa.Array:
    """16-byte keys as text, in one go."""
    text = memoryview(keys.buffers()[1])[: 16 * len(keys)].hex().encode()
    offsets = np.arange(len(keys) + 1, dtype=np.int32) * 32
    return pa.StringArray.from_buffers(len(keys), pa.py_buffer(offsets), pa.py_buffer(text))
