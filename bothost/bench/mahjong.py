"""``bothost bench mahjong``: steps, rule players, look-ahead, encodings and training of mahjong per second on one core.

Rates are per CPU second of one thread, so that other work on the machine does not count.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from bothost.bench.rules import played, random_play, rate
from bothost.plugins import Plugins, check_options
from bothost.plugins.address import start_of
from bothost.rules import View, mahjong
from bothost.strategy import TrainingRun
from bothost.training import metrics

STRATEGY = "mahjong-ppo"
BLOCKS = ("tiles", "order", "integers", "look_ahead_3")
TRAINING = {
    "start": "champion",
    "hands": 256,
    "iterations": 3,
    "first_stage": 4,
    "checkpoint_every": 1000,
    "pool_every": 1000,
}
"""The last stage of the curriculum, from the shipped network on: a rule player and three seats that learn. Hidden
features are given at first."""


def command(
    hands: Annotated[int, typer.Option(help="Hands of the rule player whose positions are measured.", min=1)] = 20,
) -> dict[str, Any]:
    """Mahjong on one core.

    ``env_steps_per_s``: random steps through a VecEnv. ``rule_choices_per_s``: decisions of the rule player, on
    positions of its own hands. ``rule_hands_per_s``: whole hands of four rule players. ``lookahead_per_s``: the same
    positions, each looked three draws ahead after every discard. ``encode_per_s``: positions with tile sets, discards,
    integers, look-ahead planes and the appraisals of all legal actions. ``train_samples_per_s``: the strategy's
    training at the last stage of its curriculum, play and all epochs included, from the second iteration on, in 256
    hands at a time; ``train_samples_per_s_bf16``: the same with bfloat16 in the wide layers.
    """
    views = positions(hands)

    def look() -> int:
        for view in views:
            mahjong.look_ahead(view, 3)
        return len(views)

    def decide() -> int:
        for view in views:
            mahjong.rule_choice(view)
        return len(views)

    def play() -> int:
        positions(hands)
        return hands

    def encode() -> int:
        for view in views:
            for block in BLOCKS:
                view.encode(block)
            view.encode_actions("appraisal", view.legal())
        return len(views)

    return {
        "env_steps_per_s": random_play("mahjong")["steps"],
        "rule_choices_per_s": rate(decide),
        "rule_hands_per_s": rate(play),
        "lookahead_per_s": rate(look),
        "encode_per_s": rate(encode),
        "train_samples_per_s": training_rate(),
        "train_samples_per_s_bf16": training_rate(bf16=True),
    }


def positions(hands: int) -> list[View]:
    """Views of the asked seats in hands of four rule players."""
    return [view for view, _ in played("mahjong", range(hands), lambda view: mahjong.rule_choice(view)[0])]


def training_rate(*, bf16: bool = False) -> float | None:
    """Samples per second of a short training; None if the strategy is not installed."""
    plugins = Plugins.load()
    strategy = plugins.strategies.get(STRATEGY)
    trainer = strategy.trainer() if strategy is not None else None
    if not isinstance(trainer, type):
        return None
    options = check_options(trainer, {**TRAINING, "ppo": {"bf16": bf16}})
    times: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        run = TrainingRun(out=Path(folder) / "run", seed=1, start=start_of(plugins, trainer, options))
        trainer(options).train(run, lambda *_args, **_more: times.append(time.process_time()))
        samples = [int(record["samples"]) for record in metrics.read(run.out / metrics.FILE)]
    seconds = times[-1] - times[-len(samples)]
    return round((samples[-1] - samples[0]) / seconds, 1)
