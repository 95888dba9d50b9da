"""fm-clone: a player learned without a crowd."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import safetensors.numpy

from bothost import PlayerMove, TrainingRun, rules
from bothost.errors import ModelError, UsageError
from bothost.rules import doudizhu
from bothost_fm_clone import alone, pairs
from bothost_fm_clone.alone import player_alone
from bothost_fm_clone.encode import encoding
from bothost_fm_clone.files import load_any
from bothost_fm_clone.fit import score
from bothost_fm_clone.mixed import mixed
from bothost_fm_clone.samples import decisions
from bothost_fm_clone.shared import SharedClone, load
from bothost_fm_clone.sight import REVISION, sight
from bothost_fm_clone.train import FmCloneTrainer, TrainOptions

GAME = rules.game("doudizhu")
OWN = encoding("doudizhu")
KNOWN = sight("doudizhu")


class Log:
    """Hands of three rule players. Only ada's moves are told; she sits at another seat each hand."""

    def __init__(self, hands):
        self.hands = hands

    def moves(self, game, players=(), *, split=None):
        for hand in range(self.hands):
            state = GAME.new_state(hand)
            while not state.terminal:
                seat = state.to_act[0]
                view = state.view(seat)
                action = doudizhu.rhcp_choice(view)[0]
                part = "test" if hand % 4 == 0 else "train"
                if seat == hand % 3 and split in (None, part):
                    yield PlayerMove(GAME, f"{hand:032x}", part, "ada", seat, view, view.legal(), action, 0, None)
                state.apply(seat, action)

    def lineage(self):
        return {"hands": self.hands}


@cache
def of_ada(hands):
    """Ada's decisions, and what the clone sees of them."""
    some = decisions(Log(hands).moves("doudizhu"), OWN)
    return some, KNOWN.seen(some.samples)


def by_rule(count, chosen):
    """Decisions of ada: ``chosen`` picks the class from a position and its candidates."""
    some, seen = of_ada(count)
    labels = [chosen(seen, row) for row in range(len(some))]
    return replace(some, samples=replace(some.samples, labels=np.array(labels, np.int32)))


def candidates(seen, row):
    begin, end = seen.legal.offsets[row : row + 2]
    return [(int(seen.legal.items[n]), set(seen.alternatives[int(n)].tolist())) for n in range(begin, end)]


@pytest.fixture
def short(monkeypatch):
    """Fits end early. These players always do the same, so that each further step would bring a little."""
    monkeypatch.setattr(pairs, "STEPS", 250)


def rest(hand, action):
    for card in doudizhu.move(action).cards:
        hand = hand.replace(card, "", 1)
    return hand


def test_each_candidate_tells_what_the_rest_of_the_hand_is_worth():
    moves = [move for move in Log(3).moves("doudizhu") if len(OWN.choices(move.view, move.legal)) > 1]
    told = set()
    for move in moves:
        choices = OWN.choices(move.view, move.legal)
        seen = KNOWN.seen(OWN.one(move.view, choices))
        hand = move.view.to_json()["hand"]
        for row, cls in enumerate(choices):
            # The kickers are those whose loss leaves the most.
            worth = max(doudizhu.hand_value(rest(hand, action)) for action in OWN.actions(move.legal, cls))
            names = {KNOWN.choices[item] for item in seen.alternatives[row]}
            assert {name for name in names if "worth" in name} == {f"keeps a hand worth {round(worth)} points"}
            told.add(round(worth))
    assert len(told) > 20


@pytest.mark.parametrize("game", ["doudizhu", "othello", "mahjong"])
@pytest.mark.parametrize("revision", range(REVISION + 1))
def test_a_file_says_which_features_its_clone_sees(game, revision, tmp_path):
    path = tmp_path / f"{game}.safetensors"
    made = SharedClone.blank(encoding(game), 2, 3, 1, revision)
    made.save(path)
    again = load(path, game)
    assert again.revision == revision and again.shape == made.shape
    newest = sight(game).choices
    assert again.sight.choices == newest[: len(again.sight.choices)]
    assert (again.sight.choices == newest) == (revision >= 3)


