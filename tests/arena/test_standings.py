"""Scores, intervals and significance of tournaments."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bothost.arena.standings import Estimate, MatchResult, crosstable, holm, p_even, p_t, scores
from bothost.arena.tournament_report import percent
from bothost.training.statistics import share_ci95


def match(round_, group, wins, points=None):
    return MatchResult(round=round_, group=group, wins=wins, points=points or {}, hands=0, illegal={}, failed={})


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 9, 30, 299])
@pytest.mark.parametrize("t", [0.0, 0.5, -2.1, 4.0])
def test_p_values_are_those_of_scipy(t, degrees):
    stats = pytest.importorskip("scipy.stats")
    assert p_t(t, degrees) == pytest.approx(2 * stats.t.sf(abs(t), degrees), abs=1e-12)


def test_equal_deals_throughout_are_judged_by_their_number():
    assert p_even([1.0] * 4) == 0.125
    assert p_even([0.5] * 4) == 1.0
    assert p_even([1.0]) == 1.0


@pytest.mark.parametrize("share", [5 / 6, 1 / 6, 0.7])
@pytest.mark.parametrize("deals", [3, 7, 10, 31])
def test_equal_shares_that_binary_fractions_round_are_judged_by_their_number_too(share, deals):
    assert p_even([share] * deals) == 2.0 ** (1 - deals)


def test_holm_is_that_of_its_textbook_example():
    found = holm({(0, 1): 0.01, (0, 2): 0.04, (1, 2): 0.03})
    assert found == pytest.approx({(0, 1): 0.03, (1, 2): 0.06, (0, 2): 0.06})


def test_matches_of_a_round_share_their_deals_so_a_score_is_averaged_by_deal_first():
    # Against b the first deal is won, against c the second: over both opponents every deal is worth 0.5.
    results = [match(0, (0, 1), {(0, 1): (1.0, 0.0, 1.0)}), match(0, (0, 2), {(0, 2): (0.0, 1.0, 0.0)})]
    score = scores(results, 0)
    assert score.mean == 0.5
    assert score.ci95 == share_ci95([0.5] * 3)[1]
    assert scores(results, 1).mean == pytest.approx(1 / 3)


def test_rounds_have_deals_of_their_own_so_their_variances_add():
    rng = np.random.default_rng(1)
    widths, inside = [], 0
    for _ in range(400):
        first, second = rng.random((2, 20))
        results = [match(0, (0, 1), {(0, 1): tuple(first)}), match(1, (0, 2), {(0, 2): tuple(second)})]
        low, high = scores(results, 0).ci95
        widths.append(high - low)
        inside += low <= 0.5 <= high
    assert 0.92 <= inside / 400 <= 0.99
    assert np.mean(widths) == pytest.approx(2 * 2.05 * np.sqrt(1 / 12 / 40), rel=0.1)


def test_a_share_of_wins_after_two_deals_has_an_interval_within_what_is_possible():
    results = [match(0, (0, 1), {(0, 1): (0.25, 0.5)}), match(0, (0, 2), {(0, 2): (1.0, 1.0)})]
    table = crosstable(results)
    assert table[0, 1].score.ci95 == (0.0, 1.0)
    assert table[0, 2].score.ci95 == pytest.approx((0.158, 1.0), abs=1e-3)
    assert [percent(table[pair].score) for pair in ((0, 1), (0, 2))] == ["37.5 (0.0 … 100.0)", "100.0 (15.8 … 100.0)"]
    assert [percent(Estimate.of_share(0.5, half)) for half in (0.1, math.nan)] == ["50.0 ± 10.0", "50.0"]
    assert scores(results, 1).ci95 == (0.0, 1.0)


def test_the_crosstable_joins_the_meetings_of_several_rounds():
    results = [match(0, (0, 1), {(0, 1): (1.0, 1.0)}), match(1, (0, 1), {(0, 1): (0.0, 1.0)})]
    pair = crosstable(results)[0, 1]
    assert (pair.score.mean, pair.deals) == (0.75, 4)
    assert scores(results, 2) is None
