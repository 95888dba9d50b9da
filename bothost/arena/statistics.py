"""Confidence intervals and a sequential test for scores of duplicate deals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

# Two-sided 97.5 % quantiles of Student's t for 1 … 30 degrees of freedom; beyond, the normal one with Cornish-Fisher
# terms is exact to four digits.
_T975 = (
    12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
    2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860,
    2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423,
)  # fmt: skip
_Z975 = 1.959964


def t975(degrees: int) -> float:
    """97.5 % quantile of Student's t distribution, infinite for no degrees of freedom."""
    if degrees < 1:
        return math.inf
    if degrees <= len(_T975):
        return _T975[degrees - 1]
    z = _Z975
    return z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)


def mean_ci95(values: Sequence[float]) -> tuple[float, tuple[float, float] | None]:
    """Mean of independent values and its 95 % confidence interval (Student's t).

    One value has no interval (None); no value raises ValueError.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0:
        raise ValueError("no deals were played")
    mean = float(array.mean())
    if array.size == 1:
        return mean, None
    half = t975(array.size - 1) * float(array.std(ddof=1)) / math.sqrt(array.size)
    return mean, (mean - half, mean + half)


class BettingTest:
    """Sequential test of H0: E[x] <= threshold, for scores x in [0, 1], valid at every moment one cares to look.

    A gambler bets against H0 with a fair (under H0, at best fair) game; the wealth is a non-negative supermartingale,
    so that by Ville's inequality it reaches 1 / alpha with probability at most alpha when H0 holds. The stakes are the
    approximate growth-rate-adaptive ones, computed from earlier scores alone. Source: Waudby-Smith and Ramdas,
    "Estimating means of bounded random variables by betting", JRSS B 86 (2024).
    """

    def __init__(self, threshold: float = 0.5, alpha: float = 0.05) -> None:
        if not 0.0 < threshold < 1.0:
            raise ValueError(f"threshold must lie within (0, 1), not {threshold}")
        if not 0.0 < alpha < 1.0:
            raise ValueError(f"alpha must lie within (0, 1), not {alpha}")
        self.threshold = threshold
        self.alpha = alpha
        self.log_wealth = 0.0
        self.rejected = False
        self._n = 0
        # A prior of one score at the threshold with variance 1/4 keeps the first stakes small.
        self._sum = 0.0
        self._sum_sq = 0.25

    def update(self, score: float) -> bool:
        """Take one more score; True once H0 is rejected (it stays so)."""
        if not 0.0 <= score <= 1.0:
            raise ValueError(f"a score must lie within [0, 1], not {score}")
        gain = score - self.threshold
        mean = self._sum / (self._n + 1)
        stake = mean / (self._sum_sq / (self._n + 1) + mean * mean) if mean > 0 else 0.0
        # Half of the largest stake that cannot lose everything.
        stake = min(stake, 0.5 / self.threshold)
        self.log_wealth += math.log1p(stake * gain)
        self._n += 1
        self._sum += gain
        self._sum_sq += gain * gain
        if self.log_wealth >= -math.log(self.alpha):
            self.rejected = True
        return self.rejected

    def update_all(self, scores: Iterable[float]) -> bool:
        """Take scores in order until H0 is rejected or none is left."""
        return any(self.update(score) for score in scores) or self.rejected

    @property
    def p_value(self) -> float:
        """Anytime-valid p-value at this moment, at most 1."""
        return min(1.0, math.exp(-self.log_wealth))
