"""Live play: the networks on ONNX Runtime, batched over tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, cast

import msgspec
import numpy as np
from msgspec import Meta

from bothost import Budget, Decision, Evaluator, Model, ModelError, Player, Request, Table, Trainer
from bothost.inference import Session, draw
from bothost.rules import ActionArray, FloatArray, Game, View
from bothost_deep_mc.encode import ROLES, SEEN, VERSION, Seen, encode, roles, supports

GRAPHS = {role: f"{role}.onnx" for role in ROLES}
"""File of each role's network."""


class PlayOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of play."""

    temperature: Annotated[float, Meta(ge=0, le=100)] = 0.0
    """0: always the move with the highest value. Otherwise moves are drawn with weights exp(value / temperature)."""


class DeepMc(Evaluator):
    """Plays Dou Dizhu by the values of all legal moves from the network of its role, without a search.

    ``values`` and ``value`` of its decisions are expected utilities of its side in [-1, 1]: twice the chance to win
    less one; for calls, points over six bases.
    """

    name = "deep-mc"
    version = "1"
    games = ("doudizhu",)
    levels = ("level-1", "level-2", "level-3")
    execution = "inline"
    Options: ClassVar[type[msgspec.Struct]] = PlayOptions

    def __init__(self, options: PlayOptions, model: Model | None = None) -> None:
        super().__init__(options, model)
        if model is None:
            raise ModelError("deep-mc needs a model", advice="make one with: bothost train deep-mc")
        self.sessions = {role: Session(model, encoder_version=VERSION, file=file) for role, file in GRAPHS.items()}
        self.sha256 = model.sha256
        self.seen = Seen(*(self.sessions[ROLES[0]].width(name) for name in ("positions", "moves")))
        if self.seen not in SEEN:
            raise ModelError(f"deep-mc has no networks with inputs of {self.seen.position} and {self.seen.move} cells")
        self.temperature = options.temperature

    @classmethod
    def supports(cls, game: Game) -> bool:
        """Dou Dizhu with any rules, if the game has the encoder blocks in the version of the models."""
        return game.name in cls.games and supports(game)

    @classmethod
    def trainer(cls) -> type[Trainer]:
        from bothost_deep_mc.train import DeepMcTrainer

        return DeepMcTrainer

    def player(self, table: Table) -> DeepMcPlayer:
        return DeepMcPlayer(self, table)

    def decide_many(self, requests: Sequence[Request]) -> list[Decision]:
        """One inference for all requests of a role."""
        values = self.action_values([request.view for request in requests], [request.legal for request in requests])
        return [
            cast(DeepMcPlayer, request.player).choose(request.view, request.legal, own, self.temperature)
            for request, own in zip(requests, values, strict=True)
        ]

    def action_values(self, views: Sequence[View], legal: Sequence[ActionArray]) -> list[FloatArray]:
        """Values of all legal moves of each view, with one inference for each role."""
        if not views:
            return []
        every = encode(views, legal, self.seen.position)
        moves = every.moves[:, : self.seen.move]
        counts, role_of = np.diff(every.offsets), roles(every.positions)
        owner, values = np.repeat(np.arange(len(views)), counts), np.empty(len(moves), np.float32)
        for number, role in enumerate(ROLES):
            asked = role_of == number
            if not asked.any():
                continue
            rows = asked[owner]
            among = (np.cumsum(asked) - 1)[owner[rows]]
            inputs: dict[str, Any] = {"positions": every.positions[asked], "moves": moves[rows], "owner": among}
            values[rows] = self.sessions[role].run(**inputs)[0]
        return np.split(np.clip(values, -1.0, 1.0), every.offsets[1:-1])


class DeepMcPlayer(Player):
    """Keeps nothing of the hand except the seed."""

    def __init__(self, strategy: DeepMc, table: Table) -> None:
        self.strategy = strategy
        self.seed = table.seed

    def decide(self, view: View, legal: ActionArray, budget: Budget) -> Decision:
        values = self.strategy.action_values([view], [legal])[0]
        return self.choose(view, legal, values, self.strategy.temperature)

    def quick(self, view: View, legal: ActionArray) -> Decision:
        """Decide as usual, because the values take less than a millisecond."""
        return self.decide(view, legal, Budget(deadline=0.0))

    def replay(self, view: View, legal: ActionArray, stats: Mapping[str, Any]) -> Decision:
        """Repeat the decision with the logged temperature."""
        values = self.strategy.action_values([view], [legal])[0]
        return self.choose(view, legal, values, float(stats.get("temperature", 0.0)))

    def choose(self, view: View, legal: ActionArray, values: FloatArray, temperature: float) -> Decision:
        """Choose from ``legal`` by value. With a temperature, draw reproducibly by the table's seed and the view."""
        best = int(values.argmax())
        if temperature > 0.0:
            best = draw(np.exp((values - values[best]).astype(np.float64) / temperature), self.seed, view)
        return Decision(
            action=int(legal[best]),
            values=values.tolist(),
            value=float(values.max()),
            stats={"temperature": temperature} if temperature else None,
            model_sha256=self.strategy.sha256,
            encoder_version=VERSION,
        )
