"""A sequential test: valid when it is checked after every observation and stopped at any time."""

from __future__ import annotations

import math


class BettingTest:
    """Anytime-valid test of H0: E[x] <= threshold, for scores x in [0, 1].

    A gambler bets against H0. Under H0 the wealth is a non-negative supermartingale, so by Ville's inequality it
    reaches 1 / alpha with probability at most alpha. The stakes are approximately growth-rate adaptive (aGRAPA) and
    depend only on earlier scores. Source: Waudby-Smith and Ramdas,
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
        # The prior, one score at the threshold with variance 1/4, keeps the first stakes small.
        self._sum = 0.0
        self._sum_sq = 0.25

    def update(self, score: float) -> bool:
        """Add a score. Returns True once H0 is rejected, and from then on. Raises ValueError outside [0, 1]."""
        if not 0.0 <= score <= 1.0:
            raise ValueError(f"a score must lie within [0, 1], not {score}")
        gain = score - self.threshold
        mean = self._sum / (self._n + 1)
        stake = mean / (self._sum_sq / (self._n + 1) + mean * mean) if mean > 0 else 0.0
        # At most half of the stake that could lose everything.
        stake = min(stake, 0.5 / self.threshold)
        self.log_wealth += math.log1p(stake * gain)
        self._n += 1
        self._sum += gain
        self._sum_sq += gain * gain
        if self.log_wealth >= -math.log(self.alpha):
            self.rejected = True
        return self.rejected

    @property
    def p_value(self) -> float:
        """Anytime-valid p-value of the scores so far, at most 1."""
        return min(1.0, math.exp(-self.log_wealth))
