"""fm-clone: what it sees, how its features grow, what it learns from a player, and how it plays."""

import json

import numpy as np
import pytest
import safetensors.numpy

import bothost_fm_clone.train
from bothost import Budget, Model, ModelError, PlayerMove, Table, TrainingRun, rules
from bothost.errors import UsageError
from bothost.plugins import weights
from bothost.rules import doudizhu
from bothost.training import checkpoint
from bothost.training.checkpoint import Progress
from bothost.training.factorization import FactorizationMachine, Samples, SparseRows
from bothost.training.logistic import Linear
from bothost_fm_clone.combinations import Combinations
from bothost_fm_clone.decide import FmClone, PlayOptions
from bothost_fm_clone.encode import VERSION, complete, encoding
from bothost_fm_clone.fit import adapt, brier, score
from bothost_fm_clone.grow import GrowOptions, Growth, grow
from bothost_fm_clone.model import Clone, file_of, load
from bothost_fm_clone.samples import decisions
from bothost_fm_clone.train import FmCloneTrainer, TrainOptions

DOUDIZHU, OTHELLO = rules.game("doudizhu"), rules.game("othello")
FOREVER = Budget(deadline=float("inf"))
SMALL = GrowOptions(limit=1092, per_round=4, factors=4, first_epochs=1)


def names(view):
    own = encoding(view.game.name)
    return [own.features[index] for index in own.encode(view)]


# What it sees.


def test_a_hand_written_position_of_dou_dizhu_has_these_features():
    hands = ["33334444555566667", "77788889999TTTTJJ", "JJQQQQKKKKAAAA222"]
    state = DOUDIZHU.state_from_deal({"hands": hands, "bottom": "2BR", "first": 0})
    for move in ("7", "8", "pass", "pass", "99", "pass"):
        state.apply(state.to_act[0], DOUDIZHU.parse(move))
    found = names(state.view(0))
    held = {name.removeprefix("holds ") for name in found if name.startswith("holds ")}
    assert {"3", "3333", "333*", "33", "333444", "333444555666", "BR"} <= held
    assert "7" not in held and "3333**" in held
    assert [name for name in found if name.startswith("to beat")] == ["to beat 99", "to beat the next player"]
    assert "leads" not in found and "is landlord" in found
    assert "unseen 8888" not in found and "unseen 888" in found and "unseen 7777" not in found
    assert "next has 14 cards" in found and "previous has 17 cards" in found
    assert "previous passed on 8" in found and "previous passed on 99 with two cards" not in found


def test_a_hand_written_position_of_othello_has_these_features():
    view = OTHELLO.new_state(0).view(0)
    found = names(view)
    assert len(found) == 64
    assert {name for name in found if not name.startswith("empty")} == {"own e4", "own d5", "enemy d4", "enemy e5"}
    assert encoding("othello").choices(view, view.legal()).tolist() == view.legal().tolist()


def played(game, seed, moves):
    """A state after some random moves, at which there is a choice."""
    rng, state = np.random.default_rng(seed), game.new_state(seed)
    while not state.terminal and (moves > 0 or len(state.view(state.to_act[0]).legal()) < 3):
        state.apply(state.to_act[0], int(rng.choice(state.view(state.to_act[0]).legal())))
        moves -= 1
    return state


@pytest.mark.parametrize(("game", "moves"), [(DOUDIZHU, 0), (DOUDIZHU, 14), (OTHELLO, 9), (OTHELLO, 40)])
def test_an_afterstate_is_what_the_mover_sees_after_the_move(game, moves):
    own = encoding(game.name)
    state = next(made for seed in range(50) if not (made := played(game, seed, moves)).terminal)
    seat = state.to_act[0]
    view = state.view(seat)
    choices = own.choices(view, view.legal())
    found = own.afterstates(SparseRows.of([own.encode(view)]), SparseRows.of([choices]))
    assert len(found) == len(choices) > 1
    for row, chosen in enumerate(choices):
        after = state.clone()
        after.apply(seat, complete(view, own.actions(view.legal(), int(chosen))))
        seen = after.view(seat)
        told = {own.leaves[index] for index in found[row]}
        base = {f"leaves {name.removeprefix('holds ')}" for name in names(seen)}
        if game is OTHELLO:
            assert base <= told
            replies = [] if after.terminal else after.view(1 - seat).legal()
            assert any(name.startswith(f"leaves {sum(r != 64 for r in replies)} repl") for name in told)
            continue
        held = {f"leaves {name.removeprefix('holds ')}" for name in names(seen) if name.startswith("holds ")}
        left = seen.to_json()["hand"]
        counted = {name for name in told if name.endswith(("cards", "card", "plays", "play"))}
        assert told - counted - {"is highest"} == held
        plays = doudizhu.fewest_plays(left) if left else 0
        assert counted & {f"leaves {len(left)} cards", f"leaves {len(left)} card"}
        assert counted & {f"leaves {n} play{'s' * (n != 1)}" for n in (plays, plays - 1)}


