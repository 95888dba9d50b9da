"""Export logged decisions as Minari datasets, with one episode per hand and seat of ours.

The observations of an episode are the seat's views at its decisions and at the end: view blocks of the game's encoder,
flattened and joined. By default these are all blocks in the order of their names, as in RLlib's columns. Actions are
the game's ids. The reward is the hand's score, with the last action. For games with at most ``MOST_MASKED`` actions,
``infos`` holds ``action_mask``.

Format: Minari (Farama Foundation), HDF5 storage.
"""

from __future__ import annotations

import errno
import importlib
import json
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bothost.errors import StoreError, UsageError
from bothost.export.folder import naming
from bothost.export.options import ExportOptions
from bothost.export.rllib import observation, view_blocks
from bothost.export.views import Decoder
from bothost.rules.game import Game, Json
from bothost.store.logged_games import GameCache
from bothost.store.query import HandQuery
from bothost.store.reader import NOT_PLAYED, Timeline, iter_hands, iter_timelines, played
from bothost.store.records import DecisionRecord
from bothost.store.store import Store

if TYPE_CHECKING:
    from minari.data_collector import EpisodeBuffer

MOST_MASKED = 512
"""Most actions of a game whose episodes have an action mask."""
NAMESPACE = "bothost"


def export_episodes(
    store: Store,
    query: HandQuery,
    out: Path,
    *,
    blocks: Sequence[str] = (),
    progress: Callable[[int], None] = lambda done: None,
) -> Json:
    """Write a dataset for each game and rules under ``out/bothost``. Returns counts.

    ``blocks``: the view blocks of the observations, in order; empty: all. Set ``MINARI_DATASETS_PATH=out`` for
    ``minari.load_dataset``. Raises UsageError if the package ``minari`` is missing, ``out`` is not empty, or a game
    does not have a block.
    """
    try:
        importlib.import_module("minari.dataset._storages.hdf5_storage")
    except ImportError as error:
        advice = 'pip install "bothost[minari]"'
        raise UsageError(f"exporting to Minari needs {error.name or 'h5py'}", advice=advice) from None
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} is not empty", advice="name another folder with --out")
    out = out.absolute()  # Minari cannot use a relative path
    out.parent.mkdir(parents=True, exist_ok=True)
    left_out: Counter[str] = Counter()
    games = GameCache()
    datasets: dict[tuple[str, str], _Dataset] = {}
    with naming(out), tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as folder:
        done = 0
        for timeline in iter_timelines(store, iter_hands(store, query)):
            record = timeline.hand.game
            key = record.game, record.rules
            decoder = Decoder(games.get(*key))
            try:
                episode = _episode(timeline, decoder, _chosen(decoder.game, blocks))
            except (StoreError, ValueError) as error:
                left_out[str(error)] += 1
                continue
            if key not in datasets:
                name = _name(record.game, datasets)
                datasets[key] = _Dataset(Path(folder), name, decoder, record.rules, _chosen(decoder.game, blocks))
            datasets[key].add(episode)
            done += 1
            progress(done)
        if datasets:
            for dataset in datasets.values():
                dataset.flush()
            (Path(folder) / NAMESPACE / "namespace_metadata.json").write_text("{}")
            if out.exists():
                out.rmdir()
            Path(folder).chmod(0o700)
            Path(folder).rename(out)
            Path(folder).mkdir()  # for the context manager to remove
    written = {each.id: {"episodes": each.episodes, "steps": each.steps} for each in datasets.values()}
    return {"format": "minari", "datasets": written, "left_out": dict(left_out)}


def _name(game: str, datasets: dict[tuple[str, str], _Dataset]) -> str:
    """``doudizhu``, and ``doudizhu-2`` for the second rules of the same game; ``openspiel-go-board_size-9``."""
    names = [re.sub(r"\W+", "-", each).strip("-") for each in (game, *(name for name, _ in datasets))]
    number = names.count(names[0])
    return names[0] if number == 1 else f"{names[0]}-{number}"


def _chosen(game: Game | None, blocks: Sequence[str]) -> Sequence[str]:
    """Return the names of the view blocks. Raises UsageError for a block that the game does not have."""
    if game is None:
        return ()
    known = view_blocks(game)
    for name in blocks:
        if name not in known:
            raise UsageError(f"{game.name} has no view block {name!r}", advice=f"blocks: {', '.join(known)}")
    return blocks or known


