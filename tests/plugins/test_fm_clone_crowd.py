"""fm-clone: the several machines that learn a crowd, and their mean."""

from dataclasses import replace

import numpy as np
import pytest

import bothost_fm_clone.crowd
from bothost import PlayerMove, rules
from bothost.rules import doudizhu
from bothost_fm_clone.crowd import SharedOptions, crowd_of, mean_of
from bothost_fm_clone.encode import encoding
from bothost_fm_clone.fit import score, softmax
from bothost_fm_clone.samples import decisions
from bothost_fm_clone.shared import SharedClone, load

GAME, OWN = rules.game("doudizhu"), encoding("doudizhu")
PLAYERS = {"ada": doudizhu.rhcp_choice, "bob": doudizhu.rule_choice}


def played(hands):
    moves = []
    for hand in hands:
        state = GAME.new_state(hand)
        while not state.terminal:
            seat = state.to_act[0]
            view, player = state.view(seat), ("ada", "bob")[(seat + hand) % 2]
            action = PLAYERS[player](view)[0]
            moves.append(PlayerMove(GAME, f"{hand:032x}", "train", player, seat, view, view.legal(), action, 0, None))
            state.apply(seat, action)
    return decisions(moves, OWN)


@pytest.fixture(scope="module")
def learnt():
    return played(range(12))


@pytest.fixture(scope="module")
def tested():
    return played(range(100, 110)).samples


def blank(quadratic=6, rectified=9):
    made = SharedClone.blank(OWN, quadratic, rectified, 1)
    first = len(made.sight.positions)
    return replace(made, pairs=np.array([[3, first + 5], [first + 2, first + 7]], np.int32))


def crowd(learnt, machines, quadratic=6, rectified=9):
    options = SharedOptions(quadratic=quadratic, rectified=rectified, machines=machines, passes=3)
    return crowd_of(blank(quadratic, rectified), learnt, options, 1, fresh=True)


@pytest.fixture(scope="module")
def mean(learnt):
    return crowd(learnt, None)


def test_the_mean_has_the_means_of_the_scores(learnt, tested, tmp_path):
    some = [crowd(learnt, 1, quadratic, rectified) for quadratic, rectified in ((3, 5), (0, 4), (6, 0))]
    mean = mean_of(some)
    assert (mean.quadratic, mean.rectified) == (9, 9)
    logs = np.mean([np.log(clone.probabilities_of(tested)) for clone in some], axis=0, dtype=np.float64)
    expected = softmax(logs, np.diff(tested.legal.offsets))
    np.testing.assert_allclose(mean.probabilities_of(tested), expected, atol=1e-5)
    mean.save(tmp_path / "mean.safetensors")
    again = load(tmp_path / "mean.safetensors", "doudizhu").probabilities_of(tested)
    np.testing.assert_allclose(again, expected, atol=5e-3)


def test_machines_share_the_factors_of_the_clone(mean, tested):
    assert (mean.quadratic, mean.rectified) == (6, 9)
    untrained = SharedClone.blank(OWN, 6, 9, 1)
    after, before = (score(clone.probabilities_of(tested), tested) for clone in (mean, untrained))
    assert after.log_loss < before.log_loss


def test_a_crowd_may_have_fewer_factors_than_machines(learnt, tested):
    found = crowd(learnt, 4, 0, 2)
    assert (found.quadratic, found.rectified) == (0, 2)
    assert np.isfinite(found.probabilities_of(tested)).all()


def test_the_mean_of_machines_predicts_better_than_one_of_its_size(mean, learnt, tested):
    one, several = (score(clone.probabilities_of(tested), tested) for clone in (crowd(learnt, 1), mean))
    assert several.log_loss < one.log_loss


def test_with_many_decisions_one_machine_learns(learnt, monkeypatch):
    monkeypatch.setattr(bothost_fm_clone.crowd, "MANY", len(learnt))
    found, one = (crowd(learnt, machines).parameters for machines in (None, 1))
    for name, values in one.items():
        np.testing.assert_array_equal(found[name], values)


def test_a_crowd_that_is_not_fresh_learns_on_as_one_machine(mean):
    more = played(range(20, 26))
    on = crowd_of(mean, more, SharedOptions(passes=1), 1, fresh=False)
    assert (on.quadratic, on.rectified) == (mean.quadratic, mean.rectified)
    before, after = (score(clone.probabilities_of(more.samples), more.samples) for clone in (mean, on))
    assert after.log_loss < before.log_loss
