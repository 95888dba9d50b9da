"""Training of phase-ppo: PPO in self-play, from top to bottom.

One iteration draws an opponent from past versions, plays a rollout, computes advantages and updates the network.
``bothost.training.ppo`` has the loss as pure functions.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import torch
from msgspec import Meta

from bothost import LoggedGames, Model, ReportProgress, Trainer, TrainingRun
from bothost.errors import UsageError
from bothost.rules import game
from bothost.training import fleet, ppo
from bothost.training.checkpoint import Progress, parameters_of, save_tensors
from bothost.training.limits import Levels, NotNegative, Share
from bothost.training.loop import (
    Clock,
    Iteration,
    Outcome,
    TrainerLoop,
    check_levels,
    limited,
    set_learning_rate,
)
from bothost.training.model_pool import ModelPool
from bothost.training.offpolicy import LeadEncoder, LoggedHands
from bothost.training.publish import (
    WEIGHTS,
    Version,
    parameters_file,
    play_options,
    publish_levels,
    publish_one,
    write_version,
)
from bothost.training.rollout import (
    Build,
    Rollout,
    RolloutTask,
    SelfPlay,
    SelfPlayLearner,
    SelfPlayOptions,
    rollout_figures,
)
from bothost_phase_ppo.encode import BLOCKS, REWARD_SCALE, TURNS
from bothost_phase_ppo.improve import ExpertLearner, ImproveOptions
from bothost_phase_ppo.model import HIDDEN, UNITS, ActorCritic, CandidateNet, PhaseNet, begin_with, graph, sizes
from bothost_phase_ppo.oracle import OracleLearner, OracleOptions

Width = Annotated[int, Meta(ge=16, le=8192, multiple_of=16)]
"""A size that the native network computes."""
DEFAULT_MINUTES = 20.0
GENERATION = "v8"
"""Prefix of the versions' names. A name stands for one model for good."""


