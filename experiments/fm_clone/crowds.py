"""How much better does a clone predict its player after one crowd than after another?

``python -m experiments.fm_clone.crowds othello old.safetensors new.safetensors --others 556``

Players of random styles that neither crowd has are cloned from some of their games, after both crowds. Prints the means
and the paired gains, with 95 % intervals over the players.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch

from bothost.training.statistics import mean_half95
from bothost_fm_clone import shared
from bothost_fm_clone.encode import encoding
from bothost_fm_clone.fit import score
from bothost_fm_clone.mixed import player_after
from bothost_fm_clone.samples import decisions
from experiments.fm_clone.few_games import MOST_TESTED, TESTED
from experiments.fm_clone.styles import StyledGames, random_styles

SEATS = {"doudizhu": 3, "mahjong": 4, "othello": 2}
LEAST = {"doudizhu": 400, "mahjong": 60, "othello": 150}
"""Fewest games of each player, so that there is enough to test on."""


def main() -> None:
    """Run the experiment."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("game", choices=sorted(SEATS))
    parser.add_argument("crowds", nargs=2, type=Path, help="files of two crowds")
    parser.add_argument("--others", type=int, default=0, help="seed of the players")
    parser.add_argument("--players", type=int, default=16)
    parser.add_argument("--sizes", type=int, nargs="*", default=[0, 20, 50, 200])
    told = parser.parse_args()
    torch.set_num_threads(1)
    crowds = [shared.load(file, told.game) for file in told.crowds]
    names = random_styles(told.game, told.players, told.others)
    hands = int(1.25 * max(*told.sizes, LEAST[told.game]) / TESTED * len(names) / SEATS[told.game])
    made = decisions(StyledGames(told.game, names, hands, 6).moves(told.game), encoding(told.game))
    found = np.empty((len(told.sizes), len(names), 2, 2))
    for n, player in enumerate(names):
        mine = made.where(made.players == player)
        tested = mine.where(mine.parts >= TESTED)
        tested = tested.where(np.arange(len(tested)) < MOST_TESTED)
        open_ = np.unique(mine.hands[mine.parts < TESTED])
        for k, size in enumerate(told.sizes):
            drawn = np.random.default_rng([0, size]).choice(open_, min(size, len(open_)), replace=False)
            some = mine.where(np.isin(mine.hands, drawn))
            for which, crowd in enumerate(crowds):
                clone = player_after(crowd, some, 0)[0] if size else crowd
                result = score(clone.probabilities_of(tested.samples), tested.samples)
                found[k, n, which] = 100 * result.top1, result.log_loss
    for size, of_players in zip(told.sizes, found, strict=True):
        for measure, name in enumerate(("top-1 %", "log-loss")):
            old, new = of_players[:, :, measure].T
            gain, half = mean_half95((new - old).tolist())
            print(f"{size} games, {name}: {old.mean():.3f}, {new.mean():.3f}, gain {gain:+.3f} ± {half:.3f}")


if __name__ == "__main__":
    main()