@pytest.mark.parametrize(("told", "revision"), [({}, 0), ({"valued": "yes"}, 1)])
def test_files_of_earlier_releases_have_the_features_of_their_time(told, revision, tmp_path):
    path = tmp_path / "othello.safetensors"
    SharedClone.blank(encoding("othello"), 2, 3, 1, revision).save(path)
    with_metadata(path, {"game": "othello", "encoder_version": "2", **told})
    assert load(path, "othello").revision == revision


@pytest.mark.parametrize("revision", ["-1", str(REVISION + 1), "new", "9" * 5000])
def test_a_file_with_features_of_later_releases_is_refused(revision, tmp_path):
    path = tmp_path / "othello.safetensors"
    SharedClone.blank(encoding("othello"), 2, 3, 1).save(path)
    with_metadata(path, {"game": "othello", "encoder_version": "2", "features": revision})
    with pytest.raises(ModelError, match="not a clone"):
        load(path, "othello")


def with_metadata(path, metadata):
    path.write_bytes(safetensors.numpy.save(safetensors.numpy.load_file(path), metadata))


def test_a_habit_that_is_a_pair_of_features_is_found_with_few_hands(short):
    """The player takes a certain candidate in one situation, and the first one in all others."""
    _, seen = of_ada(20)
    common = np.bincount(seen.features.items, minlength=len(KNOWN.positions)) / len(seen)
    when = int(np.argmin(np.abs(common - 0.5)))
    what = KNOWN.choices.index("no other player can hold a higher move of its kind")

    def chosen(seen, row):
        found = candidates(seen, row)
        wanted = [move for move, features in found if what in features]
        return wanted[0] if wanted and when in seen.features[row] else found[0][0]

    learnt, tested = by_rule(20, chosen), by_rule(40, chosen)
    tested = tested.where(tested.hands >= 20)
    clone, told = player_alone(OWN, learnt, 1)
    assert told["method"] == "pairs"
    lengths = np.diff(tested.samples.legal.offsets)
    found = score(clone.probabilities_of(tested.samples), tested.samples)
    assert found.top1 > 0.8 and found.log_loss < 0.5 * np.log(lengths).mean()
    assert len(clone.pairs) and clone.pairs[:, 1].min() >= len(KNOWN.positions)


def test_a_liking_that_grows_with_a_number_is_found_with_few_hands(short):
    """The player keeps as few cards as possible. Few hands do not show each number of cards beside each other one."""
    kept = {KNOWN.choices.index("keeps 1 card"): 1}
    kept |= {KNOWN.choices.index(f"keeps {cards} cards"): cards for cards in range(2, 21)}

    def chosen(seen, row):
        return min(candidates(seen, row), key=lambda each: sum(kept.get(n, 0) for n in each[1]))[0]

    learnt, tested = by_rule(10, chosen), by_rule(40, chosen)
    tested = tested.where(tested.hands >= 20)
    clone, _ = player_alone(OWN, learnt, 1)
    assert score(clone.probabilities_of(tested.samples), tested.samples).top1 > 0.9


def test_a_clone_has_at_most_as_many_pairs_as_its_file_may_have(tmp_path, monkeypatch):
    learnt = decisions(Log(12).moves("doudizhu", split="train"), OWN)
    monkeypatch.setattr(pairs, "STEPS", 80)
    every, _ = player_alone(OWN, learnt, 3)
    most = len(every.pairs) // 2
    monkeypatch.setattr(pairs, "MOST_PAIRS", most)
    some, _ = player_alone(OWN, learnt, 3)
    of_pairs = [np.abs(clone.parameters["weights"][-len(clone.pairs) :]) for clone in (every, some)]
    np.testing.assert_array_equal(np.sort(of_pairs[1]), np.sort(of_pairs[0])[-most:])
    assert {*map(tuple, some.pairs.tolist())} < {*map(tuple, every.pairs.tolist())} and most > 10


