"""The value network of the luck adjustment, and how much the adjustment reduces the variance.

    python -m experiments.mahjong_luck hands model.safetensors --hands 1000 --first 0 --out hands-0.npz
    python -m experiments.mahjong_luck fit hands-*.npz --out bothost/rules/mahjong_luck.npy
    python -m experiments.mahjong_luck variance JOURNAL...

``hands`` plays hands of one rule player and three seats of a version of mahjong-ppo, and keeps what the network of luck
sees before each draw. ``fit`` fits the scores by least squares, then λ-returns, which vary less. ``variance`` reads
journals of four contestants: ``bothost arena mahjong A B C D --luck-adjusted --journal FILE``.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from bothost.rules import game, mahjong
from bothost.training.rollout import choose
from bothost_mahjong_ppo.model import MahjongNet
from bothost_mahjong_ppo.selfplay import CURRICULUM, Group, Opponents, new_hands, observe, play_out

PLAYERS = Opponents(CURRICULUM[-1])
FIRST, SECOND = 128, 64
"""Hidden units, as in ``luck.h``."""
INPUTS = 4 * 17 + 4 + 1
"""Numbers that it sees for a seat: those of all seats, who draws, and the tiles in the wall."""
SCALE = 10.0
"""Points of an output of 1 before the last layer is scaled."""
FIRST_SEED = 10_000_000
"""Seeds of the hands begin here: matches have other ones."""
AT_ONCE = 256
"""Hands."""
BATCH = 1024
ROWS = 1 << 14
"""Draws that are valued at once."""
LAMBDA = 0.8
"""Weight of later values in the λ-returns (Sutton and Barto, chapter 12)."""


def play(network: MahjongNet, hands: int, first: int) -> dict[str, npt.NDArray[Any]]:
    """All draws of hands in which the network draws its actions.

    ``inputs`` (n, 4, 17), ``drawers`` (n,), ``wall`` (n,) as ``mahjong.luck_inputs``; ``scores`` (n, 4), ``hand`` (n,).
    """
    rng, table = np.random.default_rng(first), game("mahjong", preset="botzone")

    def decide(group: Group) -> list[int]:
        observations, legal = observe([(hand.state, seat) for hand, seat in group], 0.0, rng)
        chosen: list[int] = choose(network, observations, legal, rng).actions.tolist()
        return chosen

    kept: dict[str, list[npt.NDArray[Any]]] = {"inputs": [], "drawers": [], "wall": [], "scores": [], "hand": []}
    for begin in range(first, first + hands, AT_ONCE):
        played = new_hands(table, PLAYERS, min(AT_ONCE, first + hands - begin), FIRST_SEED + begin)
        play_out(played, PLAYERS, decide, rng)
        for number, state in enumerate((hand.state for hand in played), begin):
            inputs, drawers, wall = mahjong.luck_inputs(state)
            kept["inputs"].append(inputs.astype(np.float16))
            kept["drawers"].append(drawers)
            kept["wall"].append(wall)
            kept["scores"].append(np.broadcast_to(np.asarray(state.returns, np.float32), (len(wall), 4)))
            kept["hand"].append(np.full(len(wall), number))
    return {key: np.concatenate(values) for key, values in kept.items()}


def fit(files: Sequence[Path], rounds: int, seed: int) -> npt.NDArray[np.float32]:
    """The network's weights in the order of ``luck.h``. Every tenth hand is held out; its fit is printed each round."""
    torch.manual_seed(seed)
    parts = [np.load(file, allow_pickle=False) for file in files]
    data = {key: torch.from_numpy(np.concatenate([part[key] for part in parts])) for key in parts[0].files}
    scores, hand = data["scores"], data["hand"]
    held_out = hand % 10 == 0
    train = torch.nonzero(~held_out).squeeze(-1)
    layers: Any = torch.nn.Sequential(
        torch.nn.Linear(INPUTS, FIRST),
        torch.nn.ReLU(),
        torch.nn.Linear(FIRST, SECOND),
        torch.nn.ReLU(),
        torch.nn.Linear(SECOND, 1),
    )

    def values(rows: torch.Tensor) -> torch.Tensor:
        seats = seats_in_turn(data["inputs"][rows].float(), data["drawers"][rows], data["wall"][rows])
        out: torch.Tensor = SCALE * layers(seats).squeeze(-1)
        return out - out.mean(1, keepdim=True)

    def approach(targets: torch.Tensor, epochs: float, rate: float) -> None:
        steps = max(1, int(epochs * len(train) / BATCH))
        optimizer = torch.optim.AdamW(layers.parameters(), rate, weight_decay=1e-3)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps)
        for _ in range(steps):
            rows = train[torch.randint(len(train), (BATCH,))]
            loss: Any = ((values(rows) - targets[rows]) ** 2).mean() / SCALE**2
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()

    approach(scores, 2, 4e-3)
    for number in range(rounds + 1):
        with torch.no_grad():
            rows = torch.arange(len(hand))
            now = torch.cat([values(rows[i : i + ROWS]) for i in range(0, len(rows), ROWS)])
        missed = ((now[held_out] - scores[held_out]) ** 2).mean() / (scores[held_out] ** 2).mean()
        print(f"round {number}: explains {1 - float(missed):.4f} of the variance of scores, over all held-out draws")
        if number < rounds:
            approach(torch.from_numpy(lambda_returns(now.numpy(), scores.numpy(), hand.numpy())), 1.5, 2e-3)
    with torch.no_grad():
        layers[4].weight.mul_(SCALE)
        layers[4].bias.mul_(SCALE)
        weights = torch.cat([torch.cat([layers[i].weight.T.flatten(), layers[i].bias]) for i in (0, 2, 4)])
    return weights.numpy().astype(np.float32)