def test_a_move_is_the_highest_of_its_kind_where_no_higher_one_is_unseen():
    hands = ["33334444555566667", "77788889999TTTTJJ", "JJQQQQKKKKAAAA222"]
    state = DOUDIZHU.state_from_deal({"hands": hands, "bottom": "2BR", "first": 0})
    own, view = encoding("doudizhu"), state.view(0)
    choices = own.choices(view, view.legal())
    found = own.afterstates(SparseRows.of([own.encode(view)]), SparseRows.of([choices]))
    highest = {own.classes[r] for row, r in enumerate(choices) if len(own.leaves) - 1 in found[row]}
    assert highest == {"2", "B", "R", "BR"}


def test_afterstates_of_what_is_no_position_are_refused():
    own = encoding("doudizhu")
    for features in ([], [308], [*range(15), *range(15, 28)], [2000]):
        with pytest.raises(ValueError, match=r"hand|too large"):
            own.afterstates(SparseRows.of([features]), SparseRows.of([[0]]))


@pytest.mark.parametrize(("game", "features", "classes"), [("doudizhu", 1082, 309), ("othello", 192, 65)])
def test_every_feature_has_a_name_of_its_own(game, features, classes):
    own = encoding(game)
    assert len(own.features) == len(set(own.features)) == features
    assert len(own.classes) == len(own.groups) == classes
    assert set(own.groups) == set(range(max(own.groups) + 1))


def test_choices_are_the_abstract_moves_and_kickers_are_those_that_spare_the_hand():
    hands = ["3337799TTJJQQKKA2", "4444555566668888R", "37799TTJJQQKKAAA2"]
    state = DOUDIZHU.state_from_deal({"hands": hands, "bottom": "22B", "first": 0})
    view = state.view(0)
    own = encoding("doudizhu")
    cls = own.classes.index("333*")
    actions = own.actions(view.legal(), cls)
    assert cls in own.choices(view, view.legal()) and len(actions) > 3
    values = {
        int(action): doudizhu.hand_value(rest(view.to_json()["hand"], doudizhu.move(action).cards))
        for action in actions
    }
    assert values[complete(view, actions)] == max(values.values())


def rest(hand, cards):
    for card in cards:
        hand = hand.replace(card, "", 1)
    return hand


# Combinations.


def test_combinations_are_evaluated_in_topological_order():
    graph = Combinations(5, np.array([[0, 1], [2, 5], [5, 6]], np.int32))
    assert graph.evaluate(np.array([0, 1, 2], np.int32)).tolist() == [0, 1, 2, 5, 6, 7]
    assert graph.evaluate(np.array([0, 1, 3], np.int32)).tolist() == [0, 1, 3, 5]
    assert graph.names(7, "abcde") == ["a", "b", "c"]
    rng = np.random.default_rng(0)
    rows = [np.flatnonzero(rng.random(5) < 0.6).astype(np.int32) for _ in range(300)]
    together = graph.extend(SparseRows.of(rows))
    for row, base in enumerate(rows):
        assert together[row].tolist() == graph.evaluate(base).tolist()


@pytest.mark.parametrize("pairs", [[[0, 5]], [[1, 0]], [[2, 2]], [[-1, 2]], [[0, 9]]])
def test_what_is_no_graph_is_refused(pairs):
    with pytest.raises(ValueError, match="combination"):
        Combinations(5, np.array(pairs, np.int32))


# Growing.


def conjunction_samples(count=1500, seed=0):
    """Of 8 features three together decide: what no pair tells."""
    rng = np.random.default_rng(seed)
    bits = rng.random((count, 8)) < 0.6
    labels = (bits[:, 0] & bits[:, 1] & bits[:, 2]).astype(np.int32)
    return Samples(SparseRows.of(np.flatnonzero(row) for row in bits), SparseRows.of([[0, 1]] * count), labels)


