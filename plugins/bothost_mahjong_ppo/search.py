"""Search at the table: what likely actions are worth in deals that fit the view.

In each sampled deal rule players play on after each action, for some draws. Then the network of
:func:`bothost.rules.mahjong.luck`, which sees all hands of that deal, values the position. All actions see the same
deals, so that their differences vary little.

Source: rollouts by Tesauro and Galperin, "On-line Policy Improvement using Monte-Carlo Search" (1996).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from bothost.rules import ActionArray, FloatArray, View, mahjong

MOST_ACTIONS = 4
"""Actions that are searched at most, the most probable ones."""
MS_PER_DRAW, MS_PER_BRANCH = 0.2, 0.4
"""Time to reserve for one action in one deal: a part for each draw, and the rest. Several times the usual time."""


class Search(NamedTuple):
    """How a decision is searched."""

    deals: int = 0
    draws: int = 1
    least_probability: float = 0.02
    errors: float = 1.0

    @classmethod
    def logged(cls, stats: Mapping[str, Any]) -> Self:
        """That of a logged decision; none if it was the network's."""
        return cls(*(stats[name] for name in cls._fields)) if "deals" in stats else cls()

    @property
    def stats(self) -> dict[str, Any]:
        """What the log needs to repeat the decision."""
        return self._asdict()

    def places(self, policy: FloatArray) -> npt.NDArray[np.intp]:
        """Places of the actions to search, the most probable first; none if there are fewer than two.

        ``policy``: probabilities of the legal actions.
        """
        if not self.deals:
            return np.array([], np.intp)
        best = np.argsort(-policy, kind="stable")[:MOST_ACTIONS]
        likely = best[policy[best] >= self.least_probability]
        return likely if len(likely) > 1 else likely[:0]

    def ms(self, actions: int) -> float:
        """Time to reserve for so many actions."""
        return self.deals * actions * (MS_PER_BRANCH + MS_PER_DRAW * self.draws)

    def points(self, view: View, actions: ActionArray, seed: int) -> FloatArray:
        """Points (deals, actions) of the viewing seat."""
        seat = view.seat
        return np.stack(
            [
                mahjong.branches(view.sample_state(seed + deal), seat, actions, draws=self.draws)[:, seat]
                for deal in range(self.deals)
            ]
        )

    def best(self, points: FloatArray) -> int:
        """The action that gains most over the first, less so many standard errors of the gain; the first if none."""
        gains = points - points[:, :1]
        error = gains.std(axis=0, ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else np.inf
        surely = gains.mean(axis=0) - self.errors * error
        surely[0] = 0.0
        return int(np.argmax(surely))
