"""How large are the weights of clones, by families of features?

``python -m experiments.fm_clone.penalties doudizhu --players 3001 50 3002 150``

Clones players of random styles without a crowd, all weights held back alike. The variance of the weights of a pair of
families is taken as a product of two factors, which are found in turns. The penalties are its inverse, as large on
average over the weights as they were. Writes them into the table that clones use (``bothost_fm_clone.penalties``).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
import numpy as np
import torch

from bothost_fm_clone import penalties
from bothost_fm_clone.encode import encoding
from bothost_fm_clone.pairs import Pairs, left_out
from bothost_fm_clone.penalties import ALONE, EVEN, Feature, Penalties, Table, families
from bothost_fm_clone.samples import decisions
from bothost_fm_clone.sight import sight
from experiments.fm_clone.crowds import SEATS
from experiments.fm_clone.few_games import TESTED
from experiments.fm_clone.styles import StyledGames, random_styles

PLAYERS = 24
SHRINKING = 3e3
"""Pairs of features of average weights that are added to each family, so that rare families get no extreme factor."""


def main() -> None:
    """Run the experiment."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("game", choices=sorted(SEATS))
    parser.add_argument("--players", type=int, nargs="+", required=True, help="seeds of 24 players and their hands")
    told = parser.parse_args()
    torch.set_num_threads(1)
    table = factors(told.game, list(clones(told.game, told.players[::2], told.players[1::2])))
    path = Path(penalties.__file__).with_name(penalties.TABLE)
    tables = msgspec.json.decode(path.read_bytes(), type=dict[str, Table]) if path.exists() else {}
    tables = dict(sorted({**tables, told.game: table}.items()))
    path.write_bytes(msgspec.json.format(msgspec.json.encode(tables), indent=2) + b"\n")


def clones(game: str, seeds: list[int], sizes: list[int]) -> Iterator[Mapping[Feature, float]]:
    """The weights of clones of players, each from so many hands."""
    for seed, size in zip(seeds, sizes, strict=True):
        names = random_styles(game, PLAYERS, seed)
        hands = int(1.5 * size / TESTED * PLAYERS / SEATS[game])
        made = decisions(StyledGames(game, names, hands, 6).moves(game), encoding(game))
        for player in names:
            mine = made.where(made.players == player)
            some = mine.where(np.isin(mine.hands, np.unique(mine.hands)[:size]))
            fits = Pairs(sight(game).of(some), left_out(some, 0), encoding(game), Penalties.even(game))
            print(player, len(some), round(fits.loss, 4), flush=True)
            yield fits.weights()


def factors(game: str, weights: list[Mapping[Feature, float]]) -> Table:
    """The table of these clones' game."""
    names = families(game)
    kinds = sorted(set(names))
    kind = np.array([kinds.index(name) for name in names])
    alone = len(kinds)
    squares = np.zeros((alone + 1, alone))
    for clone in weights:
        for feature, weight in clone.items():
            squares[kind[feature[0]] if len(feature) == 2 else alone, kind[feature[-1]]] += weight**2
    of_candidates = kind[len(sight(game).positions) :]
    pairs = len(weights) * np.outer([*np.bincount(kind), 1], np.bincount(of_candidates, minlength=alone)).astype(float)
    mean = squares.sum() / pairs.sum()
    first, last = np.ones(alone + 1), np.ones(alone)
    for _ in range(200):
        first = (squares.sum(axis=1) / mean + SHRINKING) / ((pairs * last).sum(axis=1) + SHRINKING)
        last = (squares.sum(axis=0) / mean + SHRINKING) / ((pairs * first[:, None]).sum(axis=0) + SHRINKING)
    variances = np.outer(first, last)
    usual = np.exp((squares * np.log(variances)).sum() / squares.sum())
    return Table(
        dict(zip([*kinds, ALONE], [float(f"{EVEN * usual / factor:.3g}") for factor in first], strict=True)),
        {kinds[n]: float(f"{1.0 / last[n]:.3g}") for n in np.unique(of_candidates)},
    )


if __name__ == "__main__":
    main()
