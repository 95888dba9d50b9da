"""Dou Dizhu beyond the common contract: its moves one by one, abstract moves, and hand analysis.

Presets of ``game("doudizhu", preset=…)``, and the options that each of them sets (any may be given beside it):

- ``rlcard`` (default): RLCard's 27,472 actions. No bidding, seat 0 is the landlord; points double with every bomb and
  rocket, with spring and anti-spring; the landlord plays for double.
- ``bidding``: the same plays after calling 1-2-3, each seat once, the first drawn; a hand that nobody wants is void.
- ``douzero``: DouZero's generator, where any cards outside the body are kickers, a rocket or a bomb too; no spring.
- ``mailgyc``: mailgyc/doudizhu: kickers of distinct ranks, a rocket too; call and grab; base 150, spring x 3. Its bonus
  for the bottom cards depends on suits and is not modelled.
- ``botzone``, ``botzone-bid``: FightTheLandlord without and with bidding: kickers of distinct ranks, a rocket too, and
  space shuttles (consecutive fours, alone or with two solos or two pairs each).

Options: ``same_rank_kickers``, ``rocket_kickers``, ``bomb_kickers``, ``neighbour_kickers``, ``shuttles`` (bool),
``bidding`` (none, score, grab), ``all_pass`` (void, first), ``first`` (zero, random), ``scoring`` (points, win_loss),
``base``, ``bomb_factor``, ``spring_factor`` (int), ``landlord_double`` (bool).

Cards are text over the ranks ``3456789TJQKA2BR`` (B and R are the small and the big joker) in any order; actions are
ids of the game ``doudizhu`` under any rules, for ids mean the same in all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import SupportsIndex

import numpy as np
import numpy.typing as npt

from bothost.native import _native
from bothost.rules.game import State, View

RANKS = "3456789TJQKA2BR"
MAX_HAND = 20
"""Most cards of a hand: the landlord's."""
NUM_RLCARD_ACTIONS = 27472
"""Ids below this are RLCard's action set, 0 is the pass."""
NUM_ABSTRACT_ACTIONS = 309
"""Plays with their kickers abstracted (3334 = 333K), and 0 for the pass."""

NEEDS = ("same_rank_kickers", "rocket_kickers", "bomb_kickers", "neighbour_kickers", "shuttles")
"""Rules options that some moves need."""


@dataclass(frozen=True)
class Move:
    """What an action id stands for."""

    action: int
    cards: str
    """All cards, ascending; empty for the pass and for calls."""
    body: str
    """The cards that decide what beats what; the others are kickers."""
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
    return Move(
        action=int(action),
        cards=cards,
        body=body,
        kind=kind,
        rank=rank,
        length=length,
        needs=tuple(name for i, name in enumerate(NEEDS) if needs >> i & 1),
    )


def readings(cards: str) -> list[int]:
    """Actions that play exactly these cards, the canonical one first; more than one only under wide kicker rules."""
    return _native.doudizhu_readings(cards)


def kind_of(cards: str) -> str | None:
    """Kind of the play that these cards are, None where they are none."""
    found = readings(cards)
    return move(found[0]).kind if found else None


@cache
def abstract_map() -> npt.NDArray[np.int16]:
    """Shape (num_actions of the widest rules,): the abstract move of each action id, 0 … 308.

    -1 where there is none: space shuttles and calls.
    """
    out = _native.doudizhu_abstract_map()
    out.flags.writeable = False
    return out


@cache
def abstract_names() -> tuple[str, ...]:
    """Notation of the 309 abstract moves; a kicker is ``*``, a pair of kickers ``**``: ``333*``, ``333444****``."""
    return tuple(_native.doudizhu_abstract_names())


NUM_AFTERSTATE_FEATURES = 346
"""Of ``afterstates``: the abstract moves 1 … 308 that the rest can make; cards left, 0 … 20; plays that empty the rest,
0 … 15; and whether nobody else can hold a higher move of the kind and length (bombs aside)."""


