"""fm-clone: what it learns from a player's logged games, and how it plays."""

import functools
import json
from dataclasses import replace

import msgspec
import numpy as np
import pytest

import bothost.training.factorization
import bothost_fm_clone.samples
import bothost_fm_clone.train
from bothost import Budget, Model, ModelError, PlayerMove, Table, TrainingRun, rules
from bothost.errors import ConfigError, UsageError
from bothost.plugins import check_options, weights
from bothost.rules import doudizhu
from bothost.training.logistic import Linear
from bothost.training.metrics import read
from bothost_fm_clone.crowd import SharedOptions
from bothost_fm_clone.decide import FmClone, PlayOptions
from bothost_fm_clone.encode import encoding
from bothost_fm_clone.files import load_any
from bothost_fm_clone.fit import adapt
from bothost_fm_clone.grow import GrowOptions
from bothost_fm_clone.samples import decisions
from bothost_fm_clone.shared import SharedClone
from bothost_fm_clone.sight import sight
from bothost_fm_clone.train import CURVE, FmCloneTrainer, TrainOptions

DOUDIZHU, OTHELLO = rules.game("doudizhu"), rules.game("othello")
FOREVER = Budget(deadline=float("inf"))
SMALL = GrowOptions(limit=1092, per_round=4, factors=4, first_epochs=1)
TINY = SharedOptions(quadratic=4, rectified=8, passes=2, combinations=6, per_round=3)
METHODS = ("shared", "per-class")


# Learning from a player.


POLICIES = {"ada": doudizhu.rhcp_choice, "bob": doudizhu.rule_choice}


@functools.cache
def moves_of(hand):
    """All moves of a hand. Most tests learn from the same ones."""
    state, moves = DOUDIZHU.new_state(hand), []
    part = "test" if hand % 4 == 0 else "train"
    while not state.terminal:
        seat = state.to_act[0]
        view, player = state.view(seat), ("ada", "bob")[(seat + hand) % 2]
        action = POLICIES[player](view)[0]
        moves.append(PlayerMove(DOUDIZHU, f"{hand:032x}", part, player, seat, view, view.legal(), action, 0, None))
        state.apply(seat, action)
    return moves


class Log:
    """Games of rule players as a ``PlayerLog``: ``ada`` plays by one rule player, ``bob`` by another."""

    def __init__(self, hands=60):
        self.hands = hands

    def moves(self, game, players=(), *, split=None):
        assert game == "doudizhu"
        for name in players:
            if name not in POLICIES:
                raise UsageError(f"{name} did not agree")
        for hand in range(self.hands):
            for move in moves_of(hand):
                if (not players or move.player in players) and split in (None, move.split):
                    yield move

    def thinking_ms(self, game, players):
        return iter([1000.0 + 10.0 * move for move in range(self.hands)])

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


