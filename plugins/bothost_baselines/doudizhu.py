"""The rule player of Dou Dizhu.

It partitions its hand into few strong plays, leads the weakest of them, answers where that costs the partition little,
keeps bombs for when they decide, leaves tricks to its fellow peasant and blocks a landlord about to go out; it bids by
how often hands like its own won in self-play. The thinking is native (``native/games/doudizhu/policy.h``)
and takes microseconds.
"""

from __future__ import annotations

from bothost import Budget, Decision, Player, Strategy, Table
from bothost.rules import ActionArray, Game, View, doudizhu


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
    """The sound rule player: fallback at the table, opponent in self-play."""

    name = "rule-doudizhu"
    version = "1"
    games = ("doudizhu",)

    @classmethod
    def supports(cls, game: Game) -> bool:
        return game.name == "doudizhu"

    def player(self, table: Table) -> RuleDoudizhuPlayer:
        return RuleDoudizhuPlayer()
