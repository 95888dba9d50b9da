"""Training of mahjong-ppo: PPO against the opponents of a curriculum, with steered coefficients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec
import numpy as np
import torch
from msgspec import Meta

from bothost import LoggedGames, Model, ReportProgress, Trainer, TrainingRun
from bothost.errors import UsageError
from bothost.rules import game
from bothost.training import branches, ppo
from bothost.training.adaptive import Coefficients, SteeringOptions, steer
from bothost.training.checkpoint import Progress
from bothost.training.loop import (
    Count,
    Iteration,
    Learner,
    LoopOptions,
    NotNegative,
    Outcome,
    Positive,
    Share,
    TrainerLoop,
    limited,
    set_learning_rate,
)
from bothost.training.metrics import FILE, read
from bothost.training.model_pool import ModelPool
from bothost.training.offpolicy import LoggedHands
from bothost.training.publish import parameters_file, publish_one
from bothost_mahjong_ppo.encode import VERSION
from bothost_mahjong_ppo.imitate import Teacher, fit_critic, imitate
from bothost_mahjong_ppo.logged import MahjongHands
from bothost_mahjong_ppo.model import MahjongNet, graph
from bothost_mahjong_ppo.oracle import DropoutOptions, share_given
from bothost_mahjong_ppo.selfplay import CURRICULUM, Buffer, Hands, Opponents, play, stage_after
from bothost_mahjong_ppo.vine import BranchedHands, BranchOptions, play_branching

DEFAULT_MINUTES = 60.0


class Options(LoopOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the training. With ``iterations`` 0 it ends after the imitation."""

    preset: str = "botzone"
    """Preset of the game's rules."""
    hands: Count = 128
    """Hands of the learner in each iteration."""
    learning_rate: Positive = 3e-4
    """At the beginning. It falls linearly to 0 at the end."""
    look_ahead: bool = True
    """Whether the network sees look-ahead features and prospects."""
    oracle: bool = True
    """Whether it sees hidden features until ``dropout`` has removed them."""
    dropout: DropoutOptions = DropoutOptions()
    branches: BranchOptions = BranchOptions()
    """Learn from branches instead of trajectories. A retraining does not use it."""
    adaptive: bool = True
    """Whether the coefficients of entropy and approximate KL are steered. False: use those of ``ppo``."""
    steering: SteeringOptions = SteeringOptions()
    first_stage: int | None = None
    """Stage of the curriculum to begin with. None: the first; in a retraining the last."""
    window: Count = 10
    """Iterations over which progress is measured."""
    least_score: float = 2.0
    """Mean points a hand over the window that open the next stage."""
    start: str | None = None
    """Version to begin with, such as ``v7``. None: a fresh network. A retraining begins with the champion."""
    imitation_hands: Annotated[int, Meta(ge=0)] = 0
    """Hands of the teacher to imitate before. 0: none."""
    teacher: Teacher = "rule"
    """Player to imitate: ``rule-mahjong``, or ``discerning`` for the player with the acceptance-weighted look-ahead."""
    imitation_rate: Positive = 2e-3
    """Learning rate of the imitation."""
    imitation_entropy: NotNegative = 0.0
    """Least mean entropy of the policy after the imitation, in nats."""
    critic_hands: Annotated[int, Meta(ge=0)] = 400
    """Hands of the teacher that the critic is fitted to after the imitation. 0: none."""
    trunk: bool = True
    """Whether PPO changes the trunk. False: only the layers that read it."""
    policy_layer: bool = True
    """Whether PPO changes the layer from the trunk to the logits. False, without the trunk: what scores each action by
    its prospect, and the value, are all that learns. That is 15,000 weights, which need fewer samples."""
    pool_every: Count = 10
    newest_share: Share = 0.5
    """Share of the hands against past selves that use the newest version."""
    checkpoint_every: Count = 10
    logged_share: NotNegative = 0.25
    """In a retraining: logged samples for each sample of self-play."""
    ppo: ppo.PpoOptions = ppo.PpoOptions(epochs=2, minibatch=512, entropy_coef=0.01, gae_lambda=0.95, target_kl=0.05)
    least_iterations: ClassVar[int] = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        game("mahjong", preset=self.preset)  # raises ValueError for an unknown one
        if self.first_stage is not None and not 0 <= self.first_stage < len(CURRICULUM):
            raise ValueError(f"first_stage must be within 0 and {len(CURRICULUM) - 1}")
        if self.adaptive and self.ppo.entropy_final is not None:
            raise ValueError(
                "adaptive steers the coefficient of entropy: set adaptive = false, or no ppo.entropy_final"
            )


