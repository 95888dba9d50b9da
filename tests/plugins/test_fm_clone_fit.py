"""fm-clone's last layer: how close a player's stays to the crowd's, and what a crowd's is chosen by."""

import numpy as np
import pytest

from bothost.training.factorization import Samples, SparseRows
from bothost.training.logistic import Linear
from bothost_fm_clone.fit import CROWD_PENALTIES, PLAYER_PENALTIES, adapt, brier, score
from bothost_fm_clone.samples import Decisions

FEATURES, CLASSES = 24, 5
GROUPS = np.zeros(CLASSES, np.int32)


def crowd_layer(seed, sure=1.5):
    rng = np.random.default_rng(seed)
    return Linear(rng.normal(0, sure, (FEATURES, CLASSES)).astype(np.float32), np.zeros(CLASSES, np.float32))


def made_by(layer, hands, seed, players=("ada",)):
    """Decisions of players who all follow a layer, ten a hand."""
    rng = np.random.default_rng(seed)
    count = 10 * hands
    features = SparseRows.of(np.flatnonzero(rng.random(FEATURES) < 0.3) for _ in range(count))
    legal = SparseRows.of([np.arange(CLASSES)] * count)
    odds = layer.probabilities(features, legal).reshape(count, CLASSES).astype(np.float64)
    labels = [rng.choice(CLASSES, p=row / row.sum()) for row in odds]
    hand = np.arange(count) // 10
    return Decisions(
        Samples(features, legal, np.array(labels, np.int32)),
        hand,
        rng.random(hands)[hand],
        np.zeros(count, np.bool_),
        np.array([players[n % len(players)] for n in hand], object),
    )


def log_loss(layer, some):
    samples = some.samples
    return score(layer.probabilities(samples.features, samples.legal), samples).log_loss


def test_a_player_like_the_crowd_gets_the_crowds_layer():
    crowd = crowd_layer(1)
    found, chosen = adapt(made_by(crowd, 40, 2), crowd, GROUPS, PLAYER_PENALTIES)
    fresh = made_by(crowd, 100, 3)
    assert chosen["penalty"] >= 300.0
    assert log_loss(found, fresh) < log_loss(crowd, fresh) + 0.02


def test_a_player_like_the_crowd_but_less_sure_is_predicted_with_less():
    crowd = crowd_layer(4)
    player = Linear(0.5 * crowd.weights, crowd.bias)
    found, _ = adapt(made_by(player, 40, 5), crowd, GROUPS, PLAYER_PENALTIES)
    fresh = made_by(player, 100, 6)
    assert log_loss(found, fresh) < log_loss(player, fresh) + 0.02 < log_loss(crowd, fresh) - 0.1


def test_a_player_unlike_the_crowd_gets_a_layer_of_their_own():
    crowd, player = crowd_layer(7), crowd_layer(8)
    found, chosen = adapt(made_by(player, 200, 9), crowd, GROUPS, PLAYER_PENALTIES)
    fresh = made_by(player, 100, 10)
    assert chosen["penalty"] < 300.0
    assert log_loss(found, fresh) < log_loss(player, fresh) + 0.2 < log_loss(crowd, fresh) - 0.5


def test_a_crowd_is_chosen_by_players_that_it_has_none_of():
    """Each of four players has a habit, told by a feature of their own: it says nothing of a fifth."""
    rng = np.random.default_rng(11)
    some = made_by(Linear.zeros(FEATURES, CLASSES), 80, 12, players=("ada", "bob", "cyd", "dan"))
    names = some.players.tolist()
    habit = {"ada": 0, "bob": 1, "cyd": 2, "dan": 3}
    labels = np.array([habit[name] if rng.random() < 0.8 else rng.integers(CLASSES) for name in names], np.int32)
    crowd = Decisions(
        Samples(SparseRows.of([[habit[name], 10] for name in names]), some.samples.legal, labels),
        some.hands,
        some.parts,
        some.held_out,
        some.players,
    )
    one = Decisions(crowd.samples, crowd.hands, crowd.parts, crowd.held_out, np.full(len(crowd), "ada", object))
    start = Linear.zeros(FEATURES, CLASSES)
    by_players, by_hands = (adapt(each, start, GROUPS, CROWD_PENALTIES)[1]["penalty"] for each in (crowd, one))
    assert by_players == max(CROWD_PENALTIES) and by_hands == min(CROWD_PENALTIES)


def test_scores_are_agreement_and_log_loss():
    samples = Samples(SparseRows.of([[0], [0]]), SparseRows.of([[0, 1], [1, 2, 3]]), np.array([1, 1], np.int32))
    found = score(np.array([0.25, 0.75, 0.2, 0.3, 0.5], np.float32), samples)
    assert found.top1 == 0.5 and found.decisions == 2
    assert found.log_loss == pytest.approx(-(np.log(0.75) + np.log(0.2)) / 2)


def test_brier_scores_are_squared_distances():
    samples = Samples(SparseRows.of([[], []]), SparseRows.of([[0, 2], [1, 2, 3]]), np.array([2, 1], np.int32))
    odds = np.array([0.25, 0.75, 0.5, 0.25, 0.25], np.float32)
    np.testing.assert_allclose(brier(odds, samples), [2 * 0.0625, 0.25 + 2 * 0.0625])
