"""Training of phase-ppo: self-play with PPO, and five levels taken along the way."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import numpy as np
import torch

from bothost import LoggedGames, Model, ReportProgress, Trainer, TrainingRun
from bothost.rules import game
from bothost.training import fleet
from bothost.training.checkpoint import Progress
from bothost.training.loop import version_at
from bothost.training.model_pool import ModelPool
from bothost.training.offpolicy import LeadEncoder, LoggedHands
from bothost.training.ppo import Batch
from bothost.training.publish import WEIGHTS, lineage_of, play_options, write_manifest, write_version
from bothost.training.rollout import Task
from bothost_phase_ppo.encode import BLOCK, REWARD_SCALE, TURNS, VERSION
from bothost_phase_ppo.model import PhaseNet, graph

DEFAULT_MINUTES = 20.0
GENERATION = "v3"
"""Versions of the levels are named by it: a name stands for one model for good."""


class Options(fleet.FleetOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the training."""

    preset: str = "seven-phase"
    """Of the game's rules."""
    levels: tuple[float, ...] = (0.0155, 0.046, 0.061, 0.12, 1.0)
    """When each level is taken, weakest first, as parts of the training's samples: these lie about equally far apart
    in strength after 22 million."""
    playouts: int = 64
    """What the last level brings as its option of play, and a retraining from nothing; 0: its network alone."""
    start: str | None = None
    """Parameters to begin with, a safetensors file; None: fresh ones."""
    rule_share: float = 0.0
    """Share of the hands whose other seat the rule player has; the opponents of the others are past versions."""
    win_points: float = 0.0
    """What a hand won counts for in rewards beside its lead, in points, and a hand lost against."""
    skip_forced: bool = True
    """Learn in self-play from choices alone: a third of the decisions in phases have one legal action."""
    logged_share: float = 0.25
    """When retraining: logged samples beside those of self-play, as a part of these."""


class PhasePpoTrainer(Trainer):
    """Trains one network against its own past versions."""

    name = "phase-ppo"
    Options: ClassVar[type[msgspec.Struct]] = Options

    def train(self, run: TrainingRun, report: ReportProgress) -> dict[str, Any]:
        if run.minutes is None and self.options.iterations is None:
            run = msgspec.structs.replace(run, minutes=DEFAULT_MINUTES)
        start = None if self.options.start is None else Path(self.options.start)
        progress = fleet.train(self.options, self._task(), PhaseNet, run, VERSION, report, start=start)
        levels = publish(run.out, progress, self.options.levels, run, _play(self.options.playouts))
        return {
            "out": str(run.out),
            "updates": progress.iteration,
            "samples": progress.samples,
            "minutes": round(progress.seconds / 60, 2),
            "levels": levels,
        }

    def _task(self) -> Task:
        options = self.options
        return Task(
            game("pairing", preset=options.preset),
            BLOCK,
            TURNS,
            reward_scale=REWARD_SCALE,
            win_points=options.win_points,
            rule_share=options.rule_share,
            skip_forced=options.skip_forced,
        )

    def retrain(
        self, run: TrainingRun, games: LoggedGames, start: Model | None, report: ReportProgress
    ) -> dict[str, Any]:
        """Self-play mixed with the logged hands, whose trajectories V-trace corrects: ``bothost.training.offpolicy``
        says why not the log alone. What comes out plays by the options that ``start`` brings, so that the gate compares
        networks."""
        if run.minutes is None and self.options.iterations is None:
            run = msgspec.structs.replace(run, minutes=DEFAULT_MINUTES)
        task = self._task()
        hands, unseen = LoggedHands.of_splits(run.out.parent / "encoded", LeadEncoder(task), games)
        logged = round(self.options.logged_share * self.options.environments * self.options.horizon)

        def more(model: torch.nn.Module, rng: np.random.Generator) -> Batch:
            return hands.batch(model, self.options.ppo, rng, logged)

        begin = None if start is None or start.path is None else Path(start.path) / WEIGHTS
        extra = more if logged else None
        progress = fleet.train(self.options, task, PhaseNet, run, VERSION, report, start=begin, more=extra)
        model = PhaseNet()
        evaluation = unseen.evaluation(ModelPool(run.out / "pool"), model)
        play = _play(self.options.playouts) if start is None else play_options(start)
        made = write_version(run.out / "weights" / "v1", model, graph(), VERSION, play)
        figures = {
            "updates": progress.iteration,
            "samples": progress.samples,
            "minutes": round(progress.seconds / 60, 2),
            "logged_decisions": hands.decisions,
            "logged_share": self.options.logged_share,
            "evaluation": evaluation,
        }
        lineage = lineage_of(run, progress, VERSION, figures)
        write_manifest(run.out / "weights", {"v1": made}, {"champion": "v1"}, lineage)
        return figures


def _play(playouts: int) -> dict[str, Any]:
    """Options of play that a version brings."""
    return {"playouts": playouts} if playouts else {}


def publish(
    out: Path, progress: Progress, parts: tuple[float, ...], run: TrainingRun, play: Mapping[str, Any]
) -> dict[str, Any]:
    """Write the levels into ``out/weights``, the last with its options of play, and return how each was made."""
    pool, model = ModelPool(out / "pool"), PhaseNet()
    versions, made = {}, {}
    for number, part in enumerate(parts, start=1):
        level = f"level-{number}"
        taken, then = version_at(out, part * progress.samples)
        pool.load(taken, model)
        versions[f"{GENERATION}-{level}"] = write_version(
            out / "weights" / f"{GENERATION}-{level}", model, graph(), VERSION, play if number == len(parts) else None
        )
        made[level] = {"updates": taken, "samples": then.samples, "minutes": round(then.seconds / 60, 2)}
    aliases = {f"level-{number}": f"{GENERATION}-level-{number}" for number in range(1, len(parts) + 1)}
    aliases["champion"] = f"{GENERATION}-level-{len(parts)}"
    figures = {
        "updates": progress.iteration,
        "samples": progress.samples,
        "minutes": round(progress.seconds / 60, 2),
        "levels": made,
    }
    write_manifest(out / "weights", versions, aliases, lineage_of(run, progress, VERSION, figures))
    return made
