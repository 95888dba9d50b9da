"""Training records for the network, (a seat's view, candidate move) → value, as Parquet files.

A value is the expected result for the side of the seat that moves, 2 P(win) - 1: +1 is a certain win and -1 a certain
loss. Bombs and springs do not count. ``visits`` is the number of playouts behind a value. The records of a position are
adjacent.

A file contains whole hands. The key ``bothost.records`` of its footer has their rules and how they were made, so that
a folder can be read without further information.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bothost.errors import UsageError
from bothost.rules import Game, View, game

FORMAT = 1
SCHEMA = pa.schema(
    [
        pa.field("deal", pa.string(), nullable=False),
        pa.field("seat", pa.int8(), nullable=False),
        pa.field("view", pa.binary(), nullable=False),
        pa.field("action", pa.int32(), nullable=False),
        pa.field("value", pa.float32(), nullable=False),
        pa.field("visits", pa.uint32(), nullable=False),
    ]
)
"""Columns of a file: the deal's name (equal for all records of a hand), the seat that moves, its view's bytes, the
candidate move's action id, its value in [-1, 1] and its number of playouts."""

_FOOTER = b"bothost.records"


@dataclass
class Batch:
    """A growing batch of records, by column."""

    columns: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in SCHEMA.names})

    def __len__(self) -> int:
        return len(self.columns["action"])

    def add(self, deal: str, seat: int, view: bytes, moves: Sequence[tuple[int, int, float]]) -> None:
        """Add the moves (action, visits, value) of a position, except those without visits."""
        moves = [move for move in moves if move[1] > 0]
        actions, visits, values = zip(*moves, strict=True) if moves else ((), (), ())
        for name, column in (
            ("deal", [deal] * len(moves)),
            ("seat", [seat] * len(moves)),
            ("view", [view] * len(moves)),
            ("action", actions),
            ("value", values),
            ("visits", visits),
        ):
            self.columns[name].extend(column)

    def extend(self, other: Batch) -> None:
        for name, column in other.columns.items():
            self.columns[name].extend(column)


def write(path: Path, batch: Batch, rules: Mapping[str, Any], made: Mapping[str, Any]) -> None:
    """Write a file atomically."""
    footer = {"format": FORMAT, "rules": dict(rules), "made": dict(made)}
    table = pa.table(batch.columns, SCHEMA).replace_schema_metadata({_FOOTER: json.dumps(footer).encode()})
    building = path.with_name(f".{path.name}.part")
    pq.write_table(table, building, compression="zstd")
    building.replace(path)


def files(folder: Path) -> list[Path]:
    """The files of a folder, sorted by name."""
    return sorted(folder.glob("*.parquet"))


def made(path: Path) -> tuple[dict[str, Any], dict[str, Any], int]:
    """A file's rules, how it was made, and its number of records. Raises UsageError."""
    with _readable(path):
        about = pq.read_metadata(path)
        footer = json.loads((about.metadata or {})[_FOOTER])
        if footer["format"] != FORMAT:
            raise ValueError(f"format {footer['format']}, this is {FORMAT}")
        return dict(footer["rules"]), dict(footer["made"]), int(about.num_rows)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Raise UsageError if the block reads a damaged file, or one of something else."""
    try:
        yield
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError) as error:
        raise UsageError(
            f"{path} is not a file of records: {error}", advice="remove it, or use another folder"
        ) from error


@dataclass(frozen=True)
class Records:
    """Positions, each with its candidate moves."""

    games: Sequence[Game]
    game_of: npt.NDArray[np.int32]
    """Shape (positions,): index into ``games``."""
    deals: Sequence[str]
    """Name of the deal of each position."""
    views: Sequence[bytes]
    """The moving seat's view in each position."""
    offsets: npt.NDArray[np.int64]
    """Shape (positions + 1,): position i has the records ``offsets[i]:offsets[i + 1]``."""
    actions: npt.NDArray[np.int32]
    values: npt.NDArray[np.float32]
    visits: npt.NDArray[np.int64]
    made_by: Sequence[Mapping[str, Any]] = ()
    """The commands that made the records, each with its number of records."""

    def __len__(self) -> int:
        return len(self.views)

    def view(self, position: int) -> View:
        """The moving seat's view."""
        return self.games[int(self.game_of[position])].view_from_bytes(self.views[position])

    def held_out(self, share: float) -> npt.NDArray[np.bool_]:
        """Shape (positions,): whether a position belongs to a held-out deal.

        A hash of the deal's name decides, so that no deal is on both sides, also if more records are added.
        """
        chosen = {deal: _fraction(deal) < share for deal in set(self.deals)}
        return np.array([chosen[deal] for deal in self.deals], np.bool_)


