"""Symmetries: other names for squares, under which a game's rules are the same.

Othello has eight, the rotations and reflections of the board; Dou Dizhu has none. In mahjong the suits are alike, but
an average over their six permutations predicts no better (+0.2 ± 0.2 points at 20 games). A clone that averages over
symmetries needs fewer games. It cannot learn that a player likes one side of the board.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product

import numpy as np

from bothost.training.factorization import IntArray, OffsetArray, Samples, SparseRows
from bothost_fm_clone.encode import encoding
from bothost_fm_clone.sight import sight


@dataclass(frozen=True)
class Symmetry:
    """New indices, each int32: feature i becomes feature ``positions[i]``."""

    positions: IntArray
    """Features of positions."""
    choices: IntArray
    """Features of candidates."""
    classes: IntArray

    @cached_property
    def inputs(self) -> IntArray:
        """Features of positions, then of candidates, counted on."""
        return np.concatenate([self.positions, self.choices + len(self.positions)])

    @cached_property
    def back(self) -> IntArray:
        """The inverse of ``inputs``."""
        return np.argsort(self.inputs).astype(np.int32)


@cache
def symmetries(game: str) -> tuple[Symmetry, ...]:
    """All symmetries of a game. The first changes nothing."""
    renamings = _boards() if game == "othello" else [str]
    known = sight(game)
    named = (known.positions, known.choices, encoding(game).classes)
    return tuple(Symmetry(*(_indices(names, rename) for names in named)) for rename in renamings)


def renamed(samples: Samples, known: Sequence[Symmetry]) -> tuple[Samples, OffsetArray]:
    """The decisions under each of these symmetries, one symmetry after another.

    Also returns where each of ``samples.legal.items`` is then: int64, shape (symmetries, items). ``samples``: of base
    features or of all.
    """
    own = samples.alternatives
    assert own is not None
    names = ((each.positions, each.choices, each.classes) for each in known)
    positions, choices, classes = (np.stack(each) for each in zip(*names, strict=True))
    legal, count = samples.legal, len(samples.legal.items)
    order = np.lexsort((classes[:, legal.items].ravel(), _repeated(legal, len(known))))
    made = Samples(
        _under(positions, samples.features),
        _under(classes, legal),
        classes[:, samples.labels].ravel(),
        _under(choices, own).take(order),
    )
    return made, np.argsort(order).reshape(len(known), count) - count * np.arange(len(known))[:, None]


def shuffled(samples: Samples, known: Sequence[Symmetry], rng: np.random.Generator) -> Samples:
    """The decisions in their order, each with a random one of these symmetries."""
    if len(known) == 1:
        return samples
    drawn = rng.integers(len(known), size=len(samples))
    parts = [renamed(samples.take(np.flatnonzero(drawn == n)), [symmetry])[0] for n, symmetry in enumerate(known)]
    return Samples.joined(parts).take(np.argsort(np.argsort(drawn, kind="stable")))


def _under(names: IntArray, rows: SparseRows) -> SparseRows:
    """Rows whose indices are renamed by each of ``names`` (symmetries, indices), one after another."""
    return SparseRows.of_items(len(rows) * len(names), _repeated(rows, len(names)), names[:, rows.items].ravel())


def _repeated(rows: SparseRows, count: int) -> OffsetArray:
    """The row of each item where the rows stand ``count`` times."""
    found: OffsetArray = (rows.row_of + len(rows) * np.arange(count)[:, None]).ravel()
    return found


def _indices(names: Sequence[str], rename: Callable[[str], str]) -> IntArray:
    at = {name: index for index, name in enumerate(names)}
    return np.array([at[rename(name)] for name in names], np.int32)


def _boards() -> list[Callable[[str], str]]:
    """Rotations and reflections: any of mirrored columns, mirrored rows, and rows in place of columns."""

    def moved(across: bool, down: bool, exchange: bool) -> Callable[[str], str]:
        def square(found: re.Match[str]) -> str:
            column, row = "abcdefgh".index(found[1]), int(found[2]) - 1
            if exchange:
                column, row = row, column
            return f"{'abcdefgh'[7 - column if across else column]}{8 - row if down else row + 1}"

        return lambda name: re.sub(r"\b([a-h])([1-8])\b", square, name)

    return [moved(*flips) for flips in product((False, True), repeat=3)]
