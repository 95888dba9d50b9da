import time

import msgspec
import numpy as np
import pytest
import safetensors.torch
import torch

from bothost import Budget, Model, ModelError, Request, Table, rules
from bothost.errors import ConfigError
from bothost.inference import legal_masks
from bothost.plugins import check_options, weights
from bothost.rules.pairing import rule_returns
from bothost.training.publish import write_version
from bothost_phase_ppo.decide import PhasePpo, PlayOptions, improved
from bothost_phase_ppo.encode import ACTIONS, CANDIDATE, POSITION, SIZES, Symmetries, encode
from bothost_phase_ppo.model import CandidateNet, PhaseNet, graph
from bothost_phase_ppo.train import PhasePpoTrainer

GAME = rules.game("pairing")
FOREVER = Budget(deadline=float("inf"))
LEVELS = PhasePpo.levels


@pytest.fixture(scope="module")
def strategy():
    return PhasePpo(PlayOptions(), weights.find(PhasePpo, "champion"))


def table(seat=0, seed=1):
    return Table(lobby="test", table="1", game=GAME, seat=seat, seed=seed)


def positions(hands=3, seed=0):
    """Views of random play, of all phases."""
    rng = np.random.default_rng(seed)
    views = []
    for hand in range(hands):
        state = GAME.new_state(hand)
        while not state.terminal:
            seat = state.to_act[0]
            views.append(state.view(seat))
            state.apply(seat, int(rng.choice(state.legal(seat))))
    return views


def test_every_level_comes_with_its_verified_files_and_the_champion_is_the_last():
    models = [weights.find(PhasePpo, level) for level in LEVELS]
    assert len({model.sha256 for model in models}) == 5
    assert all(model.encoder_version == 2 for model in models)
    assert weights.find(PhasePpo, "champion").sha256 == models[-1].sha256
    assert [weights.play_options(model) for model in models] == [
        {},
        {},
        {},
        {},
        {"playouts": 256, "least_odds": 0.005, "prior": 0.1},
    ]
    assert all(safetensors.torch.load_file(f"{model.path}/model.safetensors").keys() for model in models)


@pytest.mark.parametrize(
    ("version", "build"), [(1, PhaseNet), (2, CandidateNet), (2, lambda: CandidateNet((48, 32, 64), 16))]
)
def test_live_play_computes_what_was_trained(version, build, tmp_path):
    torch.manual_seed(version)
    net = build()
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter, std=0.1)
    made = write_version(tmp_path, net, graph(net), version)
    model = Model("phase-ppo", "v", "0" * 64, str(tmp_path), made.files, version)
    views = positions(1)
    with torch.no_grad():
        logits, values = net(torch.from_numpy(encode(views, version)))
    got = PhasePpo(PlayOptions(symmetries=1), model).infer(views, [view.legal() for view in views])
    legal = torch.from_numpy(legal_masks([view.legal() for view in views], ACTIONS))
    expected = logits.masked_fill(~legal, -torch.inf).softmax(dim=1)
    np.testing.assert_allclose(got[0], expected.numpy(), atol=1e-5)
    np.testing.assert_allclose(got[1], values.numpy() / 0.1, atol=1e-3)


def test_every_decision_tells_policy_value_phase_and_model(strategy):
    phases = set()
    for view in positions():
        legal = view.legal()
        decision = strategy.player(table(view.seat)).decide(view, legal, FOREVER)
        assert decision.action == int(legal[int(np.argmax(decision.policy))])
        assert len(decision.policy) == len(legal) and sum(decision.policy) == pytest.approx(1.0, abs=1e-5)
        assert np.isfinite(decision.value) and abs(decision.value) < 200
        assert decision.phase == view.phase
        assert decision.model_sha256 == strategy.model.sha256 and decision.encoder_version == 2
        phases.add(decision.phase)
    assert {"init", "A", "B", "pairing"} <= phases


