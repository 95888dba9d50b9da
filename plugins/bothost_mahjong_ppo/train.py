"""Training of mahjong-ppo: PPO against the opponents of a curriculum, with steered coefficients."""

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
from bothost.training import checkpoint, ppo
from bothost.training.adaptive import Coefficients, SteeringOptions, steer
from bothost.training.loop import anneal, begun_or_resumed
from bothost.training.metrics import Metrics, plot, read, read_until
from bothost.training.model_pool import ModelPool
from bothost.training.offpolicy import LoggedHands
from bothost.training.publish import WEIGHTS, lineage_of, write_manifest, write_version
from bothost_mahjong_ppo.encode import VERSION
from bothost_mahjong_ppo.imitate import Teacher, fit_critic, imitate
from bothost_mahjong_ppo.logged import MahjongHands
from bothost_mahjong_ppo.model import MahjongNet, graph
from bothost_mahjong_ppo.oracle import DropoutOptions, share_given
from bothost_mahjong_ppo.selfplay import CURRICULUM, Opponents, play, stage_after

DEFAULT_MINUTES = 60.0
PLOTTED = (
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


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the training."""

    preset: str = "botzone"
    """Of the game's rules."""
    iterations: int | None = None
    """Updates to make in all, 0: none after the imitation; None: until the time is over."""
    hands: int = 128
    """Hands of the learner for each update."""
    learning_rate: float = 3e-4
    """At the beginning; it falls linearly to 0 at the end."""
    look_ahead: bool = True
    """Whether the network sees look-ahead features and prospects."""
    oracle: bool = True
    """Whether it sees hidden features until ``dropout`` has taken them away."""
    dropout: DropoutOptions = DropoutOptions()
    adaptive: bool = True
    """Whether the coefficients of entropy and approximate KL are steered; else ``ppo`` has them."""
    steering: SteeringOptions = SteeringOptions()
    first_stage: int | None = None
    """Of the curriculum, to begin with; None: the first, or of a retraining the last."""
    window: int = 10
    """Updates over which progress is measured."""
    least_score: float = 2.0
    """Mean points a hand over the window from which on the next stage begins."""
    imitation_hands: int = 0
    """Hands of the teacher to imitate before; 0: none, a pure run."""
    teacher: Teacher = "rule"
    """Who is imitated: ``rule-mahjong``, or ``discerning``, the player who plans with the discerning look-ahead."""
    imitation_rate: float = 2e-3
    """Learning rate of the imitation."""
    imitation_entropy: float = 0.0
    """Mean entropy that the imitation leaves at least, in nats."""
    critic_hands: int = 400
    """Hands of the teacher, after its imitation, that the critic is fitted to; 0: none."""
    trunk: bool = True
    """Whether PPO changes the trunk, too; else what reads it alone."""
    pool_every: int = 10
    """Updates between two versions of the model pool."""
    newest_share: float = 0.5
    """Share of hands with past selves that have the newest version."""
    checkpoint_every: int = 10
    """Updates between two checkpoints."""
    logged_share: float = 0.25
    """When retraining: logged samples beside those of self-play, as a part of these."""
    ppo: ppo.PpoOptions = ppo.PpoOptions(epochs=2, minibatch=512, entropy_coef=0.01, gae_lambda=0.95, target_kl=0.05)

    def __post_init__(self) -> None:
        if self.first_stage is not None and not 0 <= self.first_stage < len(CURRICULUM):
            raise ValueError(f"first_stage must be within 0 and {len(CURRICULUM) - 1}")
        if self.hands < 1 or self.window < 1:
            raise ValueError("hands and window must be at least 1")


class MahjongPpoTrainer(Trainer):
    """Trains one network."""

    name = "mahjong-ppo"
    Options: ClassVar[type[msgspec.Struct]] = Options

    def train(self, run: TrainingRun, report: ReportProgress) -> dict[str, Any]:
        if run.minutes is None and self.options.iterations is None:
            run = msgspec.structs.replace(run, minutes=DEFAULT_MINUTES)
        training = Training(self.options, run)
        training.go_on(report)
        return training.publish()

    def retrain(
        self, run: TrainingRun, games: LoggedGames, start: Model | None, report: ReportProgress
    ) -> dict[str, Any]:
        """Hands against the rule player and itself, mixed with logged ones, whose trajectories V-trace corrects:
        ``bothost.training.offpolicy`` says why not the log alone. Hidden features are not given, since logged hands
        have none. Raises UsageError where ``start`` sees another version of the encoding than the one that is trained.
        """
        if start is not None and start.encoder_version not in (None, VERSION):
            seen = f"{start.version} sees version {start.encoder_version} of the encoding"
            raise UsageError(
                f"{seen}, and networks of version {VERSION} are trained",
                advice="promote one of these to champion (bothost model promote), or begin anew with --fresh",
            )
        options: Options = msgspec.structs.replace(self.options, oracle=False)
        if options.first_stage is None:
            options = msgspec.structs.replace(options, first_stage=len(CURRICULUM) - 1)
        if run.minutes is None and options.iterations is None:
            run = msgspec.structs.replace(run, minutes=DEFAULT_MINUTES)
        hands, unseen = LoggedHands.of_splits(run.out.parent / "encoded", MahjongHands(), games)

        def more(model: torch.nn.Module, settled: ppo.PpoOptions, rng: np.random.Generator, samples: int) -> ppo.Batch:
            return hands.batch(model, settled, rng, round(options.logged_share * samples))

        begin = None if start is None or start.path is None else Path(start.path) / WEIGHTS
        training = Training(options, run, start=begin, more=more if options.logged_share else None)
        training.go_on(report)
        evaluation = unseen.evaluation(training.pool, MahjongNet(look_ahead=options.look_ahead))
        return training.publish(
            logged_decisions=hands.decisions, logged_share=options.logged_share, evaluation=evaluation
        )


More = Callable[[torch.nn.Module, ppo.PpoOptions, np.random.Generator, int], ppo.Batch]
"""Makes samples beside those of an update's play, which were so many."""


class Training:
    """One training under way, or taken up again from its last checkpoint."""

    def __init__(
        self, options: Options, run: TrainingRun, *, start: Path | None = None, more: More | None = None
    ) -> None:
        """``start``: parameters to begin with, a safetensors file of a shipped network; None: fresh ones. ``more``:
        what each update learns from beside its play."""
        self.options, self.run, self.more = options, run, more
        torch.set_num_threads(1)
        torch.manual_seed(run.seed)
        self.model, self.past = (MahjongNet(look_ahead=options.look_ahead) for _ in range(2))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=options.learning_rate, eps=1e-5)
        self.game = game("mahjong", preset=options.preset)
        self.progress = begun_or_resumed(run, VERSION, self.model, self.optimizer)
        self.progress.options |= msgspec.to_builtins(options)
        self.pool = ModelPool(run.out / "pool")
        self.pool.forget_after(self.progress.iteration)
        self.weights = Coefficients(entropy=options.ppo.entropy_coef) if options.adaptive else None
        self.stage, self.scores = options.first_stage or 0, list[float]()
        if start is not None and self.progress.iteration == 0:
            self.model.begin_with(start)
        if self.progress.iteration:
            self._recall(read_until(run.out / "metrics.jsonl", self.progress.iteration))

    def _recall(self, records: list[dict[str, float]]) -> None:
        """Stage, scores and coefficients as they stood after the last of the records."""
        last = records[-1]
        self.stage = int(last["next_stage"])
        self.scores = []
        for record in records:
            self.scores = [*self.scores, record["mean_score"]] if record["stage"] == self.stage else []
        if self.weights is not None:
            self.weights = Coefficients(entropy=last["next_entropy_coef"], kl=last["next_kl_coef"])

    def part_done(self) -> float:
        """How much of the training is over, of 1."""
        if self.options.iterations == 0:
            return 1.0
        updates = self.progress.iteration / self.options.iterations if self.options.iterations else 0.0
        minutes = self.progress.seconds / (60 * self.run.minutes) if self.run.minutes else 0.0
        return max(updates, minutes)

    def go_on(self, report: ReportProgress) -> None:
        """Train to the end."""
        before, started = self.progress.seconds, time.monotonic()
        if self.progress.iteration == 0:
            if self.options.imitation_hands:
                report(0, f"imitating the {self.options.teacher} player")
                agreed = imitate(
                    self.model,
                    self.game,
                    self.options.imitation_hands,
                    self.run.seed + 2**40,
                    rate=self.options.imitation_rate,
                    entropy=self.options.imitation_entropy,
                    teacher=self.options.teacher,
                )
                self.progress.options["imitation_agreement"] = round(agreed, 4)
                if self.options.critic_hands:
                    explained = fit_critic(
                        self.model,
                        self.game,
                        self.options.critic_hands,
                        self.run.seed + 2**41,
                        teacher=self.options.teacher,
                    )
                    self.progress.options["critic_explained_variance"] = round(explained, 4)
            self.pool.add(0, self.model)
        self.progress.seconds = before + time.monotonic() - started
        checkpoint.save(self.run.out, self.progress, self.model, self.optimizer)
        self.model.learns_trunk = self.options.trunk
        with Metrics(self.run.out, after=self.progress.iteration) as metrics:
            while self.part_done() < 1.0:
                figures = self.update()
                self.progress.seconds = before + time.monotonic() - started
                metrics.write(
                    self.progress.iteration,
                    {**figures, "samples": self.progress.samples, "seconds": round(self.progress.seconds, 2)},
                )
                over = self.part_done() >= 1.0
                if over or self.progress.iteration % self.options.pool_every == 0:
                    self.pool.add(self.progress.iteration, self.model)
                if over or self.progress.iteration % self.options.checkpoint_every == 0:
                    checkpoint.save(self.run.out, self.progress, self.model, self.optimizer)
                self._tell(report, figures)

    def update(self) -> dict[str, float]:
        """Play hands and learn from them once; returns what is recorded of it."""
        options, part = self.options, self.part_done()
        self.progress.iteration += 1
        rng = np.random.default_rng([self.run.seed, self.progress.iteration])
        share = share_given(part, options.dropout) if options.oracle else 0.0
        seats = CURRICULUM[self.stage]
        if "past" in seats:
            self.pool.load(self.pool.draw(rng, options.newest_share), self.past)
        anneal(self.optimizer, options.learning_rate, part)
        settled = self.weights.into(options.ppo) if self.weights is not None else options.ppo
        seed = int(rng.integers(2**62))
        hands = play(self.game, self.model, Opponents(seats, self.past), options.hands, seed, settled, share)
        generator = torch.Generator().manual_seed(int(rng.integers(2**63)))
        batch = hands.batch
        if self.more is not None:
            batch = ppo.joined(batch, self.more(self.model, settled, rng, batch.samples))
        terms = ppo.update(self.model, self.optimizer, batch, settled, generator)
        self.progress.samples += hands.batch.samples
        figures = {
            **terms,
            "mean_score": float(hands.scores.mean()),
            "win_rate": float((hands.scores > 0).mean()),
            "hidden_share": share,
            "stage": float(self.stage),
            "entropy_coef": settled.entropy_coef,
            "kl_coef": settled.kl_coef,
            "entropy_target": options.steering.entropy_target,
            "kl_target": options.steering.kl_target,
        }
        return {**figures, **self._steer(figures)}

    def _steer(self, figures: Mapping[str, float]) -> dict[str, float]:
        """Coefficients and stage of the next update."""
        self.scores.append(figures["mean_score"])
        options = self.options
        stage = stage_after(self.stage, self.scores, window=options.window, least=options.least_score)
        if stage != self.stage:
            self.stage, self.scores = stage, []
        if self.weights is None:
            return {"next_stage": float(self.stage)}
        self.weights = steer(self.weights, figures, options.steering)
        following = {"next_entropy_coef": self.weights.entropy, "next_kl_coef": self.weights.kl}
        return {"next_stage": float(self.stage), **following}

    def _tell(self, report: ReportProgress, figures: Mapping[str, float]) -> None:
        note = f"{self.progress.samples:,} samples, {figures['mean_score']:+.1f} a hand at stage {figures['stage']:.0f}"
        if self.options.iterations is not None:
            report(self.progress.iteration, note, self.options.iterations)
        elif self.run.minutes is not None:
            report(int(self.progress.seconds), note, int(60 * self.run.minutes))

    def publish(self, **more: Any) -> dict[str, Any]:
        """Plot the training, and write the trained network into ``out/weights``, without its input for hidden features;
        ``more`` are figures for its lineage. Returns all of them."""
        if records := read(self.run.out / "metrics.jsonl"):
            plot(records, PLOTTED, self.run.out / "training.png")
        folder: Path = self.run.out / "weights"
        version = write_version(folder / "v1", self.model.deployed(), graph(), VERSION)
        figures = {
            "updates": self.progress.iteration,
            "samples": self.progress.samples,
            "minutes": round(self.progress.seconds / 60, 2),
            "stage": self.stage,
            **more,
        }
        lineage = lineage_of(self.run, self.progress, VERSION, figures)
        write_manifest(folder, {"v1": version}, {"champion": "v1"}, lineage)
        return {"out": str(self.run.out), **figures}
