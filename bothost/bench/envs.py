"""Steps per second of the environments on one core, compared with RLCard and OpenSpiel in the same run.

A step is a random legal action, with the next observation and the list or mask of legal actions. All work is
single-threaded and timed in CPU seconds.
"""

from __future__ import annotations

import importlib
import importlib.util
import random
import warnings
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import typer

from bothost.bench.rules import rate
from bothost.envs import BatchEnv, SeatEnv, TurnEnv
from bothost.envs.actions import Numbering

BATCH = 1024
"""Hands of a BatchEnv."""
GAMES: dict[str, Numbering] = {"doudizhu": "abstract", "othello": "ids"}


def command(
    peers: Annotated[bool, typer.Option(help="Measure the environments of RLCard and OpenSpiel, too.")] = True,
) -> dict[str, Any]:
    """For each game, steps per second of ``turn_env``, ``seat_env`` (random opponents) and ``batch_env`` (self-play).

    ``rlcard`` and ``open_spiel``: the same by ``rlcard.make`` and ``open_spiel.python.rl_environment``, where they are
    installed and have the game. The ratios divide by the faster of them.
    """
    report: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for game, numbering in GAMES.items():
            figures = {
                "turn_env": rate(_turns(game, numbering)),
                "seat_env": rate(_seats(game, numbering)),
                "batch_env": rate(_batches(game, numbering)),
            }
            others = _peers(game) if peers else {}
            fastest = max(others.values(), default=0.0)
            ratios = {f"{name}_ratio": figures[name] / fastest for name in ("turn_env", "batch_env") if fastest}
            report[game] = figures | others | ratios
    return report


def _turns(game: str, numbering: Numbering) -> Callable[[], int]:
    env, rng = TurnEnv(game, actions=numbering), random.Random(1)
    env.reset(seed=1)

    def hand() -> int:
        env.reset()
        steps = 0
        while True:
            observation, _, ended, _, _ = env.last()
            if ended:
                return steps
            env.step(rng.choice(np.flatnonzero(observation["action_mask"])))
            steps += 1

    return hand


def _seats(game: str, numbering: Numbering) -> Callable[[], int]:
    env, rng = SeatEnv(game, "random", actions=numbering), random.Random(1)
    env.reset(seed=1)

    def hand() -> int:
        _, info = env.reset()
        steps, ended = 0, False
        while not ended:
            _, _, ended, _, info = env.step(rng.choice(np.flatnonzero(info["action_mask"])))
            steps += 1
        return steps

    return hand


def _batches(game: str, numbering: Numbering) -> Callable[[], int]:
    env, rng = BatchEnv(game, BATCH, actions=numbering, copy=False), random.Random(1)
    env.reset(seed=1)

    def step() -> int:
        mask = env.action_masks()
        first = rng.randrange(mask.shape[1])  # of all legal actions the next one from here on
        later = mask[:, first:]
        env.step(np.where(later.any(axis=1), later.argmax(axis=1) + first, mask.argmax(axis=1)))
        return BATCH

    return step


def _peers(game: str) -> dict[str, float]:
    out: dict[str, float] = {}
    if game == "doudizhu" and importlib.util.find_spec("rlcard"):
        out["rlcard"] = rate(_rlcard())
    if importlib.util.find_spec("pyspiel"):
        out["open_spiel"] = rate(_open_spiel({"doudizhu": "dou_dizhu"}.get(game, game)))
    return out


def _rlcard() -> Callable[[], int]:
    env, rng = importlib.import_module("rlcard").make("doudizhu"), random.Random(1)

    def hand() -> int:
        state, _ = env.reset()
        steps = 0
        while not env.is_over():
            state, _ = env.step(rng.choice(list(state["legal_actions"])))
            steps += 1
        return steps

    return hand


def _open_spiel(game: str) -> Callable[[], int]:
    env = importlib.import_module("open_spiel.python.rl_environment").Environment(game)
    rng = random.Random(1)

    def hand() -> int:
        step = env.reset()
        steps = 0
        while not step.last():
            seat = step.observations["current_player"]
            step = env.step([rng.choice(step.observations["legal_actions"][seat])])
            steps += 1
        return steps

    return hand