def test_a_batch_decides_bit_for_bit_what_each_request_alone_does(strategy):
    views = positions()
    requests = [Request(strategy.player(table(v.seat)), v, v.legal(), FOREVER) for v in views]
    together = strategy.decide_many(requests)
    assert together == [r.player.decide(r.view, r.legal, r.budget) for r in requests]


def test_with_a_temperature_actions_are_drawn_by_the_policy_and_the_seed():
    strategy = PhasePpo(PlayOptions(temperature=1.0), weights.find(PhasePpo, "level-1"))
    view = next(v for v in positions() if v.phase == "pairing" and len(v.legal()) >= 4)
    legal = view.legal()
    drawn = [strategy.player(table(seed=seed)).decide(view, legal, FOREVER) for seed in range(1500)]
    shares = np.bincount([int(np.searchsorted(legal, d.action)) for d in drawn], minlength=len(legal)) / 1500
    assert shares == pytest.approx(np.array(drawn[0].policy), abs=0.06)
    assert strategy.player(table(seed=7)).decide(view, legal, FOREVER) == drawn[7]
    both = PhasePpo(PlayOptions(temperature=1.0, playouts=64), strategy.model)
    assert both.player(table(seed=7)).decide(view, legal, FOREVER) == drawn[7], "what is drawn is not improved"


def test_candidates_are_what_each_action_brings():
    """The largest gain of a pair is what the score grows by when the pair is collected."""
    checked = 0
    rng = np.random.default_rng(3)
    for seed in range(12):
        state = GAME.new_state(seed)
        while not state.terminal:
            seat = state.to_act[0]
            view = state.view(seat)
            (row,) = encode([view], 2)
            np.testing.assert_array_equal(row[:384], view.encode("features"))
            candidates = row[POSITION:].reshape(ACTIONS, CANDIDATE)
            legal = view.legal()
            assert not np.delete(candidates, legal, axis=0).any() and (candidates[legal, 24:].sum(axis=1) == 1).all()
            if view.phase == "pairing" and len(legal) > 1 and legal[0] < 52:
                before = state.view(seat).encode("scores")[0]
                for action in legal[:4]:
                    gains = []
                    first = state.clone()
                    first.apply(seat, int(action))
                    if first.to_act != (seat,) or first.view(seat).phase != "pairing":
                        gains.append(first.view(seat).encode("scores")[0] - before)
                    else:
                        for second in first.legal(seat):
                            whole = first.clone()
                            whole.apply(seat, int(second))
                            gains.append(whole.view(seat).encode("scores")[0] - before)
                    assert candidates[action, 16] * 16 == pytest.approx(max(gains)), (seed, view.notation(int(action)))
                    checked += 1
            state.apply(seat, int(rng.choice(state.legal(seat))))
    assert checked > 100


@pytest.mark.parametrize("count", [4, 24])
def test_candidates_do_not_depend_on_the_names_of_colours(count):
    """Renaming colours in a deal, and in the observation, is the same."""
    symmetries = Symmetries(count, 2)
    assert symmetries.features.shape == (count, SIZES[2])
    for order in symmetries.features:
        assert sorted(order) == list(range(SIZES[2]))
    rng = np.random.default_rng(1)
    for seed in range(4):
        state = GAME.new_state(seed)
        while not state.terminal:
            seat = state.to_act[0]
            row = encode([state.view(seat)], 2)
            renamed = symmetries.rename(row)
            actions = symmetries.actions[count - 1]
            own = row[0, POSITION:].reshape(ACTIONS, CANDIDATE)
            other = renamed[count - 1, POSITION:].reshape(ACTIONS, CANDIDATE)
            np.testing.assert_array_equal(other[actions], own)
            state.apply(seat, int(rng.choice(state.legal(seat))))


