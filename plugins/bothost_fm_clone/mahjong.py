"""Features of mahjong that a person might consider for a discard or a claim.

They describe how far the hand is from a win, the effect and the expected cost of each action, and how an action
compares with the others.

The native block ``prospect`` has what a hand can win after an action, and ``appraisal`` the same by the other
look-ahead. Numbers are binned. ``best``, ``second`` … are ranks among the legal actions. A win and its refusal are also
candidates.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from bothost import rules
from bothost.rules import View
from bothost.rules.mahjong import SHAPES, TILES, shanten_many
from bothost.training.factorization import IntArray
from bothost_fm_clone.words import counted, tile_words

MOVES = ("passes", "wins", "discards", "chows", "pungs", "takes a kong", "hides a kong", "adds to a kong")
"""Kinds of actions in the order of the block ``action``."""
WINDS = ("east", "south", "west", "north")
PHASES = ("turn", "discard", "claims", "robbing")
RELATIVE = ("the next player", "the player opposite", "the previous player")
TILE_WORDS = tuple(tile_words(tile) for tile in TILES)
LEFT = (4, 8, 12, 16, 20)
RATIOS = (0.0, 0.25, 0.5, 0.7, 0.8, 0.9, 0.97, 0.9999)
"""Bin edges of the share of the best action's worth."""
COSTS = (0.02, 0.1, 0.3, 0.6, 1.0, 2.0)
"""Bin edges of the expected cost of a discard, in points."""
PERCENTS = (0, 20, 40, 50, 60, 70, 75, 80, 85, 90, 92.5, 95, 97, 98, 99, 99.5, 100)
"""What an action keeps of the best action's. Each feature reaches up to the next."""
ROUNDING = 1e-3
"""Numbers of 32 bits may be a little less than what they stand for."""
COMPARED = ("worth", "worth after costs", "chance to win")
POINTS = (8, 12, 16, 20, 24, 32, 48)
PLACES = ("the best", "the second best", "the third best", "the fourth or fifth best")
SHAPE_WORDS = tuple(shape.replace("_", " ") for shape in SHAPES)


def few(number: int, what: str) -> str:
    """``one tile``, ``2 tiles``."""
    return f"one {what}" if number == 1 else counted(number, what)


def _melds(number: int) -> str:
    return few(number, "meld") if number else "no meld"


def bins(edges: tuple[float, ...], what: str) -> list[str]:
    """Names of the bins between these edges, ascending."""
    return [f"{what} under {edges[0]:g}"] + [f"{what} from {edge:g}" for edge in edges]


@cache
def percents(what: str) -> tuple[str, ...]:
    """Names of the ``PERCENTS``, ascending."""
    amounts = ("less than 0", *(f"{percent:g}" for percent in PERCENTS))
    return tuple(f"keeps {amount} % of the best {what}" for amount in amounts)


POSITIONS = (
    *(f"it is {phase}" for phase in PHASES),
    *(f"sits {wind}" for wind in WINDS),
    *(f"the round is {wind}" for wind in WINDS),
    *(f"at most {n} own draws are left" for n in LEFT),
    *(f"the hand needs {few(n, 'tile')}" for n in range(8)),
    *(f"has {_melds(n)}" for n in range(5)),
    *(f"{who} has {_melds(n)}" for who in RELATIVE for n in range(5)),
    *(f"holds {tile}" for tile in TILE_WORDS),
    *(f"holds a pair: {tile}" for tile in TILE_WORDS),
    *(f"holds three times {tile}" for tile in TILE_WORDS),
    *(f"{who} discarded {tile}" for who in RELATIVE for tile in TILE_WORDS),
)
ESTIMATES = ("by the plain estimate", "by the weighted estimate")
CHOICES = (
    *MOVES,
    *(f"the tile is {tile}" for tile in TILE_WORDS),
    *(
        f"{name} {estimate}"
        for estimate in ESTIMATES
        for name in (
            *(f"is {place} for the hand" for place in PLACES),
            *(f"is {place} after its cost" for place in PLACES),
            *bins(RATIOS, "keeps a share of the best worth"),
            *(f"then needs {few(n, 'tile')}" for n in range(7)),
            *(f"aims at {shape}" for shape in SHAPE_WORDS),
            "leaves nothing to win",
        )
    ),
    *bins(COSTS, "may cost points"),
    *(f"is {place} for safety" for place in PLACES),
    "drops the drawn tile",
    "drops an isolated tile",
    "drops an honour",
    "drops a terminal",
    "splits a pair",
    "splits a triplet",
    "drops the partner of a neighbour",
    "drops a tile that a player has discarded",
    *(f"of its tile, {n} lie open" for n in range(5)),
    "is the tile that was just discarded",
)
FINER = tuple(
    f"{name} {estimate}"
    for estimate in ESTIMATES
    for name in (
        *(name for what in COMPARED for name in percents(what)),
        *(f"is {place} for the chance to win" for place in PLACES),
        *(f"aims at {least} points" for least in POINTS),
    )
)
"""Features of revision 3 (see ``sight``)."""
EVERY = CHOICES + FINER
_AT = {name: index for index, name in enumerate(EVERY)}
_PLACE = {name: index for index, name in enumerate(POSITIONS)}


