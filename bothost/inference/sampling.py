"""Actions drawn by a policy, so that a logged decision is drawn again when it is replayed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bothost.rules.game import FloatArray, View


def choose(policy: FloatArray, temperature: float, seed: int, view: View) -> int:
    """Index of an action: at temperature 0 the most probable one, above it one drawn by ``policy`` to the power
    1 / temperature; see ``draw``.

    ``policy`` (n,) of probabilities, or of what is proportional to them: finite, not negative, not all 0.
    """
    if temperature == 0.0:
        return int(policy.argmax())
    return draw((policy / policy.max()).astype(np.float64) ** (1.0 / temperature), seed, view)


def draw(weights: npt.NDArray[np.float64], seed: int, view: View) -> int:
    """Index of an action, drawn in proportion to ``weights`` (n,), float64, not negative, not all 0.

    What is drawn depends on the table's ``seed`` and the view alone.
    """
    rng = np.random.default_rng([seed % 2**64, view.seq, view.hash() % 2**64])
    return int(rng.choice(len(weights), p=weights / weights.sum()))
