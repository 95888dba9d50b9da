"""Training of deep-mc: rounds of self-play, and what each round teaches the networks of the roles."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import numpy as np
import torch

from bothost import LoggedGames, Model, ReportProgress, Trainer, TrainingRun
from bothost.errors import UsageError
from bothost.rules import game
from bothost.training.checkpoint import Progress
from bothost.training.devices import check_device
from bothost.training.loop import Iteration, Learner, Outcome, TrainerLoop, limited, set_learning_rate
from bothost.training.publish import Version, parameters_file, publish_levels, write_version
from bothost_deep_mc.branches import merged_roles, win_rates
from bothost_deep_mc.encode import ROLES, VERSION
from bothost_deep_mc.engine import PRESET, Engine, Setup
from bothost_deep_mc.experts import logged, some
from bothost_deep_mc.learn import Networks
from bothost_deep_mc.losses import adaptive_weight
from bothost_deep_mc.model import DeepMcNet, begin_with, graph, sizes_of
from bothost_deep_mc.options import Options
from bothost_deep_mc.selfplay import Decisions, Round

DEFAULT_MINUTES = 60.0
DECISIONS_PER_HAND = 24
"""Decisions of a hand among several moves, about."""
GENERATION = "v10"
"""Prefix of the versions' names. A name stands for one model for good."""

ExtraDecisions = Callable[[np.random.Generator], Mapping[str, Decisions]]
"""Returns decisions to learn from beside a round of self-play, with the expert's move in second place."""


class DeepMcTrainer(Trainer):
    """``bothost train deep-mc``."""

    name = "deep-mc"
    Options: ClassVar[type[msgspec.Struct]] = Options
    starts_with_version: ClassVar[bool] = True

    def train(self, run: TrainingRun, report: ReportProgress) -> dict[str, Any]:
        options: Options = self.options
        if options.expert == "logged":
            raise UsageError(
                "expert=logged: a training has no logged hands", advice="use bothost retrain deep-mc, or expert=rule"
            )
        progress = train(options, run, report, start=parameters_file(run.start, VERSION))
        levels = publish(run, progress, options)
        return {"out": str(run.out), **progress.figures("rounds"), "levels": levels}

    def retrain(
        self, run: TrainingRun, games: LoggedGames, start: Model | None, report: ReportProgress
    ) -> dict[str, Any]:
        """Learn from self-play and from logged hands. The regularizer takes the logged players for its experts.

        Only decisions of the logged strategy itself count, not fallbacks.
        """
        options: Options = self.options
        first = parameters_file(start, VERSION)
        if first is not None:
            options = msgspec.structs.replace(options, sizes=sizes_of(first))
        trajectories = games.trajectories("train")
        hands = logged(trajectories, others=options.play.others, seen=options.seen, seed=run.seed)
        if not hands:
            raise UsageError("the dataset has no scored hand of this game", advice="play more, or ask for other hands")
        progress = train(options, run, report, start=first, extra=some_of(hands, options))
        levels = publish(run, progress, msgspec.structs.replace(options, levels=(1.0,)))
        found = sum(len(part.returns) for part in hands.values())
        return {"rounds": progress.iteration, "samples": progress.samples, "logged_decisions": found, "levels": levels}

    @staticmethod
    def measure(*, hands: int, repeats: int, large: bool, seed: int) -> dict[str, Any]:
        """See ``measure.measure``; ``bothost bench deepmc`` calls it."""
        from bothost_deep_mc.measure import measure

        return measure(hands=hands, repeats=repeats, large=large, seed=seed)


def some_of(hands: Mapping[str, Decisions], options: Options) -> ExtraDecisions | None:
    """As many decisions of logged hands for each round as the options ask for; None if they ask for none."""
    count = round(options.logged_share * options.hands * DECISIONS_PER_HAND)
    return (lambda rng: some(hands, count, rng)) if count else None


def train(
    options: Options,
    run: TrainingRun,
    report: ReportProgress,
    *,
    start: Path | None = None,
    extra: ExtraDecisions | None = None,
) -> Progress:
    """Train to the end. ``start``: a safetensors file with parameters. ``extra``: decisions beside self-play."""
    check_device(options.device)
    networks = Networks(options, run.seed)
    setup = Setup(options.sizes, options.play, timeout_s=options.timeout_s)
    with Engine(options, setup, networks.model, networks.nets) as engine:
        learner = DeepMcLearner(options, networks, engine, extra)
        return TrainerLoop(
            options, limited(run, options, DEFAULT_MINUTES), VERSION, learner, report, start=start
        ).train()


