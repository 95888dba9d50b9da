"""A rule player of the four-colour pairing game.

It weighs each pair that it could collect by what the two cards add to its library now (points and completed sets), by
how far they bring unfinished sets, and by what the pool card would have been worth to the opponent. Skills are spent
when they pay: a forced pair on a second rich card of the pool or instead of a lost one, a replacement on a poor card.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, ClassVar

import msgspec
import numpy as np

from bothost import Budget, Decision, Player, Strategy, Table
from bothost.rules import ActionArray, Game, View

RANKS = 13
COLOURS = 4
CARDS = COLOURS * RANKS
ENTER = {name: CARDS + i for i, name in enumerate(("A", "B", "discard1", "discard2", "pairing", "final"))}
# planes of the encoder block "features"
HAND, POOL, LIBRARY, THEIRS, DISCARDS, SELECTED, UNSEEN = range(7)


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Weights of the rule player, in points of the game."""

    deny: float = 0.6
    """Of what a pool card would be worth to the opponent."""
    keep: float = 0.8
    """Of what the hand card is worth: it would probably be collected later anyway."""
    promise: float = 0.35
    """Of a set's bonus, times the square of how far it is complete."""
    force_from: float = 16.0
    """Worth from which a pair of any colours deserves skill B."""


class Sight:
    """What the rule player looks at, taken from the encoder block of a view."""

    def __init__(self, view: View, rules: dict[str, Any]) -> None:
        features = view.encode("features")
        planes: list[list[int]] = [[] for _ in range(7)]
        for bit in np.flatnonzero(features[: 7 * CARDS]).tolist():
            planes[bit // CARDS].append(bit % CARDS)
        self.hand, self.pool, self.library, self.theirs, self.discards, self.selected, self.unseen = planes
        self.deck = round(float(features[375]) * max(1, rules["deck"]))


class Library:
    """Counts of a collection, and what one more card adds to it."""

    def __init__(self, judge: Judge, own: Iterable[int], gone: Iterable[int]) -> None:
        self.judge = judge
        self.ranks = [0] * RANKS
        self.colours = [0] * COLOURS
        self.lost = [False] * RANKS
        for card in own:
            self.add(card)
        for card in gone:
            self.lost[card % RANKS] = True

    def add(self, card: int) -> None:
        self.ranks[card % RANKS] += 1
        self.colours[card // RANKS] += 1

    def remove(self, card: int) -> None:
        self.ranks[card % RANKS] -= 1
        self.colours[card // RANKS] -= 1

    def worth(self, card: int) -> float:
        """Points of the card, of the sets that it completes, and a part of those that it brings nearer."""
        judge, rank, colour = self.judge, card % RANKS, card // RANKS
        value = judge.points[rank] + judge.colour_steps[self.colours[colour] % judge.colour_set]
        return value if self.lost[rank] else value + judge.rank_steps[self.ranks[rank]]


class Judge:
    """Values under one set of rules and weights."""

    def __init__(self, rules: dict[str, Any], options: Options) -> None:
        self.options = options
        self.rules = rules
        self.points: list[float] = [float(p) for p in rules["points"]]
        self.colour_set: int = rules["colour_set"]
        self.rank_steps = self.steps(rules["rank_bonus"], 4)
        self.colour_steps = self.steps(rules["colour_bonus"], self.colour_set)

    def steps(self, bonus: float, size: int) -> list[float]:
        """What card number 1 .. size adds to a set of that size; they sum to the bonus."""
        done = [self.options.promise * (k / size) ** 2 * bonus for k in range(size)] + [bonus]
        return [after - before for before, after in pairwise(done)]

    def libraries(self, sight: Sight) -> tuple[Library, Library]:
        """Own and the opponent's, each knowing the ranks that it can no longer complete."""
        gone = sight.discards
        return (
            Library(self, sight.library, [*sight.theirs, *gone]),
            Library(self, sight.theirs, [*sight.library, *gone]),
        )

    def pairs(self, sight: Sight, any_colour: bool) -> tuple[float, int, int]:
        """The best (worth, hand card, pool card); worth is minus infinity where there is none."""
        mine, theirs = self.libraries(sight)
        deny = [self.options.deny * theirs.worth(card) for card in sight.pool]
        hand = sight.selected or sight.hand
        best = (float("-inf"), -1, -1)
        for card in hand:
            first = mine.worth(card)
            mine.add(card)
            spent = self.options.keep * first
            for denied, lying in zip(deny, sight.pool, strict=True):
                if any_colour or lying // RANKS == card // RANKS:
                    worth = first - spent + mine.worth(lying) + denied
                    if worth > best[0]:
                        best = (worth, card, lying)
            mine.remove(card)
        return best

    def least(self, sight: Sight) -> tuple[float, int]:
        """The hand card that is worth least, alone, a match in the pool counting for it."""
        mine, _ = self.libraries(sight)
        colours = {card // RANKS for card in sight.pool}
        return min((mine.worth(card) + 0.5 * (card // RANKS in colours), card) for card in sight.hand)

    def average_unseen(self, sight: Sight) -> float:
        mine, _ = self.libraries(sight)
        return sum(map(mine.worth, sight.unseen)) / max(1, len(sight.unseen))


class RulePairingPlayer(Player):
    """Decides anew at every step of a turn: the same position gives the same plan."""

    def __init__(self, game: Game, options: Options) -> None:
        self.judge = Judge(game.rules, options)

    def decide(self, view: View, legal: ActionArray, budget: Budget) -> Decision:
        sight = Sight(view, self.judge.rules)
        action, reason = self.enter(sight, legal) if legal[0] >= CARDS else self.select(view.phase, sight)
        return Decision(action=action, stats={"reason": reason})

    def quick(self, view: View, legal: ActionArray) -> Decision:
        return Decision(action=int(legal[-1]))

    def enter(self, sight: Sight, legal: ActionArray) -> tuple[int, str]:
        """The phase to enter."""
        judge, open_phases = self.judge, set(legal.tolist())
        if ENTER["B"] in open_phases:
            worth, _, _ = judge.pairs(sight, any_colour=True)
            last = ENTER["final"] in open_phases or len(sight.hand) == 1
            if last or worth >= judge.options.force_from:
                return ENTER["B"], f"a forced pair is worth {worth:.1f}"
        if ENTER["A"] in open_phases:
            hopeless = ENTER["final"] in open_phases
            late = sight.deck <= 4 or len(sight.hand) <= 3
            least, _ = judge.least(sight)
            average = judge.average_unseen(sight)
            if hopeless or (late and least < average):
                return ENTER["A"], f"the poorest card, {least:.1f}, against {average:.1f} on average"
        rest = max(action for action in open_phases if action not in (ENTER["A"], ENTER["B"]))
        return rest, "no skill pays now"

    def select(self, phase: str, sight: Sight) -> tuple[int, str]:
        """The card to select."""
        judge = self.judge
        any_colour = phase == "B"
        if any_colour or phase == "pairing":
            worth, card, lying = judge.pairs(sight, any_colour)
            if card >= 0:
                return (lying if sight.selected else card), f"the pair is worth {worth:.1f}"
        worth, card = judge.least(sight)
        return card, f"the poorest card, worth {worth:.1f}"


class RulePairing(Strategy):
    """Collects what is worth most to it and to the opponent."""

    name = "rule-pairing"
    version = "1"
    games = ("pairing",)
    Options: ClassVar[type[msgspec.Struct]] = Options

    def player(self, table: Table) -> RulePairingPlayer:
        return RulePairingPlayer(table.game, self.options)