def brute_force_pairs(machine, samples, count):
    """The best pairs by the definition: every loss computed from the formula in float64."""
    parameters = {name: values.astype(np.float64) for name, values in machine.parameters().items()}
    features, classes = machine.features, machine.classes
    weights = parameters["weights"].reshape(features, classes)
    factors = parameters["factors"].reshape(features, -1)
    mixing = parameters["mixing"].reshape(classes, -1)
    x = np.zeros((len(samples), features))
    for s in range(len(samples)):
        x[s, samples.features[s]] = 1
    terms = np.einsum("if,jf,rf->ijr", factors, factors, mixing)
    upper = np.triu(np.ones((features, features)), 1)
    scores = parameters["bias"] + x @ weights + np.einsum("si,sj,ij,ijr->sr", x, x, upper, terms, optimize=True)

    def loss(y):
        return np.mean(np.logaddexp.reduce(y, axis=1) - y[np.arange(len(y)), samples.labels])

    found = []
    for i in range(features):
        for j in range(i + 1, features):
            both = (x[:, i] * x[:, j])[:, None]
            if not both.any():
                continue
            cut = scores - both * terms[i, j]
            least = min(loss(cut), loss(cut - x[:, [i]] * weights[i]), loss(cut - x[:, [j]] * weights[j]))
            found.append((-least, (i, j)))
    return sorted(found)[:count]


def test_a_round_chooses_the_pairs_that_brute_force_chooses():
    samples = conjunction_samples(400)
    growth = Growth(samples, Combinations(8), 2, GrowOptions(limit=12, per_round=4, factors=3, first_epochs=3), seed=5)
    done = growth.round()
    expected = brute_force_pairs(growth._machine, samples, 4)
    assert list(done.pairs) == [pair for _, pair in expected]
    np.testing.assert_allclose(done.smallest, [-loss for loss, _ in expected], rtol=1e-5)


def test_growing_finds_the_combination_of_three_that_a_machine_cannot_tell():
    samples = conjunction_samples()
    options = GrowOptions(limit=14, per_round=2, factors=4, first_epochs=10, epochs=3, deviation=0.2)
    growth = Growth(samples, Combinations(8), 2, options, seed=1)
    while not growth.over and growth.round().pairs:
        pass
    assert frozenset({0, 1, 2}) in growth.combinations.made_of


def test_no_feature_is_made_twice_and_none_is_set_where_another_is():
    rng = np.random.default_rng(2)
    rows = [np.flatnonzero(row) for row in rng.random((200, 5)) < 0.5]
    rows = [np.concatenate([row, [5]]) if 4 in row else row for row in rows]  # 5 is set just where 4 is
    samples = Samples(SparseRows.of(rows), SparseRows.of([[0, 1, 2]] * 200), rng.integers(0, 3, 200).astype(np.int32))
    growth = Growth(samples, Combinations(6), 3, GrowOptions(limit=500, per_round=7, factors=2), seed=0)
    while growth.round().pairs:
        pass
    made = growth.combinations.made_of
    assert len(set(made)) == len(made)
    grown = growth.combinations.extend(samples.features)
    columns = [tuple(s for s in range(200) if n in set(grown[s].tolist())) for n in range(6, len(made))]
    assert len(set(columns)) == len(columns) and all(columns)


@pytest.mark.parametrize("warm", [True, False])
def test_growing_that_was_interrupted_goes_on_to_the_same_features(tmp_path, warm):
    samples = conjunction_samples(300)
    options = GrowOptions(limit=17, per_round=2, factors=3, warm=warm)

    def run(folder, rounds):
        growth = Growth(samples, Combinations(8), 2, options, seed=4)
        progress = Progress(seed=4, encoder_version=VERSION)
        grow(growth, folder, progress, lambda done, now: done.number < rounds)
        return growth.combinations.pairs

    whole = run(tmp_path / "whole", 99)
    run(tmp_path / "cut", 2)
    assert len(run(tmp_path / "cut", 3)) < len(whole)
    np.testing.assert_array_equal(run(tmp_path / "cut", 99), whole)
    with pytest.raises(UsageError, match="begun with seed"):
        checkpoint.read(checkpoint.latest(tmp_path / "cut"), seed=5, encoder_version=VERSION)