def lambda_returns(
    values: npt.NDArray[np.float32], scores: npt.NDArray[np.float32], hand: npt.NDArray[Any]
) -> npt.NDArray[np.float32]:
    """λ-returns (n, 4) of each draw: the last draw of a hand gets its scores."""
    returns = scores.copy()
    for i in range(len(hand) - 2, -1, -1):
        if hand[i] == hand[i + 1]:
            returns[i] = (1 - LAMBDA) * values[i + 1] + LAMBDA * returns[i + 1]
    return returns


def seats_in_turn(inputs: Any, drawers: Any, wall: Any) -> Any:
    """What the network sees for each seat: (n, 4, ``INPUTS``)."""
    rows = []
    for seat in range(4):
        own_first = [inputs[:, (seat + i) % 4] for i in range(4)]
        place = torch.nn.functional.one_hot((seat - drawers.long()) % 4, 4).float()
        rows.append(torch.cat([*own_first, place, wall[:, None].float() / 84], 1))
    return torch.stack(rows, 1)


def variance(journals: Sequence[Path]) -> dict[str, Any]:
    """Standard deviations of A's score: of hands, and of the means of four rotations, plain and adjusted."""
    plain, adjusted = [], []
    for journal in journals:
        for line in journal.read_text().splitlines()[1:]:
            hands = json.loads(line)["hands"]
            # In rotation r, contestant A has seat -r.
            own = [(hand["returns"][-r % 4], hand["luck"][-r % 4]) for r, hand in enumerate(hands)]
            plain.append([score for score, _ in own])
            adjusted.append([score - luck for score, luck in own])
    a, b = np.asarray(plain), np.asarray(adjusted)
    return {
        "walls": len(a),
        "sd_hand": [a.std(ddof=1), b.std(ddof=1)],
        "sd_rotations": [a.mean(1).std(ddof=1), b.mean(1).std(ddof=1)],
        "fewer_hands": a.mean(1).var(ddof=1) / b.mean(1).var(ddof=1),
        "mean": [a.mean(), b.mean()],
        "difference": (a - b).mean(),
        "standard_error_of_difference": (a - b).mean(1).std(ddof=1) / len(a) ** 0.5,
    }


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, dest="command")
    hands = commands.add_parser("hands")
    hands.add_argument("network", type=Path, help="model.safetensors of a version")
    hands.add_argument("--hands", type=int, default=1000)
    hands.add_argument("--first", type=int, default=0)
    hands.add_argument("--out", type=Path, required=True)
    fitting = commands.add_parser("fit")
    fitting.add_argument("files", type=Path, nargs="+")
    fitting.add_argument("--rounds", type=int, default=3)
    fitting.add_argument("--seed", type=int, default=0)
    fitting.add_argument("--out", type=Path, required=True)
    spread = commands.add_parser("variance")
    spread.add_argument("journals", type=Path, nargs="+")
    given = parser.parse_args()
    if given.command == "hands":
        torch.set_num_threads(1)
        network = MahjongNet()
        network.begin_with(given.network)
        np.savez(given.out, allow_pickle=False, **play(network, given.hands, given.first))
    elif given.command == "fit":
        np.save(given.out, fit(given.files, given.rounds, given.seed), allow_pickle=False)
    else:
        print(json.dumps(variance(given.journals), indent=1))


if __name__ == "__main__":
    main()
