"""RLCard's rule agent for Dou Dizhu as a strategy, ``rlcard-rule``. A loose plugin: put it into ``plugins.d``.

    bothost init && mkdir -p plugins.d && cp benchmarks/rlcard_rule.py plugins.d/
    bothost arena doudizhu deep-mc rlcard-rule --deals 2000 --seed 6

Needs ``pip install rlcard``. Source: Zha et al., "RLCard: A Platform for Reinforcement Learning in Card Games" (2020).
"""

from __future__ import annotations

import numpy as np

from bothost import Budget, Decision, Player, Strategy, Table, hookimpl
from bothost.rules import ActionArray, Game, View

RANKS = "3456789TJQKA2BR"


def sorted_cards(play: str) -> str:
    """A play as RLCard writes it: the lowest card first."""
    return play if play == "pass" else "".join(sorted(play, key=RANKS.index))


class RlcardRule(Strategy):
    """Plays the rules that it was written for: no bidding, RLCard's kickers."""

    name = "rlcard-rule"
    version = "1"
    games = ("doudizhu",)

    @classmethod
    def supports(cls, game: Game) -> bool:
        return game.rules["bidding"] == "none"

    def player(self, table: Table) -> Player:
        return RlcardPlayer(table.seed)


class RlcardPlayer(Player):
    def __init__(self, seed: int) -> None:
        from rlcard.models.doudizhu_rule_models import DouDizhuRuleAgentV1

        self._agent, self._seed = DouDizhuRuleAgentV1(), seed

    def decide(self, view: View, legal: ActionArray, budget: Budget) -> Decision:
        shown = view.to_json()
        plays = {sorted_cards(view.notation(int(action))): int(action) for action in legal}
        np.random.seed((self._seed ^ view.hash()) % 2**32)  # the agent draws from NumPy's own generator
        chosen = self._agent.step(
            {
                "raw_obs": {
                    "self": shown["seat"],
                    "landlord": shown["landlord"],
                    "current_hand": shown["hand"],
                    "trace": [(seat, sorted_cards(play)) for seat, play in shown["history"]],
                    "actions": list(plays),
                }
            }
        )
        # It has no answer where the lowest card is part of no combination.
        return Decision(action=plays.get(chosen, int(legal[0])))


@hookimpl
def bothost_strategies() -> list[type[Strategy]]:
    return [RlcardRule]
