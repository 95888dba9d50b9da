"""Logged decisions as Arrow tables, one row per decision.

The fast path of the export: rows leave the driver as tuples, are turned into columns once, and everything that is the
same for a whole hand is looked up by number. Lists and ids are never touched one by one: the blobs of a column are
joined and become the values of a list array as they stand.

What bounds it, per second of one core of a busy 2-core machine, rows of 1.3 KB: SQLite and the sqlite3 module's tuples
190,000 rows, columns from them 250,000, transposing and the columns of hands 160,000, zstd and Parquet 240,000: one
after another 50,000, and 69,000 where the machine was less busy. Decoding a view costs another 16 µs. ADBC's SQLite
driver, which reads straight into Arrow, was measured at 280,000 rows in place of the first two, which would give some
100,000. Memory stays at about 370 MB (480,000 decisions as well as 120,000), most of it the libraries and a page of
hands.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bothost.export import rllib
from bothost.export.options import ExportOptions
from bothost.export.views import Games
from bothost.store.query import players_of
from bothost.store.reader import Hand
from bothost.store.store import Store

TABLE_ROWS = 32_768

_TEXT = pa.dictionary(pa.int32(), pa.string())
_TIME = pa.timestamp("us", tz="UTC")

_HAND_FIELDS = [
    pa.field("game_id", _TEXT, nullable=False),
    pa.field("lobby", _TEXT, nullable=False),
    pa.field("host", _TEXT, nullable=False),
    pa.field("account", _TEXT, nullable=False),
    pa.field("table", _TEXT, nullable=False),
    pa.field("hand", _TEXT, nullable=False),
    pa.field("game", _TEXT, nullable=False),
    pa.field("rules", _TEXT, nullable=False),
    pa.field("format_version", pa.int32(), nullable=False),
    pa.field("config_hash", _TEXT, nullable=False),
    pa.field("player", _TEXT),
    pa.field("consents", pa.bool_()),
    pa.field("opponents", pa.list_(pa.string()), nullable=False),
    pa.field("outcome", pa.float32()),
    pa.field("scores", pa.list_(pa.float32())),
    pa.field("end", _TEXT),
    pa.field("split", _TEXT, nullable=False),
    pa.field("started", _TIME, nullable=False),
]
"""Columns that are the same for all rows of a hand."""

_DECISION_FIELDS = [
    pa.field("seat", pa.int8(), nullable=False),
    pa.field("seq", pa.int32(), nullable=False),
    pa.field("substep", pa.int32(), nullable=False),
    pa.field("attempt", pa.int32(), nullable=False),
    pa.field("role", _TEXT, nullable=False),
    pa.field("phase", _TEXT, nullable=False),
    pa.field("request_id", pa.string(), nullable=False),
    pa.field("state_hash", pa.int64(), nullable=False),
    pa.field("view", pa.binary(), nullable=False),
    pa.field("legal", pa.list_(pa.int32()), nullable=False),
    pa.field("policy", pa.list_(pa.float32())),
    pa.field("action_values", pa.list_(pa.float32())),
    pa.field("value", pa.float64()),
    pa.field("action", pa.int32(), nullable=False),
    pa.field("notation", pa.string(), nullable=False),
    pa.field("strategy", _TEXT, nullable=False),
    pa.field("strategy_version", _TEXT, nullable=False),
    pa.field("model_sha256", _TEXT),
    pa.field("encoder_version", pa.int32()),
    pa.field("stats", pa.string()),
    pa.field("fallback", _TEXT),
    pa.field("budget_ms", pa.float64()),
    pa.field("elapsed_ms", pa.float64(), nullable=False),
    pa.field("seed", pa.int64(), nullable=False),
]
"""Columns of ``decisions``, under their names there."""

_FETCHED = ("id", "game_id", *(field.name for field in _DECISION_FIELDS), "at_us")


def schema_of(options: ExportOptions) -> pa.Schema:
    """The columns of an export."""
    fields = [pa.field("id", pa.string(), nullable=False), *_HAND_FIELDS, *_DECISION_FIELDS]
    fields += [pa.field("at", _TIME, nullable=False), pa.field("rejected", pa.bool_(), nullable=False)]
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
    store: Store, pages: Iterator[list[Hand]], options: ExportOptions, games: Games, contents: Contents
) -> Iterator[pa.Table]:
    """The decisions of pages of hands, in tables of at least ``TABLE_ROWS`` rows but for the last."""
    schema = schema_of(options)
    waiting: list[pa.RecordBatch] = []
    for page in pages:
        batch = batch_of(store, page, options, games, contents)
        if batch is not None:
            waiting.append(batch)
        if sum(b.num_rows for b in waiting) >= TABLE_ROWS:
            yield pa.Table.from_batches(waiting, schema).unify_dictionaries()
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting, schema).unify_dictionaries()


def batch_of(
    store: Store, page: Sequence[Hand], options: ExportOptions, games: Games, contents: Contents
) -> pa.RecordBatch | None:
    """The decisions of some hands, by game, seat, seq, substep, attempt and role; None where there are none."""
    number = {hand.key: i for i, hand in enumerate(page)}
    found = _fetch(store, sorted({hand.game.game_id for hand in page}), raw=options.raw)
    rows = [row for row in found if (row[1], row[2]) in number]  # the query may leave out another seat of ours
    if not rows:
        return None
    columns: dict[str, Sequence[Any]] = dict(zip((*_FETCHED, "rejected", "raw"), zip(*rows, strict=True), strict=False))
    hands = [number[key] for key in zip(columns["game_id"], columns["seat"], strict=True)]
    splits = [options.split_of(hand.game.lobby, hand.game.table, hand.game.hand) for hand in page]
    arrays = _hand_columns(page, hands, splits, options) | _decision_columns(columns)
    if options.view_json:
        decoders = [games.of(hand.game) for hand in page]
        texts = [decoders[i].json(view) for i, view in zip(hands, columns["view"], strict=True)]
        contents.undecoded += texts.count(None)
        arrays["view_json"] = pa.array(texts, pa.string())
    if options.raw:
        arrays["raw"] = pa.array(columns["raw"], pa.binary())
    if options.rllib:
        arrays |= rllib.columns_of(page, hands, columns, games)
    contents.rows += len(rows)
    for split, count in zip(splits, np.bincount(hands, minlength=len(page)).tolist(), strict=True):
        contents.splits[split] += count
    versions = set(zip(columns["strategy"], columns["encoder_version"], strict=True))
    contents.encoders |= {(strategy, version) for strategy, version in versions if version is not None}
    schema = schema_of(options)
    return pa.RecordBatch.from_arrays([arrays[name] for name in schema.names], schema=schema)


def _fetch(store: Store, ids: list[bytes], *, raw: bool) -> list[tuple[Any, ...]]:
    """Rows of ``_FETCHED``, whether rejected, and the raw frame, straight from the driver: Row objects cost twice."""
    names = ", ".join(f'd."{name}"' for name in _FETCHED)
    rejected = "EXISTS (SELECT 1 FROM outcomes o WHERE o.decision_id = d.id AND o.kind = 'rejected')"
    postgres = store.engine.dialect.name == "postgresql"
    marks = ", ".join(["%s" if postgres else "?"] * len(ids))
    statement = (
        f"SELECT {names}, {rejected}{', d.raw' if raw else ''} FROM decisions d WHERE d.game_id IN ({marks}) "
        "ORDER BY d.game_id, d.seat, d.seq, d.substep, d.attempt, d.role"
    )
    with store.begin() as connection:
        cursor = connection.connection.cursor()
        cursor.execute(statement, [uuid.UUID(bytes=key) for key in ids] if postgres else ids)
        rows: list[tuple[Any, ...]] = list(cursor.fetchall())
        cursor.close()
    return [(row[0].bytes, row[1].bytes, *row[2:]) for row in rows] if postgres else rows


def _hand_columns(
    page: Sequence[Hand], hands: list[int], splits: list[str], options: ExportOptions
) -> dict[str, pa.Array]:
    names = options.name_of
    players = [players_of(hand.game.players) for hand in page]
    seated = [_at(them, hand.game.seat) for them, hand in zip(players, page, strict=True)]
    scores = [hand.scores for hand in page]
    special: dict[str, list[Any]] = {
        "game_id": [hand.game.game_id.hex() for hand in page],
        "account": [names(hand.game.account) for hand in page],
        "player": [names(p["player"]) if isinstance(p.get("player"), str) else None for p in seated],
        "consents": [p.get("consents") if isinstance(p.get("consents"), bool) else None for p in seated],
        "opponents": [_opponents(them, hand.game.seat, options) for them, hand in zip(players, page, strict=True)],
        "outcome": [
            score[hand.game.seat] if score is not None and hand.game.seat < len(score) else None
            for hand, score in zip(page, scores, strict=True)
        ],
        "scores": scores,
        "end": [hand.end.reason if hand.end is not None else None for hand in page],
        "split": splits,
        "started": [hand.game.started_us for hand in page],
    }
    made = {}
    indices = pa.array(hands, pa.int32())
    for field in _HAND_FIELDS:
        column = special.get(field.name) or [getattr(hand.game, field.name) for hand in page]
        if pa.types.is_dictionary(field.type):
            encoded = pa.array(column, pa.string()).dictionary_encode()
            made[field.name] = pa.DictionaryArray.from_arrays(encoded.indices.take(indices), encoded.dictionary)
        else:
            made[field.name] = pa.array(column, field.type).take(indices)
    return made


def _at(players: list[dict[str, Any]], seat: int) -> dict[str, Any]:
    return next((player for player in players if player.get("seat") == seat), {})


def _opponents(players: list[dict[str, Any]], seat: int, options: ExportOptions) -> list[str]:
    others = [player for player in players if player.get("seat") != seat]
    others.sort(key=lambda player: str(player.get("seat")))
    return [options.name_of(str(player.get("player", ""))) for player in others]


def _decision_columns(columns: dict[str, Sequence[Any]]) -> dict[str, pa.Array]:
    made: dict[str, pa.Array] = {
        "id": _hexadecimal(columns["id"]),
        "at": pa.array(columns["at_us"], _TIME),
        "rejected": pa.array(np.fromiter(map(bool, columns["rejected"]), np.bool_)),
    }
    for field in _DECISION_FIELDS:
        column = columns[field.name]
        if pa.types.is_list(field.type):
            made[field.name] = _lists(column, field.type)
        elif pa.types.is_dictionary(field.type):
            made[field.name] = pa.array(column, pa.string()).dictionary_encode()
        else:
            made[field.name] = pa.array(column, field.type)
    return made


def _hexadecimal(keys: Sequence[bytes]) -> pa.Array:
    """16-byte keys as text, in one go."""
    text = b"".join(keys).hex().encode()
    offsets = np.arange(len(keys) + 1, dtype=np.int32) * 32
    return pa.StringArray.from_buffers(len(keys), pa.py_buffer(offsets), pa.py_buffer(text))


def _lists(blobs: Sequence[bytes | None], kind: pa.ListType) -> pa.Array:
    """Blobs of little-endian 4-byte values as a list array; None is null."""
    filled = [blob or b"" for blob in blobs]
    offsets = np.zeros(len(filled) + 1, np.int32)
    np.cumsum(np.fromiter(map(len, filled), np.int64, len(filled)) // 4, out=offsets[1:])
    dtype: npt.DTypeLike = "<i4" if pa.types.is_int32(kind.value_type) else "<f4"
    values = np.frombuffer(b"".join(filled), dtype)
    mask = pa.array([blob is None for blob in blobs]) if None in blobs else None
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values), type=kind, mask=mask)
