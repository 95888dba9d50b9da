"""Chinese Official mahjong beyond the common contract: shanten, useful tiles and fans.

Tiles are indices 0-33: characters W1-W9, bamboos T1-T9, dots B1-B9, winds F1-F4 (east, south, west, north), dragons
J1-J3 (red, green, white). A hand is uint8 counts, shape (34,), of the standing tiles; melds are counted apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bothost.native import _native, native_state, native_view
from bothost.rules.game import ActionArray, FloatArray, State, View

CountArray = npt.NDArray[np.uint8]

TILES = (*(f"{s}{r}" for s in "WTB" for r in range(1, 10)), "F1", "F2", "F3", "F4", "J1", "J2", "J3")
"""Words of the 34 kinds, by index."""
SHAPES = ("standard", "seven_pairs", "thirteen_orphans", "knitted_straight", "honours_and_knitted")
"""The winning shapes, in the order of :func:`distances`."""
LUCK_WEIGHTS = Path(__file__).with_name("mahjong_luck.npy")
"""Parameters of the network of :func:`luck`, in the order of ``luck.h``: float32 (n,)."""
NEVER = 100
"""Distance of a shape that is impossible with the melds."""


class Fan(NamedTuple):
    """One of the fans."""

    name: str
    chinese: str
    """As the official judge reports it."""
    points: int


FANS = tuple(Fan(*entry) for entry in _native.mahjong_fans())
"""The 81 fans in the order of the rule book, and the judge's ``concealed-and-melded-kong`` (5 points)."""


_BY_CHINESE = {fan.chinese: i for i, fan in enumerate(FANS)}


def fan_words(fans: Mapping[str, int]) -> str:
    """The FANS of a ``hu`` event from the judge's Chinese names with their counts: ``all-pungs,dragon-pung*2``.

    Raises ValueError for an unknown name. PyMahjongGB's ``独听・边张`` stands for ``边张``, and so on.
    """
    alias = {"单钓": "单钓将"}
    counts: dict[int, int] = {}
    for name, times in fans.items():
        plain = name.removeprefix("独听・")
        index = _BY_CHINESE.get(alias.get(plain, plain))
        if index is None:
            raise ValueError(f"{name!r} is not a fan")
        counts[index] = times
    return ",".join(FANS[i].name + (f"*{n}" if n > 1 else "") for i, n in sorted(counts.items()))


def distances(hand: CountArray, melds: int = 0) -> tuple[int, int, int, int, int]:
    """Missing tiles for each of :data:`SHAPES`; :data:`NEVER` if the melds rule the shape out.

    A target never holds a fifth copy of a kind. Raises ValueError on more than 14 tiles or four of a kind.
    """
    return _native.mahjong_distances(hand, melds)


def useful_tiles(hand: CountArray, melds: int = 0, shape: int | None = None) -> tuple[int, int]:
    """(shanten, bit mask of the kinds that lower it), over all shapes or for one index into :data:`SHAPES`.

    Shanten is one less than the tiles needed: -1 complete, 0 waiting. Kinds that the hand holds four times are left
    out.
    """
    return _native.mahjong_useful_tiles(hand, melds, -1 if shape is None else shape)


def shanten_many(hands: CountArray, melds: int = 0) -> npt.NDArray[np.int8]:
    """Shanten over all shapes of hands, shape (n, 34), that all have the same number of melds: int8 (n,)."""
    return _native.mahjong_shanten_many(hands, melds)


def fan_many(
    standing: CountArray, melds: CountArray, wins: CountArray
) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.uint8]]:
    """Fans of many hands, each counted by its most valuable reading.

    ``standing`` uint8 (n, 34): the standing tiles with the winning one, 14 less three per meld. ``melds`` uint8
    (n, 4, 2): rows (kind, tile), kind 0 none, 1 chow (tile: the middle one), 2 pung, 3 melded kong, 4 concealed kong.
    ``wins`` uint8 (n, 8): winning tile, self-drawn, fourth tile (the three others lie open), kong (the tile replaced
    one; without self-drawn: it robbed one), last tile, seat wind, prevalent wind (0 east .. 3 north), flowers.

    If two readings are worth the same, either may be returned. Otherwise points and fans agree with PyMahjongGB, also
    for knitted straights and their waits.

    Returns int16 (n,) points without flowers, -1 if the tiles complete no hand, and uint8 (n, len(FANS)), how often
    each fan counts. Raises ValueError for arrays that cannot be hands.

    Source: Mahjong Competition Rules (1998, 2006), as the official judge applies them.
    """
    return _native.mahjong_fan_many(standing, melds, wins)


class Prospect(NamedTuple):
    """What a hand can win over its next draws and discards."""

    worth: float
    """Sum of chance times payment over all winning hands, in points of score; 0: none is in reach."""
    chance: float
    """Sum of their chances."""
    tiles_needed: int
    """Missing tiles of the most valuable target hand."""
    points: int
    """Its points. They include the fans for a concealed hand or a self-drawn tile if it needs them."""
    shape: int
    """Its index into :data:`SHAPES`."""
    fans: list[int]
    """Its indices into :data:`FANS`."""
    shapes: list[int]
    """Shapes of all hands in reach."""
    all_fans: list[int]
    """Fans of all hands in reach."""


