"""Live play: the network on ONNX Runtime, batched over tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import msgspec
import numpy as np

from bothost import Budget, Decision, Model, ModelError, Player, Request, Strategy, Table, Trainer
from bothost.inference import Session, choose
from bothost.rules import ActionArray, FloatArray, Game, View
from bothost_mahjong_ppo.encode import PROSPECTS, REWARD_SCALE, VERSION, choices, encode, masks, supports
from bothost_mahjong_ppo.search import Search


class PlayOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of play."""

    temperature: float = 0.0
    """0: always the most probable action. Above: actions are drawn with probabilities to the power 1 / temperature,
    without a search."""

    deals: int = 0
    """Search at the table: hands and walls that fit the view, in each of which every likely action is played on by rule
    players. Another action than the network's first is taken if it is surely better. 0: the network alone."""

    draws: int = 1
    """Draws until a searched deal ends. There a network that sees all hands of the deal values it."""

    least_probability: float = 0.02
    """Actions below it are not searched. A decision with fewer than two others is the network's."""

    errors: float = 1.0
    """Standard errors by which an action must be better than the network's first to replace it."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.temperature <= 100.0:
            raise ValueError("temperature must be within 0 and 100")
        if not 0 <= self.deals <= 10000:
            raise ValueError("deals must be within 0 and 10000")
        if not 1 <= self.draws <= 100:
            raise ValueError("draws must be within 1 and 100")
        if not 0.0 <= self.least_probability < 0.5:
            raise ValueError("least_probability must be at least 0 and below 0.5")
        if not 0.0 <= self.errors <= 100.0:
            raise ValueError("errors must be within 0 and 100")


class MahjongPpo(Strategy):
    """Plays Chinese Official mahjong: discards, claims and wins by one policy over the legal actions.

    ``value`` of its decisions is the score that it expects of the hand, in points. With a search, seed and view
    determine the action, and ``stats["values"]`` has the mean points of the searched actions by notation.
    """

    name = "mahjong-ppo"
    version = "1"
    games = ("mahjong",)
    levels = ("level-1", "level-2", "level-3", "level-4", "level-5")
    execution = "thread"
    """A search takes up to some tenths of a second, and releases the GIL."""
    Options: ClassVar[type[msgspec.Struct]] = PlayOptions

    def __init__(self, options: PlayOptions, model: Model | None = None) -> None:
        super().__init__(options, model)
        if model is None:
            raise ModelError("mahjong-ppo plays by a model, and there is none", advice="install its package again")
        self.encoder_version = model.encoder_version if model.encoder_version in PROSPECTS else VERSION
        self.session = Session(model, encoder_version=self.encoder_version)
        self.temperature = options.temperature
        deals = 0 if options.temperature else options.deals
        self.search = Search(deals, options.draws, options.least_probability, options.errors)

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
            player.choose(request.view, request.legal, policy, float(value), player.search, request.budget)
            for player, request, policy, value in zip(players, requests, policies, values, strict=True)
        ]

    def infer(self, views: Sequence[View], legal: Sequence[ActionArray]) -> tuple[FloatArray, FloatArray]:
        """Probabilities (n, 193), 0 where illegal, and expected scores (n,). A win is always taken."""
        states, prospects = encode(views, legal, self.encoder_version)
        logits, values = self.session.run(state=states, prospects=prospects)
        logits = np.where(masks(choices(views, legal)), logits, -np.inf)
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        return odds / odds.sum(axis=1, keepdims=True), values / REWARD_SCALE


class MahjongPpoPlayer(Player):
    """Keeps no state but the seed of its draws."""

    def __init__(self, strategy: MahjongPpo, table: Table) -> None:
        self.strategy = strategy
        self.seed = table.seed
        self.search = Search() if table.game.rules["flowers"] else strategy.search  # their value is not known

    def decide(self, view: View, legal: ActionArray, budget: Budget) -> Decision:
        return self.searched(view, legal, self.search, budget)

    def quick(self, view: View, legal: ActionArray) -> Decision:
        """The policy takes a few milliseconds at most."""
        return self.searched(view, legal, Search())

    def replay(self, view: View, legal: ActionArray, stats: Mapping[str, Any]) -> Decision:
        """Repeat the decision with the logged search."""
        return self.searched(view, legal, Search.logged(stats))

    def searched(self, view: View, legal: ActionArray, search: Search, budget: Budget | None = None) -> Decision:
        policies, values = self.strategy.infer([view], [legal])
        return self.choose(view, legal, policies[0], float(values[0]), search, budget)

    def choose(
        self,
        view: View,
        legal: ActionArray,
        probabilities: FloatArray,
        value: float,
        search: Search,
        budget: Budget | None = None,
    ) -> Decision:
        """One of ``legal`` by ``probabilities`` (193,) and by the search, where the budget has time for all of it."""
        policy, temperature = probabilities[legal], self.strategy.temperature
        index = choose(policy, temperature, self.seed, view)
        stats: dict[str, Any] = {"temperature": temperature} if temperature else {}
        places = search.places(policy)
        if len(places) and (budget is None or budget.left_ms() >= search.ms(len(places))):
            points = search.points(view, legal[places], (self.seed ^ view.hash()) % 2**63)
            stats |= search.stats
            stats["values"] = {
                view.notation(int(legal[place])): mean
                for place, mean in zip(places, points.mean(axis=0).tolist(), strict=True)
            }
            index = int(places[search.best(points)])
        return Decision(
            action=int(legal[index]),
            policy=policy.tolist(),
            value=float(value),
            phase=view.phase,
            stats=stats or None,
            model_sha256=self.strategy.session.model.sha256,
            encoder_version=self.strategy.encoder_version,
        )
