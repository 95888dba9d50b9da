"""Live play: the network on ONNX Runtime, batched over tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta

from bothost import Budget, Decision, Model, ModelError, Player, Request, Strategy, Table, Trainer
from bothost.inference import Session, choose, legal_masks
from bothost.rules import ActionArray, FloatArray, Game, View
from bothost.rules.pairing import rule_returns
from bothost_phase_ppo.encode import ACTIONS, BLOCKS, REWARD_SCALE, SIZES, VERSION, WIN_POINTS, Symmetries, encode

IntArray = npt.NDArray[np.intp]


class PlayOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of play."""

    temperature: Annotated[float, Meta(ge=0, le=100)] = 0.0
    """0: always the most probable action. Above: actions are drawn with probabilities to the power 1 / temperature,
    without playouts."""
    symmetries: Annotated[int, Meta(ge=1, le=24)] = 4
    """How many of the 24 permutations of the colours the policy is averaged over. Time grows with it. Over 400 deals
    4 and 24 lost 1.1 points a hand to the rule player, and 1 lost 1.9; the difference is not significant."""

    playouts: Annotated[int, Meta(ge=0, le=10_000)] = 0
    """Playouts of each action. Each samples a deal that fits the view and plays it to the end by the rule player.
    Another action than the network's first is taken if it is better by more than the standard error. 0: the
    network alone. The strongest level uses 256."""

    least_odds: Annotated[float, Meta(ge=0, le=1)] = 0.0
    """Playouts are made only of actions that the network gives at least this part of its first action's probability.
    The others are not played. 0: of all legal actions. The strongest level uses 0.005."""

    prior: Annotated[float, Meta(ge=0, le=100)] = 0.0
    """Points added to an action's playouts for each nat (natural logarithm of its probability) that the network gives
    it. 0: the playouts alone count. The strongest level uses 0.1."""


PLAYOUT_MS = 0.5
"""Time budget for each deal if every legal action is played out in it, several times the usual time; less for some of
them, in proportion. With less time the network decides alone."""


class Playouts(NamedTuple):
    """How many playouts a decision gets, and of which actions."""

    deals: int = 0
    least_odds: float = 0.0
    prior: float = 0.0

    @classmethod
    def logged(cls, stats: Mapping[str, Any]) -> Playouts:
        """Those of a logged decision."""
        return cls(int(stats.get("playouts", 0)), float(stats.get("least_odds", 0.0)), float(stats.get("prior", 0.0)))

    @property
    def stats(self) -> dict[str, float]:
        """What the log needs to repeat the decision."""
        odds = {"least_odds": self.least_odds, "prior": self.prior} if self.deals else {}
        return {"playouts": self.deals} | {name: value for name, value in odds.items() if value}

    def of(self, policy: FloatArray) -> IntArray:
        """Places of the actions that get playouts, by the probabilities of all legal ones."""
        return np.flatnonzero(policy >= self.least_odds * policy.max())

    def ms(self, part: float) -> float:
        """Time that they need for this part of the legal actions."""
        return PLAYOUT_MS * self.deals * part


class PhasePpo(Strategy):
    """Plays the four-colour pairing game one decision phase at a time, by a network that PPO trained in self-play.

    ``value`` of its decisions is the expected change of the score lead, in points, from the beginning of the current
    turn to the end of the hand, as the training's ``lead_weight`` and ``win_points`` count it. ``policy`` are the
    network's probabilities, whatever the temperature.
    With playouts seed and view determine the action. ``values`` are the mean final leads of the playouts, in points,
    where every legal action got some. Where some got none, there are no ``values``, and ``stats["leads"]`` has the mean
    leads by notation. ``stats`` also has the temperature, or how the playouts were made.
    """

    name = "phase-ppo"
    version = "1"
    games = ("pairing",)
    levels = ("level-1", "level-2", "level-3", "level-4", "level-5")
    review_options: ClassVar[Mapping[str, Any]] = {"least_odds": 0.0}
    """A move that the network rules out gets playouts, too: a review says how many points it costs."""
    execution = "thread"
    """Playouts take milliseconds, and release the GIL."""
    Options: ClassVar[type[msgspec.Struct]] = PlayOptions

    def __init__(self, options: PlayOptions, model: Model | None = None) -> None:
        super().__init__(options, model)
        if model is None:
            raise ModelError("phase-ppo plays by a model, and there is none", advice="install its package again")
        self.encoder_version = model.encoder_version if model.encoder_version in BLOCKS else VERSION
        self.session = Session(model, encoder_version=self.encoder_version)
        inputs, made = self.session.width("observations"), SIZES[self.encoder_version]
        if inputs != made:
            message = (
                f"phase-ppo:{model.version} has {inputs} inputs, and encoder version {self.encoder_version} {made}"
            )
            raise ModelError(message, advice="import the model anew, or train it again")
        self.temperature = options.temperature
        deals = 0 if options.temperature else options.playouts
        self.playouts = Playouts(deals, options.least_odds, options.prior)
        self.symmetries = Symmetries(options.symmetries, self.encoder_version)

    @classmethod
    def supports(cls, game: Game) -> bool:
        """Pairing under any rules, as long as its encoders are those that the models here were made for."""
        return game.name in cls.games and all(game.blocks[name].version == version for version, name in BLOCKS.items())

    @classmethod
    def trainer(cls) -> type[Trainer]:
        from bothost_phase_ppo.train import PhasePpoTrainer

        return PhasePpoTrainer

    def player(self, table: Table) -> PhasePpoPlayer:
        return PhasePpoPlayer(self, table)

    def decide_many(self, requests: Sequence[Request]) -> list[Decision]:
        """One inference for all requests."""
        views, legal = [request.view for request in requests], [request.legal for request in requests]
        policies, values = self.infer(views, legal)
        players: list[PhasePpoPlayer] = [request.player for request in requests]  # type: ignore[misc]
        return [
            player.choose(request.view, request.legal, policy, value, self.playouts, self.temperature, request.budget)
            for player, request, policy, value in zip(players, requests, policies, values, strict=True)
        ]

    def infer(self, views: Sequence[View], legal: Sequence[ActionArray]) -> tuple[FloatArray, FloatArray]:
        """Probabilities (n, 58), 0 where illegal, and values in points (n,)."""
        logits, values = self.session.run(observations=self.symmetries.rename(encode(views, self.encoder_version)))
        allowed = legal_masks(legal, ACTIONS)
        logits = np.where(allowed[:, None], self.symmetries.name_back(logits), -np.inf)
        logits -= np.logaddexp.reduce(logits, axis=2, keepdims=True)
        # The geometric mean: an action that one policy rules out is ruled out.
        odds = np.exp(logits.mean(axis=1))
        return odds / odds.sum(axis=1, keepdims=True), values.reshape(len(views), -1).mean(axis=1) / REWARD_SCALE