class MahjongPpoTrainer(Trainer):
    """Trains one network."""

    name = "mahjong-ppo"
    Options: ClassVar[type[msgspec.Struct]] = Options
    starts_with_version: ClassVar[bool] = True

    def train(self, run: TrainingRun, report: ReportProgress) -> dict[str, Any]:
        """As the options say. Raises UsageError if ``run.start`` sees another version of the encoding."""
        learner, progress = train(self.options, run, report, start=_parameters(run.start))
        return publish(learner, progress, run)

    def retrain(
        self, run: TrainingRun, games: LoggedGames, start: Model | None, report: ReportProgress
    ) -> dict[str, Any]:
        """Mix hands against the rule player and itself with logged ones, whose trajectories V-trace corrects.

        Logged hands have no hidden features, so the network gets none. Raises UsageError if ``start`` sees another
        version of the encoding.
        """
        begin = _parameters(start)
        options: Options = msgspec.structs.replace(self.options, oracle=False, branches=BranchOptions())
        if options.first_stage is None:
            options = msgspec.structs.replace(options, first_stage=len(CURRICULUM) - 1)
        hands, held_out = LoggedHands.of_splits(run.out.parent / "encoded", MahjongHands(), games)
        learner, progress = train(options, run, report, start=begin, extra=hands.extra_batch(options.logged_share))
        evaluation = held_out.evaluation(ModelPool(run.out / "pool"), MahjongNet(look_ahead=options.look_ahead))
        more = {"logged_decisions": hands.decisions, "logged_share": options.logged_share, "evaluation": evaluation}
        return publish(learner, progress, run, more)


def _parameters(start: Model | None) -> Path | None:
    """The file with the parameters of a version. Raises UsageError if it sees another version of the encoding."""
    if start is not None and start.encoder_version not in (None, VERSION):
        raise UsageError(
            f"{start.version} sees version {start.encoder_version} of the encoding; only version {VERSION} can be "
            "trained",
            advice="begin with another version; a retraining begins with the champion, or anew with --fresh",
        )
    return parameters_file(start)


def train(
    options: Options,
    run: TrainingRun,
    report: ReportProgress,
    *,
    start: Path | None = None,
    extra: ppo.ExtraBatch | None = None,
) -> tuple[MahjongLearner, Progress]:
    """Train to the end. ``start``: a safetensors file of a shipped network. ``extra``: samples beside self-play."""
    learner = MahjongLearner(options, run.seed, extra)
    run = limited(run, options, DEFAULT_MINUTES)
    return learner, TrainerLoop(options, run, VERSION, learner, report, start=start).train()


