"""A sequential test: one that may be looked at after every observation, and stopped at any."""

from __future__ import annotations

import math
from collections.abc import Iterable


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
