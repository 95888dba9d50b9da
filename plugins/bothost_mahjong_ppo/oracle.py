"""Oracle features for trainers: other hands, the wall and the next tiles, and their dropout.

They come from a ``State``, which live play never has. The shipped network has no input for them.
"""

from __future__ import annotations

import msgspec
import numpy as np

from bothost.rules import FloatArray, Oracle, State

HIDDEN = 5 * 4 * 34
BLOCK = "hidden"


class DropoutOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When the hidden features vanish, as parts of the training."""

    begin: float = 0.4
    """Until then the learner gets all of them."""
    end: float = 0.7
    """From then on it gets none. In between, the share falls linearly."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.begin <= self.end <= 1.0:
            raise ValueError(f"begin and end must ascend within 0 and 1, not {self.begin} … {self.end}")


def share_given(part_done: float, options: DropoutOptions) -> float:
    """The share of hidden features that the learner gets after this part of the training."""
    if part_done >= options.end:
        return 0.0
    if part_done <= options.begin:
        return 1.0
    return (options.end - part_done) / (options.end - options.begin)


def encode_hidden(state: State, seat: int, share: float, rng: np.random.Generator) -> FloatArray:
    """Hidden features (680,). Each is kept with probability ``share``, else 0.

    Source of the dropout: Li et al., "Suphx: Mastering Mahjong with Deep Reinforcement Learning", arXiv:2003.13590.
    """
    if share <= 0.0:
        return np.zeros(HIDDEN, np.float32)
    hidden = Oracle(state, seat).encode(BLOCK).reshape(-1)  # type: ignore[arg-type]  # a native game's state
    return hidden if share >= 1.0 else hidden * (rng.random(HIDDEN) < share)
