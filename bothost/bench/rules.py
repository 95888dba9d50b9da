"""Throughput of the rules: native games called from Python on one core, and their peers in the same run.

All work is single-threaded and timed in CPU seconds, so that other work on the machine does not count.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from statistics import median
from typing import Annotated, Any

import numpy as np
import typer

from bothost.bench.rules_peers import bench_peers
from bothost.rules import View, game, legal_many, mahjong, vec_env

RUNS = 5
SECONDS = 0.2
"""Least time of one run."""
BATCH = 2048
"""Environments of a VecEnv; hands of a batch."""


def command(
    peers: Annotated[bool, typer.Option(help="Measure OpenSpiel, RLCard and PyMahjongGB too.")] = True,
) -> dict[str, Any]:
    """Per second and on one core, the median of several runs each.

    ``doudizhu``: ``moves_per_s`` and ``games_per_s`` of random play through a VecEnv, legal ids without observations;
    ``legal_moves_20_per_s`` leads of 20 cards, all legal moves materialised; ``samples_per_s`` of
    ``View.sample_state``. ``mahjong``: ``games_per_s`` of random play; ``shanten_per_s`` of 14-tile hands over all
    shapes; ``fan_per_s`` of winning hands. ``pairing``: ``steps_per_s``; ``othello``: ``moves_per_s``. ``peers``: the
    same by OpenSpiel, RLCard and PyMahjongGB where they are installed.
    """
    doudizhu, hands, wins = random_play("doudizhu"), tiles(BATCH), winning_hands(BATCH)
    report: dict[str, Any] = {
        "doudizhu": {
            "moves_per_s": doudizhu["steps"],
            "games_per_s": doudizhu["games"],
            "legal_moves_20_per_s": leads_of_20(),
            "samples_per_s": samples(),
        },
        "othello": {"moves_per_s": random_play("othello")["steps"]},
        "mahjong": {
            "games_per_s": random_play("mahjong")["games"],
            "shanten_per_s": rate(lambda: len(mahjong.shanten_many(hands))),
            "fan_per_s": rate(lambda: len(mahjong.fan_many(*wins)[0])),
        },
        "pairing": {"steps_per_s": random_play("pairing")["steps"]},
    }
    if peers:
        report["peers"] = bench_peers(rate, tiles(200), winning_hands(200))
    return report


def rate(work: Callable[[], int]) -> float:
    """Units per second: the median over several runs of calls to ``work``, which returns the units it did."""
    work()
    rates = []
    for _ in range(RUNS):
        done, start = 0, time.thread_time()
        while (elapsed := time.thread_time() - start) < SECONDS:
            done += work()
        rates.append(done / elapsed)
    return float(f"{median(rates):.4g}")


def random_play(name: str) -> dict[str, float]:
    """Actions and finished hands per second of uniformly random play through a VecEnv."""
    env, rng = vec_env(game(name), BATCH, seed=1), np.random.default_rng(1)
    totals = {"steps": 0, "games": 0}

    def step() -> int:
        offsets = env.legal_offsets
        begins = offsets[:-1]
        env.step(env.legal_ids[begins + (rng.random(BATCH) * np.diff(offsets)).astype(np.int64)])
        totals["steps"] += BATCH
        totals["games"] += int(env.done.sum())
        return BATCH

    for _ in range(300):  # beyond the openings, which all environments play at the same time
        step()
    totals["steps"] = totals["games"] = 0
    steps = rate(step)
    return {"steps": steps, "games": float(f"{steps * totals['games'] / totals['steps']:.4g}")}


def played(name: str, seeds: Iterable[int], choose: Callable[[View], int]) -> Iterator[tuple[View, int]]:
    """The decisions of whole hands: the view of the asked seat, and what it chooses."""
    rules = game(name)
    for seed in seeds:
        state = rules.new_state(seed)
        while not state.terminal:
            view = state.view(state.to_act[0])
            action = choose(view)
            yield view, action
            state.apply(view.seat, action)


def leads_of_20() -> float:
    """Dou Dizhu hands of 20 cards on lead, under RLCard's move set."""
    views = []
    for seed in range(BATCH):
        state = game("doudizhu", preset="rlcard").new_state(seed)
        views.append(state.view(state.to_act[0]))
    return rate(lambda: len(legal_many(views)[1]) - 1)


def samples() -> float:
    """Full states sampled from views at all stages of Dou Dizhu hands."""
    rng = np.random.default_rng(1)
    views = [view for view, _ in played("doudizhu", range(100), lambda view: int(rng.choice(view.legal())))]

    def sample() -> int:
        for seed, view in enumerate(views):
            view.sample_state(seed)
        return len(views)

    return rate(sample)


def tiles(n: int) -> mahjong.CountArray:
    """Random 14-tile hands, shape (n, 34)."""
    rng = np.random.default_rng(1)
    walls = rng.permuted(np.tile(np.repeat(np.arange(34), 4), (n, 1)), axis=1)[:, :14]
    return np.stack([np.bincount(wall, minlength=34) for wall in walls]).astype(np.uint8)


def winning_hands(n: int) -> tuple[mahjong.CountArray, mahjong.CountArray, mahjong.CountArray]:
    """Concealed winning hands of four sets and a pair, as ``mahjong.fan_many`` takes them."""
    rng = np.random.default_rng(1)
    standing, wins = np.zeros((n, 34), np.uint8), np.zeros((n, 8), np.uint8)
    for i in range(n):
        while True:
            hand = np.zeros(34, np.uint8)
            for _ in range(4):
                if rng.random() < 0.6:
                    first = 9 * int(rng.integers(3)) + int(rng.integers(7))
                    hand[first : first + 3] += 1
                else:
                    hand[rng.integers(34)] += 3
            hand[rng.integers(34)] += 2
            if hand.max() <= 4:
                break
        standing[i] = hand
        wins[i, 0] = rng.choice(np.flatnonzero(hand))
        wins[i, 1] = rng.integers(2)
    return standing, np.zeros((n, 4, 2), np.uint8), wins