# Learning from a player.


class Log:
    """Games of rule players as a ``PlayerLog``: ``ada`` plays by one rule player, ``bob`` by another."""

    def __init__(self, hands=60):
        self.hands = hands
        self.policies = {"ada": doudizhu.rhcp_choice, "bob": doudizhu.rule_choice}

    def moves(self, game, players=(), *, split=None):
        assert game == "doudizhu"
        for name in players:
            if name not in self.policies:
                raise UsageError(f"{name} did not agree")
        for hand in range(self.hands):
            state = DOUDIZHU.new_state(hand)
            while not state.terminal:
                seat = state.to_act[0]
                view, player = state.view(seat), ("ada", "bob")[(seat + hand) % 2]
                action = self.policies[player](view)[0]
                part = "test" if hand % 4 == 0 else "train"
                if (not players or player in players) and split in (None, part):
                    yield PlayerMove(DOUDIZHU, f"{hand:032x}", part, player, seat, view, view.legal(), action, 0, None)
                state.apply(seat, action)

    def lineage(self):
        return {"hands": self.hands}


def test_forced_moves_are_left_out_and_hands_stay_together():
    found = decisions(Log(8).moves("doudizhu", ["ada"]), encoding("doudizhu"))
    assert (np.diff(found.samples.legal.offsets) > 1).all()
    assert (np.diff(found.hands) >= 0).all() and found.number_of_hands == 8
    for hand in range(8):
        assert len(set(found.parts[found.hands == hand])) == 1
    assert set(found.hands[found.held_out].tolist()) == {0, 4}
    assert found.first_hands(3).number_of_hands == 3