def test_decisions_are_the_same_however_many_are_encoded_at_a_time(monkeypatch):
    def of(hands):
        some = decisions(Log(hands).moves("doudizhu", ["ada"]), encoding("doudizhu"))
        pairs = np.array([[3, len(sight("doudizhu").positions) + 2]], np.int32)
        seen = replace(SharedClone.blank(encoding("doudizhu"), 2, 2, 0), pairs=pairs).seen(some.samples)
        rows = (seen.features, seen.legal, seen.alternatives)
        return [some.hands, some.parts, some.held_out, some.players, seen.labels, *(a for r in rows for a in r.arrays)]

    expected = of(8)
    for module in (bothost.training.factorization, bothost_fm_clone.samples):
        monkeypatch.setattr(module, "TOGETHER", 7)
    for found, wanted in zip(of(8), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_a_penalty_is_chosen_on_left_out_hands_and_without_any_the_crowd_stays():
    own = encoding("doudizhu")
    ada = decisions(Log(12).moves("doudizhu", ["ada"]), own)
    start = Linear.zeros(len(own.features), len(own.classes))
    fitted, chosen = adapt(ada, start, own.groups, (3.0, 1e6))
    assert chosen["penalty"] == 3.0 and 0 < chosen["log_loss"] < 5
    assert adapt(ada.where(np.zeros(len(ada), bool)), fitted, own.groups, (1.0,))[0] is fitted


@pytest.fixture(scope="module", params=METHODS)
def trained(request, tmp_path_factory):
    """A crowd, and a clone of ada made from it, by each method."""
    out = tmp_path_factory.mktemp("clone")
    figures = {}
    monkey = pytest.MonkeyPatch()
    monkey.setattr(bothost_fm_clone.train, "CROWD_PENALTIES", (10.0,))  # choosing takes most of the time
    monkey.setattr(bothost_fm_clone.train, "PLAYER_PENALTIES", (100.0,))
    for name, players in (("crowd", ()), ("ada", ("ada",))):
        options = TrainOptions(
            method=request.param,
            grow=SMALL,
            shared=TINY,
            crowd="log" if name == "crowd" else "package",
            curve=name == "ada",
        )
        run = TrainingRun(out=out / name, seed=1, log=Log(), players=players, command=f"bothost train {name}")
        figures[name] = FmCloneTrainer(options).train(run, lambda *told: None)
        monkey.setattr(bothost_fm_clone.train, "PACKAGE", out / "crowd" / "weights" / "v1")
    monkey.undo()
    return out, figures


def test_a_clone_predicts_its_player_better_than_the_crowd_does(trained):
    _, figures = trained
    ada, crowd = figures["ada"]["player"], figures["ada"]["crowd_on_player"]
    assert ada["held_out_decisions"] == crowd["held_out_decisions"] > 50
    assert ada["held_out_log_loss"] < crowd["held_out_log_loss"]
    assert figures["crowd"].get("features", 1092) == 1092 and figures["crowd"].get("combinations", 6) == 6


def test_a_curve_says_how_much_more_hands_help(trained):
    _, figures = trained
    curve, ada = figures["ada"]["curve"], figures["ada"]["player"]
    assert [point["hands"] for point in curve] == [0, *[n for n in CURVE if n < ada["hands"]], ada["hands"]]
    assert len({point["held_out_decisions"] for point in curve}) == 1
    assert curve[-1]["held_out_log_loss"] == ada["held_out_log_loss"] < curve[0]["held_out_log_loss"]
    assert "curve" not in figures["crowd"]


def test_a_training_leaves_manifest_lineage_and_models_that_load(trained):
    out, _ = trained
    lineage = json.loads((out / "ada" / "weights" / "lineage.json").read_text())
    assert lineage["players"] == ["ada"] and lineage["command"] == "bothost train ada" and lineage["log"]
    model = weights.find(FmClone, "champion", out / "ada" / "weights")
    assert list(model.files) == ["doudizhu.safetensors"]
    strategy = FmClone(PlayOptions(), model)
    with pytest.raises(ModelError, match="plays doudizhu, not othello"):
        strategy.player(table(OTHELLO))
    crowd = weights.find(FmClone, "champion", out / "crowd" / "weights")
    assert "doudizhu.safetensors" in crowd.files


def test_a_challenger_gains_on_held_out_hands_where_it_predicts_the_player_better(trained):
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
    options = TrainOptions(crowd="log", method="per-class", grow=GrowOptions(limit=1082))
    crowd = FmCloneTrainer(options).train(run, lambda *told: None)["crowd"]
    bob = decisions(Log(9).moves("doudizhu", ["bob"]), encoding("doudizhu"))
    assert crowd["decisions"] == int((~bob.held_out).sum()) > 0
    assert crowd["held_out_decisions"] == int(bob.held_out.sum()) > 0


def test_a_crowd_that_was_interrupted_goes_on_with_its_metrics(tmp_path):
    def train(out, *, resume=False, until="never"):
        def report(done, note="", total=None):
            if note.startswith(until):
                raise KeyboardInterrupt

        run = TrainingRun(out=out, log=Log(9), resume=resume)
        FmCloneTrainer(TrainOptions(method="shared", shared=TINY)).train(run, report)

    def rounds(out):
        return [{**record, "seconds": 0.0} for record in read(out / "metrics.jsonl")]

    train(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "parts", until="round 2")
    train(tmp_path / "parts", resume=True)
    assert rounds(tmp_path / "parts") == rounds(tmp_path / "whole") and len(rounds(tmp_path / "whole")) == 2
    file = "weights/v1/doudizhu.safetensors"
    assert (tmp_path / "parts" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()


def test_a_crowd_to_which_nothing_is_added_stays_close_to_the_old_one(tmp_path):
    class OneMove(Log):
        def moves(self, game, players=(), *, split=None):
            every = super().moves(game, players, split="train")
            yield next(move for move in every if len(decisions([move], encoding("doudizhu"))))

    package = bothost_fm_clone.train.PACKAGE
    before = load_any(package / "doudizhu.safetensors", "doudizhu")
    model = Model("fm-clone", "v0", "0", package, {}, before.version)
    shared = SharedOptions(combinations=len(before.pairs) + 1, passes=1)
    run = TrainingRun(out=tmp_path / "out", log=OneMove(8))
    FmCloneTrainer(TrainOptions(shared=shared)).retrain(run, None, model, lambda *told: None)
    after = load_any(run.out / "weights" / "v1" / "doudizhu.safetensors", "doudizhu")
    np.testing.assert_array_equal(after.pairs, before.pairs)
    changed = after.parameters["factors"] != before.parameters["factors"]
    rows = changed.reshape(-1, before.shape.width)[before.shape.positions + before.shape.embedded : -1]
    assert changed.any() and not rows.any()  # combinations have a weight and no factors


def test_a_training_refuses_what_it_cannot_do(tmp_path):
    def train(log, players=(), out=tmp_path / "new", **options):
        run = TrainingRun(out=out, log=log, players=players)
        FmCloneTrainer(TrainOptions(**options)).train(run, lambda *told: None)

    with pytest.raises(UsageError, match="needs a log"):
        train(None)
    with pytest.raises(UsageError, match="did not agree"):
        train(Log(1), ("eve",))
    with pytest.raises(UsageError, match="no decision"):
        train(Log(0), ("ada",))
    with pytest.raises(UsageError, match="to learn from"):
        train(Log(1), ("ada",))  # the first hand is held out
    with pytest.raises(UsageError, match="no decision"):
        train(Log(0))
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="not empty"):
        train(Log(1), out=tmp_path)


@pytest.mark.parametrize(
    "wrong",
    [
        {"grow": {"factors": 1025}},
        {"grow": {"rate": 0.0}},
        {"grow": {"weight_decay": -1.0}},
        {"shared": {"rectified": 1025}},
        {"shared": {"combinations": 10_001}},
        {"shared": {"directions": 1025}},
    ],
)
def test_options_of_clones_that_could_not_be_made_or_loaded_are_refused_before_training(wrong):
    with pytest.raises(ConfigError):
        check_options(FmCloneTrainer, wrong)


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
        assert (
            decision.model_sha256 == strategy.model.sha256
            and decision.encoder_version == strategy.model.encoder_version
        )
        assert encoding("doudizhu").classes[doudizhu.abstract_map()[decision.action]] == decision.stats["move"]
        reasons += bool(decision.stats.get("reasons"))
    assert reasons > 10


def test_with_a_temperature_moves_are_drawn_as_often_as_the_player_makes_them(strategy):
    drawing = FmClone(PlayOptions(temperature=1.0), strategy.model)
    view = next(v for v in positions() if len(encoding("doudizhu").choices(v, v.legal())) >= 4)
    legal = view.legal()
    drawn = [drawing.player(table(DOUDIZHU, seed)).quick(view, legal) for seed in range(600)]
    shares = np.bincount([int(np.searchsorted(legal, d.action)) for d in drawn], minlength=len(legal)) / 600
    assert shares == pytest.approx(np.array(drawn[0].policy), abs=0.08)
    slow = [drawing.player(table(DOUDIZHU, 7)).decide(view, legal, FOREVER) for _ in range(2)]
    assert slow[0] == slow[1] and slow[0].action == drawn[7].action and slow[0].policy == drawn[7].policy


def test_bids_are_the_rule_players(strategy):
    game = rules.game("doudizhu", preset="bidding")
    view = next(state.view(state.to_act[0]) for state in [game.new_state(3)])
    decision = strategy.player(table(game)).decide(view, view.legal(), FOREVER)
    assert decision.action == doudizhu.rule_choice(view)[0] and "not cloned" in decision.stats["reason"]


def test_a_clone_keeps_the_tempo_of_its_player_if_asked(strategy, tmp_path):
    def train(**options):
        made = FmCloneTrainer(TrainOptions(tempo=True, **options))
        return made.train(TrainingRun(out=tmp_path / "ada", log=Log(40), players=("ada",)), lambda *told: None)

    assert train()["tempo_ms"] == {"median": 1195, "longest": 1390}
    made = json.loads((tmp_path / "ada" / "weights" / "manifest.json").read_text())["versions"]["v1"]
    assert set(made["files"]) == {"doudizhu.safetensors", "tempo.json"}
    path, version = tmp_path / "ada" / "weights" / "v1", made["encoder_version"]
    model = Model("fm-clone", "ada", "0", path, made["files"], version)
    clone, some = FmClone(PlayOptions(), model), list(positions())[:40]
    waits = [clone.player(table(DOUDIZHU, 7)).decide(view, view.legal(), FOREVER).wait_ms for view in some]
    assert waits == [clone.player(table(DOUDIZHU, 7)).decide(view, view.legal(), FOREVER).wait_ms for view in some]
    assert all(1000.0 <= wait <= 1390.0 for wait in waits) and max(waits) - min(waits) > 150.0
    hasty = FmClone(PlayOptions(tempo=False), model).player(table(DOUDIZHU, 7))
    assert hasty.decide(some[0], some[0].legal(), FOREVER).wait_ms is None
    assert strategy.player(table(DOUDIZHU, 7)).decide(some[0], some[0].legal(), FOREVER).wait_ms is None
    (path / "tempo.json").write_text('{"quantiles_ms": [2, 1]}')
    with pytest.raises(ModelError, match="no tempo"):
        FmClone(PlayOptions(), model)


def test_no_tempo_is_made_of_too_few_moves_or_of_a_crowd(tmp_path):
    options = FmCloneTrainer(TrainOptions(tempo=True, crowd="log", shared=TINY))
    with pytest.raises(UsageError, match="29 moves of ada took, of 30 needed"):
        options.train(TrainingRun(out=tmp_path / "few", log=Log(29), players=("ada",)), lambda *told: None)
    assert not (tmp_path / "few").exists()  # refused before the crowd learns
    with pytest.raises(UsageError, match="crowd has no tempo"):
        FmCloneTrainer(TrainOptions(tempo=True, crowd="package")).train(
            TrainingRun(out=tmp_path / "crowd", log=Log(40)), lambda *told: None
        )


def test_it_refuses_to_play_without_a_model_or_with_one_of_another_encoder(strategy):
    with pytest.raises(ModelError, match="fm-clone needs a model"):
        FmClone(PlayOptions())
    old = Model("fm-clone", "v0", "0", strategy.model.path, strategy.model.files, 99)
    with pytest.raises(ModelError, match="encoder version"):
        FmClone(PlayOptions(), old)
    with pytest.raises(msgspec.ValidationError, match="temperature"):
        msgspec.convert({"temperature": -1.0}, PlayOptions)
