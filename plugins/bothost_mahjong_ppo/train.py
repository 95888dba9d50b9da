"""Training of mahjong-ppo: PPO against the opponents of a curriculum, with steered coefficients."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from bothost import LoggedGames, Model, ReportProgress, Trainer, TrainingRun
from bothost.training import ppo
from bothost.training.checkpoint import Progress
from bothost.training.loop import TrainerLoop, limited
from bothost.training.metrics import FILE, read
from bothost.training.model_pool import ModelPool
from bothost.training.offpolicy import LoggedHands
from bothost.training.processes import LocalProcesses
from bothost.training.publish import parameters_file, publish_one
from bothost_mahjong_ppo.encode import VERSION
from bothost_mahjong_ppo.learn import MahjongLearner
from bothost_mahjong_ppo.logged import MahjongHands
from bothost_mahjong_ppo.model import MahjongNet, graph
from bothost_mahjong_ppo.options import Options
from bothost_mahjong_ppo.selfplay import CURRICULUM
from bothost_mahjong_ppo.vine import BranchOptions
from bothost_mahjong_ppo.workers import SharedLearner

DEFAULT_MINUTES = 60.0


class MahjongPpoTrainer(Trainer):
    """Trains one network."""

    name = "mahjong-ppo"
    Options: ClassVar[type[msgspec.Struct]] = Options
    starts_with_version: ClassVar[bool] = True

    def train(self, run: TrainingRun, report: ReportProgress) -> dict[str, Any]:
        """As the options say. Raises UsageError if ``run.start`` sees another version of the encoding."""
        learner, progress = train(self.options, run, report, start=parameters_file(run.start, VERSION))
        return publish(learner, progress, run)

    def retrain(
        self, run: TrainingRun, games: LoggedGames, start: Model | None, report: ReportProgress
    ) -> dict[str, Any]:
        """Mix hands against the rule player and itself with logged ones, whose trajectories V-trace corrects.

        Logged hands have no hidden features, so the network gets none. One process does everything. Raises UsageError
        if ``start`` sees another version of the encoding.
        """
        begin = parameters_file(start, VERSION)
        options: Options = msgspec.structs.replace(self.options, oracle=False, branches=BranchOptions(), workers=0)
        if options.first_stage is None:
            options = msgspec.structs.replace(options, first_stage=len(CURRICULUM) - 1)
        hands, held_out = LoggedHands.of_splits(run.out.parent / "encoded", MahjongHands(), games)
        learner, progress = train(options, run, report, start=begin, extra=hands.extra_batch(options.logged_share))
        model = MahjongNet(look_ahead=options.look_ahead)
        evaluation = held_out.evaluation(ModelPool(run.out / "pool"), model, options.ppo.gamma)
        more = {
            "logged_decisions": hands.decisions,
            "logged_share": options.logged_share,
            "left_out_hands": hands.left_out,
            "evaluation": evaluation,
        }
        return publish(learner, progress, run, more)


def train(
    options: Options,
    run: TrainingRun,
    report: ReportProgress,
    *,
    start: Path | None = None,
    extra: ppo.ExtraBatch | None = None,
) -> tuple[MahjongLearner, Progress]:
    """Train to the end. ``start``: a safetensors file of a shipped network. ``extra``: samples beside self-play."""
    run = limited(run, options, DEFAULT_MINUTES)
    with LocalProcesses() as processes:
        learner = (
            SharedLearner(options, run.seed, processes) if options.workers else MahjongLearner(options, run.seed, extra)
        )
        return learner, TrainerLoop(options, run, VERSION, learner, report, start=start).train()


def publish(
    learner: MahjongLearner, progress: Progress, run: TrainingRun, more: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Write the network into ``out/weights``, without its input for hidden features. Returns all figures.

    ``more``: further figures for the lineage.
    """
    figures = {**progress.figures(), **_totals(run.out), "stage": learner.stage, **(more or {})}
    publish_one(run, progress, learner.model.deployed(), graph(), VERSION, figures)
    return {"out": str(run.out), **figures}


def _totals(out: Path) -> dict[str, int]:
    """All decisions of the learner and all branches, in a training with branches."""
    records = [record for record in read(out / FILE) if "branches" in record]
    return {name: int(sum(record[name] for record in records)) for name in ("decisions", "branches") if records}