def _episode(timeline: Timeline, decoder: Decoder, blocks: Sequence[str]) -> EpisodeBuffer:
    """Make the episode of a hand. Raises StoreError, and ValueError with the reason why the hand is left out."""
    from minari.data_collector import EpisodeBuffer

    record, game = timeline.hand.game, decoder.game
    if game is None:
        raise ValueError("of a game that is not installed")
    made = _played(timeline)
    if not made:
        raise ValueError("without a decision")
    score = timeline.hand.score
    if score is None:
        raise ValueError("without a score")
    end = game.new_view(record.seat)
    try:
        end.observe_all(timeline.lines())
    except (StoreError, ValueError):
        raise ValueError("with a gap in their events") from None
    views = (*(row.view for row in made), end.to_bytes())
    seen = [each for view in views if (each := observation(decoder, view, blocks)) is not None]
    if len(seen) < len(views):
        raise ValueError("whose views cannot be decoded")
    infos = {}
    if game.num_actions <= MOST_MASKED:
        infos["action_mask"] = np.zeros((len(seen), game.num_actions), np.bool_)
        for mask, row in zip(infos["action_mask"], made, strict=False):
            mask[np.frombuffer(row.legal, "<i4")] = True
    waiting = len(made) - 1
    return EpisodeBuffer(
        options={
            "game_id": record.game_id.hex(),
            "seat": record.seat,
            "strategy": record.strategy,
            "strategy_version": record.strategy_version,
            "model_sha256": record.model_sha256 or "",  # HDF5 has no null
            "split": ExportOptions().split_of(record.lobby, record.table, record.hand),
        },
        observations=np.stack(seen),
        actions=np.array([row.action for row in made], np.int64),
        rewards=[0.0] * waiting + [score],
        terminations=[False] * waiting + [True],
        truncations=[False] * len(made),
        infos=infos,
    )


def _played(timeline: Timeline) -> list[DecisionRecord]:
    """Return the decisions that were played."""
    live = [row for row in timeline.decisions if row.role == "live"]
    dropped = [any(outcome.kind in NOT_PLAYED for outcome in timeline.outcomes.get(row.id, ())) for row in live]
    attempts = [(row.seq, row.attempt, row_dropped) for row, row_dropped in zip(live, dropped, strict=True)]
    return list(compress(live, played(attempts)))


class _Dataset:
    """A dataset on disk. Episodes are written in batches of so many, or of so many bytes of observations."""

    BATCH = 256
    BATCH_BYTES = 64 << 20
    FRAME_BYTES = 64 << 10
    """More than HDF5 itself needs for an episode."""

    def __init__(self, root: Path, name: str, decoder: Decoder, rules: str, blocks: Sequence[str]) -> None:
        from gymnasium import spaces
        from minari import __version__
        from minari.dataset.minari_storage import MinariStorage

        assert decoder.game is not None
        game = decoder.game
        self.id = f"{NAMESPACE}/{name}-v0"
        self.episodes = self.steps = self._bytes = 0
        self._root = root
        self._waiting: list[EpisodeBuffer] = []
        sizes = [int(np.prod(game.blocks[block].shape)) for block in blocks]
        folder = root / NAMESPACE / f"{name}-v0" / "data"
        folder.mkdir(parents=True)
        self._storage = MinariStorage.new(
            folder,
            observation_space=spaces.Box(-np.inf, np.inf, (sum(sizes),), np.float32),
            action_space=spaces.Discrete(game.num_actions),
        )
        about = {
            "dataset_id": self.id,
            "description": f"Decisions of {game.name}, logged by bothost. Rules: {json.dumps(json.loads(rules))}",
            "minari_version": __version__,
            "bothost_game": game.name,
            "bothost_rules": rules,
            "bothost_blocks": [[block, game.blocks[block].version] for block in blocks],
        }
        self._storage.update_metadata(about)

    def add(self, episode: EpisodeBuffer) -> None:
        self._waiting.append(replace(episode, id=self.episodes))
        self.episodes += 1
        self.steps += len(episode)
        self._bytes += episode.observations.nbytes
        if len(self._waiting) >= self.BATCH or self._bytes >= self.BATCH_BYTES:
            self.flush()

    def flush(self) -> None:
        if self._waiting:
            # HDF5 ends the process when the disk is full. A part of its chunks stays unused.
            if shutil.disk_usage(self._root).free < 1.25 * self._bytes + self.FRAME_BYTES * len(self._waiting):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self._storage.update_episodes(self._waiting)
            self._waiting, self._bytes = [], 0
