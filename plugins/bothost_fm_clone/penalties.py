"""How much each weight of ``pairs`` is held back.

Players differ in what they like, but less in what they go by: many care whether they lead, few whether a hand has a
chain of pairs from 5 to 9. Features whose words differ only in numbers, ranks, tiles and squares form a family. Clones
of other players show how large the weights of a family usually are; the table has their inverse variance.

Source: empirical Bayes estimates of a prior's variance, as in MacKay, "Bayesian interpolation" (1992).
``python -m experiments.fm_clone.penalties`` makes the table.
"""

from __future__ import annotations

import importlib.resources
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Self

import msgspec
import numpy as np
import numpy.typing as npt

from bothost.training.factorization import FloatArray
from bothost_fm_clone.numbers import numbers_of
from bothost_fm_clone.sight import sight

EVEN = 10.0
"""L2 of a step where nothing is known of a family. It is weighed against the second derivative, at most a quarter for
each decision."""
LEAST, MOST = 1.0, 300.0
"""Limits of a penalty."""
ALONE = "alone"
"""Stands for the first part of a feature that is no pair."""
TABLE = "penalties.json"
_COUNT = r"\d+(?:\.\d+)?|an?|no|one|two|three|four|five|six|seven"
_CARD = r"\d+s|(?:jack|queen|king|ace|small joker|big joker)s?"
_TILE = r"(?:east|south|west|north) wind|(?:red|green|white) dragon|# of (?:characters|bamboos|dots)"
Feature = tuple[int, ...]
"""One feature or number of candidates, or an ascending pair whose second is one. Features of positions have the lowest
indices, numbers the highest."""


class Table(msgspec.Struct, forbid_unknown_fields=True):
    """Factors of the penalties of one game, by families. The penalty of a pair is the product of both."""

    first: dict[str, float]
    last: dict[str, float]


def family(name: str) -> str:
    """The family of a feature with this name: its words, with # for what differs within the family."""
    words = re.sub(rf"\b(?:{_COUNT}|{_CARD}|[a-h][1-8])\b", "#", name)
    words = re.sub(rf"\b(?:the )?(?:{_TILE})|#(?: #)+", "#", words)
    words = re.sub(r" from # to #.*", "", words)
    return re.sub(r"\b(card|disc|pair|play|tile)s\b", r"\1", words).replace("replies", "reply")


@cache
def families(game: str) -> tuple[str, ...]:
    """The family of each feature of positions, each of candidates, and each number."""
    known = sight(game)
    return tuple(map(family, (*known.positions, *known.choices, *numbers_of(game))))


@dataclass(frozen=True)
class Penalties:
    """Penalties of all features and pairs of a game."""

    first: FloatArray
    """Factors (features and numbers + 1,); the last is of features that are no pair."""
    last: FloatArray
    """Factors (features and numbers,)."""

    @classmethod
    def of(cls, game: str) -> Self:
        """Those of the table."""
        text = importlib.resources.files("bothost_fm_clone").joinpath(TABLE).read_bytes()
        table = msgspec.json.decode(text, type=dict[str, Table])[game]
        names = families(game)
        return cls(
            np.array([table.first.get(name, np.nan) for name in (*names, ALONE)], np.float32),
            np.array([table.last.get(name, np.nan) for name in names], np.float32),
        )

    @classmethod
    def even(cls, game: str) -> Self:
        """The same for all."""
        count = len(families(game))
        return cls(np.full(count + 1, EVEN, np.float32), np.ones(count, np.float32))

    def between(self, first: npt.NDArray[np.integer], last: npt.NDArray[np.integer]) -> FloatArray:
        """Penalties of all pairs of these features, shape (first, last); -1 as the first is none."""
        found: FloatArray = np.clip(np.outer(self.first[first], self.last[last]), LEAST, MOST)
        return found

    def each(self, features: Sequence[Feature]) -> FloatArray:
        """Penalties of these features, shape (features,)."""
        first = np.array([feature[0] if len(feature) == 2 else -1 for feature in features])
        last = np.array([feature[-1] for feature in features])
        found: FloatArray = np.clip(self.first[first] * self.last[last], LEAST, MOST)
        return found
