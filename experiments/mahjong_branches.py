"""How many points lie in the decisions of the acceptance-weighted rule player of mahjong?

``python -m experiments.mahjong_branches --hands 1000 --seed 1``

Four of these players play. At some of their decisions the chosen action and the next best ones are played to the end
on the same wall. Prints how much more an alternative scores than the choice, by kind of decision and by margin. Then
what a fixed correction would win: a ridge regression of the differences on features of both actions, fitted to nine
tenths of the hands, decides in the other tenth. Last, how well the critic that sees all hands
predicts the difference: it values both actions one draw later.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bothost.rules import ActionArray, View, game, mahjong

Floats = npt.NDArray[np.float64]
WIN = 1
KINDS = ("pass", "discard", "chow", "pung", "kong")
FIRST_OF_KIND = np.array([0, 2, 36, 57, 91])
ALTERNATIVES = 3
CLAIM_SHARE, CLOSE_SHARE, OTHER_SHARE = 0.5, 0.3, 0.075
"""Shares of the decisions that branch: claims; discards whose margin is below ``CLOSE``; other discards."""
CLOSE = 0.15
MARGINS = (-1.0, 0.02, 0.05, 0.1, 0.2, 0.4, 2.0)
FOLDS = 10
WORTH, CHANCE, NEEDED, POINTS, DANGER, VALUE = 0, 2, slice(3, 10), 10, 16, 17
"""Places in the block ``appraisal``."""
LEFT, MELDS = 4, slice(13, 17)
"""Places in the block ``numbers``."""


class Alternative(NamedTuple):
    """Another action than the player's, and what it changes."""

    hand: int
    decision: int
    kinds: str
    """``pass to chow``"""
    margin: float
    """The choice's value less the alternative's, against the best."""
    difference: float
    """Points that the alternative scores more."""
    valued: float
    """The same by the critic, one draw later."""
    weight: float
    """Decisions that it stands for, a hand and seat."""
    features: Floats


def kind(action: int) -> str:
    """What an action is."""
    return KINDS[int(np.searchsorted(FIRST_OF_KIND, action, side="right")) - 1]


def features(chosen: Floats, other: Floats, numbers: Floats) -> Floats:
    """What the correction may depend on, from the appraisals (18,) of both actions and the position's numbers (34,)."""
    worths = [np.log(np.maximum(x[VALUE], 1e-3)) for x in (chosen, other)]
    behind = float(np.clip(worths[1] - worths[0], -3.0, 1.0))
    needed = [float(np.arange(7) @ x[NEEDED]) for x in (chosen, other)]
    context = [numbers[LEFT], chosen[WORTH], needed[0] / 5.0, numbers[MELDS].sum()]
    change = [(other - chosen)[place] for place in (WORTH, CHANCE, POINTS, DANGER, VALUE)]
    return np.array([1.0, *change, behind, needed[1] - needed[0], *context, *(behind * x for x in context)])


def alternatives_of(view: View, rng: np.random.Generator) -> tuple[ActionArray, Floats, float] | None:
    """The choice and its alternatives, their appraisals, the share of such decisions; None: no branches."""
    legal, choice = view.legal(), mahjong.acceptance_weighted_choice(view)[0]
    if len(legal) < 2 or WIN in legal:
        return None
    appraisals = view.encode_actions("appraisal", legal).astype(np.float64)
    order = np.argsort(-np.where(legal == choice, np.inf, appraisals[:, VALUE]), kind="stable")[: ALTERNATIVES + 1]
    margin = appraisals[order[0], VALUE] - appraisals[order[1], VALUE]
    share = CLAIM_SHARE if 0 in legal else CLOSE_SHARE if margin < CLOSE else OTHER_SHARE
    return (legal[order], appraisals[order], share) if rng.random() < share else None


