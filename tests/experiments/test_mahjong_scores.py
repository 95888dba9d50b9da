"""``python -m experiments.mahjong_scores``: networks that play as their strategy plays, on given walls."""

import sys
from pathlib import Path

import numpy as np
import pytest

from bothost import Budget, Table, rules
from bothost.plugins import weights
from bothost.rules import mahjong
from bothost_mahjong_ppo.decide import MahjongPpo, PlayOptions
from bothost_mahjong_ppo.model import MahjongNet
from experiments import mahjong_scores


@pytest.fixture(scope="module")
def champion():
    return weights.find(MahjongPpo, "champion")


def test_a_network_scores_what_the_strategy_scores(champion, monkeypatch, capsys):
    """Against three rule players on one wall, from all four seats."""
    strategy, game = MahjongPpo(PlayOptions(), champion), rules.game("mahjong", preset="botzone")
    returns = []
    for seat in range(4):
        state = game.new_state(7 * mahjong_scores.WALLS_OF_A_SEED)
        player = strategy.player(Table(lobby="l", table="t", game=game, seat=seat, seed=1))
        while not state.terminal:
            actor = state.to_act[0]
            view, legal = state.view(actor), state.legal(actor)
            own = actor == seat
            budget = Budget(deadline=float("inf"))
            state.apply(actor, player.decide(view, legal, budget).action if own else mahjong.rule_choice(view)[0])
        returns.append(state.returns[seat])
    file = Path(champion.path) / "model.safetensors"
    network = MahjongNet()
    network.begin_with(file)
    assert mahjong_scores.scores(network, game, 7, 1) == pytest.approx([np.mean(returns)])
    monkeypatch.setattr(sys, "argv", ["mahjong_scores", str(file), str(file), "--walls", "2", "--seeds", "7"])
    mahjong_scores.main()
    first, second = capsys.readouterr().out.splitlines()
    assert "2 walls" in first and second.endswith("more than the first +0.000 ± 0.000")
