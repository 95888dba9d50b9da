"""How many points a hand do networks of mahjong-ppo score against three ``rule-mahjong``, on the same walls?

``python -m experiments.mahjong_scores old.safetensors new.safetensors --walls 2048 --seeds 1 2``

Each network plays every wall from all four seats, with the actions that it likes best, many hands at once: some twenty
times as fast as ``bothost arena mahjong``. Prints the mean of each network, and how much more each scores than the
first one, with 95 % intervals over the walls.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch

from bothost.rules import Game, game
from bothost.training.ppo import Float, masked_log_probs
from bothost_mahjong_ppo.model import MahjongNet
from bothost_mahjong_ppo.selfplay import Group, Opponents, SelfPlayHand, observe, play_out

RULE_PLAYERS = Opponents(("rule", "rule", "rule"))
AT_ONCE = 256
"""Walls."""
WALLS_OF_A_SEED = 1_000_003


def scores(network: torch.nn.Module, table: Game, seed: int, walls: int) -> Float:
    """Mean score over the four seats of each of the walls of a seed: (walls,)."""
    rng = np.random.default_rng(0)  # draws nothing: hidden features are not given

    def decide(group: Group) -> list[int]:
        observations, legal = observe([(hand.state, seat) for hand, seat in group], 0.0, rng)
        with torch.inference_mode():
            logits = network(torch.from_numpy(observations))[0]
            best: list[int] = masked_log_probs(logits, torch.from_numpy(legal)).argmax(dim=1).tolist()
        return best

    found = []
    for first in range(0, walls, AT_ONCE):
        numbers = range(first, min(first + AT_ONCE, walls))
        deals = [(seed * WALLS_OF_A_SEED + number, seat) for number in numbers for seat in range(4)]
        hands = [SelfPlayHand(table.new_state(deal), seat, RULE_PLAYERS) for deal, seat in deals]
        found.append(play_out(hands, RULE_PLAYERS, decide, rng).reshape(-1, 4).mean(axis=1))
    return np.concatenate(found)


def interval(values: Float) -> str:
    """Mean and half of its 95 % interval."""
    return f"{values.mean():+.3f} ± {1.96 * values.std(ddof=1) / len(values) ** 0.5:.3f}"


def main() -> None:
    """Run the experiment."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="+", type=Path, help="model.safetensors of a version")
    parser.add_argument("--walls", type=int, default=512, help="of each seed")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    given = parser.parse_args()
    torch.set_num_threads(1)
    table, first = game("mahjong", preset="botzone"), np.empty(0, np.float32)
    for file in given.networks:
        network = MahjongNet()
        network.begin_with(file)
        found = np.concatenate([scores(network, table, seed, given.walls) for seed in given.seeds])
        more = f", more than the first {interval(found - first)}" if len(first) else ""
        first = first if len(first) else found
        print(f"{file}: {len(found):,} walls, points a hand {interval(found)}{more}", flush=True)


if __name__ == "__main__":
    main()
