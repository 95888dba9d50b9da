"""The inputs and classes of a clone: named binary features of a view, as indices, and the classes of moves.

A feature's name says in words what is so, as reasons show it. If it is about the player, it is a clause without
subject: "holds three 3s with a card".

**Dou Dizhu**: the native block ``move_types``, 1,082 features. The 309 classes are the pass and the 308 abstract moves,
which ignore the identity of kickers (3334 is 333K).

============ ===== =======================================================================================
features     count what
============ ===== =======================================================================================
0 - 307      308   the own hand can make this move
308          1     there is nothing to beat
309 - 616    308   the move to beat
617, 618     2     whether it is the next player's, the previous player's
619 - 926    308   cards neither in the own hand nor played can make this move
927 - 946    20    the next player's cards
947 - 966    20    the previous player's cards
967 - 969    3     the seat: the landlord, right after, right before
970 - 1025   56    the smallest move on which the next player passed: a single card (15), the same with one card
                   left (15), a pair with two cards left (13), a trio with three cards left (13)
1026 - 1081  56    the same for the previous player
============ ===== =======================================================================================

**Othello**: the native block ``squares``, 192 features: for each of the 64 squares whether it is own, the opponent's,
or empty. The classes are the 64 squares and the pass.

In addition to these features of the position, each legal class has features of its **afterstate**, as the mover would
see it. They are inputs of the last layer only, with weights that all classes share. They are optional; the source does
not have them.

============ ===== =======================================================================================
Dou Dizhu    count what
============ ===== =======================================================================================
0 - 307      308   the rest of the hand can make this move (``complete`` chooses the kickers)
308 - 328    21    the cards that are left
329 - 344    16    the fewest plays that empty the rest
345          1     no other player can hold a higher move of the same kind and length
============ ===== =======================================================================================

Othello: the 64 squares after the move, and the opponent's number of replies, 0 to 24.

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
from bothost_fm_clone.words import counted, move_words

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
        return Encoding(game, mahjong.POSITIONS, classes, np.zeros(len(classes), np.int32), every, mahjong.EVERY)
    raise ModelError(f"fm-clone does not play {game}", advice=f"it plays {' and '.join(BLOCKS)}")


def _doudizhu() -> Encoding:
    moves = doudizhu.abstract_names()
    class_of = doudizhu.abstract_map().astype(np.int32)
    first = np.array([int(np.argmax(class_of == index)) for index in range(len(moves))])
    kinds = [doudizhu.move(action).kind for action in first]
    order = list(dict.fromkeys(kinds))
    words = [move_words(move) for move in moves[1:]]
    others = ("the next player", "the previous player")
    features = [f"holds {move}" for move in words]
    features += ["leads freely", *(f"has to beat {move}" for move in words)]
    features += [f"the move to beat is {who}'s" for who in others]
    features += [f"an enemy may still hold {move}" for move in words]
    features += [f"{who} has {counted(n, 'card')} left" for who in others for n in range(1, 21)]
    features += ["is the landlord", "plays right after the landlord", "plays right before the landlord"]
    for who in others:
        features += [f"{who} passed on {move}" for move in _ranks(1, 15)]
        features += [f"{who} passed on {move} while holding one card" for move in _ranks(1, 15)]
        features += [f"{who} passed on {move} while holding two cards" for move in _ranks(2, 13)]
        features += [f"{who} passed on {move} while holding three cards" for move in _ranks(3, 13)]
    groups = np.array([order.index(kind) for kind in kinds], np.int32)
    leaves = [f"keeps {move}" for move in words]
    leaves += ["goes out", *(f"keeps {counted(n, 'card')}" for n in range(1, 21))]
    leaves += ["needs no further play", *(f"keeps {counted(n, 'play')}" for n in range(1, 16))]
    leaves.append("no other player can hold a higher move of its kind")
    return Encoding("doudizhu", tuple(features), tuple(moves), groups, class_of, tuple(leaves))


def _ranks(copies: int, count: int) -> Sequence[str]:
    return [move_words(rank * copies) for rank in doudizhu.RANKS[:count]]


def _othello() -> Encoding:
    squares = [f"{column}{row}" for row in range(1, 9) for column in "abcdefgh"]
    features = [
        name for square in squares for name in (f"holds {square}", f"the opponent holds {square}", f"{square} is empty")
    ]
    # Squares that are equal up to rotation and reflection of the board are one kind.
    orbits = [tuple(sorted(min(x, 7 - x) for x in divmod(square, 8))) for square in range(64)]
    order = sorted(set(orbits))
    groups = np.array([*(order.index(orbit) for orbit in orbits), len(order)], np.int32)
    leaves = [f"after it, {name}" for name in features]
    leaves += [f"leaves the opponent {n} repl{'ies' if n != 1 else 'y'}" for n in range(25)]
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
