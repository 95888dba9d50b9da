"""The gate of a game with luck adjustment tests points less luck."""

import pytest

from bothost.cli.arena import build
from bothost.errors import UsageError
from bothost.retrain.gate import GateSettings, gains, play
from bothost.strategy import Model, Strategy


class WithoutTorch(Strategy):
    name, version, games = "without-torch", "1", ("*",)

    @classmethod
    def trainer(cls):
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    def player(self, table):
        raise NotImplementedError


def test_a_clone_is_not_judged_by_a_match_where_its_trainer_cannot_be_imported():
    model = Model("without-torch", "r1", "0" * 64, None)
    for lineage in ({}, {"kind": "retrain"}, {"kind": "import", "training": None}):
        assert gains(WithoutTorch, None, lineage, model, model) is None
    for lineage in ({"log": {}}, {"kind": "import", "training": {"log": {}}}):
        with pytest.raises(UsageError, match="comparing models of without-torch needs torch") as caught:
            gains(WithoutTorch, None, lineage, model, model)
        assert caught.value.advice == 'pip install "bothost[train]"'


def test_the_gate_of_mahjong_tests_points_less_luck():
    verdict = play("rule-mahjong", "random", build, GateSettings(deals=2), game="mahjong")
    assert verdict.deals == 2
    assert not verdict.better
    assert verdict.figures["adjusted_lead"] > 0
    assert "less luck it won +" in str(verdict)


@pytest.mark.long
def test_the_gate_passes_a_far_stronger_player_and_never_an_equal_one():
    stronger = play("rule-mahjong", "random", build, GateSettings(deals=200), game="mahjong")
    assert stronger.better
    assert stronger.deals < 200
    equal = play("rule-mahjong", "rule-mahjong", build, GateSettings(deals=10), game="mahjong")
    assert not equal.better
    assert equal.figures["adjusted_lead"] == pytest.approx(0, abs=1e-6)
