"""fm-clone: a player learned after a crowd, with pairs that grow beside the crowd's machine."""

from dataclasses import replace

import numpy as np
import pytest
import safetensors.numpy

from bothost import PlayerMove, rules
from bothost.rules import doudizhu
from bothost_fm_clone import mixed, pairs
from bothost_fm_clone.crowd import SharedOptions, crowd_of
from bothost_fm_clone.encode import encoding
from bothost_fm_clone.fit import score, softmax
from bothost_fm_clone.mixed import best_shares, player_after
from bothost_fm_clone.player import player_of
from bothost_fm_clone.samples import decisions
from bothost_fm_clone.shared import SharedClone, load
from bothost_fm_clone.sight import REVISION, sight

GAME = rules.game("doudizhu")
OWN = encoding("doudizhu")


def played(hands, choice):
    """Decisions of a player who sits at every seat."""
    moves = []
    for hand in hands:
        state = GAME.new_state(hand)
        while not state.terminal:
            seat = state.to_act[0]
            view = state.view(seat)
            action = choice(view)[0]
            moves.append(PlayerMove(GAME, f"{hand:032x}", "train", "ada", seat, view, view.legal(), action, 0, None))
            state.apply(seat, action)
    return decisions(moves, OWN)


@pytest.fixture(scope="module")
def crowd():
    """It goes by the rule player, and has combinations."""
    blank = SharedClone.blank(OWN, 4, 4, 1)
    first = len(blank.sight.positions)
    blank = replace(blank, pairs=np.array([[3, first + 5], [first + 2, first + 7]], np.int32))
    options = SharedOptions(quadratic=4, rectified=4, passes=3)
    return crowd_of(blank, played(range(100, 108), doudizhu.rule_choice), options, 1, fresh=True)


@pytest.fixture(scope="module")
def learnt():
    return played(range(10), doudizhu.rhcp_choice)


@pytest.fixture
def early(monkeypatch, learnt):
    """Few decisions are enough, and fits are short."""
    monkeypatch.setattr(mixed, "LEAST", len(learnt))
    monkeypatch.setattr(mixed, "MANY", len(learnt))
    monkeypatch.setattr(mixed, "STEPS", 120)


def test_with_enough_decisions_pairs_help_the_machine(crowd, learnt, early):
    tested = played(range(20, 28), doudizhu.rhcp_choice).samples
    clone, told = player_after(crowd, learnt, 1)
    alone, told_alone = player_of(crowd, learnt, 1)
    assert told["share_of_pairs"] > 0 and told["log_loss"] == told_alone["log_loss"]
    found, before = (score(each.probabilities_of(tested), tested) for each in (clone, alone))
    assert found.log_loss < before.log_loss
    again, _ = player_after(crowd, learnt, 1)
    np.testing.assert_array_equal(again.probabilities_of(tested), clone.probabilities_of(tested))


def test_with_few_decisions_or_one_hand_the_machine_predicts_alone(crowd, learnt, early, monkeypatch):
    monkeypatch.setattr(pairs.Pairs, "__init__", None)
    for few in (learnt.where(np.arange(len(learnt)) > 0), replace(learnt, hands=np.zeros_like(learnt.hands))):
        clone, told = player_after(crowd, few, 1)
        assert len(clone.pairs) == 2 and "share_of_pairs" not in told


