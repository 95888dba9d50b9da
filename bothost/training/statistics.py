"""Confidence intervals of few values, for matches and measurements."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

# Two-sided 97.5 % quantiles of Student's t for 1 … 30 degrees of freedom; beyond, the normal one with Cornish-Fisher
# terms is exact to four digits.
_T975 = (
    12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
    2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860,
    2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423,
)  # fmt: skip
_Z975 = 1.959964
EQUAL = 1e-12
"""Values that differ by less are equal, but for rounding."""


def t975(degrees: int) -> float:
    """97.5 % quantile of Student's t distribution, infinite for no degrees of freedom."""
    if degrees < 1:
        return math.inf
    if degrees <= len(_T975):
        return _T975[degrees - 1]
    z = _Z975
    return z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)


def mean_half95(values: Sequence[float]) -> tuple[float, float]:
    """Mean of independent values and half the width of its 95 % confidence interval (Student's t).

    Of one value, and of values that are all equal, the latter is not known (NaN). No value raises ValueError.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0:
        raise ValueError("no values")
    if array.max() - array.min() <= EQUAL:
        return float(array.mean()), math.nan
    return float(array.mean()), t975(array.size - 1) * float(array.std(ddof=1)) / math.sqrt(array.size)


def mean_ci95(values: Sequence[float]) -> tuple[float, tuple[float, float] | None]:
    """As ``mean_half95``, with the ends of the interval; None where it is not known."""
    mean, half = mean_half95(values)
    return mean, (mean - half, mean + half) if math.isfinite(half) else None


def share_half95(values: Sequence[float]) -> tuple[float, float]:
    """As ``mean_half95``, of shares from 0 to 1. If all of several are equal, their interval is known, too.

    Of n equal shares m, other shares may be as frequent as f, where (1 - f) to the power of n is 2.5 %. They would lie
    from 0 to 1 and move the mean by at most f times the distance of m to 0 or 1.
    """
    mean, half = mean_half95(values)
    if math.isnan(half) and len(values) > 1:
        half = (1.0 - 0.025 ** (1.0 / len(values))) * max(mean, 1.0 - mean)
    return mean, half


def share_ci95(values: Sequence[float]) -> tuple[float, tuple[float, float] | None]:
    """As ``share_half95``, with the ends of the interval, which lie from 0 to 1; one value has none (None)."""
    mean, half = share_half95(values)
    return mean, share_ends(mean, half) if len(values) > 1 else None


def share_ends(mean: float, half: float) -> tuple[float, float]:
    """The ends of the interval of a share: they lie from 0 to 1."""
    return max(0.0, mean - half), min(1.0, mean + half)
