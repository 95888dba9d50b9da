"""The rule player of Dou Dizhu.

It partitions its hand into few strong plays and leads the weakest of them. It answers if that costs the partition
little, keeps bombs until they decide the hand, leaves tricks to the other peasant, and blocks a landlord who is about
to go out. It bids by how often similar hands won in self-play. The implementation is native
(``native/games/doudizhu/policy.h``) and takes microseconds.
"""

from __future__ import annotations

from bothost import Budget, Decision, Player, Strategy, Table
from bothost.rules import ActionArray, View, doudizhu


class RuleDoudizhuPlayer(Player):
    """Deterministic; keeps nothing between decisions."""

    def decide(self, view: View, legal: ActionArray, budget: Budget) -> Decision:
        action, reason = doudizhu.rule_choice(view)
        if action not in legal:  # the lobby has refused it here
            return Decision(action=int(legal[0]), stats={"reason": "what is left"})
        hand = view.to_json()["hand"]
        if view.phase == "bid":
            chance = doudizhu.landlord_win_probability(hand)
            return Decision(action=action, stats={"reason": reason, "landlord_wins": round(chance, 3)})
        partition = [view.notation(play) for play in doudizhu.best_partition(hand)]
        return Decision(action=action, stats={"reason": reason, "partition": partition})

    def quick(self, view: View, legal: ActionArray) -> Decision:
        action = doudizhu.rule_choice(view)[0]
        return Decision(action=action if action in legal else int(legal[0]))


class RuleDoudizhu(Strategy):
    """The rule player: a fallback at the table, and an opponent in self-play."""

    name = "rule-doudizhu"
    version = "1"
    games = ("doudizhu",)

    def player(self, table: Table) -> RuleDoudizhuPlayer:
        return RuleDoudizhuPlayer()