def test_of_many_decisions_some_hands_grow_pairs(crowd, learnt, early, monkeypatch):
    grown = []
    begin = pairs.Pairs.__init__
    monkeypatch.setattr(
        pairs.Pairs, "__init__", lambda self, some, *a, **k: grown.append(some) or begin(self, some, *a, **k)
    )
    monkeypatch.setattr(mixed, "MOST", len(learnt) // 2)
    _, told = player_after(crowd, learnt, 1)
    (some,) = grown
    assert 0.2 * len(learnt) < len(some) < 0.7 * len(learnt) and told["share_of_machine"]
    assert all((learnt.hands == hand).sum() == (some.hands == hand).sum() for hand in np.unique(some.hands))


def test_a_crowd_of_an_earlier_release_has_no_pairs_of_newer_features(learnt, early):
    blank = SharedClone.blank(OWN, 2, 2, 1, REVISION - 1)
    clone, told = player_after(blank, learnt, 1)
    assert clone.revision == REVISION - 1 and "share_of_pairs" not in told


def test_pairs_that_do_not_help_are_left_out(crowd, learnt, early, monkeypatch):
    monkeypatch.setattr(mixed, "SHARES", ((0.0, 1.0), (50.0, 0.0)))
    clone, told = player_after(crowd, learnt, 1)
    assert len(clone.pairs) == 2 and "share_of_pairs" not in told


def test_the_scores_are_the_sum_of_both_by_their_shares(crowd, learnt, early, monkeypatch):
    monkeypatch.setattr(mixed, "SHARES", ((0.8, 0.1),))
    clone, told = player_after(crowd, learnt, 1)
    parts = pairs.left_out(learnt, 1)[: mixed.FITS]
    grown = pairs.Pairs(sight(OWN.game).of(learnt), parts, OWN, most=mixed.STEPS).clone()
    machine, _ = player_of(crowd, learnt, 1)
    samples = learnt.samples
    scores = [np.log(each.probabilities_of(samples)) for each in (grown, machine)]
    shares = told["share_of_pairs"], told["share_of_machine"]
    assert shares == (0.4, 0.55)  # half the way to the best ones
    expected = softmax(shares[0] * scores[0] + shares[1] * scores[1], np.diff(samples.legal.offsets))
    np.testing.assert_allclose(clone.probabilities_of(samples), expected, rtol=2e-3, atol=1e-5)
    np.testing.assert_array_equal(clone.pairs, np.concatenate([machine.pairs, grown.pairs]))
    one = samples.take(np.array([3]))
    assert clone.reasons(one, int(one.labels[0]))


def test_a_clone_that_learns_again_has_each_pair_once(crowd, learnt, early, monkeypatch):
    first, _ = player_after(crowd, learnt, 1)
    again, _ = player_after(first, learnt, 1)
    assert len(np.unique(again.pairs, axis=0)) == len(again.pairs) > len(first.pairs) / 2
    samples = learnt.samples
    two = replace(SharedClone.blank(OWN, 0, 0, 1), pairs=first.pairs[[0, 5]])
    weights = np.zeros(two.shape.choices, np.float32)
    weights[-2:] = 0.5, 0.25
    two = replace(two, parameters={**two.parameters, "weights": weights})
    both = mixed.mixed(two, first, (1.0, 1.0))
    assert len(both.pairs) == len(first.pairs)
    expected = np.log(two.probabilities_of(samples)) + np.log(first.probabilities_of(samples))
    expected = softmax(expected, np.diff(samples.legal.offsets))
    np.testing.assert_allclose(both.probabilities_of(samples), expected, rtol=2e-3, atol=1e-5)
    monkeypatch.setattr(mixed, "MOST_PAIRS", len(first.pairs))
    assert len(player_after(first, learnt, 1)[0].pairs) == len(first.pairs)


def test_the_best_shares_are_those_with_the_least_loss(crowd, learnt):
    blank = SharedClone.blank(OWN, 0, 0, 1)  # all candidates are equally likely to it
    tried = ((1.0, 0.0), (1.0, 1.0), (0.0, 3.0))
    shares, loss = best_shares([blank], [crowd], [sight(OWN.game).of(learnt).samples], tried)
    lengths = np.diff(learnt.samples.legal.offsets)
    logs = np.log(crowd.probabilities_of(learnt.samples))
    losses = [score(softmax(share * logs, lengths), learnt.samples).log_loss for _, share in tried]
    assert shares == tried[int(np.argmin(losses))] and loss == pytest.approx(min(losses))


def test_a_file_has_no_factors_of_combinations(crowd, learnt, early, tmp_path):
    clone = player_after(crowd, learnt, 1)[0].rounded
    assert len(clone.pairs) > 50
    clone.save(tmp_path / "doudizhu.safetensors")
    tensors = safetensors.numpy.load_file(tmp_path / "doudizhu.safetensors")
    known = clone.sight
    assert len(tensors["factors"]) == 8 * (len(known.positions) + len(known.choices) + 1)
    loaded = load(tmp_path / "doudizhu.safetensors", "doudizhu")
    for name, values in clone.parameters.items():
        np.testing.assert_array_equal(loaded.parameters[name], values)
    # Earlier releases wrote the zeros.
    tensors["factors"] = clone.parameters["factors"].astype(np.float16)
    metadata = {"game": "doudizhu", "encoder_version": "2", "features": str(REVISION), "symmetric": "yes"}
    (tmp_path / "doudizhu.safetensors").write_bytes(safetensors.numpy.save(tensors, metadata))
    loaded = load(tmp_path / "doudizhu.safetensors", "doudizhu")
    np.testing.assert_array_equal(loaded.parameters["factors"], clone.parameters["factors"])
