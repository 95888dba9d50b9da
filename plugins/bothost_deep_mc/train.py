"""Training of deep-mc: rounds of self-play, and what each of them teaches the networks of the roles.

All randomness of round i is a function of (seed, i), and a checkpoint lies between two rounds; so a training by rounds
that was interrupted and resumes gives the same networks as one that was not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import numpy as np
import torch

from bothost import LoggedGames, Model, ReportProgress, Trainer, TrainingRun
from bothost.errors import UsageError
from bothost.rules import game
from bothost.training import checkpoint
from bothost.training.checkpoint import Progress
from bothost.training.loop import begun_or_resumed, version_at
from bothost.training.metrics import FILE, Metrics, plot, read, read_until
from bothost.training.model_pool import ModelPool
from bothost.training.publish import WEIGHTS, lineage_of, write_manifest, write_version
from bothost_deep_mc.branches import merged_decisions, win_rates
from bothost_deep_mc.encode import ROLES, VERSION
from bothost_deep_mc.engine import PRESET, Engine, Setup
from bothost_deep_mc.experts import logged, some
from bothost_deep_mc.learn import ExpertBatch, Learner
from bothost_deep_mc.losses import adaptive_weight
from bothost_deep_mc.model import DeepMcNet, begin_with, graph, sizes_of
from bothost_deep_mc.options import Options
from bothost_deep_mc.selfplay import Decisions

PLOTTED = ("win_rate", "loss", "agreement", "hands_per_s")
DEFAULT_MINUTES = 60.0
DECISIONS_PER_HAND = 24
"""Among several moves, about."""
GENERATION = "v6"
"""Versions of the levels are named by it: a name stands for one model for good."""


class DeepMcTrainer(Trainer):
    """``bothost train deep-mc``."""

    name = "deep-mc"
    Options: ClassVar[type[msgspec.Struct]] = Options

    def train(self, run: TrainingRun, report: ReportProgress) -> dict[str, Any]:
        if run.minutes is None and self.options.iterations is None:
            run = msgspec.structs.replace(run, minutes=DEFAULT_MINUTES)
        options: Options = self.options
        if options.expert == "logged":
            raise UsageError(
                "expert=logged: a training has no logged hands", advice="bothost retrain deep-mc, or expert=rule"
            )
        start = Path(options.start) if options.start else None
        progress = Training(options, run, start=start).train(report)
        levels = publish(run, progress, options)
        return {
            "out": str(run.out),
            "rounds": progress.iteration,
            "samples": progress.samples,
            "minutes": round(progress.seconds / 60, 2),
            "levels": levels,
        }

    def retrain(
        self, run: TrainingRun, games: LoggedGames, start: Model | None, report: ReportProgress
    ) -> dict[str, Any]:
        """Self-play beside logged hands, whose players are the regularizer's experts: their moves and what they led to.

        Only decisions that the logged strategy made itself count.
        """
        options: Options = self.options
        if run.minutes is None and options.iterations is None:
            run = msgspec.structs.replace(run, minutes=DEFAULT_MINUTES)
        first = None
        if start is not None and start.path is not None:
            first = Path(start.path) / WEIGHTS
            options = msgspec.structs.replace(options, sizes=sizes_of(first))
        trajectories = games.trajectories("train")
        hands = logged(trajectories, others=options.play.others, seen=options.seen, seed=run.seed)
        if not hands:
            raise UsageError("the dataset has no scored hand of this game", advice="play more, or ask for other hands")
        progress = Training(options, run, start=first, more=some_of(hands, options)).train(report)
        levels = publish(run, progress, msgspec.structs.replace(options, levels=(1.0,)))
        found = sum(len(part.returns) for part in hands.values())
        return {"rounds": progress.iteration, "samples": progress.samples, "logged_decisions": found, "levels": levels}

    @staticmethod
    def measure(*, hands: int, repeats: int, large: bool, held_out: int, seed: int) -> dict[str, Any]:
        """See ``measure.measure``; what ``bothost bench deepmc`` calls."""
        from bothost_deep_mc.measure import measure

        return measure(hands=hands, repeats=repeats, large=large, held_out=held_out, seed=seed)


More = Callable[[np.random.Generator], Mapping[str, Decisions]]
"""Makes decisions beside those of self-play, the expert's move in second place, for one round."""


def some_of(hands: Mapping[str, Decisions], options: Options) -> More | None:
    """For each round as many decisions of logged hands as the options ask for; None where they ask for none."""
    count = round(options.logged_share * options.hands * DECISIONS_PER_HAND)
    return (lambda rng: some(hands, count, rng)) if count else None


