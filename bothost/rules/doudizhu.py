"""Dou Dizhu beyond the common contract: its moves one by one, abstract moves, and hand analysis.

Presets of ``game("doudizhu", preset=…)``; other options may be given as well:

- ``rlcard`` (default): RLCard's 27,472 actions. No bidding, seat 0 is the landlord. Points double with every bomb and
  rocket, and for spring and anti-spring. The landlord's stake is double.
- ``bidding``: the same plays after calling 1-2-3. Each seat calls once, the first seat is drawn; if all pass, the hand
  is void.
- ``douzero``: DouZero's generator. Any cards outside the body may be kickers, also a rocket or a bomb; no spring.
- ``mailgyc``: mailgyc/doudizhu: kickers of distinct ranks, a rocket too; call and grab; base 150, spring x 3. Its bonus
  for the bottom cards depends on suits and is not modelled.
- ``botzone``, ``botzone-bid``: FightTheLandlord without and with bidding: kickers of distinct ranks, a rocket too, and
  space shuttles (consecutive fours, alone or with two solos or two pairs each).

Options: ``same_rank_kickers``, ``rocket_kickers``, ``bomb_kickers``, ``neighbour_kickers``, ``shuttles`` (bool),
``bidding`` (none, score, grab), ``all_pass`` (void, first), ``first`` (zero, random), ``scoring`` (points, win_loss),
``base``, ``bomb_factor``, ``spring_factor`` (int), ``landlord_double`` (bool).

Cards are text over the ranks ``3456789TJQKA2BR`` (B and R are the small and the big joker) in any order; actions are
ids of the game ``doudizhu``. An id stands for the same move under all rules.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import SupportsIndex

import numpy as np
import numpy.typing as npt

from bothost.native import _native, native_state, native_view
from bothost.rules.game import FloatArray, Rows, State, View

RANKS = "3456789TJQKA2BR"
NUM_RLCARD_ACTIONS = 27472
"""Ids below this are RLCard's action set, 0 is the pass."""
NUM_ABSTRACT_ACTIONS = 309
"""Plays without the identity of their kickers (3334 = 333K), and 0 for the pass."""

NEEDS = ("same_rank_kickers", "rocket_kickers", "bomb_kickers", "neighbour_kickers", "shuttles")
"""Rules options that some moves need."""


@dataclass(frozen=True)
class Move:
    """What an action id stands for."""

    action: int
    cards: str
    """All cards, ascending; empty for the pass and for calls."""
    body: str
    """The cards that decide which play beats which; the others are kickers."""
    kind: str
    """pass, solo, pair, trio, trio_solo, trio_pair, solo_chain, pair_chain, trio_chain, plane_solo, plane_pair,
    quad_solo, quad_pair, bomb, rocket, shuttle, shuttle_solo, shuttle_pair or call."""
    rank: int
    """Lowest rank of the body, an index into RANKS."""
    length: int
    """Consecutive ranks of the body."""
    needs: tuple[str, ...]
    """Rules options without which the move does not exist."""


def move(action: SupportsIndex) -> Move:
    """The move with this id. Raises ValueError."""
    cards, body, kind, rank, length, needs = _native.doudizhu_move(action)
    needed = tuple(name for i, name in enumerate(NEEDS) if needs >> i & 1)
    return Move(int(action), cards, body, kind, rank, length, needed)


def readings(cards: str) -> list[int]:
    """Actions that play exactly these cards, the canonical one first. There are several only with wide kicker rules."""
    return _native.doudizhu_readings(cards)


def kind_of(cards: str) -> str | None:
    """Kind of the play that these cards make; None if they make no play."""
    found = readings(cards)
    return move(found[0]).kind if found else None


@cache
def abstract_map() -> npt.NDArray[np.int16]:
    """Shape (num_actions of the widest rules,): the abstract move of each action id, 0 … 308.

    -1 for space shuttles and calls, which have none.
    """
    out = _native.doudizhu_abstract_map()
    out.flags.writeable = False
    return out


@cache
def abstract_names() -> tuple[str, ...]:
    """Notation of the 309 abstract moves; a kicker is ``*``, a pair of kickers ``**``: ``333*``, ``333444****``."""
    return tuple(_native.doudizhu_abstract_names())


NUM_AFTERSTATE_FEATURES = 346
"""Features of ``afterstates``: the abstract moves 1 … 308 of the rest. Cards left, 0 … 20. Plays that empty the rest,
0 … 15. Whether no other seat can hold a higher move of the same kind and length, except bombs."""


def afterstates(features: Rows, moves: Rows) -> Rows:
    """Features of the hands that abstract moves leave, a row for each move of each position.

    ``features``: for each position, the set features of the block ``move_types``. ``moves``: for each position,
    abstract moves 0 … 308. The kickers are those whose loss leaves the highest ``hand_value``. Raises ValueError for
    invalid rows.
    """
    return _native.doudizhu_afterstates(features, moves)


