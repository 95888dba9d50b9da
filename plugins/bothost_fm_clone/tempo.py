"""The tempo of a cloned player: how long they think, as quantiles in a file beside the model."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from bothost import ModelError
from bothost.rules import View

FILE = "tempo.json"
NEEDED = 30
"""Times of which a tempo is made."""
QUANTILES = 21
MOST_MS = 300_000.0


class Tempo(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Evenly spaced quantiles of a player's thinking times in milliseconds, from the shortest to the longest."""

    quantiles_ms: tuple[float, ...]

    def __post_init__(self) -> None:
        times = self.quantiles_ms
        ordered = all(0.0 <= a <= b <= MOST_MS for a, b in itertools.pairwise(times))
        if not 2 <= len(times) <= 1001 or not ordered:
            raise ValueError("the quantiles of a tempo must ascend, from 0 to 300,000 ms")

    @classmethod
    def of(cls, times_ms: Sequence[float]) -> Tempo:
        """The tempo of a player who took these times."""
        quantiles = np.quantile(np.clip(times_ms, 0.0, MOST_MS), np.linspace(0.0, 1.0, QUANTILES))
        return cls(tuple(round(float(each), 1) for each in quantiles))

    def wait_ms(self, seed: int, view: View) -> float:
        """A time drawn at this position. Equal seeds give equal times."""
        drawn = np.random.default_rng([seed % 2**63, view.hash() % 2**63]).random()
        places = np.linspace(0.0, 1.0, len(self.quantiles_ms))
        return float(np.interp(drawn, places, self.quantiles_ms))

    def save(self, folder: Path) -> None:
        (folder / FILE).write_bytes(msgspec.json.encode(self))


def load(folder: Path) -> Tempo | None:
    """The tempo beside a model; None where there is none. Raises ModelError where the file is damaged."""
    path = folder / FILE
    if not path.exists():
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=Tempo)
    except (OSError, msgspec.DecodeError) as error:
        raise ModelError(f"{path} is no tempo: {error}", advice="train the clone again") from error
