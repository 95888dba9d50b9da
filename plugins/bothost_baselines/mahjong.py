"""Rule players of Chinese Official mahjong.

``rule-mahjong`` plans for the minimum of eight points. It looks ahead to every winning hand that lacks few tiles,
weights it by the chance that they come and by its payment, and subtracts the expected cost of each discard. It claims a
tile if that improves the hand. ``simple-mahjong`` compares its hand with families of hands that score enough by
themselves, or nearly so, and does not defend. Both take every win. The implementation is native
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
    """Compares the hand with families of hands."""

    simple = True


class RuleMahjong(Strategy):
    """The strong rule player: a fallback at the table, an opponent in training, and an expert for imitation."""

    name = "rule-mahjong"
    version = "2"
    games = ("mahjong",)

    def player(self, table: Table) -> RuleMahjongPlayer:
        return RuleMahjongPlayer()


class SimpleMahjong(Strategy):
    """The simple rule player, for the middle of the curriculum."""

    name = "simple-mahjong"
    version = "1"
    games = ("mahjong",)

    def player(self, table: Table) -> SimpleMahjongPlayer:
        return SimpleMahjongPlayer()