def judgements(features: Rows, moves: Rows) -> npt.NDArray[np.float32]:
    """How much the native rule player likes abstract moves, in points (see ``hand_value``), by the default rules.

    ``features`` and ``moves`` are those of ``afterstates``, and so are the kickers. float32, shape (moves,), one
    position's moves after another. A play that empties the hand is worth ``LAST_PLAY``. If no enemy can beat a play,
    and the rest of the hand is one play, it is worth ``CERTAIN_WIN`` more. Moves that the hand cannot make by the
    default rules get the least. Raises ValueError for invalid rows.
    """
    return _native.doudizhu_judgements(features, moves)


LAST_PLAY, CERTAIN_WIN = 1000.0, 500.0
"""See ``judgements``."""


def fewest_plays(cards: str) -> int:
    """The fewest plays that empty the hand under RLCard's kicker rules. At most 20 cards."""
    return _native.doudizhu_fewest_plays(cards)


def shortest_partition(cards: str) -> list[int]:
    """Plays that empty the hand in ``fewest_plays`` plays, weakest first."""
    return _native.doudizhu_partition(cards, True)


def best_partition(cards: str) -> list[int]:
    """Plays that empty the hand, few and strong (see ``hand_value``), weakest first."""
    return _native.doudizhu_partition(cards, False)


def hand_value(cards: str) -> float:
    """The best partition's sum of strengths less the cost of its plays; higher is better.

    A play of top rank r (3 is 0, the big joker 14) is worth r - 7, planes and fours with kickers r / 2, bombs r + 7,
    the rocket 20; each play costs 7. Partitions that break a pair or a trio for kickers are not tried.
    """
    return _native.doudizhu_hand_value(cards) / 2


def landlord_win_probability(cards: str) -> float:
    """Estimated chance that the rule player wins as landlord with these 17 cards, before the bottom cards."""
    return _native.doudizhu_landlord_win_probability(cards)


def rule_choice(view: View) -> tuple[int, str]:
    """Action of the native rule player, and its reason in words. Raises ValueError if the seat is not asked."""
    return _native.doudizhu_rule_choice(native_view(view, "Dou Dizhu"))


class PlayerModel(_native.DoudizhuPlayers):
    """How a player moves: the probability of each legal play, by a small network.

    Arrays of float32: ``position`` (195, 32), ``bias`` (32,), ``move`` (141, 32), ``output`` (32,), ``linear`` (141,).
    A position has the first 162 cells of the block ``compact`` and those of ``situation``, a move those of
    ``move_analysis`` but the last. The logit of a move is ``output`` · relu(``position``ᵀ p + ``bias`` + ``move``ᵀ m) +
    ``linear`` · m. Raises ValueError for other shapes and for numbers that are not finite.
    """

    def __init__(
        self, position: FloatArray, bias: FloatArray, move: FloatArray, output: FloatArray, linear: FloatArray
    ) -> None:
        super().__init__([position, bias, move, output, linear])

    def probabilities(self, view: View) -> FloatArray:
        """Of each legal play of the asked seat, float32. Raises ValueError if it is not asked for a play."""
        return super().probabilities(native_view(view, "Dou Dizhu"))


def log_likelihood(view: View, deal: State, *, exponent: float = 0.6, players: PlayerModel | None = None) -> float:
    """Log likelihood of the other seats' plays, given the hands of ``deal``, a sample of the view.

    Each seat may be of one of a few types of players; with ``players``, also as this model describes them. The
    probability of each play is raised to ``exponent``; see ``native/games/doudizhu/belief.h``. 0 if the view does not
    know the history; minus infinity for hands that could not make these plays. Raises ValueError if ``exponent`` is not
    within (0, 1].
    """
    views = native_view(view, "Dou Dizhu"), native_state(deal, "Dou Dizhu")
    return _native.doudizhu_log_likelihood(*views, exponent, players)


def rhcp_choice(view: View) -> tuple[int, str]:
    """Action of the native RHCP player, and its reason in words. Raises ValueError if the seat is not asked."""
    return _native.doudizhu_rhcp_choice(native_view(view, "Dou Dizhu"))


@cache
def habits() -> tuple[str, ...]:
    """Names of the habits of a :class:`Style`; ``native/games/doudizhu/style.h`` explains each."""
    return tuple(_native.doudizhu_habits())


@dataclass(frozen=True)
class StyledChoice:
    """A styled player's action, and why."""

    action: int
    rule: int
    """The rule player's preferred action."""
    habits: dict[str, float]
    """What each habit adds to the action's preference, in half points. Zeros are left out."""


class Style:
    """The rule player's preferences, changed by habits: a distinguishable player.

    ``options``: the weight of any of ``habits()`` in half points, and

    - ``bombs_from``: habits of bombs hold while every enemy has more cards than this, default 2;
    - ``bid``: added to the estimated chance of winning when it bids;
    - ``sees_wins``: whether it finds certain wins, default true;
    - ``temperature``: of the softmax over preferences, in half points; default 0: the most preferred action.

    Without options it plays nearly as the rule player does. Raises ValueError for an unknown option.
    """

    def __init__(self, **options: float) -> None:
        self._native = _native.DoudizhuStyle(options)

    def choose(self, view: View, mood: int = 0) -> StyledChoice:
        """The action of the asked seat. Equal moods give equal actions. Raises ValueError if the seat is not asked."""
        return StyledChoice(*self._native.choose(native_view(view, "Dou Dizhu"), mood))
