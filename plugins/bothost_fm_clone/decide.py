"""Live play: the most probable move of the player, or one drawn by its probabilities."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import msgspec
import numpy as np

from bothost import Budget, Decision, Model, ModelError, Player, Strategy, Table, Trainer
from bothost.inference import choose
from bothost.rules import ActionArray, Game, View, doudizhu
from bothost_fm_clone import encode
from bothost_fm_clone.encode import VERSION, complete
from bothost_fm_clone.model import Clone, file_of, games_of, load


class PlayOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of play."""

    temperature: float = 0.0
    """0: always the most probable move. Above: moves are drawn with probabilities to the power 1 / temperature; with 1
    as often as the player is thought to make them."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.temperature <= 100.0:
            raise ValueError("temperature must be within 0 and 100")


class FmClone(Strategy):
    """Plays Dou Dizhu and Othello as a given player does; the model of its package is of a crowd of rule players.

    ``policy`` of its decisions is the probability that the player makes the move, whatever the temperature; kickers and
    bids are not cloned (a rule chooses them). ``stats["reasons"]`` are the combinations of features that spoke for the
    move or against it, with their weights.
    """

    name = "fm-clone"
    version = "1"
    games = ("doudizhu", "othello")
    execution = "thread"  # some tenths of a millisecond a decision, and the reasons as long
    Options: ClassVar[type[msgspec.Struct]] = PlayOptions

    def __init__(self, options: PlayOptions, model: Model | None = None) -> None:
        super().__init__(options, model)
        if model is None or model.path is None:
            raise ModelError("fm-clone plays by a model, and there is none", advice="bothost train fm-clone --help")
        if model.encoder_version != VERSION:
            raise ModelError(
                f"fm-clone:{model.version} was made for encoder version {model.encoder_version}, this is {VERSION}",
                advice="train it again, or use the release of bothost that it came with",
            )
        self.sha256 = model.sha256
        self.temperature = options.temperature
        self.clones = {game: load(Path(model.path) / file_of(game), game) for game in games_of(list(model.files))}

    @classmethod
    def supports(cls, game: Game) -> bool:
        """Dou Dizhu and Othello under any rules, as long as their encoders are those that models are made for."""
        return encode.supports(game)

    @classmethod
    def trainer(cls) -> type[Trainer]:
        from bothost_fm_clone.train import FmCloneTrainer

        return FmCloneTrainer

    def player(self, table: Table) -> FmClonePlayer:
        clone = self.clones.get(table.game.name)
        if clone is None:
            version = self.model.version if self.model else ""
            told = f"fm-clone:{version} is a clone at {', '.join(self.clones)}, not at {table.game.name}"
            raise ModelError(told, advice=f"bothost train fm-clone --option game={table.game.name}")
        return FmClonePlayer(self, clone, table)


class FmClonePlayer(Player):
    """Keeps no state but the seed of its draws."""

    def __init__(self, strategy: FmClone, clone: Clone, table: Table) -> None:
        self.strategy = strategy
        self.clone = clone
        self.seed = table.seed

    def decide(self, view: View, legal: ActionArray, budget: Budget) -> Decision:
        encoding = self.clone.encoding
        choices = encoding.choices(view, legal)
        if not len(choices):
            return self._not_cloned(view, legal)
        features = encoding.encode(view)
        odds = self.clone.probabilities(features, choices)
        chosen = choose(odds, self.strategy.temperature, self.seed, view)
        policy = np.zeros(len(legal), np.float32)
        for place, cls in enumerate(choices):
            action = complete(view, encoding.actions(legal, int(cls)))
            policy[np.searchsorted(legal, action)] = odds[place]
            if place == chosen:
                taken = action
        stats: dict[str, object] = {"move": encoding.classes[choices[chosen]]}
        if len(choices) > 1:
            stats["reasons"] = self.clone.reasons(features, choices, int(choices[chosen]))
        if self.strategy.temperature:
            stats["temperature"] = self.strategy.temperature
        return Decision(
            action=taken,
            policy=policy.tolist(),
            stats=stats,
            model_sha256=self.strategy.sha256,
            encoder_version=VERSION,
        )

    def quick(self, view: View, legal: ActionArray) -> Decision:
        """The policy itself takes some tenths of a millisecond."""
        return self.decide(view, legal, Budget(deadline=0.0))

    def _not_cloned(self, view: View, legal: ActionArray) -> Decision:
        """Bids are the rule player's."""
        action, reason = doudizhu.rule_choice(view)
        taken = action if action in legal else int(legal[0])
        return Decision(action=taken, stats={"reason": f"not cloned: {reason}"})