def branches(hands: int, seed: int) -> Iterator[Alternative]:
    """The alternatives of ``hands`` hands."""
    rng, decision = np.random.default_rng(seed), 0
    for hand in range(hands):
        state = game("mahjong").new_state(seed + hand)
        while not state.terminal:
            view = state.view(state.to_act[0])
            if (found := alternatives_of(view, rng)) is not None:
                actions, appraisals, share = found
                scores, values = (
                    mahjong.branches(state, view.seat, actions, acceptance_weighted=True, draws=draws)[:, view.seat]
                    for draws in (0, 1)
                )
                numbers = view.encode("numbers").astype(np.float64)
                for action, other, score, value in zip(
                    actions[1:], appraisals[1:], scores[1:], values[1:], strict=True
                ):
                    yield Alternative(
                        hand,
                        decision,
                        f"{kind(int(actions[0]))} to {kind(int(action))}",
                        appraisals[0, VALUE] - other[VALUE],
                        float(score - scores[0]),
                        float(value - values[0]),
                        1.0 / share / 4.0,
                        features(appraisals[0], other, numbers),
                    )
                decision += 1
            state.apply(view.seat, mahjong.acceptance_weighted_choice(view)[0])


def interval(values: Floats) -> str:
    """Mean and half of its 95 % interval."""
    return f"{values.mean():+.2f} ± {1.96 * values.std() / len(values) ** 0.5:.2f}"


def gain(found: list[Alternative], hands: int, penalty: float = 300.0) -> tuple[Floats, int]:
    """Points (hands,) that the correction wins a hand and seat, cross-validated, and how many choices change."""
    x, y = np.stack([a.features for a in found]), np.array([a.difference for a in found])
    x = x / np.where(x.std(axis=0) > 1e-6, x.std(axis=0), 1.0)
    fold, expected = np.array([a.hand % FOLDS for a in found]), np.zeros(len(y))
    for k in range(FOLDS):
        fit, test = x[fold != k], fold == k
        weights = np.linalg.solve(fit.T @ fit + penalty * np.eye(x.shape[1]), fit.T @ y[fold != k])
        expected[test] = x[test] @ weights
    won, changed = np.zeros(hands), 0
    order = np.lexsort((-expected, np.array([a.decision for a in found])))
    _, firsts = np.unique([found[i].decision for i in order], return_index=True)
    for i in order[firsts]:
        if expected[i] > 0.0:
            won[found[i].hand] += found[i].weight * y[i]
            changed += 1
    return won, changed


def slope(x: Floats, y: Floats) -> str:
    """Slope of y over x through the origin, and half of its 95 % interval."""
    least = (x @ y) / (x @ x)
    return f"{least:.2f} ± {1.96 * np.sqrt(np.square(y - least * x).mean() / (x @ x)):.2f}"


def print_critic(found: list[Alternative]) -> None:
    """Differences to the end of the hand beside those that the critic sees one draw later."""
    ends, valued = np.array([a.difference for a in found]), np.array([a.valued for a in found])
    discards = np.array([a.kinds == "discard to discard" for a in found])
    close = discards & np.array([a.margin < CLOSE for a in found])
    print("\n| alternatives | standard deviation | valued one draw later | slope |\n|---|---|---|---|")
    for name, rows in (("claims", ~discards), ("close discards", close), ("other discards", discards & ~close)):
        x, y = valued[rows], ends[rows]
        print(f"| {rows.sum():,} {name} | {y.std():.1f} | {x.std():.1f} | {slope(x, y)} |")


def main(hands: int, seed: int) -> None:
    """Print all tables."""
    found = list(branches(hands, seed))
    differences, margins = np.array([a.difference for a in found]), np.array([a.margin for a in found])
    kinds = np.array([a.kinds for a in found])
    print(f"{hands} hands, {len(found)} alternatives; standard deviation of a difference {differences.std():.1f}")
    print("\n| choice to alternative | alternatives | points more |\n|---|---|---|")
    for name in sorted(set(kinds.tolist())):
        if (kinds == name).sum() >= 100:
            print(f"| {name} | {(kinds == name).sum():,} | {interval(differences[kinds == name])} |")
    print("\n| discard's margin | alternatives | points more |\n|---|---|---|")
    for low, high in pairwise(MARGINS):
        within = (kinds == "discard to discard") & (margins >= low) & (margins < high)
        print(f"| {low} to {high} | {within.sum():,} | {interval(differences[within])} |")
    print("\n| correction of | choices changed | points a hand |\n|---|---|---|")
    for name in ("discard to discard", "pass to chow", "pass to pung", "chow to pass", "pung to pass"):
        won, changed = gain([a for a in found if a.kinds == name], hands)
        print(f"| {name} | {changed:,} | {interval(won)} |")
    print_critic(found)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hands", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    settled = parser.parse_args()
    main(settled.hands, settled.seed)