class PhasePpoPlayer(Player):
    """Keeps no state but the seed of its draws."""

    def __init__(self, strategy: PhasePpo, table: Table) -> None:
        self.strategy = strategy
        self.seed = table.seed

    def decide(self, view: View, legal: ActionArray, budget: Budget) -> Decision:
        return self.with_playouts(view, legal, self.strategy.playouts, self.strategy.temperature, budget)

    def quick(self, view: View, legal: ActionArray) -> Decision:
        """The policy itself takes some tens of microseconds."""
        return self.with_playouts(view, legal, Playouts(), self.strategy.temperature)

    def replay(self, view: View, legal: ActionArray, stats: Mapping[str, Any]) -> Decision:
        """Repeat the decision with the logged playouts, or with the logged temperature."""
        return self.with_playouts(view, legal, Playouts.logged(stats), float(stats.get("temperature", 0.0)))

    def with_playouts(
        self,
        view: View,
        legal: ActionArray,
        playouts: Playouts,
        temperature: float,
        budget: Budget | None = None,
    ) -> Decision:
        policies, values = self.strategy.infer([view], [legal])
        return self.choose(view, legal, policies[0], float(values[0]), playouts, temperature, budget)

    def choose(
        self,
        view: View,
        legal: ActionArray,
        probabilities: FloatArray,
        value: float,
        playouts: Playouts,
        temperature: float,
        budget: Budget | None = None,
    ) -> Decision:
        """Choose one of ``legal`` by ``probabilities`` (58,) and by playouts, all or none as the budget has time."""
        policy = probabilities[legal]
        index = choose(policy, temperature, self.seed, view)
        stats: dict[str, Any] = {}
        values = None
        if temperature:
            stats["temperature"] = temperature
        if len(legal) > 1:
            places = playouts.of(policy)
            if budget is not None and budget.left_ms() < playouts.ms(len(places) / len(legal)):
                playouts = Playouts()
            if self.strategy.playouts.deals:
                stats |= playouts.stats
            if playouts.deals and len(places) > 1:
                seed = (self.seed ^ view.hash()) % 2**64
                leads = rule_returns(view, deals=playouts.deals, seed=seed, actions=legal[places])
                means = leads.mean(axis=0).tolist()
                if len(places) == len(legal):
                    values = means
                else:
                    stats["leads"] = {view.notation(int(legal[i])): mean for i, mean in zip(places, means, strict=True)}
                first = int(np.searchsorted(places, index))
                index = int(places[improved(leads, first, playouts.prior * logs(policy[places]))])
        return Decision(
            action=int(legal[index]),
            policy=policy.tolist(),
            values=values,
            value=float(value),
            phase=view.phase,
            stats=stats or None,
            model_sha256=self.strategy.session.model.sha256,
            encoder_version=self.strategy.encoder_version,
        )


def logs(odds: FloatArray) -> FloatArray:
    """Natural logarithms, finite where a probability is too small for its type."""
    return np.log(np.maximum(odds, np.finfo(np.float32).tiny))


def improved(leads: FloatArray, first: int, bonus: FloatArray | None = None) -> int:
    """The action with the largest gain over ``first``, less the gain's standard error; ``first`` if none gains.

    ``leads`` (deals, actions): final leads of the playouts. ``bonus`` (actions,): points added to each action's worth,
    known for certain. Source: Tesauro and Galperin, "On-line Policy Improvement
    using Monte-Carlo Search" (1996). The standard error keeps luck in few deals from overruling the network.
    """
    worth = leads + WIN_POINTS * np.sign(leads)
    gains = worth - worth[:, [first]]
    sure = gains.mean(axis=0) - gains.std(axis=0) / np.sqrt(len(gains))
    if bonus is not None:
        sure = sure + (bonus - bonus[first])
    best = int(sure.argmax())
    return best if sure[best] > 0.0 else first
