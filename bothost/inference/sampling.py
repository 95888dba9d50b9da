"""Mask legal actions, and draw actions from a policy.

The same seed and view give the same action, so a replay repeats logged decisions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from bothost.rules.game import ActionArray, FloatArray, View


def legal_masks(legal: Sequence[ActionArray], actions: int) -> npt.NDArray[np.bool_]:
    """bool, shape (n, actions): which of a game's actions are legal in each of n positions."""
    out = np.zeros((len(legal), actions), np.bool_)
    for row, ids in zip(out, legal, strict=True):
        row[ids] = True
    return out


def choose(policy: FloatArray, temperature: float, seed: int, view: View) -> int:
    """Index of an action. Temperature 0 takes the most probable one; above, ``draw`` uses policy^(1 / temperature).

    ``policy`` (n,): probabilities or numbers proportional to them, finite, not negative, not all 0.
    """
    if temperature == 0.0:
        return int(policy.argmax())
    return draw((policy / policy.max()).astype(np.float64) ** (1.0 / temperature), seed, view)


def draw(weights: npt.NDArray[np.float64], seed: int, view: View) -> int:
    """Index of an action, drawn in proportion to ``weights`` (n,): not negative, not all 0.

    The result depends only on the table's ``seed`` and the view.
    """
    rng = np.random.default_rng([seed % 2**64, view.seq, view.hash() % 2**64])
    return int(rng.choice(len(weights), p=weights / weights.sum()))
