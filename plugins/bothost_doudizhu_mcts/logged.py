"""Records of logged hands.

For a decision by a search, the records are the visits and values of its moves. For other decisions there is one record:
the played move, with the hand's result as its value. A result is unbiased but noisy.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bothost import LoggedGames, LoggedStep
from bothost.errors import UsageError
from bothost.rules import Game
from bothost_doudizhu_mcts import records

FILE_RECORDS = 100_000
"""Approximate number of records in a file."""


def write(games: LoggedGames, folder: Path) -> Path:
    """Write the records of the hands in the splits "train" and "val" to ``folder``, unless it exists already.

    The fit itself splits them by deal into training and held-out records. "test" is not used. Raises UsageError if
    there are no records.
    """
    if folder.is_dir():
        return folder
    building = folder.with_name(f".{folder.name}")
    shutil.rmtree(building, ignore_errors=True)  # left by a run that was killed
    building.mkdir(parents=True)
    number = 0
    for number, (game, batch) in enumerate(_batches(games), start=1):
        made = {"by": "logged games", "dataset": games.manifest["query"]}
        records.write(building / f"logged-{number:05d}.parquet", batch, game.rules, made)
    if not number:
        raise UsageError("the dataset has no scored play of Dou Dizhu", advice="play more, or ask for other hands")
    building.rename(folder)
    return folder


def searched(step: LoggedStep) -> list[tuple[int, int, float]]:
    """(action, visits, value) of the moves that a search of this strategy visited; empty if there was no search."""
    if not step.own or step.policy is None or step.values is None:
        return []
    visits = int(step.stats.get("iterations") or 0) + int(step.stats.get("reused_visits") or 0)
    counts = np.rint(step.policy * visits).astype(int).tolist()
    found = zip(step.legal.tolist(), counts, step.values.tolist(), strict=True)
    return [(action, count, value) for action, count, value in found if count > 0]


def _batches(games: LoggedGames) -> Iterator[tuple[Game, records.Batch]]:
    """Yield batches of whole hands with the same rules."""
    waiting: dict[str, tuple[Game, records.Batch]] = {}
    for split in ("train", "val"):
        for hand in games.trajectories(split):
            if hand.game.name != "doudizhu" or not hand.scores[hand.seat]:
                continue
            rules = json.dumps(hand.game.rules, sort_keys=True)
            batch = waiting.setdefault(rules, (hand.game, records.Batch()))[1]
            value = float(np.sign(hand.scores[hand.seat]))
            for step in hand.steps:
                if step.view.phase == "play":
                    moves = searched(step) or [(step.action, 1, value)]
                    batch.add(hand.game_id, hand.seat, step.view.to_bytes(), moves)
            if len(batch) >= FILE_RECORDS:
                yield waiting.pop(rules)
    yield from (pair for pair in waiting.values() if len(pair[1]))