class Training:
    """A training between two rounds."""

    def __init__(
        self, options: Options, run: TrainingRun, *, start: Path | None = None, more: More | None = None
    ) -> None:
        """Begin, or go on where the training in ``run.out`` was left.

        ``start``: parameters to begin with, a safetensors file; None: fresh ones. ``more``: what each round teaches
        beside self-play.
        """
        torch.set_num_threads(1)
        self.options, self.run, self.more = options, run, more
        self.table = game("doudizhu", preset=PRESET)
        self.learner = Learner(options, run.seed)
        self.progress = begun_or_resumed(run, VERSION, self.learner.model, self.learner.optimizer)
        self.progress.options = msgspec.to_builtins(options)
        done = self.progress.iteration
        self.pool = ModelPool(run.out / "pool")
        self.pool.forget_after(done)
        if done == 0:
            if start is not None:
                begin_with(start, self.learner.model)
            self.pool.add(0, self.learner.model)
        self.learner.load()
        last = read_until(run.out / FILE, done)[-1] if done else {}
        self.win_rate, self.cpu_seconds = last.get("win_rate", 0.0), last.get("cpu_seconds", 0.0)

    @property
    def done(self) -> float:
        """How much of the training is over, of 1."""
        rounds = self.progress.iteration / self.options.iterations if self.options.iterations else 0.0
        minutes = self.run.minutes
        return max(rounds, self.progress.seconds / (60 * minutes) if minutes else 0.0)

    def train(self, report: ReportProgress) -> Progress:
        """Train until rounds or minutes are over; measurements do not count as time."""
        options, progress = self.options, self.progress
        setup = Setup(options.sizes, options.play, timeout_s=options.timeout_s)
        with (
            Engine(options, setup, self.learner.model, self.learner.nets) as engine,
            Metrics(self.run.out, after=progress.iteration, tensorboard=False) as metrics,
        ):
            while (done := self.done) < 1.0:
                progress.iteration += 1
                rng = np.random.default_rng([self.run.seed, progress.iteration])
                figures = self._round(engine, done, rng)
                over = self.done >= 1.0
                if over or progress.iteration % options.evaluate_every == 0:
                    figures |= self._evaluate(int(rng.integers(2**31)))
                figures["win_rate"] = self.win_rate
                metrics.write(progress.iteration, figures)
                if over or progress.iteration % options.pool_every == 0:
                    self.pool.add(progress.iteration, self.learner.model)
                if over or progress.iteration % options.checkpoint_every == 0:
                    checkpoint.save(self.run.out, progress, self.learner.model, self.learner.optimizer)
                self._tell(report)
        plot(read(metrics.path), PLOTTED, self.run.out / "training.png")
        return progress

    def _round(self, engine: Engine, done: float, rng: np.random.Generator) -> dict[str, float]:
        """Play a round and learn from it; its figures."""
        options, learner, progress = self.options, self.learner, self.progress
        began, cpu_began = time.monotonic(), time.process_time()
        for group in learner.optimizer.param_groups:
            group["lr"] = options.learning_rate * (1.0 - 0.95 * done)
        weight = adaptive_weight(options.expert_weight, self.win_rate, options.parity)
        keep_expert = weight > 0 and options.expert == "rule"
        played = engine.play(options.order(rng, imitate=done < options.imitation, keep_expert=keep_expert), rng)
        took = time.monotonic() - began
        lessons = self.more(rng) if self.more is not None else {}
        if weight > 0 and options.expert == "search":
            lessons = merged_decisions((lessons, learner.search(self.table, int(rng.integers(2**31)))))
        taught = learner.learn(ExpertBatch(lessons), weight, rng)
        figures = learner.learn(played, weight, rng)
        samples = sum(len(part.returns) for learnt in (played.decisions, lessons) for part in learnt.values())
        seconds = time.monotonic() - began
        progress.samples += samples
        progress.seconds += seconds
        self.cpu_seconds += time.process_time() - cpu_began
        figures |= {f"{name}_of_lessons": value for name, value in taught.items()}
        return figures | {
            "expert_weight": weight,
            "agreement": played.agreement,
            "hands_per_s": played.hands / took,
            "asked_per_s": played.asked / took,
            "samples_per_s": samples / seconds,
            "samples": progress.samples,
            "seconds": round(progress.seconds, 2),
            "cpu_seconds": round(self.cpu_seconds, 2),
        }

    def _evaluate(self, seed: int) -> dict[str, float]:
        deals, seen = self.options.evaluation_deals, self.options.seen
        landlord, peasants = win_rates(self.table, self.learner.nets, deals=deals, seed=seed, seen=seen)
        self.win_rate = (landlord + peasants) / 2
        return {"landlord": landlord, "peasants": peasants}

    def _tell(self, report: ReportProgress) -> None:
        note = f"{self.progress.samples:,} samples, {100 * self.win_rate:.1f} % against the rule player"
        if self.options.iterations is not None:
            report(self.progress.iteration, note, self.options.iterations)
        elif self.run.minutes is not None:
            report(int(self.progress.seconds), note, int(60 * self.run.minutes))


def publish(run: TrainingRun, progress: Progress, options: Options) -> dict[str, Any]:
    """Write the levels into ``out/weights``, parameters in 16 bits, and return how each was made."""
    pool, model = ModelPool(run.out / "pool"), DeepMcNet(options.sizes)
    versions, made = {}, {}
    for number, part in enumerate(options.levels, start=1):
        taken, then = version_at(run.out, part * progress.samples)
        pool.load(taken, model)
        graphs = {f"{role}.onnx": graph(role, options.sizes) for role in ROLES}
        name = f"{GENERATION}-level-{number}"
        narrow = DeepMcNet(options.sizes).half()
        narrow.load_state_dict(model.state_dict())
        versions[name] = write_version(run.out / "weights" / name, narrow, graphs, VERSION)
        minutes = round(then.seconds / 60, 2)
        made[f"level-{number}"] = {"rounds": taken, "samples": then.samples, "minutes": minutes}
    aliases = {f"level-{number}": f"{GENERATION}-level-{number}" for number in range(1, len(versions) + 1)}
    aliases["champion"] = f"{GENERATION}-level-{len(versions)}"
    figures = {
        "rounds": progress.iteration,
        "samples": progress.samples,
        "minutes": round(progress.seconds / 60, 2),
        "levels": made,
    }
    write_manifest(run.out / "weights", versions, aliases, lineage_of(run, progress, VERSION, figures))
    return made