class DeepMcLearner(Learner):
    """Deep Monte-Carlo learning of the networks, beside the rule player as an expert."""

    plotted = ("win_rate", "loss", "agreement", "hands_per_s")

    def __init__(
        self, options: Options, networks: Networks, engine: Engine, extra: ExtraDecisions | None = None
    ) -> None:
        torch.set_num_threads(1)
        self.options, self.networks, self.engine, self.extra = options, networks, engine, extra
        self.model, self.optimizer = networks.model, networks.optimizer
        self.table = game("doudizhu", preset=PRESET)
        self.win_rate = self.cpu_seconds = 0.0

    def load_start(self, file: Path) -> None:
        """See ``Learner``. The networks in the file may be smaller."""
        begin_with(file, self.networks.model)

    def resume(self, records: Sequence[Mapping[str, float]]) -> None:
        """Restore the win rate, which weighs the regularizer, and the time spent."""
        self.win_rate, self.cpu_seconds = records[-1]["win_rate"], records[-1]["cpu_seconds"]

    def iterate(self, iteration: Iteration) -> Outcome:
        """See ``Learner``. Also measures the time of the round."""
        began, cpu_began = time.monotonic(), time.process_time()
        figures, samples = super().iterate(iteration)
        self.cpu_seconds += time.process_time() - cpu_began
        rate = samples / (time.monotonic() - began)
        return Outcome(figures | {"samples_per_s": rate, "cpu_seconds": round(self.cpu_seconds, 2)}, samples)

    def collect(self, iteration: Iteration) -> tuple[Round, float]:
        """Play a round; also returns the hands per second."""
        options, began = self.options, time.monotonic()
        self.networks.load()
        keep_expert = self._expert_weight > 0 and options.expert == "rule"
        imitate = iteration.part_done < options.imitation
        order = options.order(iteration.rng, imitate=imitate, keep_expert=keep_expert)
        played = self.engine.play(order, iteration.rng)
        return played, time.monotonic() - began

    def update(self, iteration: Iteration, collected: tuple[Round, float]) -> Outcome:
        """Learn from expert decisions, then from the round."""
        played, seconds = collected
        options, rng, weight = self.options, iteration.rng, self._expert_weight
        set_learning_rate(self.optimizer, options.learning_rate * (1.0 - 0.95 * iteration.part_done))
        extra = self.extra(rng) if self.extra is not None else {}
        if weight > 0 and options.expert == "search":
            extra = merged_roles((extra, self.networks.search(self.table, int(rng.integers(2**31)))))
        taught = self.networks.learn(extra, {}, weight, rng)
        figures = self.networks.learn(played.decisions, played.pairs, weight, rng)
        samples = sum(len(part.returns) for learned in (played.decisions, extra) for part in learned.values())
        figures |= {f"{name}_of_lessons": value for name, value in taught.items()}
        figures |= {
            "expert_weight": weight,
            "agreement": played.agreement,
            "hands_per_s": played.hands / seconds,
            "asked_per_s": played.asked / seconds,
        }
        return Outcome(figures, samples)

    @property
    def _expert_weight(self) -> float:
        options = self.options
        return adaptive_weight(options.expert_weight, self.win_rate, options.parity)

    def evaluate(self, iteration: Iteration, *, last: bool) -> dict[str, float]:
        """The win rate against the rule player, measured every ``evaluate_every`` rounds."""
        options, figures = self.options, dict[str, float]()
        if last or iteration.number % options.evaluate_every == 0:
            seed = int(iteration.rng.integers(2**31))
            landlord, peasants = win_rates(
                self.table, self.networks.nets, deals=options.evaluation_deals, seed=seed, seen=options.seen
            )
            self.win_rate = (landlord + peasants) / 2
            figures = {"landlord": landlord, "peasants": peasants}
        return figures | {"win_rate": self.win_rate}

    def note(self, figures: Mapping[str, float]) -> str:
        """See ``Learner``."""
        return f"{100 * self.win_rate:.1f} % against the rule player"


def publish(run: TrainingRun, progress: Progress, options: Options) -> dict[str, Any]:
    """Write the levels into ``out/weights`` with parameters of 16 bits. Returns how each was made."""
    model = DeepMcNet(options.sizes)

    def write(folder: Path, last: bool) -> Version:
        graphs = {f"{role}.onnx": graph(role, options.sizes) for role in ROLES}
        return write_version(folder, copy.deepcopy(model).half(), graphs, VERSION)

    return publish_levels(run, progress, options.levels, GENERATION, model, write, VERSION, "rounds")
