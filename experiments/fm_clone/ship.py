"""Make what the package of fm-clone ships: ``python -m experiments.fm_clone.ship GAME OUT``.

A crowd of a game, of players with random styles, and clones of named styled players from 200 games each. At mahjong a
fifth of the crowd goes by a trained policy.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import typer

import bothost_fm_clone.train
from bothost import TrainingRun
from bothost_baselines.styled_doudizhu import STYLES as DOUDIZHU
from bothost_fm_clone.train import FmCloneTrainer, TrainOptions
from experiments.fm_clone.styles import StyledGames, random_styles, trained_styles

PLAYERS, TRAINED, HANDS, SEED = 200, 50, {"doudizhu": 108_000, "mahjong": 27_000, "othello": 20_000}, 1
NAMED: dict[str, dict[str, Any]] = {
    "doudizhu": {"blocker": DOUDIZHU["blocker"], "loner": DOUDIZHU["loner"]},
    "mahjong": {},
    "othello": {"edges-first": {"style": "edges-first", "temperature": 0.5}},
}
"""Styled players who are cloned from ``GAMES`` games with players of random styles."""
GAMES = 200


def report(done: int, note: str = "", total: int | None = None) -> None:
    """Print the progress of a training."""
    print(note, flush=True)


def main(game: str, out: Path) -> None:
    """Train the crowd and the named clones of a game into ``out``."""
    command = f"python -m experiments.fm_clone.ship {game} {out.name}"
    styles = random_styles(game, PLAYERS, 7) | (trained_styles(TRAINED, 7) if game == "mahjong" else {})
    crowd = StyledGames(game, styles, HANDS[game], SEED)
    options = TrainOptions(game=game, most=60_000 if game == "doudizhu" else 30_000)  # type: ignore[arg-type]
    shutil.rmtree(out / f"{game}-crowd", ignore_errors=True)
    made = FmCloneTrainer(options).train(
        TrainingRun(out=out / f"{game}-crowd", seed=SEED, log=crowd, command=command), report
    )
    print(json.dumps(made))
    named(game, out, options, command)


def named(game: str, out: Path, options: TrainOptions, command: str) -> None:
    """Train the named clones from the crowd in ``out``."""
    bothost_fm_clone.train.PACKAGE = out / f"{game}-crowd" / "weights" / "v1"
    for name, style in NAMED[game].items():
        shutil.rmtree(out / name, ignore_errors=True)
        others = random_styles(game, 8, 11)
        hands = int(GAMES / 0.9 * (len(others) + 1) / (3 if game == "doudizhu" else 2))
        log = StyledGames(game, {name: style, **others}, hands, 13)
        run = TrainingRun(out=out / name, seed=SEED, log=log, players=(name,), command=command)
        print(name, json.dumps(FmCloneTrainer(options).train(run, report)))


if __name__ == "__main__":
    typer.run(main)