@cache
def classes() -> tuple[str, ...]:
    """Names of the actions."""
    game = rules.game("mahjong")
    return tuple(game.notation(action) for action in range(game.num_actions))


def position(view: View) -> IntArray:
    """Features of a position, ascending."""
    told = view.to_json()
    seat, counts = view.seat, _counts(told["hand"])
    melds = told["melds"]
    found = [f"sits {WINDS[seat]}", f"the round is {told['prevalent_wind']}", f"has {_melds(len(melds[seat]))}"]
    if told["phase"] in PHASES:
        found.append(f"it is {told['phase']}")
    left = int(np.sum(told["wall_left"])) / 4 if len(told["wall_left"]) != 4 else told["wall_left"][seat]
    found += [f"at most {n} own draws are left" for n in LEFT if left <= n]
    found.append(f"the hand needs {few(_needed(counts, len(melds[seat])), 'tile')}")
    for distance, who in enumerate(RELATIVE, 1):
        other = (seat + distance) % 4
        found.append(f"{who} has {_melds(len(melds[other]))}")
        found += {f"{who} discarded {tile_words(tile)}" for tile in told["discards"][other]}
    for tile, count in zip(TILE_WORDS, counts.tolist(), strict=True):
        found += [f"holds {tile}"] * (count > 0) + [f"holds a pair: {tile}"] * (count > 1)
        found += [f"holds three times {tile}"] * (count > 2)
    return np.unique(np.array([_PLACE[name] for name in found], np.int32))


def candidates(view: View, choices: IntArray) -> list[IntArray]:
    """Features of each of these legal actions, ascending."""
    told = view.to_json()
    counts = _counts(told["hand"])
    action = view.encode_actions("action", choices)
    kind, tile = action[:, :8].argmax(axis=1), action[:, 8:]
    tiles = np.where(tile.any(axis=1), tile.argmax(axis=1), -1)
    found: list[list[str]] = [[MOVES[k]] for k in kind]
    plain, weighted = (view.encode_actions(block, choices) for block in ("prospect", "appraisal"))
    for numbers, estimate in zip((plain, weighted), ESTIMATES, strict=True):
        _prospects(numbers, estimate, kind, found)
    costs = plain[:, 16] * 4
    drops = kind == 2
    for place, rank in enumerate(_ranked(-np.where(drops, costs, np.inf))):
        if drops[place]:
            found[place].append(bins(COSTS, "may cost points")[int(np.searchsorted(COSTS, costs[place], "right"))])
            found[place] += _placed(rank, "for safety")
    open_ = _counts([t for seat in told["discards"] for t in seat])
    for place, (move, at) in enumerate(zip(kind.tolist(), tiles.tolist(), strict=True)):
        if at < 0:
            continue
        found[place] += [f"the tile is {TILE_WORDS[at]}", f"of its tile, {min(4, int(open_[at]))} lie open"]
        if TILES[at] == told.get("last_tile"):
            found[place].append("is the tile that was just discarded")
        if move == 2:
            found[place] += _drop(at, counts, told)
    return [np.unique(np.array([_AT[name] for name in row], np.int32)) for row in found]