def load(folder: Path) -> Records:
    """All records of a folder and its subfolders. Raises UsageError if there are none, or a file is damaged."""
    games: list[Game] = []
    tables, numbers = [], []
    commands: Counter[str] = Counter()
    for path in [*files(folder), *sorted(folder.glob("*/*.parquet"))]:
        rules, how, rows = made(path)
        commands[str(how.get("command") or how.get("exports") or how.get("by"))] += rows
        if rows == 0:
            continue
        with _readable(path):
            this = game("doudizhu", **rules)
            table = pq.read_table(path, schema=SCHEMA)
            if not np.isfinite(table["value"].to_numpy()).all() or pc.min(table["visits"]).as_py() < 1:
                raise ValueError("a record has no finite value, or no visits")
            tables.append(table)
        if this.rules not in [known.rules for known in games]:
            games.append(this)
        numbers += [next(i for i, known in enumerate(games) if known.rules == this.rules)] * rows
    if not tables:
        advice = "bothost train doudizhu-mcts collect --out FOLDER makes some"
        raise UsageError(f"there are no records in {folder}", advice=advice)
    made_by = [{"command": command, "records": rows} for command, rows in commands.items()]
    return _positions(games, np.array(numbers, np.int32), pa.concat_tables(tables), made_by)


def _positions(
    games: Sequence[Game], numbers: npt.NDArray[np.int32], table: pa.Table, made_by: Sequence[Mapping[str, Any]]
) -> Records:
    view = table["view"].combine_chunks().dictionary_encode()
    deal = table["deal"].combine_chunks().dictionary_encode()
    of_view, of_deal = view.indices.to_numpy(), deal.indices.to_numpy()
    starts = np.flatnonzero(np.diff(of_view, prepend=-1) | np.diff(of_deal, prepend=-1))
    deal_names, view_bytes = deal.dictionary.to_pylist(), view.dictionary.to_pylist()
    return Records(
        games=games,
        game_of=numbers[starts],
        deals=[deal_names[i] for i in of_deal[starts]],
        views=[view_bytes[i] for i in of_view[starts]],
        offsets=np.append(starts, len(of_view)).astype(np.int64),
        actions=table["action"].to_numpy(),
        values=np.clip(table["value"].to_numpy(), -1.0, 1.0),
        visits=table["visits"].to_numpy().astype(np.int64),
        made_by=made_by,
    )


def _fraction(name: str) -> float:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8]) / 2**64


EXPORTED = ("game", "rules", "game_id", "seat", "phase", "role", "rejected", "view", "action", "outcome")
"""Columns of ``bothost export`` that are needed for records of logged games, beside ``played`` where there is one."""


def from_export(folder: Path) -> Iterator[tuple[dict[str, Any], Batch]]:
    """Records of logged games: (rules, records) for each file of an export.

    The value of the played move is the hand's result for its seat, +1 or -1, with one visit, like a single playout.
    Raises UsageError if the folder is not an export.
    """
    found = sorted((folder / "data").glob("*.parquet")) or files(folder)
    if not found:
        advice = "bothost export --out FOLDER makes one; name its folder"
        raise UsageError(f"there is no export in {folder}", advice=advice)
    for path in found:
        try:
            marked = "played" in pq.read_schema(path).names  # not in exports of earlier releases
            table = pq.read_table(path, columns=[*EXPORTED, "played"] if marked else [*EXPORTED])
        except (OSError, pa.ArrowException) as error:
            raise UsageError(f"{path} is not an export: {error}", advice="name the folder of an export") from error
        live = (pc.field("role") == "live") & ~pc.field("rejected")
        batches: dict[str, Batch] = {}
        for row in table.filter(pc.field("played") if marked else live).to_pylist():
            if row["game"] == "doudizhu" and row["phase"] == "play" and row["outcome"]:
                batch = batches.setdefault(row["rules"], Batch())
                batch.add(
                    row["game_id"], row["seat"], row["view"], [(row["action"], 1, float(np.sign(row["outcome"])))]
                )
        for rules, batch in batches.items():
            yield json.loads(rules), batch
