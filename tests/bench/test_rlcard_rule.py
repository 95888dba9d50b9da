"""The strategy for measurements against RLCard's rule agent plays what that agent plays in RLCard's own game."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from bothost import Budget
from bothost.rules import game

FILE = Path(__file__).parents[2] / "benchmarks/rlcard_rule.py"
FOREVER = Budget(deadline=float("inf"))


@pytest.fixture(scope="module")
def plugin():
    spec = importlib.util.spec_from_file_location("rlcard_rule", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.filterwarnings("ignore")
def test_it_decides_as_in_rlcards_own_game(plugin, monkeypatch):
    from rlcard.games.doudizhu import Game
    from rlcard.models.doudizhu_rule_models import DouDizhuRuleAgentV1

    agent, mine = DouDizhuRuleAgentV1(), plugin.RlcardPlayer(seed=1)
    rng, drawn, compared = np.random.default_rng(1), [], 0
    for seed in range(10):
        theirs = Game()
        theirs.np_random = np.random.RandomState(seed)
        shown, seat = theirs.init_game()
        hands = ["".join(player.initial_hand) for player in theirs.players]
        for card in shown["seen_cards"]:
            hands[0] = hands[0].replace(card, "", 1)
        ours = game("doudizhu").state_from_deal({"hands": hands, "bottom": shown["seen_cards"], "first": 0})
        while not theirs.is_over():
            view, legal = ours.view(seat), ours.legal(seat)
            plays = {plugin.sorted_cards(view.notation(int(action))): int(action) for action in legal}
            drawn.clear()
            with monkeypatch.context() as patched:  # where it draws at random, the order of the plays decides
                patched.setattr(np.random, "choice", lambda actions: drawn.append(actions) or actions[0])
                chosen = agent.step({"raw_obs": shown})
            if not drawn and len(legal) > 1:
                assert mine.decide(view, legal, FOREVER).action == plays[plugin.sorted_cards(chosen)]
                compared += 1
            taken = shown["actions"][rng.integers(len(shown["actions"]))]
            ours.apply(seat, plays[plugin.sorted_cards(taken)])
            shown, seat = theirs.step(taken)
    assert compared > 200