class LookAhead(NamedTuple):
    """The tree of the next own draws and discards."""

    now: Prospect
    """Without a discard. The hand may have 14 tiles or 13."""
    after: dict[int, Prospect]
    """By the discarded tile, for every kind in the hand."""
    targets: int
    """Number of target hands, including those below the minimum of points."""

    @property
    def recommended(self) -> int | None:
        """The discard after which the hand is worth most; None if no win is in reach."""
        best = max(self.after, key=lambda tile: self.after[tile].worth, default=None)
        return best if best is not None and self.after[best].worth > 0 else None


def look_ahead(view: View, depth: int = 3) -> LookAhead:
    """What the viewing seat can win over its next ``depth`` draws (0 to 7), after each discard and without one.

    A leaf of the tree is a winning hand. It is reached if all its missing tiles come. The chance treats tiles as
    independent: if u of U unseen tiles are of a kind, it comes within n draws with probability
    1 − exp(−n·u·r / U). r counts the own draw and the discards of others that can be claimed.

    Raises ValueError for another depth, TypeError for a view of another game.
    """
    now, after, targets = _native.mahjong_look_ahead(native_view(view, "mahjong"), depth)
    return LookAhead(Prospect(*now), {tile: Prospect(*prospect) for tile, prospect in after}, targets)


def dangers(view: View) -> npt.NDArray[np.float64]:
    """Points (34,) that the viewing seat is expected to lose because an opponent wins by this discard."""
    return _native.mahjong_dangers(native_view(view, "mahjong"))


def rule_choice(view: View, *, simple: bool = False) -> tuple[int, str, float]:
    """The rule player's action, its reason, and its own valuation of the hand after the action.

    It looks ahead to winning hands and subtracts the expected cost of a discard; the median time is about 0.1 ms.
    ``simple``: use the player that compares its hand with families of hands, and does not defend. Raises ValueError if
    the seat is not asked, TypeError for a view of another game.
    """
    return _native.mahjong_rule_choice(native_view(view, "mahjong"), simple, False)


def acceptance_weighted_choice(view: View) -> tuple[int, str, float]:
    """As :func:`rule_choice`, but by the stronger player, which uses the acceptance-weighted look-ahead.

    It estimates from the visible tiles how often each kind comes. The worths of winning hands that need several tiles
    are combined by their norm of order 3/2: a few good ones are worth more than many poor ones with the same sum.
    """
    return _native.mahjong_rule_choice(native_view(view, "mahjong"), False, True)


def branches(
    state: State, seat: int, actions: ActionArray, *, acceptance_weighted: bool = False, draws: int = 0
) -> FloatArray:
    """Scores float32 (n, 4) of all seats, in points, after each of ``actions`` (n,) of ``seat``.

    Rule players decide all that follows, on the same wall: those of :func:`rule_choice`, or of
    :func:`acceptance_weighted_choice`. ``state`` stays as it is. A branch takes about a millisecond, without the GIL.

    With ``draws`` a branch ends at that many draws from now, if the hand does not end before. There the network of
    :func:`luck` values it. It sees all hands, but not the tile that is drawn or the order of the wall. Such branches
    take a quarter of a millisecond and vary far less. They have the errors of the network, which was fitted to hands
    of ``mahjong-ppo`` and a rule player.

    Raises ValueError if an action is not legal, if ``draws`` is not within 0 and 1,000, or for draws in a game with
    flowers; TypeError for a state of another game.

    Source: "vine" sampling of Schulman et al., "Trust Region Policy Optimization", arXiv:1502.05477 (2015).
    """
    own = native_state(state, "mahjong")
    return _native.mahjong_branches(
        own, seat, np.asarray(actions, np.int64), acceptance_weighted, draws, luck_weights()
    )


@cache
def luck_weights() -> npt.NDArray[np.float32]:
    """Parameters of the network that estimates luck."""
    weights: npt.NDArray[np.float32] = np.load(LUCK_WEIGHTS, allow_pickle=False)
    return weights


def luck(state: State) -> npt.NDArray[np.float64]:
    """Points (4,), float64, that luck has given each seat of a hand so far. They sum to zero.

    Each draw counts: the value of the tile that came, less the mean value of all tiles that could have come. A tile's
    value is what rule players make of it: the scores if the hand ends before the next draw, otherwise the estimate of a
    small network that sees all hands. So luck is zero on average, however good the players are. A score less its luck
    has the score's mean, and varies less. The deal is not counted: it cancels where every player has each seat once.

    Raises ValueError for rules with flowers and for a state that was sampled from a snapshot, TypeError for a state of
    another game. Source: Burch and others, "AIVAT", AAAI 2018. ``python -m experiments.mahjong_luck`` fits the network.
    """
    return _native.mahjong_luck(native_state(state, "mahjong"), luck_weights())


def luck_inputs(state: State) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int8], npt.NDArray[np.int16]]:
    """What the network of :func:`luck` sees before each of the n draws of a hand.

    Inputs float32 (n, 4, 17) by seat, who draws, int8 (n,), and the tiles in the wall, int16 (n,). ``luck.cpp`` says
    what the inputs are. Raises as :func:`luck`.
    """
    return _native.mahjong_luck_inputs(native_state(state, "mahjong"))
