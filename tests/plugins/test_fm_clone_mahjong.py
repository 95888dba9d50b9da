"""fm-clone at mahjong: what it sees of a discard and a claim, and that it learns whom it imitates."""

import numpy as np
import pytest

from bothost import PlayerMove, rules
from bothost.rules import mahjong
from bothost_fm_clone import mahjong as mahjong_clone
from bothost_fm_clone.crowd import SharedOptions, crowd_of
from bothost_fm_clone.encode import encoding
from bothost_fm_clone.fit import score
from bothost_fm_clone.samples import decisions
from bothost_fm_clone.shared import SharedClone

GAME, OWN = rules.game("mahjong"), encoding("mahjong")


def played(hands, first=0):
    """Decisions with a choice, of four rule players."""
    for hand in range(first, first + hands):
        state = GAME.new_state(hand)
        while not state.terminal:
            seat = state.to_act[0]
            view = state.view(seat)
            action = mahjong.rule_choice(view)[0]
            if len(view.legal()) > 1:
                yield PlayerMove(GAME, f"{hand:032x}", "train", "rule", seat, view, view.legal(), action, 0, None)
            state.apply(seat, action)


def seen(view):
    """By action the names of a candidate's features, and those of the position."""
    choices = OWN.choices(view, view.legal())
    one = OWN.one(view, choices)
    named = {
        view.notation(int(action)): {OWN.leaves[index] for index in one.alternatives[row]}
        for row, action in enumerate(choices)
    }
    return {OWN.features[index] for index in one.features[0]}, named


def view_of(hand, **more):
    told = {"seat": 0, "phase": "turn", "actor": 0, "hand": hand, "drawn": hand[-1], "wall_left": [10, 10, 10, 10]}
    return GAME.view_from_snapshot({**told, **more})


def test_a_hand_written_discard_has_these_features():
    hand = ["W1", "W2", "W3", "W4", "W5", "W6", "W7", "W8", "W9", "T5", "T5", "B2", "B3", "J1"]
    position, named = seen(view_of(hand, discards=[["F1"], ["J1", "T9"], [], []], melds=[[], [], [], []]))
    assert {"it is turn", "sits east", "has no meld", "the hand needs one tile"} <= position
    assert {"holds the 1 of characters", "holds a pair: the 5 of bamboos"} <= position
    assert "the next player discarded the red dragon" in position
    assert "holds a pair: the 1 of characters" not in position and "at most 12 own draws are left" in position
    dragon = named["play:J1"]
    assert {"discards", "the tile is the red dragon", "drops the drawn tile", "drops an honour"} <= dragon
    assert {"drops an isolated tile", "drops a tile that a player has discarded", "of its tile, 1 lie open"} <= dragon
    assert "splits a pair" in named["play:T5"] and "drops an isolated tile" not in named["play:B2"]
    assert "is the best for the hand by the plain estimate" in named["play:J1"]


def test_a_win_is_better_than_every_other_action():
    wins = 0
    for move in played(12):
        words = {move.view.notation(int(action)): int(action) for action in move.legal}
        if "hu" in words:
            _, named = seen(move.view)
            assert {"wins", "is the best for the hand by the plain estimate"} <= named["hu"]
            wins += 1
    assert wins > 3


@pytest.mark.parametrize(("block", "estimate"), [("prospect", "plain"), ("appraisal", "weighted")])
def test_each_action_tells_what_it_keeps_of_the_best_ones_worth_and_chance(block, estimate):
    kept, aims, edges = set(), set(), [-np.inf, *mahjong_clone.PERCENTS, np.inf]
    for move in played(3):
        _, named = seen(move.view)
        numbers = move.view.encode_actions(block, OWN.choices(move.view, move.view.legal())).astype(float)
        wins = np.array(["wins" in words for words in named.values()])
        chance = np.where(wins, 0.0, numbers[:, 2])
        shares = {"worth": numbers[:, 1], "worth after costs": numbers[:, 17], "chance to win": chance}
        if chance.any():
            shares["chance to win"] = chance / chance.max()
            best = [
                f"is the best for the chance to win by the {estimate} estimate" in words for words in named.values()
            ]
            assert wins.any() or best == (chance == chance.max()).tolist()
        for what, values in shares.items():
            ending = f" % of the best {what} by the {estimate} estimate"
            for words, value in zip(named.values(), values, strict=True):
                (told,) = [name.removeprefix("keeps ").removesuffix(ending) for name in words if name.endswith(ending)]
                at = edges.index(-np.inf if told == "less than 0" else float(told))
                assert edges[at] - 0.01 < 100 * value < edges[at + 1] + 0.01
                kept.add(told)
        for words, value in zip(named.values(), 24 * numbers[:, 10], strict=True):
            told = [int(name.split()[2]) for name in words if name.endswith(f"points by the {estimate} estimate")]
            assert len(told) == (value > 0.5) and all(points <= max(value + 0.01, 8) for points in told)
            aims |= {*told}
    assert len(kept) > 12 and len(aims) > 4


@pytest.fixture(scope="module")
def crowd():
    options = SharedOptions(quadratic=8, rectified=8, combinations=0)
    return crowd_of(SharedClone.blank(OWN, 8, 8, 1), decisions(played(14), OWN), options, 1, fresh=True)


def test_a_clone_learns_discards_and_claims_of_a_rule_player(crowd):
    tested = decisions(played(6, 1000), OWN).samples
    found = score(crowd.probabilities_of(tested), tested)
    assert found.top1 > 0.85
    assert found.log_loss < 0.6


def test_reasons_name_what_the_tile_is_and_what_the_hand_keeps(crowd):
    move = next(move for move in played(1) if len(move.legal) > 8)
    choices = OWN.choices(move.view, move.legal)
    reasons = crowd.reasons(OWN.one(move.view, choices), move.action)
    weights = [abs(reason["weight"]) for reason in reasons]
    assert len(reasons) == 5 and weights == sorted(weights, reverse=True)
    assert all(isinstance(name, str) for reason in reasons for name in reason["features"])


def test_equal_decisions_give_equal_clones():
    options, some = SharedOptions(quadratic=8, rectified=8, combinations=0), decisions(played(4), OWN)
    one, again = (crowd_of(SharedClone.blank(OWN, 8, 8, 1), some, options, 1, fresh=True) for _ in range(2))
    assert np.ptp(one.parameters["weights"]) > 0
    for name, values in one.parameters.items():
        np.testing.assert_array_equal(again.parameters[name], values)
