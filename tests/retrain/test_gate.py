"""The gate of a game with luck adjustment tests points less luck."""

import os
import re
import time

import pytest

from bothost.cli.arena import build
from bothost.errors import UsageError
from bothost.retrain.gate import KEPT_S, GateSettings, gains, journal_in, play
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


def test_a_refusal_gives_the_scores_of_a_game_for_more_than_two_seats(monkeypatch):
    monkeypatch.setattr("bothost.retrain.gate.has_luck", lambda game: False)  # as for a game of a plugin
    verdict = play("random", "rule-mahjong", build, GateSettings(deals=2), game="mahjong")
    assert re.search(r": 2 deals, it scored -\d+\.\d\d a hand \(95 % -[\d.]+ … [+-][\d.]+\), p = ", str(verdict))


def test_a_match_goes_on_in_its_journal_until_it_has_a_result(tmp_path):
    journal, played = tmp_path / "gate.jsonl", []
    for deals in (2, 3):
        settings = GateSettings(deals=deals)
        play(
            "random", "random", build, settings, game="othello", journal=journal, on_deal=lambda *at: played.append(at)
        )
        assert journal.exists() and len(played) == deals
    play("rule-pairing", "first-legal", build, GateSettings(deals=200), game="pairing", journal=tmp_path / "other")
    assert list(tmp_path.iterdir()) == [journal]


def test_each_match_has_a_journal_and_those_that_nobody_continued_are_removed(tmp_path):
    new, old = (f"phase-ppo:{name}" for name in ("r2", "r1"))
    of = {name: Model("phase-ppo", name, name * 32, None) for name in ("r2", "r1", "v9")}
    settings = GateSettings()

    def at(champion, version, **more):
        return journal_in(tmp_path, (new, of["r2"]), (champion, of[version]), settings, more.get("game", "pairing"))

    found = [at(old, "r1"), at("phase-ppo:v9", "r1"), at(old, "v9"), at(old, "r1", game="mahjong")]
    assert len(set(found)) == 4 and at(old, "r1") == found[0]
    for path in found:
        path.touch()
    long_ago = time.time() - KEPT_S - 60
    os.utime(found[1], (long_ago, long_ago))
    at(old, "r1")
    assert {path for path in found if path.exists()} == {found[0], found[2], found[3]}


def test_a_match_under_other_rules_has_another_journal(tmp_path, monkeypatch):
    """After an upgrade an interrupted match would be refused as another one, with advice for other commands."""
    sides = [(f"phase-ppo:{name}", Model("phase-ppo", name, name * 32, None)) for name in ("r2", "r1")]
    before = journal_in(tmp_path, *sides, GateSettings(), "pairing")
    monkeypatch.setattr("bothost.retrain.gate.has_luck", lambda game: True)
    assert journal_in(tmp_path, *sides, GateSettings(), "pairing") != before


@pytest.mark.long
def test_the_gate_passes_a_far_stronger_player_and_never_an_equal_one():
    stronger = play("rule-mahjong", "random", build, GateSettings(deals=200), game="mahjong")
    assert stronger.better
    assert stronger.deals < 200
    equal = play("rule-mahjong", "rule-mahjong", build, GateSettings(deals=10), game="mahjong")
    assert not equal.better
    assert equal.figures["adjusted_lead"] == pytest.approx(0, abs=1e-6)
