"""Training of phase-ppo: self-play with PPO, and five levels taken along the way."""

from __future__ import annotations

import math
import os
import platform
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from bothost import ReportProgress, Trainer, TrainingRun
from bothost.rules import game
from bothost.training.checkpoint import Progress
from bothost.training.loop import SelfPlayOptions, train, version_at
from bothost.training.model_pool import ModelPool
from bothost.training.publish import write_manifest, write_version
from bothost.training.rollout import Task
from bothost_phase_ppo.encode import BLOCK, REWARD_SCALE, TURNS, VERSION
from bothost_phase_ppo.model import PhaseNet, graph

DEFAULT_MINUTES = 20.0


class Options(SelfPlayOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the training."""

    preset: str = "seven-phase"
    """Of the game's rules."""
    levels: tuple[float, ...] = (0.01, 0.04, 0.1, 0.3, 1.0)
    """When each level is taken, weakest first, as parts of the training time."""


class PhasePpoTrainer(Trainer):
    """Trains one network against its own past versions."""

    name = "phase-ppo"
    Options: ClassVar[type[msgspec.Struct]] = Options

    def train(self, run: TrainingRun, report: ReportProgress) -> dict[str, Any]:
        if run.minutes is None and self.options.iterations is None:
            run = msgspec.structs.replace(run, minutes=DEFAULT_MINUTES)
        task = Task(game("pairing", preset=self.options.preset), BLOCK, TURNS, reward_scale=REWARD_SCALE)
        progress = train(self.options, task, PhaseNet, run, VERSION, report)
        levels = publish(run.out, progress, self.options.levels, run)
        return {
            "out": str(run.out),
            "updates": progress.iteration,
            "samples": progress.samples,
            "minutes": round(progress.seconds / 60, 2),
            "levels": levels,
        }


def publish(out: Path, progress: Progress, parts: tuple[float, ...], run: TrainingRun) -> dict[str, Any]:
    """Write the levels into ``out/weights`` and return how each was made."""
    pool, model = ModelPool(out / "pool"), PhaseNet()
    versions, made = {}, {}
    for number, part in enumerate(parts, start=1):
        level = f"level-{number}"
        # The last version is the last one, however its time was rounded in the metrics.
        taken, then = version_at(out, part * progress.seconds if part < 1.0 else math.inf)
        pool.load(taken, model)
        versions[f"v1-{level}"] = write_version(out / "weights" / f"v1-{level}", model, graph(), VERSION)
        made[level] = {"updates": taken, "samples": then.samples, "minutes": round(then.seconds / 60, 2)}
    aliases = {f"level-{number}": f"v1-level-{number}" for number in range(1, len(parts) + 1)}
    aliases["champion"] = f"v1-level-{len(parts)}"
    lineage = {
        "command": run.command,
        "seed": progress.seed,
        "encoder_version": VERSION,
        "machine": f"one core of a {os.cpu_count()}-core {platform.machine()} machine",
        "updates": progress.iteration,
        "samples": progress.samples,
        "minutes": round(progress.seconds / 60, 2),
        "levels": made,
        "options": progress.options,
    }
    write_manifest(out / "weights", versions, aliases, lineage)
    return made
