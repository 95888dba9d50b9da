"""Live play: the player's most probable move, or a move drawn by its probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec
import numpy as np
from msgspec import Meta

from bothost import Budget, Decision, Model, ModelError, Player, Strategy, Table, Trainer
from bothost.inference import choose
from bothost.rules import ActionArray, Game, View, doudizhu
from bothost_fm_clone import encode, tempo
from bothost_fm_clone.encode import complete
from bothost_fm_clone.files import VERSIONS, AnyClone, load_any
from bothost_fm_clone.model import file_of, games_of


class PlayOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of play."""

    temperature: Annotated[float, Meta(ge=0, le=100)] = 0.0
    """0: always the most probable move. Otherwise moves are drawn with probabilities to the power 1 / temperature; 1
    uses the predicted probabilities."""
    tempo: bool = True
    """Whether a clone that was trained with its player's tempo also takes as long for its moves."""


class FmClone(Strategy):
    """Imitates a given player, learned from logged games.

    The package has a model of the crowd for each game, and clones of named players: ``bothost plugin list fm-clone``.

    ``policy`` of its decisions is the predicted probability of each move, independent of the temperature. Kickers and
    bids are not cloned; a rule chooses them. ``stats["reasons"]`` are the combinations of features for or against the
    move, with their weights.
    """

    name = "fm-clone"
    version = "1"
    games = ("doudizhu", "othello", "mahjong")
    execution = "thread"  # milliseconds a decision, most of them for the reasons
    Options: ClassVar[type[msgspec.Struct]] = PlayOptions

    def __init__(self, options: PlayOptions, model: Model | None = None) -> None:
        super().__init__(options, model)
        if model is None or model.path is None:
            raise ModelError("fm-clone needs a model", advice="see: bothost train fm-clone --help")
        if model.encoder_version not in VERSIONS:
            known = " and ".join(map(str, VERSIONS))
            raise ModelError(
                f"fm-clone:{model.version} needs encoder version {model.encoder_version}; this release has {known}",
                advice="train it again, or use the release of bothost that it came with",
            )
        self.sha256 = model.sha256
        self.temperature = options.temperature
        self.tempo = tempo.load(Path(model.path)) if options.tempo else None
        self.clones = {game: load_any(Path(model.path) / file_of(game), game) for game in games_of(list(model.files))}

    @classmethod
    def supports(cls, game: Game) -> bool:
        """Dou Dizhu, mahjong and Othello with any rules, if their encoder blocks have the supported versions."""
        return encode.supports(game)

    @classmethod
    def trainer(cls) -> type[Trainer]:
        from bothost_fm_clone.train import FmCloneTrainer

        return FmCloneTrainer

    def player(self, table: Table) -> FmClonePlayer:
        clone = self.clones.get(table.game.name)
        if clone is None:
            version = self.model.version if self.model else ""
            problem = f"fm-clone:{version} plays {', '.join(self.clones)}, not {table.game.name}"
            raise ModelError(problem, advice=f"bothost train fm-clone --option game={table.game.name}")
        return FmClonePlayer(self, clone, table)


class FmClonePlayer(Player):
    """Keeps no state except the seed of its draws."""

    def __init__(self, strategy: FmClone, clone: AnyClone, table: Table) -> None:
        self.strategy = strategy
        self.clone = clone
        self.seed = table.seed

    def decide(self, view: View, legal: ActionArray, budget: Budget) -> Decision:
        decision = self._decision(view, legal, self.strategy.temperature, explained=True)
        if self.strategy.tempo is not None:
            decision.wait_ms = self.strategy.tempo.wait_ms(self.seed, view)
        return decision

    def quick(self, view: View, legal: ActionArray) -> Decision:
        """Decide without the reasons, which take most of the time."""
        return self._decision(view, legal, self.strategy.temperature, explained=False)

    def replay(self, view: View, legal: ActionArray, stats: Mapping[str, Any]) -> Decision:
        """Repeat the decision with the logged temperature."""
        return self._decision(view, legal, float(stats.get("temperature", 0.0)), explained=True)

    def _decision(self, view: View, legal: ActionArray, temperature: float, *, explained: bool) -> Decision:
        encoding = self.clone.encoding
        choices = encoding.choices(view, legal)
        if not len(choices):
            return self._not_cloned(view, legal)
        one = encoding.one(view, choices)
        odds = self.clone.odds(one)
        chosen = choose(odds, temperature, self.seed, view)
        policy = np.zeros(len(legal), np.float32)
        for place, cls in enumerate(choices):
            action = complete(view, encoding.actions(legal, int(cls)))
            policy[np.searchsorted(legal, action)] = odds[place]
            if place == chosen:
                taken = action
        stats: dict[str, object] = {"move": encoding.classes[choices[chosen]]}
        if explained and len(choices) > 1:
            stats["reasons"] = self.clone.reasons(one, int(choices[chosen]))
        if temperature:
            stats["temperature"] = temperature
        return Decision(
            action=taken,
            policy=policy.tolist(),
            stats=stats,
            model_sha256=self.strategy.sha256,
            encoder_version=self.clone.version,
        )

    def _not_cloned(self, view: View, legal: ActionArray) -> Decision:
        """Use the rule player for bids."""
        action, reason = doudizhu.rule_choice(view)
        taken = action if action in legal else int(legal[0])
        return Decision(action=taken, stats={"reason": f"not cloned: {reason}"})