class Options(fleet.FleetOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the training."""

    preset: str = "seven-phase"
    """Preset of the game's rules."""
    network: Literal["candidates", "source"] = "candidates"
    """``candidates`` also scores each action from features of its own; ``source`` sees the source's inputs alone. A
    retraining keeps the network of its champion."""
    levels: Levels = (0.004, 0.0118, 0.05, 0.25, 1.0)
    """When each level is taken, weakest first, as parts of the training's samples. After 80 million samples these are
    about equally far apart in strength."""
    playouts: Annotated[int, Meta(ge=0, le=10_000)] = 256
    """Option of play that the last level and a retraining from nothing bring, with ``least_odds`` 0.005 and ``prior``
    0.1. 0: the network alone."""
    start: str | None = None
    """Version to begin with, such as ``level-5``. None: fresh parameters. A retraining begins with the champion."""
    rule_share: Share = 0.0
    """Share of the hands against the rule player. The others are against past versions."""
    lead_weight: NotNegative = 1.0
    """Reward points per point of the score lead. 0: only ``win_points`` count."""
    win_points: float = 0.0
    """Points added to the final lead of a hand that was won, and taken from one that was lost."""
    skip_forced: bool = True
    """Learn from choices only: a third of the decisions have one legal action."""
    hidden: Annotated[tuple[Width, ...], Meta(min_length=1)] | None = None
    """Sizes of the hidden layers of ``candidates``. None: those of the version to begin with, or 256 and 256. A network
    that grows computes the same at first."""
    units: Width | None = None
    """Hidden units of the scorer of ``candidates``. None: as many as that version has, or 32."""
    method: Literal["ppo", "improve", "oracle"] = "ppo"
    """``improve`` imitates decisions that playouts improved, from ``start`` on (``bothost_phase_ppo.improve``).
    ``oracle`` is PPO with a critic that sees all cards (``bothost_phase_ppo.oracle``). Both train ``candidates`` alone.
    """
    improve: ImproveOptions = ImproveOptions()
    oracle: OracleOptions = OracleOptions()
    logged_share: NotNegative = 0.25
    """In a retraining: logged samples for each sample of self-play."""

    def __post_init__(self) -> None:
        super().__post_init__()
        game("pairing", preset=self.preset)  # raises ValueError for an unknown one
        check_levels(self.levels)
        if self.method != "ppo" and self.network != "candidates":
            raise ValueError(f"method {self.method} trains the network candidates alone")
        if self.method != "ppo" and (self.workers or self.runner != "local"):
            raise ValueError(f"method {self.method} plays in this process: leave out workers and runner")
        if self.network != "candidates" and (self.hidden or self.units):
            raise ValueError("hidden and units are sizes of the network candidates")

    @property
    def version(self) -> int:
        """Encoder version of the network."""
        return 1 if self.network == "source" else 2

    @property
    def candidates(self) -> Callable[[], CandidateNet]:
        """Makes the network ``candidates`` with fresh parameters."""
        return partial(CandidateNet, self.hidden or HIDDEN, self.units or UNITS)

    @property
    def build(self) -> Callable[[], PhaseNet]:
        """Makes the network with fresh parameters."""
        return PhaseNet if self.network == "source" else self.candidates

    @property
    def task(self) -> RolloutTask:
        """The game as self-play sees it."""
        return RolloutTask(
            game("pairing", preset=self.preset),
            BLOCKS[self.version],
            TURNS,
            reward_scale=REWARD_SCALE,
            lead_weight=self.lead_weight,
            win_points=self.win_points,
            rule_share=self.rule_share,
            skip_forced=self.skip_forced,
        )


class SelfPlayPpo(SelfPlayLearner):
    """PPO against past versions of the network, in this process."""

    def __init__(
        self,
        options: SelfPlayOptions,
        task: RolloutTask,
        build: Build,
        seed: int,
        *,
        extra: ppo.ExtraBatch | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        super().__init__(options, build, seed)
        self.extra, self.clock = extra, clock
        self.opponent = build()
        self.play = SelfPlay(task, options.environments, options.horizon)

    def collect(self, iteration: Iteration) -> tuple[Rollout, dict[str, float]]:
        """Play a rollout against a version of the pool."""
        rng = iteration.rng
        version = iteration.pool.draw(rng, self.options.newest_share)
        iteration.pool.load(version, self.opponent)
        began = self.clock()
        with ppo.precision(self.options.ppo.bf16):
            rollout = self.play.collect(self.model, self.opponent, seed=int(rng.integers(2**63)))
        steps_per_s = rollout.steps / (self.clock() - began)
        return rollout, rollout_figures(rollout.final_leads, steps_per_s) | {"opponent": version}

    def update(self, iteration: Iteration, collected: tuple[Rollout, dict[str, float]]) -> Outcome:
        """Estimate advantages and make several epochs of gradient steps."""
        rollout, played = collected
        options, rng = self.options.ppo.at(iteration.part_done), iteration.rng
        generator = torch.Generator().manual_seed(int(rng.integers(2**63)))
        batch = rollout.batch(options)
        if self.extra is not None:
            batch = ppo.joined(batch, self.extra(self.model, options, rng, rollout.actions.size))
        set_learning_rate(self.optimizer, self.options.learning_rate * (1.0 - iteration.part_done))
        figures = ppo.update(self.model, self.optimizer, batch, options, generator)
        return Outcome(figures | played, rollout.actions.size)


def train(
    options: SelfPlayOptions,
    task: RolloutTask,
    build: Build,
    run: TrainingRun,
    report: ReportProgress,
    *,
    version: int = 1,
    start: Path | None = None,
    extra: ppo.ExtraBatch | None = None,
    clock: Clock = time.monotonic,
) -> Progress:
    """Train in this process, or in many if the options ask for workers.

    ``version``: of the encoder that the network sees the game by.
    ``start``: a safetensors file with parameters to begin with. ``extra``: samples beside those of self-play.
    """
    if isinstance(options, fleet.FleetOptions) and (options.workers or options.runner != "local"):
        return fleet.train(options, task, build, run, version, report, start=start, extra=extra)
    learner = SelfPlayPpo(options, task, build, run.seed, extra=extra, clock=clock)
    return TrainerLoop(options, run, version, learner, report, start=start, clock=clock).train()


class PhasePpoTrainer(Trainer):
    """Trains one network against its own past versions."""

    name = "phase-ppo"
    Options: ClassVar[type[msgspec.Struct]] = Options
    starts_with_version: ClassVar[bool] = True

    def train(self, run: TrainingRun, report: ReportProgress) -> dict[str, Any]:
        options: Options = self.options
        run = limited(run, options, DEFAULT_MINUTES)
        file = parameters_file(run.start, options.version)
        options = sized(options, file)
        trained: PhaseNet | ActorCritic = options.build()
        with grown(options, file, run.seed) as start:
            if options.method == "ppo":
                version = options.version
                progress = train(options, options.task, options.build, run, report, version=version, start=start)
            elif options.method == "improve":
                expert = ExpertLearner(options.improve, options.task.game, run.out, run.seed, options.candidates)
                progress = TrainerLoop(options, run, options.version, expert, report, start=start).train()
                if not progress.samples:  # it learned nothing
                    return {"out": str(run.out), **progress.figures(), "choices": str(expert.folder)}
            else:
                oracle = OracleLearner(options, options.oracle, options.task, run.seed, options.candidates)
                trained = oracle.copy()
                progress = TrainerLoop(options, run, options.version, oracle, report, start=start).train()
        play = _play(options.playouts)

        def write(folder: Path, last: bool) -> Version:
            model = trained.actor if isinstance(trained, ActorCritic) else trained
            return write_version(folder, model, graph(model), options.version, play if last else None)

        levels = publish_levels(run, progress, options.levels, GENERATION, trained, write, options.version)
        return {"out": str(run.out), **progress.figures(), "levels": levels}

    def retrain(
        self, run: TrainingRun, games: LoggedGames, start: Model | None, report: ReportProgress
    ) -> dict[str, Any]:
        """Mix self-play with logged hands, whose trajectories V-trace corrects (``bothost.training.offpolicy``).

        The new version keeps the options of play of ``start``, so the gate compares networks only.
        """
        options: Options = self.options
        if options.method != "ppo":
            problem = f"a retraining learns by PPO, not by method {options.method}"
            raise UsageError(problem, advice="leave out the option method")
        run = limited(run, options, DEFAULT_MINUTES)
        if start is not None:
            network = "source" if start.encoder_version == 1 else "candidates"
            options = msgspec.structs.replace(options, network=network, hidden=None, units=None)
        version = options.version
        begin = parameters_file(start, version)
        options = sized(options, begin)
        hands, held_out = LoggedHands.of_splits(run.out.parent / "encoded", LeadEncoder(options.task), games)
        extra = hands.extra_batch(options.logged_share)
        progress = train(options, options.task, options.build, run, report, version=version, start=begin, extra=extra)
        model = options.build()
        evaluation = held_out.evaluation(ModelPool(run.out / "pool"), model, options.ppo.gamma)
        play = _play(options.playouts) if start is None else play_options(start)
        figures = {
            **progress.figures(),
            "logged_decisions": hands.decisions,
            "logged_share": options.logged_share,
            "left_out_hands": hands.left_out,
            "evaluation": evaluation,
        }
        publish_one(run, progress, model, graph(model), version, figures, play)
        return figures


def sized(options: Options, start: Path | None) -> Options:
    """The options with the sizes of the network to begin with, where they have none."""
    if start is None or options.network == "source":
        return options
    hidden, units = sizes(parameters_of(start))
    return msgspec.structs.replace(options, hidden=options.hidden or hidden, units=options.units or units)


@contextmanager
def grown(options: Options, start: Path | None, seed: int) -> Iterator[Path | None]:
    """A file with the network to begin with, in the sizes of the options. Raises ModelError if it is larger."""
    if start is None or sized(msgspec.structs.replace(options, hidden=None, units=None), start) == options:
        yield start
        return
    torch.manual_seed(seed)
    model = options.candidates()
    begin_with(start, model)
    with tempfile.TemporaryDirectory() as folder:
        save_tensors(model.state_dict(), Path(folder) / WEIGHTS)
        yield Path(folder) / WEIGHTS


def _play(playouts: int) -> dict[str, Any]:
    """Options of play that a version brings."""
    return {"playouts": playouts, "least_odds": 0.005, "prior": 0.1} if playouts else {}
