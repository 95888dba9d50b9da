"""The dataset of a retraining: an export of the log on disk, read hand by hand from Arrow batches."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from itertools import compress, groupby, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bothost.errors import ModelError, StoreError
from bothost.export.job import HandsDeleted, OtherRequest, export
from bothost.export.options import ExportOptions
from bothost.export.parquet import ParquetExporter
from bothost.rules.game import Game
from bothost.store.logged_games import GameCache
from bothost.store.query import HandQuery
from bothost.store.reader import played
from bothost.store.store import Store
from bothost.strategy import LoggedStep, Trajectory

BATCH_ROWS = 4096
COLUMNS = (
    "game_id", "seat", "seq", "attempt", "game", "rules", "split", "scores", "role", "rejected", "played",
    "view", "legal", "action", "policy", "action_values", "stats", "fallback", "strategy", "model_sha256",
)  # fmt: skip

Progress = Callable[[int, int], None]
_Step = tuple[tuple[int, int, bool], LoggedStep]
"""The attempt of a live decision, as ``played`` takes it, and the decision."""


class Dataset:
    """A finished export. Implements ``bothost.LoggedGames``."""

    def __init__(self, folder: Path, strategy: str) -> None:
        """``strategy``: the strategy to train. Decisions of others in its hands are fallbacks."""
        self.folder = folder
        self.strategy = strategy
        self._games = GameCache()
        try:
            self.manifest: Mapping[str, Any] = dict(json.loads(self._info.read_bytes()))
        except (OSError, ValueError, TypeError) as error:
            raise _damaged(self._info, error) from error

    @classmethod
    def make(
        cls,
        store: Store,
        query: HandQuery,
        folder: Path,
        strategy: str,
        *,
        request: Mapping[str, Any] | None = None,
        progress: Progress = lambda done, total: None,
    ) -> Dataset:
        """Export what matches the query, or finish an export that was interrupted.

        If hands were deleted meanwhile, or another release started the export, it starts again.
        """
        if not is_made(folder):
            options = ExportOptions(view_json=False)
            run = partial(export, store, query, folder, ParquetExporter(), options, request=request, progress=progress)
            try:
                run()
            except (HandsDeleted, OtherRequest):
                shutil.rmtree(folder)
                run()
        return cls(folder, strategy)

    @property
    def _info(self) -> Path:
        return self.folder / "meta" / "info.json"

    @property
    def sha256(self) -> str:
        """Hash of the manifest, which has the hashes of the files. The lineage of a model names it."""
        return hashlib.sha256(self._info.read_bytes()).hexdigest()

    def trajectories(self, split: str = "train") -> Iterator[Trajectory]:
        """The scored hands of a split. Memory does not grow with their number."""
        parts = ((rows, *part) for rows in self._batches() for part in rows.hands())
        for _, of_hand in groupby(parts, key=lambda part: part[1].key):  # a hand may continue in the next batch
            steps: list[_Step] = []
            for rows, hand, begin, end in of_hand:
                game = self._games.get(*hand.game)
                if hand.split == split and hand.scores is not None and game is not None:
                    steps += ((rows.attempts[row], self._step(game, rows, row)) for row in range(begin, end))
            made = tuple(compress((step for _, step in steps), played([attempt for attempt, _ in steps])))
            if made and game is not None and hand.scores is not None:
                yield Trajectory(game, *hand.key, tuple(hand.scores), made)

    def _batches(self) -> Iterator[_Rows]:
        """The live decisions."""
        for entry in self.manifest["files"]:
            path = self.folder / "data" / Path(str(entry["file"])).name
            try:
                with pq.ParquetFile(path) as file:
                    known = [name for name in COLUMNS if name in file.schema_arrow.names]
                    for batch in file.iter_batches(BATCH_ROWS, columns=known):
                        yield _Rows(batch.filter(pc.equal(batch["role"], "live")))
            except (OSError, pa.ArrowException) as error:
                raise _damaged(path, error) from error

    def _step(self, game: Game, rows: _Rows, row: int) -> LoggedStep:
        try:
            view = game.view_from_bytes(rows.views[row])
        except ValueError as error:
            raise ModelError(f"a view of hand {rows.game_ids[row]} cannot be decoded: {error}") from error
        return LoggedStep(
            view=view,
            legal=rows.legal[row],
            action=rows.actions[row],
            policy=rows.policies[row] if rows.has_policy[row] else None,
            values=rows.values[row] if rows.has_values[row] else None,
            stats=_json(rows.stats[row]),
            own=rows.fallbacks[row] is None and rows.strategies[row] == self.strategy,
            model_sha256=rows.models[row],
        )


def is_made(folder: Path) -> bool:
    """Whether the folder has a complete dataset."""
    return (folder / "meta" / "info.json").exists()


def _damaged(path: Path, error: Exception) -> StoreError:
    return StoreError(f"{path} cannot be read: {error}", advice="remove the dataset's folder to create it again")


class _HandRows(NamedTuple):
    """What the rows of one hand share."""

    key: tuple[str, int]
    """Game id and seat."""
    game: tuple[str, str]
    """Name and rules."""
    split: str
    scores: list[float] | None


class _Rows:
    """A batch of decisions by column. Lists of numbers are views into Arrow's memory."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch
        self.game_ids, self.seats = _list(batch, "game_id"), _list(batch, "seat")
        # Exports of earlier releases have no column ``played``.
        dropped = pc.invert(batch["played"]) if "played" in batch.schema.names else batch["rejected"]
        self.attempts = list(zip(_list(batch, "seq"), _list(batch, "attempt"), dropped.to_pylist(), strict=True))
        self.views, self.actions = _list(batch, "view"), _list(batch, "action")
        self.stats, self.models = _list(batch, "stats"), _list(batch, "model_sha256")
        self.fallbacks, self.strategies = _list(batch, "fallback"), _list(batch, "strategy")
        self.legal, self.policies = _Lists(batch["legal"], np.int32), _Lists(batch["policy"], np.float32)
        self.values = _Lists(batch["action_values"], np.float32)
        self.has_policy = batch["policy"].is_valid().to_pylist()
        self.has_values = batch["action_values"].is_valid().to_pylist()

    def hands(self) -> Iterator[tuple[_HandRows, int, int]]:
        """The hands in this batch, each with its range of rows. A hand may continue in the next batch."""
        keys = list(zip(self.game_ids, self.seats, strict=True))
        begins = [row for row, key in enumerate(keys) if row == 0 or key != keys[row - 1]]
        for begin, end in pairwise([*begins, len(keys)]):
            name, rules, split, scores = (self.batch[c][begin].as_py() for c in ("game", "rules", "split", "scores"))
            yield _HandRows(keys[begin], (name, rules), split, scores), begin, end


class _Lists:
    """A column of lists of numbers; ``lists[row]`` is an array."""

    def __init__(self, column: pa.ListArray, dtype: npt.DTypeLike) -> None:
        self._offsets = column.offsets.to_numpy().tolist()
        self._values = column.values.to_numpy(zero_copy_only=False).astype(dtype, copy=False)

    def __getitem__(self, row: int) -> npt.NDArray[Any]:
        found: npt.NDArray[Any] = self._values[self._offsets[row] : self._offsets[row + 1]]
        return found


def _list(batch: pa.RecordBatch, column: str) -> list[Any]:
    values: list[Any] = batch[column].to_pylist()
    return values


@lru_cache(maxsize=256)
def _json(text: str | None) -> dict[str, Any]:
    """Most decisions have the same few stats. Those of a plugin may be anything."""
    found = None if text is None else json.loads(text)
    return found if isinstance(found, dict) else {}
