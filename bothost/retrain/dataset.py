"""Logged hands as a trainer reads them: an export of the log, frozen on disk, streamed hand after hand."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from bothost.errors import ModelError, StoreError
from bothost.export.job import export
from bothost.export.options import ExportOptions
from bothost.export.parquet import ParquetExporter
from bothost.rules.game import Game
from bothost.store.query import HandQuery
from bothost.store.store import Store
from bothost.strategy import LoggedStep, Trajectory

BATCH_ROWS = 4096
COLUMNS = (
    "game_id", "seat", "game", "rules", "split", "scores", "role", "rejected",
    "view", "legal", "action", "policy", "stats", "fallback", "strategy", "model_sha256",
)  # fmt: skip

Progress = Callable[[int, int], None]


class Dataset:
    """A finished export. Implements ``bothost.LoggedGames``."""

    def __init__(self, folder: Path, strategy: str, make_game: Callable[..., Game]) -> None:
        """``strategy``: whose decisions are its own; those of others in its hands are fallbacks to it."""
        self.folder = folder
        self.strategy = strategy
        self._make_game = make_game
        self._games: dict[tuple[str, str], Game | None] = {}
        try:
            self._manifest: Mapping[str, Any] = json.loads(self._info.read_bytes())
        except (OSError, ValueError) as error:
            raise StoreError(f"{self._info} cannot be read: {error}", advice="make the dataset anew") from error

    @classmethod
    def make(
        cls,
        store: Store,
        query: HandQuery,
        folder: Path,
        strategy: str,
        make_game: Callable[..., Game],
        *,
        request: Mapping[str, Any] | None = None,
        progress: Progress = lambda done, total: None,
    ) -> Dataset:
        """Export what meets the query, unless an earlier run did; one that was interrupted goes on."""
        if not (folder / "meta" / "info.json").exists():
            options = ExportOptions(view_json=False)
            exporter = ParquetExporter()
            export(store, query, folder, exporter, options, make_game=make_game, request=request, progress=progress)
        return cls(folder, strategy, make_game)

    @property
    def _info(self) -> Path:
        return self.folder / "meta" / "info.json"

    @property
    def manifest(self) -> Mapping[str, Any]:
        return self._manifest

    @property
    def sha256(self) -> str:
        """Of the manifest, which holds those of the files: what a model's lineage names."""
        return hashlib.sha256(self._info.read_bytes()).hexdigest()

    def trajectories(self, split: str = "train") -> Iterator[Trajectory]:
        """The scored hands of a split. Memory does not grow with their number."""
        live = (row for row in self._rows() if row["role"] == "live" and not row["rejected"])
        for (game_id, seat), rows in groupby(live, key=lambda row: (row["game_id"], row["seat"])):
            first = next(rows)
            if first["split"] != split or first["scores"] is None:
                continue
            game = self._game(first["game"], first["rules"])
            if game is None:
                continue
            steps = tuple(self._step(game, row) for row in (first, *rows))
            yield Trajectory(game, game_id, seat, tuple(first["scores"]), steps)

    def _rows(self) -> Iterator[dict[str, Any]]:
        for entry in self._manifest["files"]:
            path = self.folder / "data" / Path(str(entry["file"])).name
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(BATCH_ROWS, columns=list(COLUMNS)):
                    yield from batch.to_pylist()

    def _step(self, game: Game, row: Mapping[str, Any]) -> LoggedStep:
        try:
            view = game.view_from_bytes(row["view"])
        except ValueError as error:
            raise ModelError(f"a view of hand {row['game_id']} cannot be decoded: {error}") from error
        policy = row["policy"]
        return LoggedStep(
            view=view,
            legal=np.array(row["legal"], np.int32),
            action=row["action"],
            policy=None if policy is None else np.array(policy, np.float32),
            stats={} if row["stats"] is None else json.loads(row["stats"]),
            own=row["fallback"] is None and row["strategy"] == self.strategy,
            model_sha256=row["model_sha256"],
        )

    def _game(self, name: str, rules: str) -> Game | None:
        """None where nobody here knows the game."""
        key = name, rules
        if key not in self._games:
            try:
                self._games[key] = self._make_game(name, **json.loads(rules))
            except Exception:  # a plugin's game may fail in any way
                self._games[key] = None
        return self._games[key]
