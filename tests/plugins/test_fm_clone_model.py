"""A clone: its file, its probabilities in live play, and its reasons."""

import numpy as np
import pytest
import safetensors.numpy

from bothost import ModelError, rules
from bothost.training.logistic import Linear
from bothost_fm_clone.combinations import Combinations
from bothost_fm_clone.encode import VERSION, encoding
from bothost_fm_clone.model import Clone, file_of, load

OTHELLO = rules.game("othello")


def small_clone():
    own = encoding("othello")
    rng = np.random.default_rng(3)
    combinations = Combinations(192, np.array([[0, 5], [7, 192]], np.int32))
    shapes = (194, 65), 65, (len(own.leaves), 65)
    linear = Linear(*(rng.normal(0, 1, shape).astype(np.float32) for shape in shapes))
    return Clone(own, combinations, linear).rounded


def test_a_clone_comes_back_from_its_file_as_it_was(tmp_path):
    clone = small_clone()
    clone.save(tmp_path / "othello.safetensors")
    again = load(tmp_path / "othello.safetensors", "othello")
    np.testing.assert_array_equal(again.linear.weights, clone.linear.weights)
    np.testing.assert_array_equal(again.linear.alternatives, clone.linear.alternatives)
    np.testing.assert_array_equal(again.combinations.pairs, clone.combinations.pairs)
    for number in range(12):
        again.save(tmp_path / f"{number}.safetensors")
        assert (tmp_path / f"{number}.safetensors").read_bytes() == (tmp_path / "othello.safetensors").read_bytes()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"pairs": np.array([[0, 500]], np.int32)}, "combination"),
        ({"weights": np.zeros((10, 65), np.float16)}, "weights are"),
        ({"weights": np.zeros((194, 65), np.float32)}, "the wrong types"),
        ({"bias": np.full(65, np.nan, np.float32)}, "not all finite"),
        ({"afterstates": np.zeros((3, 65), np.float16)}, "afterstates are"),
        ({"bias": None}, "bias"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path, change, words):
    path = tmp_path / "othello.safetensors"
    small_clone().save(path)
    tensors = {**safetensors.numpy.load_file(path), **change}
    kept = {name: values for name, values in tensors.items() if values is not None}
    safetensors.numpy.save_file(kept, path, {"game": "othello", "encoder_version": str(VERSION)})
    with pytest.raises(ModelError, match=words):
        load(path, "othello")
    with pytest.raises(ModelError, match="it is for othello"):
        small_clone().save(path)
        load(path, "doudizhu")
    path.write_bytes(b"nothing")
    with pytest.raises(ModelError, match="is not a clone"):
        load(path, "othello")


def test_live_play_computes_what_was_trained():
    clone, view = small_clone(), OTHELLO.new_state(1).view(0)
    own = encoding("othello")
    one = own.one(view, own.choices(view, view.legal()))
    np.testing.assert_allclose(clone.odds(one), clone.probabilities_of(one), rtol=1e-5)


def test_reasons_add_up_to_how_the_choice_moved():
    clone, view = small_clone(), OTHELLO.new_state(1).view(0)
    own, legal = encoding("othello"), view.legal()
    one = own.one(view, own.choices(view, legal))
    told = clone.reasons(one, int(legal[1]), count=500)
    odds = clone.probabilities_of(one)
    scores = np.log(odds) - clone.linear.bias[legal]
    assert sum(reason["weight"] for reason in told) == pytest.approx(scores[1] - odds @ scores, abs=0.05)
    known = {*own.features, *own.leaves}
    assert {name.removeprefix("not: ") for reason in told for name in reason["features"]} <= known
    weightiest = [abs(reason["weight"]) for reason in told]
    assert weightiest == sorted(weightiest, reverse=True)


def test_file_names():
    assert file_of("doudizhu") == "doudizhu.safetensors"