def _prospects(
    numbers: npt.NDArray[np.float32], estimate: str, kind: npt.NDArray[np.int64], found: list[list[str]]
) -> None:
    wins = kind == 1
    for place, rank in enumerate(_ranked(np.where(wins, np.inf, numbers[:, 1]))):
        found[place] += _placed(rank, f"for the hand {estimate}")
    for place, rank in enumerate(_ranked(np.where(wins, np.inf, numbers[:, 17]))):
        found[place] += _placed(rank, f"after its cost {estimate}")
    names = bins(RATIOS, "keeps a share of the best worth")
    for place, row in enumerate(numbers):
        found[place].append(f"{names[int(np.searchsorted(RATIOS, row[1], 'right'))]} {estimate}")
        if row[3:10].any():
            found[place].append(f"then needs {few(int(row[3:10].argmax()), 'tile')} {estimate}")
            found[place].append(f"aims at {SHAPE_WORDS[int(row[11:16].argmax())]} {estimate}")
        else:
            found[place].append(f"leaves nothing to win {estimate}")
    _finer(numbers, estimate, wins, found)


def _finer(
    numbers: npt.NDArray[np.float32], estimate: str, wins: npt.NDArray[np.bool_], found: list[list[str]]
) -> None:
    chances = np.where(wins, 0.0, numbers[:, 2])
    for place, rank in enumerate(_ranked(np.where(wins, np.inf, chances))):
        found[place] += _placed(rank, f"for the chance to win {estimate}")
    shares = np.stack([numbers[:, 1], numbers[:, 17], chances / max(float(chances.max()), 1e-9)])
    for what, share in zip(COMPARED, shares, strict=True):
        names = percents(what)
        for place, at in enumerate(np.searchsorted(PERCENTS, 100 * share + ROUNDING, "right").tolist()):
            found[place].append(f"{names[at]} {estimate}")
    for place, aimed in enumerate((24 * numbers[:, 10] + ROUNDING).tolist()):
        if aimed >= 1:
            least = max((points for points in POINTS if points <= aimed), default=POINTS[0])
            found[place].append(f"aims at {least} points {estimate}")


def _drop(at: int, counts: npt.NDArray[np.uint8], told: dict[str, object]) -> list[str]:
    held, names = int(counts[at]), []
    number = at % 9 if at < 27 else -1
    near = [counts[at + step] for step in (-2, -1, 1, 2) if at < 27 and 0 <= number + step < 9]
    close = [counts[at + step] for step in (-1, 1) if at < 27 and 0 <= number + step < 9]
    names += ["drops the drawn tile"] * (told["drawn"] == TILES[at])
    names += ["drops an isolated tile"] * (held == 1 and not any(near))
    names += ["drops an honour"] * (at >= 27) + ["drops a terminal"] * (number in (0, 8))
    names += ["splits a pair"] * (held == 2) + ["splits a triplet"] * (held >= 3)
    names += ["drops the partner of a neighbour"] * any(close)
    others = (discards for seat, discards in enumerate(told["discards"]) if seat != told["seat"])  # type: ignore[var-annotated,arg-type]
    names += ["drops a tile that a player has discarded"] * any(TILES[at] in discards for discards in others)
    return names


def _placed(rank: int, what: str) -> list[str]:
    return [f"is {PLACES[rank]} {what}"] if rank < len(PLACES) else []


def _ranked(values: npt.NDArray[np.floating]) -> list[int]:
    """For each value the number of larger ones. The fourth and fifth share a place."""
    ranks = [int(np.sum(values > value)) for value in values]
    return [3 if rank in (3, 4) else rank if rank < 3 else 9 for rank in ranks]


def _counts(tiles: list[str]) -> npt.NDArray[np.uint8]:
    out = np.zeros(len(TILES), np.uint8)
    for tile in tiles:
        if tile in _TILE:
            out[_TILE[tile]] += 1
    return out


def _needed(counts: npt.NDArray[np.uint8], melds: int) -> int:
    """Number of missing tiles."""
    return min(7, int(shanten_many(counts[None], melds)[0]) + 1)


_TILE = {tile: index for index, tile in enumerate(TILES)}