@pytest.mark.parametrize("count", [4, 24])
def test_decisions_do_not_depend_on_the_names_of_colours(count):
    strategy = PhasePpo(PlayOptions(symmetries=count), weights.find(PhasePpo, "level-2"))
    symmetries = Symmetries(count, strategy.encoder_version)
    views = positions(1)
    legal = [view.legal() for view in views]
    policies, values = strategy.infer(views, legal)
    for s in (1, count - 1):
        renamed = [Renamed(view, symmetries.features[s]) for view in views]
        renamed_legal = [np.sort(symmetries.actions[s][ids]).astype(np.int32) for ids in legal]
        other, other_values = strategy.infer(renamed, renamed_legal)
        np.testing.assert_allclose(other[:, symmetries.actions[s]], policies, atol=1e-5)
        np.testing.assert_allclose(other_values, values, atol=1e-3)


class Renamed:
    """A view under other names of the colours, as far as the encoder goes."""

    def __init__(self, view, features):
        self.view, self.features = view, features

    def encode(self, block, out):
        out[:] = self.view.encode(block)[self.features]


def test_playouts_take_what_is_surely_better_than_the_first_choice():
    same = np.array([[1.0, 1.0, 1.0], [-2.0, -2.0, -2.0]], np.float32)
    assert improved(same, first=1) == 1
    better = np.array([[1.0, 3.0, 9.0], [1.0, 3.0, -30.0]], np.float32)
    assert improved(better, first=0) == 1, "the mean of the last is worse"
    lucky = np.array([[0.5, 20.0], [0.5, -9.0], [0.5, -9.0]], np.float32)
    assert improved(lucky, first=0) == 0, "by less than the standard error"
    wins = np.array([[-1.0, 1.0], [30.0, 28.0]], np.float32)
    assert improved(wins, first=0) == 1, "a win is worth more than its points"
    assert improved(better, first=0, bonus=np.array([0.0, -3.0, 0.0])) == 0, "the network's preference outweighs it"
    assert improved(better, first=0, bonus=np.zeros(3)) == 1


def test_actions_that_the_network_rules_out_get_no_playouts_and_are_not_played():
    model = weights.find(PhasePpo, "level-1")
    options = PlayOptions(playouts=16, least_odds=0.3)
    strategy = PhasePpo(options, model)
    every = PhasePpo(PlayOptions(playouts=16), model)
    pruned = saved = 0
    for view in positions(2):
        legal, player = view.legal(), strategy.player(table(view.seat))
        decision, before = (
            player.decide(view, legal, FOREVER),
            every.player(table(view.seat)).decide(view, legal, FOREVER),
        )
        policy = np.array(decision.policy)
        kept = policy >= 0.3 * policy.max()
        assert kept[np.flatnonzero(legal == decision.action)[0]]
        # Whoever replays it, with whatever options of play.
        assert every.player(table(view.seat)).replay(view, legal, decision.stats or {}) == decision
        if 1 < kept.sum() < len(legal):
            leads = rule_returns(view, deals=16, seed=(1 ^ view.hash()) % 2**64)[:, kept].mean(axis=0)
            names = [view.notation(int(action)) for action in legal[kept]]
            assert decision.values is None and decision.stats["leads"] == dict(zip(names, leads.tolist(), strict=True))
            pruned += 1
            saved += not kept[np.flatnonzero(legal == before.action)[0]]
        elif kept.all():
            assert decision.values == before.values and decision.action == before.action
    assert pruned > 10 and saved > 0, "some were the choice of playouts of all actions"


def test_playouts_of_fewer_actions_need_less_time():
    model = weights.find(PhasePpo, "level-1")
    hurry = {
        odds: PhasePpo(PlayOptions(playouts=200, least_odds=odds), model).player(table(0)) for odds in (0.0, 0.999)
    }
    made = dict.fromkeys(hurry, 0)
    for view in positions(1):
        legal = view.legal()
        for odds, player in hurry.items():
            # 50 ms are half of what playouts of every action get, and enough for one of at least three.
            decision = player.decide(view, legal, Budget(deadline=time.monotonic() + 0.05))
            made[odds] += len(legal) > 2 and (decision.stats or {})["playouts"] > 0
    assert made[0.0] == 0 and made[0.999] > 10


