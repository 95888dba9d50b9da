"""Live play: the network on ONNX Runtime, batched over tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import msgspec
import numpy as np
from msgspec import Meta

from bothost import Budget, Decision, Model, ModelError, Player, Request, Strategy, Table, Trainer
from bothost.inference import Session, choose, legal_masks
from bothost.rules import ActionArray, FloatArray, Game, View
from bothost_mahjong_ppo.encode import ACTIONS, PROSPECTS, REWARD_SCALE, VERSION, choices, encode, supports


class PlayOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of play."""

    temperature: Annotated[float, Meta(ge=0, le=100)] = 0.0
    """0: always the most probable action. Above: actions are drawn with probabilities to the power 1 / temperature."""


class MahjongPpo(Strategy):
    """Plays Chinese Official mahjong: discards, claims and wins by one policy over the legal actions.

    ``value`` of its decisions is the score that it expects of the hand, in points.
    """

    name = "mahjong-ppo"
    version = "1"
    games = ("mahjong",)
    levels = ("level-1", "level-2", "level-3", "level-4", "level-5")
    execution = "inline"
    Options: ClassVar[type[msgspec.Struct]] = PlayOptions

    def __init__(self, options: PlayOptions, model: Model | None = None) -> None:
        super().__init__(options, model)
        if model is None:
            raise ModelError("mahjong-ppo plays by a model, and there is none", advice="install its package again")
        self.encoder_version = model.encoder_version if model.encoder_version in PROSPECTS else VERSION
        self.session = Session(model, encoder_version=self.encoder_version)
        self.temperature = options.temperature

    @classmethod
    def supports(cls, game: Game) -> bool:
        """Under any rules, as long as the encoder is the one that the models here were made for."""
        return supports(game)

    @classmethod
    def trainer(cls) -> type[Trainer]:
        from bothost_mahjong_ppo.train import MahjongPpoTrainer

        return MahjongPpoTrainer

    def player(self, table: Table) -> MahjongPpoPlayer:
        return MahjongPpoPlayer(self, table)

    def decide_many(self, requests: Sequence[Request]) -> list[Decision]:
        """One inference for all requests."""
        views, legal = [request.view for request in requests], [request.legal for request in requests]
        policies, values = self.infer(views, legal)
        players: list[MahjongPpoPlayer] = [request.player for request in requests]  # type: ignore[misc]
        return [
            player.choose(request.view, request.legal, policy, float(value), self.temperature)
            for player, request, policy, value in zip(players, requests, policies, values, strict=True)
        ]

    def infer(self, views: Sequence[View], legal: Sequence[ActionArray]) -> tuple[FloatArray, FloatArray]:
        """Probabilities (n, 193), 0 where illegal, and expected scores (n,). A win is always taken."""
        states, prospects = encode(views, legal, self.encoder_version)
        logits, values = self.session.run(state=states, prospects=prospects)
        logits = np.where(legal_masks(choices(views, legal), ACTIONS), logits, -np.inf)
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        return odds / odds.sum(axis=1, keepdims=True), values / REWARD_SCALE


class MahjongPpoPlayer(Player):
    """Keeps no state but the seed of its draws."""

    def __init__(self, strategy: MahjongPpo, table: Table) -> None:
        self.strategy = strategy
        self.seed = table.seed

    def decide(self, view: View, legal: ActionArray, budget: Budget) -> Decision:
        policies, values = self.strategy.infer([view], [legal])
        return self.choose(view, legal, policies[0], float(values[0]), self.strategy.temperature)

    def quick(self, view: View, legal: ActionArray) -> Decision:
        """The policy takes a few milliseconds at most."""
        return self.decide(view, legal, Budget(deadline=0.0))

    def replay(self, view: View, legal: ActionArray, stats: Mapping[str, Any]) -> Decision:
        """Repeat the decision with the logged temperature."""
        policies, values = self.strategy.infer([view], [legal])
        return self.choose(view, legal, policies[0], float(values[0]), float(stats.get("temperature", 0.0)))

    def choose(
        self, view: View, legal: ActionArray, probabilities: FloatArray, value: float, temperature: float
    ) -> Decision:
        """One of ``legal`` by ``probabilities`` (193,)."""
        policy = probabilities[legal]
        return Decision(
            action=int(legal[choose(policy, temperature, self.seed, view)]),
            policy=policy.tolist(),
            value=float(value),
            phase=view.phase,
            stats={"temperature": temperature} if temperature else None,
            model_sha256=self.strategy.session.model.sha256,
            encoder_version=self.strategy.encoder_version,
        )
