"""How well fm-clone, the rule players and mahjong-ppo predict recorded mahjong players.

``python benchmarks/recorded_players.py FILE… [--crowd FOLDER]``

FILE: what ``bothost import botzone`` reads. All seats of a file count as one player. Games are left out in folds; each
clone learns from the others, after the crowd. Prints JSON: agreement on discards and on claims with 95 % intervals over
games, and paired differences.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bothost import Budget, PlayerMove, Table
from bothost.imports.botzone import read
from bothost.imports.rebuild import play
from bothost.plugins import Plugins
from bothost.rules import mahjong
from bothost_fm_clone.encode import encoding
from bothost_fm_clone.files import load_any
from bothost_fm_clone.fit import per_decision
from bothost_fm_clone.mixed import player_after
from bothost_fm_clone.samples import decisions
from bothost_fm_clone.shared import SharedClone
from bothost_fm_clone.train import PACKAGE

FOLDS = 7
Floats = npt.NDArray[np.float64]


def moves(path: Path) -> Iterator[PlayerMove]:
    """Every decision with a choice of the file's games."""
    for number, found in enumerate(read(path)):
        if found.record is None:
            continue
        hand = play(found.record)
        for seat, view, action in hand.moves:
            legal = view.legal()
            if len(legal) > 1:
                yield PlayerMove(hand.game, f"{number:032x}", "train", path.name, seat, view, legal, action, 0, None)


def main(path: Path, crowd: Path) -> dict[str, object]:
    """The figures of one file."""
    said = list(moves(path))
    made = decisions(said, encoding("mahjong"))
    assert len(made) == len(said)
    discards = np.array([move.view.phase in ("turn", "discard") for move in said])
    start = load_any(crowd / "mahjong.safetensors", "mahjong")
    assert isinstance(start, SharedClone)
    others = ("crowd", "rule-mahjong", "acceptance-weighted", "mahjong-ppo")
    hits = {name: np.zeros(len(said)) for name in ("clone", *others)}
    losses = {name: np.zeros(len(said)) for name in ("crowd", "clone")}
    trained = Plugins.load().resolve("mahjong-ppo").make()
    for n, move in enumerate(said):
        player = trained.player(Table(lobby="recorded", table=move.game_id, game=move.game, seat=move.seat, seed=0))
        hits["mahjong-ppo"][n] = player.decide(move.view, move.legal, Budget(math.inf)).action == move.action
        hits["rule-mahjong"][n] = mahjong.rule_choice(move.view)[0] == move.action
        hits["acceptance-weighted"][n] = mahjong.acceptance_weighted_choice(move.view)[0] == move.action
    for fold in range(FOLDS):
        out = made.hands % FOLDS == fold
        clone, chosen = player_after(start, made.where(~out), 1)
        print(path.name, fold, chosen, file=sys.stderr)
        for name, model in (("crowd", start), ("clone", clone)):
            tested = made.where(out).samples
            hits[name][out], losses[name][out] = per_decision(model.probabilities_of(tested), tested)
    figures: dict[str, object] = {"games": len(np.unique(made.hands))}
    for what, mask in (("discards", discards), ("claims", ~discards)):
        own: dict[str, object] = {"decisions": int(mask.sum())}
        own |= {name: interval(100 * values[mask], made.hands[mask]) for name, values in hits.items()}
        own |= {f"log-loss {name}": interval(values[mask], made.hands[mask]) for name, values in losses.items()}
        for other in others:
            gain = 100 * (hits["clone"] - hits[other])[mask]
            own[f"clone less {other}"] = interval(gain, made.hands[mask])
        figures[what] = own
    return figures


def interval(values: Floats, games: npt.NDArray[np.int64]) -> list[float]:
    """Mean and half of the 95 % interval over games."""
    sums = np.bincount(games, values - values.mean())
    half = 1.96 * float(np.sqrt(np.square(sums).sum())) / len(values)
    return [round(float(values.mean()), 3), round(half, 3)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--crowd", type=Path, default=PACKAGE, help="folder of another crowd than the package's")
    told = parser.parse_args()
    for file in told.files:
        print(json.dumps({file: main(Path(file), told.crowd)}, indent=1))
