"""How often styled players do what they are most likely to do: ``python -m experiments.fm_clone.ceiling GAME SEED``.

A clone cannot agree more often, beyond error. SEED draws the eight players whom ``few_games --others SEED`` clones, and
the decisions are those that it tests.
"""

from __future__ import annotations

import argparse
from collections import defaultdict

import numpy as np

from bothost import Table
from bothost.training.statistics import mean_half95
from bothost_fm_clone.encode import encoding
from bothost_fm_clone.samples import part_of
from experiments.fm_clone.few_games import MOST_TESTED, TESTED, games_of
from experiments.fm_clone.styles import StyledGames, player_at, random_styles


def agreement(log: StyledGames) -> dict[str, float]:
    """The share of each player's tested decisions that it would also make at temperature 0."""
    game, own = log.game, encoding(log.game)
    sure = {name: player_at(game, {**options, "temperature": 0.0}) for name, options in log.styles.items()}
    same: dict[str, list[bool]] = defaultdict(list)
    for move in log.moves(game):
        agreed = same[move.player]
        if part_of(move.game_id) < TESTED or len(agreed) >= MOST_TESTED or len(own.choices(move.view, move.legal)) < 2:
            continue
        table = Table(lobby="styles", table=move.game_id, game=move.game, seat=move.seat, seed=0)
        choice = sure[move.player](table)(move.view, move.legal)
        agreed.append(bool(own.class_of[choice] == own.class_of[move.action]))
    return {name: float(np.mean(agreed)) for name, agreed in same.items()}


def main() -> None:
    """Print the agreement of each player, and their mean."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("game", choices=["doudizhu", "othello"])
    parser.add_argument("seed", type=int)
    told = parser.parse_args()
    found = agreement(games_of(told.game, random_styles(told.game, 8, told.seed), 6))
    for name, share in found.items():
        print(f"{name:22} {100 * share:.1f} %")
    mean, half = mean_half95([100 * share for share in found.values()])
    print(f"{'mean':22} {mean:.1f} ± {half:.1f} %")


if __name__ == "__main__":
    main()