class MahjongLearner(Learner):
    """PPO against the opponents of a curriculum."""

    plotted = (
        "mean_score",
        "stage",
        "entropy",
        "entropy_target",
        "entropy_coef",
        "approx_kl",
        "kl_target",
        "kl_coef",
        "hidden_share",
    )
    model: MahjongNet

    def __init__(self, options: Options, seed: int, extra: ppo.ExtraBatch | None = None) -> None:
        torch.set_num_threads(1)
        torch.manual_seed(seed)
        self.options, self.seed, self.extra = options, seed, extra
        self.model, self.past = (MahjongNet(look_ahead=options.look_ahead) for _ in range(2))
        self.buffer = Buffer()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=options.learning_rate, eps=1e-5, fused=True)
        self.game = game("mahjong", preset=options.preset)
        self.weights = Coefficients(entropy=options.ppo.entropy_coef) if options.adaptive else None
        self.stage, self.scores = options.first_stage or 0, list[float]()

    def load_start(self, file: Path) -> None:
        """See ``Learner``."""
        self.model.begin_with(file)

    def warm_start(self, report: ReportProgress) -> dict[str, float]:
        """Imitate the teacher, and fit the critic to its hands, as the options ask."""
        options = self.options
        if not options.imitation_hands:
            return {}
        report(0, f"imitating the {options.teacher} player")
        agreement = imitate(
            self.model,
            self.game,
            options.imitation_hands,
            self.seed + 2**40,
            rate=options.imitation_rate,
            entropy=options.imitation_entropy,
            teacher=options.teacher,
        )
        facts = {"imitation_agreement": round(agreement, 4)}
        if options.critic_hands:
            explained = fit_critic(
                self.model, self.game, options.critic_hands, self.seed + 2**41, teacher=options.teacher
            )
            facts["critic_explained_variance"] = round(explained, 4)
        return facts

    def resume(self, records: Sequence[Mapping[str, float]]) -> None:
        """Restore stage, scores and coefficients."""
        last = records[-1]
        self.stage, self.scores = int(last["next_stage"]), []
        for record in records:
            self.scores = [*self.scores, record["mean_score"]] if record["stage"] == self.stage else []
        if self.weights is not None and "next_kl_coef" in last:  # else the earlier run did not steer
            self.weights = Coefficients(entropy=last["next_entropy_coef"], kl=last["next_kl_coef"])

    def collect(self, iteration: Iteration) -> Hands | BranchedHands:
        """Play hands against the opponents of the present stage."""
        options, rng, seats = self.options, iteration.rng, CURRICULUM[self.stage]
        if "past" in seats:
            iteration.pool.load(iteration.pool.draw(rng, options.newest_share), self.past)
        share = share_given(iteration.part_done, options.dropout) if options.oracle else 0.0
        opponents, seed = Opponents(seats, self.past), int(rng.integers(2**62))
        if options.branches.candidates:
            return play_branching(self.game, self.model, opponents, options.hands, seed, options.branches, share)
        return play(self.game, self.model, opponents, options.hands, seed, self._ppo, share, self.buffer)

    def update(self, iteration: Iteration, collected: Hands | BranchedHands) -> Outcome:
        """Learn from the hands, then choose coefficients and stage of the next iteration."""
        options, rng = self.options, iteration.rng
        settled = self._ppo.at(iteration.part_done)
        set_learning_rate(self.optimizer, options.learning_rate * (1.0 - iteration.part_done))
        self.model.learns_trunk, self.model.learns_policy_layer = options.trunk, options.policy_layer
        generator = torch.Generator().manual_seed(int(rng.integers(2**63)))
        figures = {
            **self._learn(collected, settled, generator, rng),
            "mean_score": float(collected.scores.mean()),
            "win_rate": float((collected.scores > 0).mean()),
            "hidden_share": share_given(iteration.part_done, options.dropout) if options.oracle else 0.0,
            "stage": float(self.stage),
            "entropy_coef": settled.entropy_coef,
            "kl_coef": settled.kl_coef,
            "entropy_target": options.steering.entropy_target,
            "kl_target": options.steering.kl_target,
        }
        return Outcome(figures | self._steer(figures), collected.batch.samples)

    def _learn(
        self,
        collected: Hands | BranchedHands,
        settled: ppo.PpoOptions,
        generator: torch.Generator,
        rng: np.random.Generator,
    ) -> dict[str, float]:
        """Make the gradient steps. Returns their figures."""
        if isinstance(collected, BranchedHands):
            counts = {"decisions": float(collected.decisions), "branches": float(collected.branches)}
            return {**branches.update(self.model, self.optimizer, collected.batch, settled, generator), **counts}
        batch = collected.batch
        if self.extra is not None:
            batch = ppo.joined(batch, self.extra(self.model, settled, rng, batch.samples))
        return ppo.update(self.model, self.optimizer, batch, settled, generator)

    @property
    def _ppo(self) -> ppo.PpoOptions:
        """The options of this iteration's update."""
        return self.options.ppo if self.weights is None else self.weights.into(self.options.ppo)

    def _steer(self, figures: Mapping[str, float]) -> dict[str, float]:
        """Set coefficients and stage of the next iteration."""
        options = self.options
        self.scores.append(figures["mean_score"])
        stage = stage_after(self.stage, self.scores, window=options.window, least=options.least_score)
        if stage != self.stage:
            self.stage, self.scores = stage, []
        if self.weights is None:
            return {"next_stage": float(self.stage)}
        self.weights = steer(self.weights, figures, options.steering)
        coefficients = {"next_entropy_coef": self.weights.entropy, "next_kl_coef": self.weights.kl}
        return {"next_stage": float(self.stage), **coefficients}

    def note(self, figures: Mapping[str, float]) -> str:
        """See ``Learner``."""
        return f"{figures['mean_score']:+.1f} a hand at stage {figures['stage']:.0f}"


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
