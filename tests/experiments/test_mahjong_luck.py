"""Hands of a version of mahjong-ppo, and the network of luck that is fitted to them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bothost.rules import game, mahjong
from bothost_mahjong_ppo.model import MahjongNet
from experiments.mahjong_luck import fit, play


@pytest.fixture(scope="module")
def hands():
    torch.manual_seed(3)
    return play(MahjongNet(), 12, first=0)


def test_every_draw_of_a_hand_has_its_scores(hands):
    assert len(hands["inputs"]) == len(hands["drawers"]) == len(hands["wall"])
    assert set(hands["hand"].tolist()) == set(range(12))
    assert not hands["scores"].sum(axis=1).any()
    for number in range(12):
        of_hand = hands["hand"] == number
        assert (np.diff(hands["wall"][of_hand]) < 0).all() and len(np.unique(hands["scores"][of_hand], axis=0)) == 1


def test_a_fitted_network_measures_luck(hands, tmp_path, monkeypatch, capsys):
    np.savez(tmp_path / "hands.npz", allow_pickle=False, **hands)
    weights = fit([tmp_path / "hands.npz"], rounds=1, seed=0)
    assert "round 1: explains" in capsys.readouterr().out
    state = game("mahjong").new_state(1)
    while not state.terminal:
        seat = state.to_act[0]
        state.apply(seat, mahjong.rule_choice(state.view(seat))[0])
    before = mahjong.luck(state)
    monkeypatch.setattr(mahjong, "luck_weights", lambda: weights)
    fitted = mahjong.luck(state)
    assert abs(fitted.sum()) < 1e-3 and not np.allclose(fitted, before)
