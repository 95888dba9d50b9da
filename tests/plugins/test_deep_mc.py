"""deep-mc at the table: its shipped levels, batches, and what its decisions tell."""

import msgspec
import numpy as np
import pytest

from bothost import Budget, ModelError, Request, Table, rules
from bothost.inference import Session
from bothost.plugins import weights
from bothost_deep_mc.decide import DeepMc, PlayOptions
from bothost_deep_mc.encode import ROLES, encode, roles

GAMES = [rules.game("doudizhu", preset=preset) for preset in rules.presets("doudizhu")]
FOREVER = Budget(deadline=float("inf"))


@pytest.fixture(scope="module")
def strategy():
    return DeepMc(PlayOptions(), weights.find(DeepMc, "champion"))


def table(game=GAMES[0], seat=0, seed=1):
    return Table(lobby="test", table="1", game=game, seat=seat, seed=seed)


def positions(hands=1, seed=0):
    """Views of random play under all rules."""
    rng = np.random.default_rng(seed)
    views = []
    for game in GAMES:
        for hand in range(hands):
            state = game.new_state(hand)
            while not state.terminal:
                seat = state.to_act[0]
                views.append(state.view(seat))
                state.apply(seat, int(rng.choice(state.legal(seat))))
    return views


def test_levels_come_with_verified_files_and_the_champion_is_the_last():
    models = [weights.find(DeepMc, level) for level in DeepMc.levels]
    assert len({model.sha256 for model in models}) == len(DeepMc.levels)
    assert weights.find(DeepMc, "champion").sha256 == models[-1].sha256
    assert set(models[0].files) == {"model.safetensors", *(f"{role}.onnx" for role in ROLES)}


def test_networks_of_other_widths_are_refused(monkeypatch):
    monkeypatch.setattr(Session, "width", lambda session, name: 600)
    with pytest.raises(ModelError, match="600"):
        DeepMc(PlayOptions(), weights.find(DeepMc, "champion"))


def test_every_rule_set_is_played_and_every_role():
    assert all(DeepMc.supports(game) for game in GAMES) and not DeepMc.supports(rules.game("pairing"))
    views = positions()
    every = encode(views, [view.legal() for view in views])
    assert {ROLES[i] for i in roles(every.positions)} == set(ROLES)


def test_a_batch_decides_bit_for_bit_what_each_request_alone_does(strategy):
    views = positions()[:120]
    requests = [Request(strategy.player(table(v.game, v.seat)), v, v.legal(), FOREVER) for v in views]
    assert strategy.decide_many(requests) == [r.player.decide(r.view, r.legal, r.budget) for r in requests]
    assert strategy.decide_many([]) == []  # all of a batch may have come too late


def test_every_decision_tells_the_values_of_all_legal_moves(strategy):
    for view in positions()[::7]:
        legal = view.legal()
        decision = strategy.player(table(view.game, view.seat)).decide(view, legal, FOREVER)
        assert len(decision.values) == len(legal) and np.isfinite(decision.values).all()
        assert decision.action == int(legal[int(np.argmax(decision.values))])
        assert decision.value == max(decision.values) and abs(decision.value) <= 1.0
        assert decision.model_sha256 == strategy.sha256 and decision.encoder_version == 1
        quick = strategy.player(table(view.game, view.seat)).quick(view, legal)
        assert quick.action == decision.action


def test_a_temperature_draws_reproducibly_and_not_always_the_best():
    warm = DeepMc(PlayOptions(temperature=1.0), weights.find(DeepMc, "champion"))
    view = GAMES[0].new_state(3).view(0)
    legal = view.legal()

    def actions():
        return [warm.player(table(seed=seed)).decide(view, legal, FOREVER).action for seed in range(30)]

    assert actions() == actions() and len(set(actions())) > 3


def test_a_hand_that_is_as_good_as_won_is_valued_so(strategy):
    """The landlord holds five trios in a row and little else."""
    game = GAMES[0]
    hands = ["33344455566677788", "8899TTJJQQKKAA22B", "99TTJJQQKKAA22R34"]
    state = game.state_from_deal({"hands": hands, "bottom": "567", "first": 0})
    before = strategy.player(table()).decide(state.view(0), state.legal(0), FOREVER)
    assert before.value > 0.0
    assert len(game.notation(before.action)) >= 6  # no single card


def test_models_that_do_not_fit_are_refused():
    model = weights.find(DeepMc, "champion")
    with pytest.raises(ModelError, match="encoder version"):
        DeepMc(PlayOptions(), msgspec.structs.replace(model, encoder_version=99))
    with pytest.raises(ModelError, match="deep-mc needs a model"):
        DeepMc(PlayOptions(), None)
    with pytest.raises(ModelError, match="no file"):
        DeepMc(PlayOptions(), msgspec.structs.replace(model, files={}))
    with pytest.raises(msgspec.ValidationError, match="temperature"):
        msgspec.convert({"temperature": -1.0}, PlayOptions)
