"""Players of Dou Dizhu with a style: the rule player's preferences, changed by habits that a person might have.

They differ measurably and play fast. They serve as players to imitate if there are no games of people, and as diverse
opponents. Habits are native (``native/games/doudizhu/style.h``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import msgspec

from bothost import Budget, Decision, Player, Strategy, Table
from bothost.rules import ActionArray, Game, View, doudizhu
from bothost_baselines.style import StyleOptions

STYLES: Mapping[str, Mapping[str, Any]] = {
    "steady": {},
    "bold": {"aggression": 12, "bombs": 8, "control": 3, "bid": 0.08},
    "cautious": {"aggression": -10, "bombs": -8, "control": -4, "bid": -0.06},
    "bomber": {"bombs": 40, "bombs_from": 0},
    "hoarder": {"bombs": -60, "bombs_from": 1, "control": -7},
    "pairs-first": {"pairs": 16, "chains": -8},
    "long-first": {"length": 5, "chains": 8},
    "short-first": {"length": -5, "ranks": -1.5, "kickers": -8},
    "helper": {"help": 40, "feed": 60},
    "loner": {"help": -80, "feed": -40, "length": -3},
    "flashy": {"ranks": 3, "control": 6},
    "blocker": {"block": 12, "aggression": 10, "ranks": 1.5},
    "novice": {"sees_wins": False, "kickers": -10, "temperature": 6},
}
"""Name → its habits. ``steady`` is the rule player."""

Weight = Annotated[float, msgspec.Meta(ge=-1000, le=1000)] | None


class Options(StyleOptions, frozen=True, forbid_unknown_fields=True):
    """A style, and habits that override it. Habits are in half points: each play of the hand costs 14, and a rank is
    worth 2."""

    STYLES: ClassVar[Mapping[str, Mapping[str, Any]]] = STYLES

    aggression: Weight = None
    """Bonus for any play that beats an enemy, compared with a pass."""
    bombs: Weight = None
    """Bonus for a bomb or rocket while every enemy has more than ``bombs_from`` cards. Negative values save them."""
    length: Weight = None
    """Per card of a lead."""
    ranks: Weight = None
    """Per rank of a lead. Negative values lead low cards first."""
    pairs: Weight = None
    """For leading pairs and chains of pairs."""
    chains: Weight = None
    """For leading chains of singles."""
    kickers: Weight = None
    """For plays with kickers."""
    control: Weight = None
    """Per ace, two and joker that a play spends."""
    help: Weight = None
    """For leaving a trick to the partner."""
    feed: Weight = None
    """For a low lead with which a partner with one or two cards may go out."""
    block: Weight = None
    """Per rank above 9 of a lead with which an enemy with one or two cards may go out."""
    bombs_from: Annotated[int, msgspec.Meta(ge=0, le=20)] | None = None
    """``bombs`` counts while every enemy has more cards than this. Default: 2."""
    bid: Annotated[float, msgspec.Meta(ge=-1, le=1)] | None = None
    """Added to its estimated chance of winning when it bids."""
    sees_wins: bool | None = None
    """Whether it finds plays that certainly win."""
    temperature: Annotated[float, msgspec.Meta(ge=0, le=1000)] | None = None
    """Temperature of the softmax over its preferences, in half points. 0: always the most preferred action."""


class StyledDoudizhuPlayer(Player):
    """Keeps nothing between decisions. They depend on the table's seed and the view only, so they replay."""

    def __init__(self, style: doudizhu.Style, game: Game, seed: int) -> None:
        self.style = style
        self.game = game
        self.seed = seed

    def decide(self, view: View, legal: ActionArray, budget: Budget) -> Decision:
        choice = self.style.choose(view, self.seed ^ view.hash())
        if choice.action not in legal:  # the lobby has refused it here
            return Decision(action=int(legal[0]), stats={"reason": "what is left"})
        if choice.action == choice.rule:
            return Decision(action=choice.action, stats={"reason": "as the rule player"})
        habit = max(choice.habits, key=lambda name: choice.habits[name], default="")
        reason = (
            f"{habit}, worth {choice.habits[habit] / 2:g} points" if habit and choice.habits[habit] > 0 else "habits"
        )
        return Decision(action=choice.action, stats={"reason": reason, "rule_player": self.game.notation(choice.rule)})

    def quick(self, view: View, legal: ActionArray) -> Decision:
        action = self.style.choose(view, self.seed ^ view.hash()).action
        return Decision(action=action if action in legal else int(legal[0]))


class StyledDoudizhu(Strategy):
    """One of many players with distinguishable styles."""

    name = "styled-doudizhu"
    version = "1"
    games = ("doudizhu",)
    Options: ClassVar[type[msgspec.Struct]] = Options

    def __init__(self, options: Any, model: Any = None) -> None:
        super().__init__(options, model)
        self.style = doudizhu.Style(**options.habits())

    def player(self, table: Table) -> StyledDoudizhuPlayer:
        return StyledDoudizhuPlayer(self.style, table.game, table.seed)