def test_it_is_the_same_each_time_and_survives_its_file(tmp_path):
    learnt = decisions(Log(8).moves("doudizhu", split="train"), OWN)
    (clone, told), (again, _) = (player_alone(OWN, learnt, 3) for _ in range(2))
    assert 0 < told["log_loss"] < 3
    np.testing.assert_array_equal(clone.pairs, again.pairs)
    np.testing.assert_array_equal(clone.parameters["weights"], again.parameters["weights"])
    clone.rounded.save(tmp_path / "doudizhu.safetensors")
    loaded = load(tmp_path / "doudizhu.safetensors", "doudizhu")
    one = learnt.samples.take(np.array([5]))
    np.testing.assert_array_equal(loaded.odds(one), clone.rounded.odds(one))
    reasons = loaded.reasons(one, int(one.labels[0]))
    assert reasons and all(isinstance(reason["weight"], float) for reason in reasons)


def test_the_scores_of_pairs_and_a_machine_are_added(tmp_path, monkeypatch):
    learnt = decisions(Log(10).moves("doudizhu", split="train"), OWN)
    grown, _ = player_alone(OWN, learnt, 3)
    monkeypatch.setattr(alone, "FEW", 1)
    joined, told = player_alone(OWN, learnt, 3)
    assert told["method"].startswith("pairs and ")
    np.testing.assert_array_equal(joined.pairs, grown.pairs)
    monkeypatch.setattr(alone, "MANY", 1)
    fewer, told = player_alone(OWN, learnt, 3)
    assert told["method"].startswith("pairs and ") and not np.array_equal(fewer.pairs, joined.pairs)
    monkeypatch.setattr(alone, "MOST", 1)
    machine, told = player_alone(OWN, learnt, 3)
    assert told["method"] == f"{machine.quadratic} factors"

    one = learnt.samples.take(np.array([5]))
    scores = np.log([grown.odds(one), machine.odds(one)])
    for shares in ((0.8, 0.3), (1.0, 0.0)):
        expected = np.exp(shares @ scores)
        both = mixed(grown, machine, shares)
        np.testing.assert_allclose(both.odds(one), expected / expected.sum(), rtol=2e-3)
    joined.rounded.save(tmp_path / "doudizhu.safetensors")
    loaded = load(tmp_path / "doudizhu.safetensors", "doudizhu")
    np.testing.assert_array_equal(loaded.odds(one), joined.rounded.odds(one))
    assert loaded.reasons(one, int(one.labels[0]))


def test_the_trainer_learns_without_a_crowd(tmp_path, monkeypatch):
    monkeypatch.setattr(pairs, "FOLDS", 2)
    run = TrainingRun(out=tmp_path / "ada", seed=1, players=("ada",), log=Log(16))
    figures = FmCloneTrainer(TrainOptions(crowd="none", curve=True)).train(run, lambda *told: None)
    losses = [point["held_out_log_loss"] for point in figures["curve"]]
    assert [point["hands"] for point in figures["curve"]] == [0, 5, 10, 12]
    assert losses[-1] < losses[0]
    assert "crowd" not in figures and "crowd_on_player" not in figures
    assert load_any(run.out / "weights" / "v1" / "doudizhu.safetensors", "doudizhu").directions is None


@pytest.mark.parametrize("players, hands", [((), 8), (("ada",), 2)])
def test_it_needs_a_player_and_two_hands(tmp_path, players, hands):
    run = TrainingRun(out=tmp_path / "out", players=players, log=Log(hands))
    with pytest.raises(UsageError, match="two hands"):
        FmCloneTrainer(TrainOptions(crowd="none")).train(run, lambda *told: None)


def test_only_the_shared_machine_can_do_without_a_crowd():
    with pytest.raises(ValueError, match="method shared"):
        TrainOptions(crowd="none", method="per-class")


def test_one_hand_is_too_few():
    with pytest.raises(ValueError, match="two hands"):
        TrainOptions(crowd="none", hands=1)
