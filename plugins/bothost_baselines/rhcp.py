"""The RHCP player of Dou Dizhu, a rule player that papers on this game compare with.

Recursive Hand Cards Partition: the value of a hand is the best sum, over its partitions into plays, of the plays'
values less seven for each turn. The value of a move is the value of the hand that it leaves. The player leads the play
with its lowest card, answers if that leaves a better hand than a pass, does not beat its partner, and keeps bombs until
they decide the hand. It counts no cards. The implementation is native (``native/games/doudizhu/rhcp.cpp``).

Source of the idea: You, Li, Guo, Wang, Lu, "Combinational Q-Learning for Dou Di Zhu" (2019), where RHCP is the
opponent. This is an independent implementation.
"""

from __future__ import annotations

from bothost import Budget, Decision, Player, Strategy, Table
from bothost.rules import ActionArray, View, doudizhu


class RhcpDoudizhuPlayer(Player):
    """Deterministic; keeps nothing between decisions."""

    def decide(self, view: View, legal: ActionArray, budget: Budget) -> Decision:
        action, reason = doudizhu.rhcp_choice(view)
        if action not in legal:  # the lobby has refused it here
            return Decision(action=int(legal[0]), stats={"reason": "what is left"})
        if view.phase == "bid":
            return Decision(action=action, stats={"reason": reason})
        hand = view.to_json()["hand"]
        partition = [view.notation(play) for play in doudizhu.best_partition(hand)]
        stats = {"reason": reason, "partition": partition, "worth": doudizhu.hand_value(hand)}
        return Decision(action=action, stats=stats)

    def quick(self, view: View, legal: ActionArray) -> Decision:
        action = doudizhu.rhcp_choice(view)[0]
        return Decision(action=action if action in legal else int(legal[0]))


class RhcpDoudizhu(Strategy):
    """The rule player of the literature, an opponent to compare with."""

    name = "rhcp-doudizhu"
    version = "1"
    games = ("doudizhu",)

    def player(self, table: Table) -> RhcpDoudizhuPlayer:
        return RhcpDoudizhuPlayer()
