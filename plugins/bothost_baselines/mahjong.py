"""Rule players of Chinese Official mahjong.

``rule-mahjong`` plans for the eight points: it looks ahead to every hand that wins and lacks few tiles, weighs it by
the chance that those come and by what it pays, keeps what is worth most, claims where the hand gains by it, and sets
against that what each discard may cost. ``simple-mahjong`` measures its hand against the families of hands that score
by themselves or nearly so, and does not defend. Both take every win. The thinking is native
(``native/games/mahjong/policy.h``).
"""

from __future__ import annotations

from bothost import Budget, Decision, Player, Strategy, Table
from bothost.rules import ActionArray, View, mahjong


class RuleMahjongPlayer(Player):
    """Deterministic; keeps nothing between decisions."""

    simple = False

    def decide(self, view: View, legal: ActionArray, budget: Budget) -> Decision:
        action, reason, worth = mahjong.rule_choice(view, simple=self.simple)
        if action not in legal:  # the lobby has refused it here
            return Decision(action=int(legal[0]), stats={"reason": "what is left"})
        return Decision(action=action, stats={"reason": reason, "worth": round(worth, 3)})

    def quick(self, view: View, legal: ActionArray) -> Decision:
        return self.decide(view, legal, Budget(deadline=float("inf")))


class SimpleMahjongPlayer(RuleMahjongPlayer):
    """By families of hands."""

    simple = True


class RuleMahjong(Strategy):
    """The strong rule player: fallback at the table, opponent in training, teacher of imitation."""

    name = "rule-mahjong"
    version = "2"
    games = ("mahjong",)

    def player(self, table: Table) -> RuleMahjongPlayer:
        return RuleMahjongPlayer()


class SimpleMahjong(Strategy):
    """The simple rule player: the middle of the curriculum."""

    name = "simple-mahjong"
    version = "1"
    games = ("mahjong",)

    def player(self, table: Table) -> SimpleMahjongPlayer:
        return SimpleMahjongPlayer()
