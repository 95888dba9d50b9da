import math

import numpy as np
import pytest

from bothost.sequential import BettingTest
from bothost.training.statistics import mean_ci95, mean_half95, share_ci95, share_half95, t975


def test_interval_covers_the_true_mean_as_often_as_it_says():
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(2000):
        low, high = mean_ci95(rng.normal(0.3, 2.0, size=12).tolist())[1]
        covered += low <= 0.3 <= high
    assert 0.935 <= covered / 2000 <= 0.965


@pytest.mark.parametrize(
    ("degrees", "quantile"), [(1, 12.7062), (30, 2.0423), (31, 2.0395), (60, 2.0003), (1000, 1.9623)]
)
def test_t_quantiles(degrees, quantile):
    assert t975(degrees) == pytest.approx(quantile, abs=2e-4)


def test_half_an_interval_is_students_too():
    mean, half = mean_half95([0.5, 0.6, 0.7])
    assert mean == pytest.approx(0.6) and half == pytest.approx(4.3027 * 0.1 / math.sqrt(3))
    assert mean_half95([0.4])[0] == 0.4 and math.isnan(mean_half95([0.4])[1])
    assert mean_half95([0.0, 1.0] * 20)[1] == pytest.approx(2.0227 * 0.50637 / math.sqrt(40), rel=1e-3)


@pytest.mark.parametrize(
    ("shares", "ends"),
    [
        ([0.25, 0.5], (0.0, 1.0)),
        ([1.0, 1.0], (0.025**0.5, 1.0)),
        ([0.0] * 100, (0.0, 1.0 - 0.025**0.01)),
        ([0.5, 0.5], (0.025**0.5 / 2, 1.0 - 0.025**0.5 / 2)),
        ([0.3, 0.1 + 0.2], (0.0, 1.0 - 0.025**0.5 * 0.7)),
        ([0.25, 0.25], (0.0, 1.0 - 0.025**0.5 * 0.75)),
        ([1.0], None),
    ],
)
def test_the_interval_of_a_share_is_one_that_a_share_can_have(shares, ends):
    found = share_ci95(shares)[1]
    assert found is None if ends is None else found == pytest.approx(ends)


def test_of_shares_whose_interval_lies_inside_nothing_differs():
    shares = [0.0, 0.5, 1.0] * 10
    assert share_half95(shares) == mean_half95(shares)
    assert share_ci95(shares) == mean_ci95(shares)


def test_no_value_is_an_error_and_one_value_says_nothing_of_others():
    with pytest.raises(ValueError, match="no values"):
        mean_ci95([])
    assert mean_ci95([0.7]) == (0.7, None)


@pytest.mark.parametrize("values", [[1.0] * 4, [0.3, 0.1 + 0.2], [-3.0, -3.0]])
def test_values_that_are_all_equal_do_not_say_how_wide_their_interval_is(values):
    assert mean_ci95(values) == (pytest.approx(values[0]), None)
    assert math.isnan(mean_half95(values)[1])


def test_a_fair_match_is_rarely_called_better_however_often_one_looks():
    rng = np.random.default_rng(2)
    false_alarms = sum(any(map(BettingTest().update, rng.choice([0.0, 0.5, 1.0], size=1000))) for _ in range(600))
    assert false_alarms / 600 <= 0.05 + 0.02


def test_a_better_player_is_found_and_a_worse_one_is_not():
    rng = np.random.default_rng(3)
    found = sum(any(map(BettingTest().update, (rng.random(1500) < 0.58).astype(float))) for _ in range(50))
    assert found >= 48
    assert not any(map(BettingTest().update, (rng.random(1500) < 0.42).astype(float)))


def test_scores_out_of_range_are_refused():
    with pytest.raises(ValueError, match="score must lie"):
        BettingTest().update(1.5)
    with pytest.raises(ValueError, match="threshold"):
        BettingTest(threshold=1.0)