def afterstates(
    features: tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]],
    moves: tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Features of the hands that abstract moves leave, a row for each move of each position.

    Rows are (offsets, items): row n is ``items[offsets[n]:offsets[n + 1]]``. ``features``: of each position those of
    the block ``move_types`` that are set; ``moves``: abstract moves, 0 … 308. Of kickers those go along without
    which the rest is worth most (``hand_value``). Raises ValueError for other rows.
    """
    return _native.doudizhu_afterstates(*features, *moves)


def fewest_plays(cards: str) -> int:
    """The least number of plays that empty the hand under RLCard's kicker rules. At most 20 cards."""
    return _native.doudizhu_fewest_plays(cards)


def shortest_partition(cards: str) -> list[int]:
    """Plays that empty the hand in ``fewest_plays`` plays, weakest first."""
    return _native.doudizhu_partition(cards, True)


def best_partition(cards: str) -> list[int]:
    """Plays that empty the hand, few and strong (see ``hand_value``), weakest first."""
    return _native.doudizhu_partition(cards, False)


def hand_value(cards: str) -> float:
    """Sum over the plays of the best partition of their strength less the cost of a play; higher is better.

    A play of top rank r (3 is 0, the big joker 14) is worth r - 7, planes and fours with kickers r / 2, bombs r + 7,
    the rocket 20; each play costs 7.
    """
    return _native.doudizhu_hand_value(cards) / 2


def landlord_win_probability(cards: str) -> float:
    """Estimated chance of the rule player as landlord with these 17 cards, before the bottom."""
    return _native.doudizhu_landlord_win_probability(cards)


def rule_choice(view: View) -> tuple[int, str]:
    """Action of the native rule player, and its reason in words. Raises ValueError where the seat is not asked."""
    return _native.doudizhu_rule_choice(_native_view(view))


def log_likelihood(view: View, deal: State, *, trust: float = 0.6) -> float:
    """How well ``deal``, a sample of the view, explains all that the other seats did: a log likelihood.

    Each of them may be one of a few types of players, and a play counts as the power ``trust`` of its probability: see
    ``native/games/doudizhu/belief.h``. 0 where the view does not know the history, minus infinity of hands that could
    not have played so. Raises ValueError where ``trust`` is not within (0, 1].
    """
    if not isinstance(deal, _native.State):
        raise TypeError("the deal is not one of Dou Dizhu")
    return _native.doudizhu_log_likelihood(_native_view(view), deal, trust)


def rhcp_choice(view: View) -> tuple[int, str]:
    """Action of the native RHCP player, and its reason in words. Raises ValueError where the seat is not asked."""
    return _native.doudizhu_rhcp_choice(_native_view(view))


@cache
def habits() -> tuple[str, ...]:
    """Names of the habits that make a :class:`Style`; ``native/games/doudizhu/style.h`` says what each does."""
    return tuple(_native.doudizhu_habits())


@dataclass(frozen=True)
class StyledChoice:
    """What a player of a style does, and why."""

    action: int
    rule: int
    """What the rule player would like best."""
    habits: dict[str, float]
    """What each habit adds to the action, in half points; those that say nothing are left out."""


class Style:
    """The rule player's judgement of moves, bent by habits: players that can be told apart.

    ``options``: the weight of any of ``habits()``, in half points; ``bombs_from`` (cards of an enemy from which on
    bombs are neither held back nor hurried, default 2), ``bid`` (added to the chance of winning by which it bids),
    ``sees_wins`` (default true), ``temperature`` (half points; default 0: always what it likes best). Without any it
    plays nearly as the rule player does. Raises ValueError.
    """

    def __init__(self, **options: float) -> None:
        self._native = _native.DoudizhuStyle(options)

    def choose(self, view: View, mood: int = 0) -> StyledChoice:
        """The action of the seat that is asked; equal moods give equal actions. Raises ValueError where it is not."""
        return StyledChoice(*self._native.choose(_native_view(view), mood))


def _native_view(view: View) -> _native.View:
    if not isinstance(view, _native.View):
        raise TypeError("the view is not one of Dou Dizhu")
    return view