def test_the_prior_keeps_the_network_s_first_action_more_often():
    model = weights.find(PhasePpo, "level-1")
    alone, free, bound = (
        PhasePpo(PlayOptions(playouts=playouts, prior=prior), model)
        for playouts, prior in ((0, 0.0), (16, 0.0), (16, 5.0))
    )
    changes = {free: 0, bound: 0}
    for view in positions(2):
        legal = view.legal()
        first = alone.player(table(view.seat)).decide(view, legal, FOREVER).action
        for strategy in changes:
            player = strategy.player(table(view.seat))
            decision = player.decide(view, legal, FOREVER)
            changes[strategy] += decision.action != first
            assert (
                alone.player(table(view.seat)).replay(view, legal, {**(decision.stats or {})}).action == decision.action
            )
    assert 0 < changes[bound] < changes[free]


def test_with_playouts_the_network_decides_where_time_is_short_and_logged_decisions_replay():
    strategy = PhasePpo(PlayOptions(playouts=16), weights.find(PhasePpo, "level-1"))
    plain = PhasePpo(PlayOptions(), weights.find(PhasePpo, "level-1"))
    hurry = Budget(deadline=time.monotonic() + 0.002)
    changed = 0
    for view in positions(1):
        legal, player = view.legal(), strategy.player(table(view.seat))
        alone = plain.player(table(view.seat)).decide(view, legal, FOREVER)
        slow, fast = player.decide(view, legal, FOREVER), player.decide(view, legal, hurry)
        assert player.quick(view, legal).action == fast.action == alone.action
        assert strategy.decide_many([Request(player, view, legal, FOREVER)]) == [slow]
        changed += slow.action != alone.action
        for decision in (slow, fast):
            assert decision.policy == alone.policy
            assert player.replay(view, legal, decision.stats or {}) == decision
        if len(legal) > 1:
            assert (slow.stats["playouts"], fast.stats["playouts"]) == (16, 0)
            leads = rule_returns(view, deals=16, seed=(1 ^ view.hash()) % 2**64)
            assert slow.values == leads.mean(axis=0).tolist()
            # As before there were options for some actions alone and for the network's preference.
            assert slow.stats == {"playouts": 16}
            assert slow.action == legal[improved(leads, int(np.argmax(alone.policy)))]
    assert changed > 3, "level 1 has much to improve"


def test_it_refuses_to_play_without_a_model_or_with_nonsense():
    with pytest.raises(ModelError, match="there is none"):
        PhasePpo(PlayOptions())
    for wrong in (
        {"temperature": -1.0},
        {"symmetries": 0},
        {"symmetries": 25},
        {"playouts": -1},
        {"least_odds": 1.5},
        {"least_odds": float("nan")},
        {"prior": -0.1},
    ):
        with pytest.raises(msgspec.ValidationError, match=next(iter(wrong))):
            msgspec.convert(wrong, PlayOptions)
    assert not PhasePpo.supports(rules.game("othello"))
    assert PhasePpo.supports(rules.game("pairing", preset="four-phase"))


@pytest.mark.parametrize(
    "wrong",
    [
        {"levels": []},
        {"levels": [0.5, 1.5]},
        {"levels": [0.5, 0.2]},
        {"method": "improve", "workers": 2},
        {"method": "oracle", "workers": 2},
        {"method": "oracle", "network": "source"},
        {"oracle": {"critic": []}},
        {"network": "source", "hidden": [64]},
        {"hidden": []},
        {"hidden": [100]},
        {"units": 8},
        {"playouts": 10_001},
        {"rule_share": -0.1},
        {"logged_share": -1.0},
        {"preset": "eight-phase"},
        {"workers": -1},
        {"device": "cuda"},
        {"trainers": 2},
        {"timeout_s": 0.0},
        *({"ppo": {name: 0}} for name in ("epochs", "minibatch", "chunk", "clip", "max_grad_norm")),
        *({"ppo": {name: -1.0}} for name in ("gamma", "gae_lambda", "entropy_coef", "kl_coef", "target_kl")),
    ],
)
def test_options_of_training_that_make_no_sense_are_refused_before_it(wrong):
    with pytest.raises(ConfigError):
        check_options(PhasePpoTrainer, wrong)