def test_a_penalty_is_chosen_on_left_out_hands_and_without_any_the_crowd_stays():
    own = encoding("doudizhu")
    ada = decisions(Log(12).moves("doudizhu", ["ada"]), own)
    start = Linear.zeros(len(own.features), len(own.classes))
    fitted, chosen = adapt(ada, start, own.groups, (3.0, 1e6))
    assert chosen["penalty"] == 3.0 and 0 < chosen["log_loss"] < 5
    assert adapt(ada.where(np.zeros(len(ada), bool)), fitted, own.groups, (1.0,))[0] is fitted


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A crowd, and a clone of ada made from it."""
    out = tmp_path_factory.mktemp("clone")
    figures = {}
    monkey = pytest.MonkeyPatch()
    monkey.setattr(bothost_fm_clone.train, "CROWD_PENALTIES", (10.0,))  # choosing takes most of the time
    monkey.setattr(bothost_fm_clone.train, "PLAYER_PENALTIES", (100.0,))
    for name, players in (("crowd", ()), ("ada", ("ada",))):
        options = TrainOptions(grow=SMALL, crowd="log" if name == "crowd" else "package")
        run = TrainingRun(out=out / name, seed=1, log=Log(), players=players, command=f"bothost train {name}")
        figures[name] = FmCloneTrainer(options).train(run, lambda *told: None)
        monkey.setattr(bothost_fm_clone.train, "PACKAGE", out / "crowd" / "weights" / "v1")
    monkey.undo()
    return out, figures


def test_a_clone_foretells_its_player_better_than_the_crowd_does(trained):
    _, figures = trained
    ada, crowd = figures["ada"]["player"], figures["ada"]["crowd_on_player"]
    assert ada["held_out_decisions"] == crowd["held_out_decisions"] > 50
    assert ada["held_out_log_loss"] < crowd["held_out_log_loss"]
    assert figures["crowd"]["features"] == 1092


def test_a_training_leaves_manifest_lineage_and_models_that_load(trained):
    out, _ = trained
    lineage = json.loads((out / "ada" / "weights" / "lineage.json").read_text())
    assert lineage["players"] == ["ada"] and lineage["command"] == "bothost train ada" and lineage["log"]
    model = weights.find(FmClone, "champion", out / "ada" / "weights")
    assert list(model.files) == ["doudizhu.safetensors"]
    strategy = FmClone(PlayOptions(), model)
    with pytest.raises(ModelError, match="not at othello"):
        strategy.player(table(OTHELLO))
    crowd = weights.find(FmClone, "champion", out / "crowd" / "weights")
    assert "doudizhu.safetensors" in crowd.files


def test_a_challenger_gains_on_held_out_hands_where_it_foretells_the_player_better(trained):
    out, _ = trained
    crowd, ada = (weights.find(FmClone, "champion", out / name / "weights") for name in ("crowd", "ada"))
    lineage = {"log": {"read": [{"game": "doudizhu", "players": []}, {"game": "doudizhu", "players": ["ada"]}]}}
    trainer = FmCloneTrainer(TrainOptions())
    gains = list(trainer.gains(Log(), lineage, ada, crowd))
    assert len(gains) == 15 and all(-1 <= gain <= 1 for gain in gains)
    assert np.mean(gains) > 0
    np.testing.assert_allclose(list(trainer.gains(Log(), lineage, crowd, ada)), np.negative(gains))
    assert len(list(trainer.gains(Log(), {"kind": "import", "training": lineage}, ada, crowd))) == 15
    assert trainer.gains(Log(), {}, ada, crowd) is None
    lineage = {"log": {"read": [{"game": "othello", "players": ["ada"]}]}}
    assert trainer.gains(Log(), lineage, ada, crowd) is None  # it is no clone at that game


def test_a_crowd_to_clone_a_player_from_has_nothing_of_the_player(tmp_path, monkeypatch):
    for name in ("CROWD_PENALTIES", "PLAYER_PENALTIES"):  # choosing takes most of the time
        monkeypatch.setattr(bothost_fm_clone.train, name, (100.0,))
    run = TrainingRun(out=tmp_path, log=Log(9), players=("ada",))
    options = TrainOptions(crowd="log", grow=GrowOptions(limit=1082))
    crowd = FmCloneTrainer(options).train(run, lambda *told: None)["crowd"]
    bob = decisions(Log(9).moves("doudizhu", ["bob"]), encoding("doudizhu"))
    assert crowd["decisions"] == int((~bob.held_out).sum()) > 0
    assert crowd["held_out_decisions"] == int(bob.held_out.sum()) > 0


def test_a_training_refuses_what_it_cannot_do(tmp_path):
    def train(log, players=(), out=tmp_path / "new", **options):
        run = TrainingRun(out=out, log=log, players=players)
        FmCloneTrainer(TrainOptions(**options)).train(run, lambda *told: None)

    with pytest.raises(UsageError, match="no log"):
        train(None)
    with pytest.raises(UsageError, match="did not agree"):
        train(Log(1), ("eve",))
    with pytest.raises(UsageError, match="no decision"):
        train(Log(0), ("ada",))
    with pytest.raises(UsageError, match="no decision"):
        train(Log(0))
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="not empty"):
        train(Log(1), out=tmp_path)


# The file of a clone.


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
        ({"weights": np.zeros((194, 65), np.float32)}, "other types"),
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
    with pytest.raises(ModelError, match="it is of othello"):
        small_clone().save(path)
        load(path, "doudizhu")
    path.write_bytes(b"nothing")
    with pytest.raises(ModelError, match="is no clone"):
        load(path, "othello")


def test_live_play_computes_what_was_trained():
    clone, view = small_clone(), OTHELLO.new_state(1).view(0)
    features, legal = encoding("othello").encode(view), view.legal()
    rows = SparseRows.of([features]), SparseRows.of([legal])
    sample = Samples(*rows, legal[:1], encoding("othello").afterstates(*rows))
    np.testing.assert_allclose(clone.probabilities(features, legal), clone.probabilities_of(sample)[0], rtol=1e-5)


def test_reasons_add_up_to_how_the_choice_moved():
    clone, view = small_clone(), OTHELLO.new_state(1).view(0)
    features, legal = encoding("othello").encode(view), view.legal()
    told = clone.reasons(features, legal, int(legal[1]), count=500)
    odds = clone.probabilities(features, legal)
    scores = np.log(odds) - clone.linear.bias[legal]
    assert sum(reason["weight"] for reason in told) == pytest.approx(scores[1] - odds @ scores, abs=0.05)
    known = {*encoding("othello").features, *encoding("othello").leaves}
    assert {name.removeprefix("not ") for reason in told for name in reason["features"]} <= known
    weightiest = [abs(reason["weight"]) for reason in told]
    assert weightiest == sorted(weightiest, reverse=True)


# Play.


def table(game, seed=1):
    return Table(lobby="test", table="1", game=game, seat=0, seed=seed)


@pytest.fixture(scope="module")
def strategy(trained):
    out, _ = trained
    return FmClone(PlayOptions(), weights.find(FmClone, "champion", out / "ada" / "weights"))


def positions(hands=2):
    for hand in range(hands):
        state = DOUDIZHU.new_state(hand + 500)
        while not state.terminal:
            view = state.view(state.to_act[0])
            yield view
            state.apply(view.seat, doudizhu.rule_choice(view)[0])


def test_it_takes_the_most_probable_move_and_says_why(strategy):
    reasons = 0
    for view in positions():
        legal = view.legal()
        decision = strategy.player(table(DOUDIZHU)).decide(view, legal, FOREVER)
        assert decision.action == int(legal[int(np.argmax(decision.policy))])
        assert sum(decision.policy) == pytest.approx(1.0, abs=1e-5)
        assert decision.model_sha256 == strategy.model.sha256 and decision.encoder_version == VERSION
        assert encoding("doudizhu").classes[doudizhu.abstract_map()[decision.action]] == decision.stats["move"]
        reasons += bool(decision.stats.get("reasons"))
    assert reasons > 10


def test_with_a_temperature_moves_are_drawn_as_often_as_the_player_makes_them(strategy):
    drawing = FmClone(PlayOptions(temperature=1.0), strategy.model)
    view = next(v for v in positions() if len(encoding("doudizhu").choices(v, v.legal())) >= 4)
    legal = view.legal()
    drawn = [drawing.player(table(DOUDIZHU, seed)).decide(view, legal, FOREVER) for seed in range(600)]
    shares = np.bincount([int(np.searchsorted(legal, d.action)) for d in drawn], minlength=len(legal)) / 600
    assert shares == pytest.approx(np.array(drawn[0].policy), abs=0.08)
    assert drawing.player(table(DOUDIZHU, 7)).decide(view, legal, FOREVER) == drawn[7]


def test_bids_are_the_rule_players(strategy):
    game = rules.game("doudizhu", preset="bidding")
    view = next(state.view(state.to_act[0]) for state in [game.new_state(3)])
    decision = strategy.player(table(game)).decide(view, view.legal(), FOREVER)
    assert decision.action == doudizhu.rule_choice(view)[0] and "not cloned" in decision.stats["reason"]


def test_it_refuses_to_play_without_a_model_or_with_one_of_another_encoder(strategy):
    with pytest.raises(ModelError, match="there is none"):
        FmClone(PlayOptions())
    old = Model("fm-clone", "v0", "0", strategy.model.path, strategy.model.files, VERSION + 1)
    with pytest.raises(ModelError, match="encoder version"):
        FmClone(PlayOptions(), old)
    with pytest.raises(ValueError, match="temperature"):
        PlayOptions(temperature=-1.0)


def test_scores_are_agreement_and_log_loss():
    samples = Samples(SparseRows.of([[0], [0]]), SparseRows.of([[0, 1], [1, 2, 3]]), np.array([1, 1], np.int32))
    rows = SparseRows(samples.legal.offsets, np.array([0.25, 0.75, 0.2, 0.3, 0.5], np.float32))
    found = score(rows, samples)
    assert found.top1 == 0.5 and found.decisions == 2
    assert found.log_loss == pytest.approx(-(np.log(0.75) + np.log(0.2)) / 2)


def test_a_machine_without_shared_factors_grows_too():
    growth = Growth(
        conjunction_samples(200),
        Combinations(8),
        2,
        GrowOptions(limit=12, per_round=2, factors=3, shared=False),
        seed=1,
    )
    assert len(growth.round().pairs) == 2 and isinstance(growth._machine, FactorizationMachine)


def test_brier_scores_are_squared_distances():
    samples = Samples(SparseRows.of([[], []]), SparseRows.of([[0, 2], [1, 2, 3]]), np.array([2, 1], np.int32))
    odds = SparseRows(samples.legal.offsets, np.array([0.25, 0.75, 0.5, 0.25, 0.25], np.float32))
    np.testing.assert_allclose(brier(odds, samples), [2 * 0.0625, 0.25 + 2 * 0.0625])


def test_file_names():
    assert file_of("doudizhu") == "doudizhu.safetensors"
