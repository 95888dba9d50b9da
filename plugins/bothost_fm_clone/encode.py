"""The inputs and classes of a clone: named binary features of a view, as indices, and the classes of moves.

**Dou Dizhu**: the native block ``move_types``, 1,082 features. The 309 classes are the pass and the 308 abstract moves,
which ignore the identity of kickers (3334 is 333K).

============ ===== =======================================================================================
features     count name
============ ===== =======================================================================================
0 - 307      308   ``holds 333*``: the own hand can make this move
308          1     ``leads``: there is nothing to beat
309 - 616    308   ``to beat 77``
617, 618     2     ``to beat the next player``, ``to beat the previous player``
619 - 926    308   ``unseen 2222``: cards neither in the own hand nor played can make this move
927 - 946    20    ``next has 3 cards``
947 - 966    20    ``previous has 3 cards``
967 - 969    3     ``is landlord``, ``is next after the landlord``, ``is before the landlord``
970 - 1025   56    the smallest move on which the next player passed: ``next passed on K`` (15), the same with one
                   card left (15), ``next passed on 99 with two cards`` (13), ``… 999 with three cards`` (13)
1026 - 1081  56    the same for the previous player
============ ===== =======================================================================================

**Othello**: the native block ``squares``, 192 features: ``own d3``, ``enemy d3``, ``empty d3`` for each of the 64
squares. The classes are the 64 squares and the pass.

In addition to these features of the position, each legal class has features of its **afterstate**, as the mover would
see it. They are inputs of the last layer only, with weights that all classes share. They are optional; the source does
not have them.

============ ===== =======================================================================================
Dou Dizhu    count name
============ ===== =======================================================================================
0 - 307      308   ``leaves 333*``: the rest of the hand can make this move (``complete`` chooses the kickers)
308 - 328    21    ``leaves 4 cards``
329 - 344    16    ``leaves 2 plays``: the fewest plays that empty the rest
345          1     ``is highest``: no other player can hold a higher move of the same kind and length
============ ===== =======================================================================================

Othello: ``leaves own d3`` … for the 64 squares after the move, and ``leaves 5 replies``, 0 to 24.

Live play and training call the same functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from bothost import ModelError
from bothost.rules import ActionArray, Game, View, doudizhu, othello
from bothost.training.factorization import IntArray, Samples, SparseRows
from bothost_fm_clone import mahjong

VERSION = 1
"""Version of this encoding."""
BLOCKS = {"doudizhu": ("move_types", 1), "othello": ("squares", 1), "mahjong": ("prospect", 1)}
"""For each game the block of its features, and the block's version."""


@dataclass(frozen=True)
class Encoding:
    """The encoding of one game's decisions."""

    game: str
    features: tuple[str, ...]
    """Names of the features."""
    classes: tuple[str, ...]
    """Names of the classes."""
    groups: IntArray
    """int32, shape (classes,): the kind of move of each class, from 0."""
    class_of: IntArray
    """int32, shape (actions,): the class of each action; -1 if there is none."""
    leaves: tuple[str, ...]
    """Names of the features of an afterstate."""

    def encode(self, view: View) -> IntArray:
        """Indices of the features that are set, ascending."""
        if self.game == "mahjong":
            return mahjong.position(view)
        found: IntArray = np.flatnonzero(view.encode(BLOCKS[self.game][0])).astype(np.int32)
        return found

    def choices(self, view: View, legal: ActionArray) -> IntArray:
        """The legal classes of this position, ascending; empty for decisions that are not moves (bids)."""
        if not self.decides(view):
            return np.zeros(0, np.int32)
        found = np.unique(self.class_of[legal])
        known: IntArray = found[found >= 0]
        return known

    def afterstates(self, features: SparseRows, legal: SparseRows) -> SparseRows:
        """Features of the afterstates of the legal classes, a row for each of ``legal.items``."""
        native = doudizhu.afterstates if self.game == "doudizhu" else othello.afterstates
        return SparseRows(*native((features.offsets, features.items), (legal.offsets, legal.items)))

    def one(self, view: View, choices: IntArray) -> Samples:
        """A position as a single sample. Its label is the first of ``choices``, which must not be empty."""
        features, legal = SparseRows.of([self.encode(view)]), SparseRows.of([choices])
        return Samples(features, legal, choices[:1], self.candidates(features, legal, [self.own(view, choices)]))

    def own(self, view: View, choices: IntArray) -> list[IntArray]:
        """For each choice, the features that need the view; empty if they follow from the base features."""
        return mahjong.candidates(view, choices) if self.game == "mahjong" else []

    def candidates(self, features: SparseRows, legal: SparseRows, own: Sequence[list[IntArray]]) -> SparseRows:
        """Features of each of ``legal.items``. ``own``: for each position, the result of :meth:`own`."""
        if self.game == "mahjong":
            return SparseRows.of([row for rows in own for row in rows])
        return self.afterstates(features, legal)

    def decides(self, view: View) -> bool:
        """Whether a clone decides in this view. It does not bid."""
        return self.game != "doudizhu" or view.phase == "play"

    def actions(self, legal: ActionArray, chosen: int) -> ActionArray:
        """Legal actions of a class."""
        found: ActionArray = legal[self.class_of[legal] == chosen]
        return found


