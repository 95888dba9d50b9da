"""Matches adjusted for luck: the same hands, scores of the same mean that vary less."""

import json
from pathlib import Path

import msgspec
import pytest

from bothost import rules
from bothost.arena.figures import adjusted_figures, adjusted_lead, adjusted_score
from bothost.arena.match import DealResult, HandResult, deal_seed
from bothost.arena.run import run_match
from bothost.arena.spec import MatchSpec
from bothost.cli.arena import build
from bothost.errors import UsageError
from bothost.rules import mahjong

RULE = ("rule-mahjong",) * 4


def spec(game="mahjong", contestants=RULE, deals=2, **more):
    return MatchSpec(
        game=game,
        rules={},
        contestants=contestants,
        options=tuple({} for _ in contestants),
        deals=deals,
        **{"luck_adjusted": True, **more},
    )


def test_four_equal_players_score_exactly_zero():
    figures = run_match(spec(), build)
    for agent in figures["agents"].values():
        assert agent["score"] == pytest.approx(0, abs=1e-9)
        assert agent["luck_adjusted"]["score"] == pytest.approx(0, abs=1e-6)


def test_plain_scores_stay_what_they_are_without_the_adjustment(tmp_path):
    two = ("rule-mahjong", "random")
    adjusted = run_match(spec(contestants=two, deals=1), build, journal=tmp_path / "match.jsonl")
    plain = run_match(spec(contestants=two, deals=1, luck_adjusted=False), build)
    assert adjusted["agents"]["A"]["score"] == plain["agents"]["A"]["score"]
    assert "luck_adjusted" not in plain["agents"]["A"]
    assert adjusted["adjusted_lead"] != pytest.approx(adjusted["agents"]["A"]["score"])
    with pytest.raises(UsageError, match="another match"):
        run_match(spec(contestants=two, deals=1, luck_adjusted=False), build, journal=tmp_path / "match.jsonl")


def test_a_logged_hand_has_the_luck_that_the_match_measured(tmp_path):
    run_match(spec(deals=1, seed=4), build, journal=tmp_path / "match.jsonl")
    hand = json.loads(Path(tmp_path / "match.jsonl").read_text().splitlines()[1])["hands"][0]
    state = rules.game("mahjong").new_state(deal_seed(4, 0))
    while not state.terminal:
        state.apply(state.to_act[0], mahjong.rule_choice(state.view(state.to_act[0]))[0])
    logged = rules.game("mahjong").replay(state.deal, state.actions)
    assert mahjong.luck(logged).tolist() == hand["luck"]


def test_games_without_luck_adjustment_are_refused():
    with pytest.raises(UsageError, match="othello cannot be adjusted"):
        run_match(spec("othello", ("rule-othello", "random")), build)
    flowers = msgspec.structs.replace(spec(), rules={"preset": "open-mahjong"})
    with pytest.raises(UsageError, match="mahjong with flowers cannot be adjusted"):
        run_match(flowers, build)


def hand(returns, luck):
    return HandResult(
        returns=returns, final={}, decisions=(1, 1), seconds=(0.1, 0.1), illegal=(0, 0), luck=tuple(map(float, luck))
    )


def test_of_two_contestants_the_one_that_sits_alone_counts():
    seats = [(0, 1, 1, 1), (1, 0, 0, 0)]
    deal = DealResult(
        0, (hand((24.0, -8.0, -8.0, -8.0), (20, 0, 0, -20)), hand((-8.0, 24.0, -8.0, -8.0), (-2, 6, -2, -2)))
    )
    assert adjusted_lead(deal, seats) == pytest.approx((4 + 6) / 2)
    assert adjusted_score(deal, seats) == pytest.approx(0.5 + 5 / 64)
    figures = adjusted_figures([deal, deal], seats)
    assert figures["agents"]["A"]["luck_adjusted"]["score"] == pytest.approx((4 + 18 - 6 - 6) / 4)
    assert figures["adjusted_lead"] == pytest.approx(5)


def test_a_lead_beyond_the_bound_counts_as_the_bound():
    deal = DealResult(0, (hand((300.0, -100.0, -100.0, -100.0), (0, 0, 0, 0)),))
    assert adjusted_score(deal, [(0, 1, 1, 1)]) == 1.0
