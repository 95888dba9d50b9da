"""How mahjong-ppo learns: hands against the opponents of a curriculum, then PPO with steered coefficients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch

from bothost import ReportProgress
from bothost.rules import game
from bothost.training import branches, ppo
from bothost.training.adaptive import Coefficients, steer
from bothost.training.loop import Iteration, Learner, Outcome, set_learning_rate
from bothost.training.ppo import Float
from bothost_mahjong_ppo.imitate import fit_critic, imitate
from bothost_mahjong_ppo.model import MahjongNet
from bothost_mahjong_ppo.options import Options
from bothost_mahjong_ppo.oracle import share_given
from bothost_mahjong_ppo.selfplay import CURRICULUM, Buffer, Hands, Opponents, play, stage_after
from bothost_mahjong_ppo.vine import BranchedHands, play_branching


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
        share = self.hidden_share(iteration.part_done)
        opponents, seed = Opponents(seats, self.past), int(rng.integers(2**62))
        if options.branches.candidates:
            return play_branching(self.game, self.model, opponents, options.hands, seed, options.branches, share)
        return play(self.game, self.model, opponents, options.hands, seed, self._ppo, share, self.buffer)

    def update(self, iteration: Iteration, collected: Hands | BranchedHands) -> Outcome:
        """Learn from the hands, then choose coefficients and stage of the next iteration."""
        rng, settled = iteration.rng, self._ppo.at(iteration.part_done)
        self.set_rate(iteration.part_done)
        generator = torch.Generator().manual_seed(int(rng.integers(2**63)))
        figures = self._learn(collected, settled, generator, rng)
        return self.outcome(iteration, figures, collected.scores, collected.batch.samples)

    def set_rate(self, part_done: float) -> None:
        """Set the learning rate, and which layers learn."""
        options = self.options
        set_learning_rate(self.optimizer, options.learning_rate * (1.0 - part_done))
        self.model.learns_trunk, self.model.learns_policy_layer = options.trunk, options.policy_layer

    def outcome(self, iteration: Iteration, figures: Mapping[str, float], scores: Float, samples: int) -> Outcome:
        """Choose coefficients and stage of the next iteration. ``scores``: of the learner's seats in each hand."""
        options, settled = self.options, self._ppo.at(iteration.part_done)
        made = {
            **figures,
            "mean_score": float(scores.mean()),
            "win_rate": float((scores > 0).mean()),
            "hidden_share": self.hidden_share(iteration.part_done),
            "stage": float(self.stage),
            "entropy_coef": settled.entropy_coef,
            "kl_coef": settled.kl_coef,
            "entropy_target": options.steering.entropy_target,
            "kl_target": options.steering.kl_target,
        }
        return Outcome(made | self._steer(made), samples)

    def hidden_share(self, part_done: float) -> float:
        """Share of the hidden features that the network sees."""
        return share_given(part_done, self.options.dropout) if self.options.oracle else 0.0

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