def supports(game: Game) -> bool:
    """Whether the game has the block in the supported version."""
    if game.name not in BLOCKS:
        return False
    name, version = BLOCKS[game.name]
    return game.blocks[name].version == version


@cache
def encoding(game: str) -> Encoding:
    """The encoding of a game. Raises ModelError if there is none."""
    if game == "doudizhu":
        return _doudizhu()
    if game == "othello":
        return _othello()
    if game == "mahjong":
        classes = mahjong.classes()
        every = np.arange(len(classes), dtype=np.int32)
        return Encoding(game, mahjong.POSITIONS, classes, np.zeros(len(classes), np.int32), every, mahjong.CHOICES)
    raise ModelError(f"fm-clone does not play {game}", advice=f"it plays {' and '.join(BLOCKS)}")


def _doudizhu() -> Encoding:
    moves = doudizhu.abstract_names()
    class_of = doudizhu.abstract_map().astype(np.int32)
    first = np.array([int(np.argmax(class_of == index)) for index in range(len(moves))])
    kinds = [doudizhu.move(action).kind for action in first]
    order = list(dict.fromkeys(kinds))
    features = [f"holds {move}" for move in moves[1:]]
    features += ["leads", *(f"to beat {move}" for move in moves[1:])]
    features += ["to beat the next player", "to beat the previous player"]
    features += [f"unseen {move}" for move in moves[1:]]
    features += [f"{who} has {n} card{'s' * (n > 1)}" for who in ("next", "previous") for n in range(1, 21)]
    features += ["is landlord", "is next after the landlord", "is before the landlord"]
    for who in ("next", "previous"):
        features += [f"{who} passed on {move}" for move in _ranks(1, 15)]
        features += [f"{who} passed on {move} with one card" for move in _ranks(1, 15)]
        features += [f"{who} passed on {move} with two cards" for move in _ranks(2, 13)]
        features += [f"{who} passed on {move} with three cards" for move in _ranks(3, 13)]
    groups = np.array([order.index(kind) for kind in kinds], np.int32)
    leaves = [f"leaves {move}" for move in moves[1:]]
    leaves += [f"leaves {n} card{'s' * (n != 1)}" for n in range(21)]
    leaves += [f"leaves {n} play{'s' * (n != 1)}" for n in range(16)]
    return Encoding("doudizhu", tuple(features), tuple(moves), groups, class_of, (*leaves, "is highest"))


def _ranks(copies: int, count: int) -> Sequence[str]:
    return [rank * copies for rank in doudizhu.RANKS[:count]]


def _othello() -> Encoding:
    squares = [f"{column}{row}" for row in range(1, 9) for column in "abcdefgh"]
    features = [f"{what} {square}" for square in squares for what in ("own", "enemy", "empty")]
    # Squares that are equal up to rotation and reflection of the board are one kind.
    orbits = [tuple(sorted(min(x, 7 - x) for x in divmod(square, 8))) for square in range(64)]
    order = sorted(set(orbits))
    groups = np.array([*(order.index(orbit) for orbit in orbits), len(order)], np.int32)
    leaves = [f"leaves {name}" for name in features] + [f"leaves {n} repl{'ies' if n != 1 else 'y'}" for n in range(25)]
    return Encoding(
        "othello", tuple(features), (*squares, "pass"), groups, np.arange(65, dtype=np.int32), tuple(leaves)
    )


def complete(view: View, actions: ActionArray) -> int:
    """Choose one of several actions of a class, that is, the kickers.

    The rule keeps the rest of the hand with the highest ``bothost.rules.doudizhu.hand_value``, the first among equals.
    A player's own choice of kickers is not cloned.
    """
    if len(actions) == 1:
        return int(actions[0])
    hand = view.to_json()["hand"]
    return max((int(action) for action in actions), key=lambda action: (_rest_value(hand, action), -action))


def _rest_value(hand: str, action: int) -> float:
    rest = hand
    for card in doudizhu.move(action).cards:
        rest = rest.replace(card, "", 1)
    return doudizhu.hand_value(rest) if rest else 0.0
