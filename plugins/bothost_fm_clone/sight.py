"""The features of a shared clone: those of ``encode``, and those derived from them in ``attributes``.

A position has base features and situations. A candidate has features of its afterstate, its class, the class's
properties, and its relations to the other candidates.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from bothost.training.factorization import Samples, SparseRows
from bothost_fm_clone import attributes, mahjong
from bothost_fm_clone.encode import encoding
from bothost_fm_clone.samples import Decisions
from bothost_fm_clone.words import counted, move_words

REVISION = 3
"""Of the features. 1 added what the rest of a hand of Dou Dizhu is worth, 2 judgements of moves at Othello, 3 those
where a part counts twice as much, the rule player's judgement at Dou Dizhu, and finer numbers at mahjong."""


@dataclass(frozen=True)
class Sight:
    """The features of one game, each with a name."""

    game: str
    positions: tuple[str, ...]
    """Names of a position's features."""
    choices: tuple[str, ...]
    """Names of a candidate's features."""
    revision: int

    def seen(self, samples: Samples) -> Samples:
        """Extend samples of base features and afterstates to all features."""
        if self.game == "mahjong":
            return _mahjong_seen(samples, self.revision)
        if self.game == "othello":
            return Samples.joined([_othello_seen(part, self.revision) for part in samples.parts()])
        return Samples.joined([_doudizhu_seen(part, self.revision) for part in samples.parts()])

    def of(self, some: Decisions) -> Decisions:
        """Decisions with all features, from those with base features."""
        return replace(some, samples=self.seen(some.samples))


@cache
def sight(game: str, revision: int = REVISION) -> Sight:
    """The features of a game, by default the newest. Raises ModelError if there are none.

    Those that a revision added come last.
    """
    own = encoding(game)
    if game == "mahjong":
        return Sight(game, own.features, mahjong.EVERY if revision >= 3 else mahjong.CHOICES, revision)
    if game == "doudizhu":
        words = attributes.doudizhu_classes()[0]
        situations, relations = attributes.DOUDIZHU_SITUATIONS, (*words, *attributes.DOUDIZHU_RELATIONS)
        relations += attributes.DOUDIZHU_VALUES * (revision >= 1)
        relations += attributes.DOUDIZHU_JUDGEMENTS * (revision >= 3)
        moves = tuple(f"plays {move_words(move)}" for move in own.classes)
    else:
        situations = attributes.OTHELLO_SITUATIONS
        moves = (*(f"plays {square}" for square in own.classes[:-1]), "passes")
        relations = (
            *attributes.OTHELLO_RELATIONS,
            *attributes.ORBITS,
            *(f"turns {counted(n, 'disc')}" for n in range(attributes.MOST_TURNED + 1)),
            *(f"has {counted(n, 'disc')} beside empty squares" for n in range(attributes.MOST_OPEN + 1)),
        )
        relations += attributes.OTHELLO_JUDGEMENTS * (revision >= 2)
        relations += attributes.OTHELLO_JUDGED_TWICE * (revision >= 3)
    return Sight(game, own.features + situations, own.leaves + moves + relations, revision)


def _mahjong_seen(samples: Samples, revision: int) -> Samples:
    rows = samples.alternatives
    assert rows is not None
    if revision >= 3:
        return samples
    kept = rows.items < len(mahjong.CHOICES)
    return replace(samples, alternatives=SparseRows.of_items(len(rows), rows.row_of[kept], rows.items[kept]))


def _doudizhu_seen(samples: Samples, revision: int) -> Samples:
    own = encoding("doudizhu")
    legal, leaves = samples.legal, samples.alternatives
    assert leaves is not None
    known = samples.features.flags(len(own.features))
    words, table, _, _ = attributes.doudizhu_classes()
    begin = len(own.leaves)
    numbers = np.column_stack([legal.items, np.where(table >= 0, table + len(own.classes), -1)[legal.items]])
    relations = attributes.doudizhu_relations(known, legal, leaves)
    choices = attributes.appended(leaves, begin, numbers >= 0, numbers)
    begin += len(own.classes) + len(words)
    choices = attributes.appended(choices, begin, relations)
    if revision >= 1:
        values = attributes.doudizhu_values(leaves)[:, None]
        begin += len(attributes.DOUDIZHU_RELATIONS)
        choices = attributes.appended(choices, begin, values >= 0, values)
    if revision >= 3:
        behind, certain = attributes.doudizhu_judgements(samples)
        begin += len(attributes.DOUDIZHU_VALUES)
        choices = attributes.appended(choices, begin, behind[:, None] >= 0, behind[:, None])
        choices = attributes.appended(choices, begin + len(attributes.POINTS_BEHIND), certain[:, None])
    positions = attributes.appended(samples.features, len(own.features), attributes.doudizhu_situations(known))
    return Samples(positions, legal, samples.labels, choices)


def _othello_seen(samples: Samples, revision: int) -> Samples:
    own = encoding("othello")
    legal, leaves = samples.legal, samples.alternatives
    assert leaves is not None
    known = samples.features.flags(len(own.features))
    relations, turned, open_ = attributes.othello_relations(known, legal, leaves)
    # From these numbers on, after those of the leaves and the classes:
    of_relations = len(own.classes)
    of_kinds = of_relations + len(attributes.OTHELLO_RELATIONS)
    of_turned = of_kinds + len(attributes.ORBITS)
    of_open = of_turned + attributes.MOST_TURNED + 1
    numbers = np.column_stack(
        [
            legal.items,
            own.groups[legal.items] + of_kinds,
            np.clip(turned, 0, attributes.MOST_TURNED) + of_turned,
            np.clip(open_, 0, attributes.MOST_OPEN) + of_open,
        ]
    )
    choices = attributes.appended(leaves, len(own.leaves), numbers >= 0, numbers)
    choices = attributes.appended(choices, len(own.leaves) + of_relations, relations)
    if revision >= 2:
        ways = [*attributes.JUDGED.values(), *(attributes.JUDGED_TWICE.values() if revision >= 3 else ())]
        judged = attributes.othello_judgements(samples, ways)
        of_judged = len(own.leaves) + of_open + attributes.MOST_OPEN + 1
        choices = attributes.appended(choices, of_judged, judged >= 0, judged)
    positions = attributes.appended(samples.features, len(own.features), attributes.othello_situations(known))
    return Samples(positions, legal, samples.labels, choices)
