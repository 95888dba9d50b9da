"""mahjong-ppo: encoder, network, hidden features that vanish, curriculum, training, and live play of what comes out."""

import json
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np
import pytest
import safetensors.torch
import torch
from mahjong_positions import positions
from onnx import TensorProto, helper

from bothost import Budget, Model, Request, Table, TrainingRun, rules
from bothost.arena.run import run_match
from bothost.arena.spec import MatchSpec
from bothost.cli.arena import build
from bothost.errors import ConfigError, ModelError, UsageError
from bothost.inference import legal_masks
from bothost.plugins import check_options, weights
from bothost.rules import mahjong
from bothost.training.metrics import read
from bothost.training.ppo import PpoOptions, entropy, masked_log_probs
from bothost_mahjong_ppo.decide import MahjongPpo, PlayOptions
from bothost_mahjong_ppo.encode import (
    ACTIONS,
    ORDER_START,
    PACKED,
    PACKED_STATE,
    PLAIN,
    PROSPECT,
    REWARD_SCALE,
    STATE,
    WIN,
    choices,
    encode,
)
from bothost_mahjong_ppo.imitate import TEACHERS, cooling, demonstrations, fit_critic, imitate
from bothost_mahjong_ppo.learn import MahjongLearner
from bothost_mahjong_ppo.model import OBSERVATION, WIDTH, MahjongNet
from bothost_mahjong_ppo.options import Options
from bothost_mahjong_ppo.oracle import DropoutOptions, encode_hidden, share_given
from bothost_mahjong_ppo.selfplay import CURRICULUM, SCRIPTED, Buffer, Opponents, observe, play, stage_after
from bothost_mahjong_ppo.train import MahjongPpoTrainer

GAME = rules.game("mahjong")
FOREVER = Budget(deadline=float("inf"))
TINY = {
    "iterations": 2,
    "hands": 4,
    "critic_hands": 2,
    "checkpoint_every": 1,
    "pool_every": 1,
    "ppo": {"epochs": 1, "minibatch": 64},
}


def options(**changes):
    return msgspec.convert({**TINY, **changes}, Options)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    out = tmp_path_factory.mktemp("mahjong") / "run"
    MahjongPpoTrainer(options(imitation_hands=2)).train(TrainingRun(out=out, seed=3), lambda *_: None)
    return out


@pytest.mark.parametrize(("level", "version"), [("level-4", 1), ("champion", 3)])
def test_a_network_sees_what_it_was_made_for(level, version):
    strategy = MahjongPpo(PlayOptions(), weights.find(MahjongPpo, level))
    view = GAME.new_state(4).view(0)
    player = strategy.player(Table(lobby="l", table="t", game=GAME, seat=0, seed=1))
    decision = player.decide(view, view.legal(), FOREVER)
    assert strategy.encoder_version == decision.encoder_version == version
    states, prospects = encode([view], [view.legal()], version)
    (logits,), _ = strategy.session.run(state=states, prospects=prospects)
    legal = view.legal()
    assert decision.action == legal[logits[legal].argmax()]


def old_network(folder):
    """A network of version 2 that takes the action which its own input recommends."""
    nodes = [
        helper.make_node("Slice", ["prospects", "from", "to", "axis"], ["recommended"]),
        helper.make_node("Squeeze", ["recommended", "axis"], ["logits"]),
        helper.make_node("ReduceMean", ["state"], ["values"], axes=[1], keepdims=0),
    ]
    constants = [
        helper.make_tensor(name, TensorProto.INT64, [1], [value])
        for name, value in (("from", 18), ("to", 19), ("axis", 2))
    ]
    inputs = [
        helper.make_tensor_value_info("state", TensorProto.FLOAT, ["n", ORDER_START]),
        helper.make_tensor_value_info("prospects", TensorProto.FLOAT, ["n", ACTIONS, 20]),
    ]
    outputs = [
        helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", ACTIONS]),
        helper.make_tensor_value_info("values", TensorProto.FLOAT, ["n"]),
    ]
    net = helper.make_graph(nodes, "old", inputs, outputs, constants)
    made = helper.make_model(net, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (folder / "model.onnx").write_bytes(made.SerializeToString())
    files = {"model.onnx": weights.sha256_of(folder / "model.onnx")}
    return Model("mahjong-ppo", "old", weights.model_sha256(files), str(folder), files, 2)


def test_networks_of_version_2_still_play(tmp_path):
    strategy = MahjongPpo(PlayOptions(), old_network(tmp_path))
    for state, seat in positions(1)[5:30:5]:
        view, legal = state.view(seat), state.legal(seat)
        player = strategy.player(Table(lobby="l", table="t", game=GAME, seat=seat, seed=1))
        best = legal[view.encode_actions("appraisal", legal)[:, 17].argmax()]
        assert player.decide(view, legal, FOREVER).action == best


# ------------------------------------------------------------------------------------------------- hidden features


def test_hidden_features_are_given_then_fade_then_are_gone():
    schedule = DropoutOptions(begin=0.4, end=0.8)
    assert [share_given(part, schedule) for part in (0.0, 0.4, 0.6, 0.8, 1.0)] == pytest.approx([1, 1, 0.5, 0, 0])
    at_once = DropoutOptions(begin=0.5, end=0.5)
    assert share_given(0.49, at_once) == 1.0 and share_given(0.5, at_once) == 0.0
    with pytest.raises(ValueError, match="ascend"):
        DropoutOptions(begin=0.9, end=0.2)


def test_a_share_of_the_hidden_features_is_given():
    state, seat = positions(1)[10]
    full = encode_hidden(state, seat, 1.0, np.random.default_rng(0))
    half = encode_hidden(state, seat, 0.5, np.random.default_rng(0))
    none = encode_hidden(state, seat, 0.0, np.random.default_rng(0))
    assert full.sum() > 50 and not none.any()
    assert ((half == 0) | (half == full)).all() and 0.3 * full.sum() < half.sum() < 0.7 * full.sum()


def test_what_is_shipped_has_no_input_for_hidden_features_and_is_the_network_without_them(trained):
    model = weights.find(MahjongPpo, "champion", trained / "weights")
    assert set(model.files) == {"model.onnx", "model.safetensors"}
    net = MahjongNet()
    net.load_state_dict(_checkpoint(trained))
    assert "hidden.weight" in net.state_dict() and "hidden.weight" not in net.deployed().state_dict()
    strategy = MahjongPpo(PlayOptions(), model)
    found = positions(1)[::4]
    observations, _ = observe(found, 0.0, np.random.default_rng(0))
    legal = [s.legal(seat) for s, seat in found]
    with torch.no_grad():
        logits, values = net(torch.from_numpy(observations))
    policies, scores = strategy.infer([s.view(seat) for s, seat in found], legal)
    expected = logits.masked_fill(~torch.from_numpy(legal_masks(legal, ACTIONS)), -torch.inf).softmax(dim=1)
    np.testing.assert_allclose(policies, expected.numpy(), atol=1e-5)
    np.testing.assert_allclose(scores, values.numpy() / REWARD_SCALE, atol=1e-3)


def _checkpoint(out):
    return safetensors.torch.load_file(sorted(out.glob("checkpoint-*"))[-1] / "model.safetensors")


def test_live_decisions_do_not_depend_on_what_is_hidden(trained):
    strategy = MahjongPpo(PlayOptions(), weights.find(MahjongPpo, "champion", trained / "weights"))
    for state, seat in positions(1)[::7]:
        view = state.view(seat)
        other = view.sample_state(5).view(seat)
        player = strategy.player(Table(lobby="l", table="t", game=GAME, seat=seat, seed=1))
        assert player.decide(view, view.legal(), FOREVER) == player.decide(other, other.legal(), FOREVER)


def test_a_network_without_look_ahead_ignores_it_also_when_shipped():
    torch.manual_seed(0)
    net = MahjongNet(look_ahead=False)
    torch.nn.init.ones_(net.prospect_value.weight)
    observations = torch.rand(3, OBSERVATION)
    changed = observations.clone()
    changed[:, PLAIN:ORDER_START] = torch.rand(3, ORDER_START - PLAIN)
    changed[:, PACKED_STATE : PACKED_STATE + PACKED] = torch.rand(3, PACKED)
    assert torch.equal(net(observations)[0], net(changed)[0])
    observations[:, PACKED_STATE + PACKED :] = 0
    for mine, shipped in zip(net(observations), net.deployed()(changed), strict=True):
        torch.testing.assert_close(mine, shipped)


# ------------------------------------------------------------------------------------------------ play and training


def test_the_next_stage_needs_a_whole_window_of_good_scores():
    assert stage_after(0, [5.0, 5.0], window=3, least=2.0) == 0
    assert stage_after(0, [-9.0, 3.0, 2.0, 1.0], window=3, least=2.0) == 1
    assert stage_after(1, [3.0, 2.0, 0.9], window=3, least=2.0) == 1
    assert stage_after(len(CURRICULUM) - 1, [9.0] * 9, window=3, least=2.0) == len(CURRICULUM) - 1
    assert [CURRICULUM[i].count("random") for i in range(3)] == [3, 2, 0]


@pytest.mark.parametrize("seats", CURRICULUM)
def test_a_hand_is_one_trajectory_whose_reward_is_its_score(seats):
    torch.manual_seed(1)
    net = MahjongNet()
    hands = play(GAME, net, Opponents(seats, net), 4, seed=7, options=PpoOptions(gae_lambda=1.0), share=0.5)
    batch = hands.batch
    assert batch.masks.gather(1, batch.actions[:, None]).all()
    # λ = 1, γ = 1: every target of a hand is its scaled score.
    assert set(np.round(batch.returns.numpy() / REWARD_SCALE).tolist()) <= set(hands.scores.tolist())
    assert len(hands.scores) == 4 * (1 + seats.count("self"))
    again = play(GAME, net, Opponents(seats, net), 4, seed=7, options=PpoOptions(gae_lambda=1.0), share=0.5)
    assert torch.equal(batch.observations, again.batch.observations) and (hands.scores == again.scores).all()


def test_memory_that_is_used_again_holds_nothing_of_the_hands_before():
    torch.manual_seed(0)
    net, buffer, opponents = MahjongNet(), Buffer(), Opponents(("rule", "self", "self"))
    play(GAME, net, opponents, 3, seed=1, options=PpoOptions(), share=1.0, buffer=buffer)
    again = play(GAME, net, opponents, 2, seed=9, options=PpoOptions(), share=0.0, buffer=buffer)
    alone = play(GAME, net, opponents, 2, seed=9, options=PpoOptions(), share=0.0)
    assert all(torch.equal(mine, other) for mine, other in zip(again.batch, alone.batch, strict=True))


def test_imitation_comes_to_play_as_its_teacher():
    torch.manual_seed(0)
    net = MahjongNet()
    with torch.no_grad():
        net.prospect_second.weight.copy_(-net.prospect_second.weight.abs())
    before = imitate(net, GAME, 3, 99, rate=0.0)
    after = imitate(net, GAME, 20, 5, rate=3e-3, chunk=10)
    assert before < 0.5 and after > before + 0.3


def test_a_lesson_is_what_its_teacher_does():
    taught = {teacher: demonstrations(GAME, 2, 5, teacher) for teacher in TEACHERS}
    for teacher, choice in TEACHERS.items():
        view = GAME.new_state(5).view(0)
        assert taught[teacher][2][0] == choice(view)[0]
    assert not np.array_equal(taught["rule"][2], taught["acceptance-weighted"][2])
    with pytest.raises(msgspec.ValidationError, match="teacher"):
        msgspec.convert({"teacher": "nobody"}, Options)


def test_what_a_clone_is_sure_of_opens_up_in_the_same_order():
    logits, legal = torch.tensor([[9.0, 0.0, 5.0, 7.0], [0.0, 30.0, 20.0, 0.0]]), torch.ones(2, 4, dtype=torch.bool)
    factor = cooling(logits, legal, 0.5)
    assert 0.0 < factor < 1.0
    assert float(entropy(masked_log_probs(factor * logits, legal)).mean()) == pytest.approx(0.5, abs=1e-3)
    assert cooling(logits, legal, 0.0) == 1.0
    torch.manual_seed(0)
    net, observations = MahjongNet(), torch.rand(2, OBSERVATION)
    before = net(observations)
    net.cool(0.5)
    torch.testing.assert_close(net(observations)[0], 0.5 * before[0])
    assert torch.equal(net(observations)[1], before[1])


def test_the_critic_is_fitted_to_hands_and_the_policy_stays():
    torch.manual_seed(0)
    net = MahjongNet()
    found = positions(1)
    observations = torch.from_numpy(observe(found, 0.0, np.random.default_rng(0))[0])
    logits, before = net(observations)
    explained = fit_critic(net, GAME, 8, seed=11, chunk=4)
    after = net(observations)
    assert torch.equal(after[0], logits) and not torch.equal(after[1], before)
    taught, _, _, scores = (torch.from_numpy(field) for field in demonstrations(GAME, 8, 11))
    with torch.no_grad():
        assert (scores - net(taught)[1]).square().mean() < 0.95 * scores.square().mean()
    unseen, _, _, scores = (torch.from_numpy(field) for field in demonstrations(GAME, 2, 11 + 8))
    with torch.no_grad():
        residuals = scores - net(unseen)[1]
    assert explained == pytest.approx(float(1.0 - residuals.var() / scores.var()), abs=1e-3)
    weights = torch.randn(WIDTH + PROSPECT + 1)
    net.set_critic(weights)
    torch.testing.assert_close(net(observations)[1], net.critic_inputs(observations) @ weights, rtol=1e-4, atol=1e-4)


def test_the_shipped_critic_knows_what_a_hand_is_worth():
    net = MahjongNet(oracle=False)
    net.begin_with(Path(weights.find(MahjongPpo, "champion").path) / "model.safetensors")
    observations = torch.from_numpy(observe(positions(2), 0.0, np.random.default_rng(0))[0])
    with torch.no_grad():
        values = net(observations)[1]
    worth = net.critic_inputs(observations)[:, WIDTH]
    assert np.corrcoef(worth.numpy(), values.numpy())[0, 1] > 0.4


def test_a_training_may_end_with_its_warm_start(tmp_path):
    made = MahjongPpoTrainer(options(imitation_hands=2, iterations=0)).train(
        TrainingRun(out=tmp_path / "run", seed=3), lambda *_: None
    )
    lineage = json.loads((tmp_path / "run" / "weights" / "lineage.json").read_text())
    assert made["updates"] == 0 and np.isfinite(lineage["options"]["critic_explained_variance"])


@pytest.mark.parametrize(
    "wrong",
    [
        *({name: -1} for name in ("imitation_hands", "critic_hands", "learning_rate", "newest_share", "logged_share")),
        {"preset": "nowhere"},
        {"steering": {"kl_target": -1.0}},
    ],
)
def test_options_of_training_that_make_no_sense_are_refused_before_it(wrong):
    with pytest.raises(ConfigError):
        check_options(MahjongPpoTrainer, wrong)


def test_an_option_of_a_group_leaves_the_others_of_the_group_as_they_are():
    settled, default = check_options(MahjongPpoTrainer, {"ppo": {"bf16": True}}), Options()
    assert settled.ppo == msgspec.structs.replace(default.ppo, bf16=True)
    with pytest.raises(ConfigError, match=r"options\.dropout: .*0\.8 … 0\.7"):
        check_options(MahjongPpoTrainer, {"dropout": {"begin": 0.8}})


def test_a_trunk_that_does_not_learn_gets_no_gradients():
    net = MahjongNet()
    net.learns_trunk = False
    logits, values = net(torch.rand(2, OBSERVATION))
    torch.autograd.backward(logits.sum() + values.sum())
    learnt = {name.split(".")[0] for name, parameter in net.named_parameters() if parameter.grad is not None}
    assert learnt == {"policy", "value", *(f"prospect_{part}" for part in ("first", "context", "second", "value"))}


def test_training_logs_coefficients_and_targets_and_plots_them(trained):
    records = read(trained / "metrics.jsonl")
    assert [r["iteration"] for r in records] == [1, 2]
    for name in MahjongLearner.plotted:
        assert all(np.isfinite(r[name]) for r in records)
    assert records[1]["entropy_coef"] == records[0]["next_entropy_coef"] != records[0]["entropy_coef"]
    assert (trained / "training.png").is_file()
    lineage = json.loads((trained / "weights" / "lineage.json").read_text())
    assert lineage["updates"] == 2 and "imitation_agreement" in lineage["options"]


def test_a_training_that_resumes_goes_on_as_one_that_never_stopped(tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    settled = options(iterations=2, window=1, least_score=-1000.0, dropout={"begin": 0.0, "end": 1.0})
    MahjongPpoTrainer(settled).train(TrainingRun(out=whole, seed=1), lambda *_: None)

    class Stop(Exception):
        pass

    def stop(done, note="", total=None):
        if done == 1:
            raise Stop

    with pytest.raises(Stop):
        MahjongPpoTrainer(settled).train(TrainingRun(out=parts, seed=1), stop)
    MahjongPpoTrainer(settled).train(TrainingRun(out=parts, seed=1, resume=True), lambda *_: None)
    one, two = (read(out / "metrics.jsonl") for out in (whole, parts))
    assert [r["stage"] for r in one] == [0, 1] == [r["stage"] for r in two]
    for mine, other in zip(_checkpoint(whole).values(), _checkpoint(parts).values(), strict=True):
        assert torch.equal(mine, other)
    with pytest.raises(UsageError, match="not empty"):
        MahjongPpoTrainer(settled).train(TrainingRun(out=parts, seed=1), lambda *_: None)
    with pytest.raises(UsageError, match="seed"):
        MahjongPpoTrainer(settled).train(TrainingRun(out=parts, seed=2, resume=True), lambda *_: None)


def test_a_training_may_begin_to_steer_when_it_resumes():
    learner = MahjongLearner(options(), 1)
    learner.resume([{"iteration": 1, "stage": 0.0, "next_stage": 0.0, "mean_score": 1.0}])
    assert learner.weights.entropy == learner.options.ppo.entropy_coef and learner.scores == [1.0]


# --------------------------------------------------------------------------------------------------------- live play


def test_every_decision_is_legal_and_tells_policy_value_and_model(trained):
    model = weights.find(MahjongPpo, "champion", trained / "weights")
    strategy = MahjongPpo(PlayOptions(temperature=1.0), model)
    requests = []
    for state, seat in positions(1):
        player = strategy.player(Table(lobby="l", table="t", game=GAME, seat=seat, seed=4))
        view = state.view(seat)
        requests.append(Request(player, view, view.legal(), FOREVER))
    for request, decision in zip(requests, strategy.decide_many(requests), strict=True):
        assert decision.action in request.legal
        assert sum(decision.policy) == pytest.approx(1.0, abs=1e-5) and len(decision.policy) == len(request.legal)
        assert np.isfinite(decision.value) and decision.model_sha256 == model.sha256
    alone = requests[9].player.decide(requests[9].view, requests[9].legal, FOREVER)
    assert alone == strategy.decide_many(requests)[9]


def winning_positions(count):
    """Views of seats that may win, in hands of rule players who pass their wins."""
    views = []
    for seed in range(count):
        state = GAME.new_state(seed)
        while not state.terminal and len(views) < count:
            view = state.view(state.to_act[0])
            legal = view.legal()
            if WIN in legal:
                views.append(view)
            state.apply(view.seat, int(legal[legal != WIN][0]) if WIN in legal else mahjong.rule_choice(view)[0])
    return views


def test_a_legal_win_is_never_passed():
    strategy = MahjongPpo(PlayOptions(temperature=1.0), weights.find(MahjongPpo, "level-1"))
    views = winning_positions(300)
    assert len(views) == 300
    for view in views:
        player = strategy.player(Table(lobby="l", table="t", game=GAME, seat=view.seat, seed=4))
        decision = player.decide(view, view.legal(), FOREVER)
        assert decision.action == WIN
        assert max(decision.policy) == 1.0


def test_a_false_win_is_an_action_like_any_other():
    game = rules.game("mahjong", false_win=True)
    hand = ["W1", "W2", "W3", "W5", "W6", "W7", "T4", "T5", "T6", "B7", "B8", "B9", "F1", "F1"]
    chows = [{"kind": "chi", "tile": "W2", "claimed": "W1"}, {"kind": "chi", "tile": "T4", "claimed": "T3"}]
    known = {"seat": 0, "phase": "turn", "actor": 0, "prevalent_wind": "east"}
    worthy = game.view_from_snapshot({**known, "hand": hand})
    cheap = game.view_from_snapshot(
        {**known, "hand": ["B5", "B6", "B7", "W6", "W7", "W8", "T8", "T8"], "melds": [chows, [], [], []]}
    )
    views, legal = [worthy, cheap], [worthy.legal(), cheap.legal()]
    assert all(WIN in actions for actions in legal)
    only, any_of = choices(views, legal)
    assert only.tolist() == [WIN]
    assert any_of.tolist() == legal[1].tolist()


def illegal_answers(hands, opponents, seed):
    """Count the champion's decisions that the rules refuse, and all its decisions, over hands with one seat each."""
    strategy, rng = MahjongPpo(PlayOptions(), weights.find(MahjongPpo, "champion")), np.random.default_rng(seed)
    wrong = given = 0
    for first in range(0, hands, 128):
        running = [(GAME.new_state(seed + i), i % 4) for i in range(first, min(hands, first + 128))]
        while running:
            for state, own in running:
                while not state.terminal and (seat := state.to_act[0]) != own:
                    state.apply(seat, opponents(state, seat, rng))
            running = [(state, own) for state, own in running if not state.terminal]
            for state, own in running:
                player = strategy.player(Table(lobby="l", table="t", game=GAME, seat=own, seed=1))
                view, legal = state.view(own), state.legal(own)
                decision = player.decide(view, legal, FOREVER)
                wrong, given = wrong + (decision.action not in legal), given + 1
                state.apply(own, decision.action if decision.action in legal else int(legal[0]))
    return wrong, given


def test_no_answer_is_illegal():
    wrong, given = illegal_answers(8, SCRIPTED["random"], 0)
    assert wrong == 0 and given > 40


@pytest.mark.long
@pytest.mark.parametrize(("opponents", "hands"), [("random", 9000), ("rule", 1000)])
def test_no_answer_is_illegal_in_ten_thousand_hands(opponents, hands):
    wrong, given = illegal_answers(hands, SCRIPTED[opponents], 1)
    assert wrong == 0 and given > 5 * hands


def test_levels_come_with_verified_files_and_the_champion_is_the_last():
    models = [weights.find(MahjongPpo, level) for level in MahjongPpo.levels]
    assert len({model.sha256 for model in models}) == len(MahjongPpo.levels) == 5
    assert weights.find(MahjongPpo, "champion").sha256 == models[-1].sha256


def test_a_weak_level_is_weaker_than_the_champion():
    """Against three rule players, on walls whose seats rotate: some eleven points a hand less."""
    weak, champion = (score_against_rule_players(level, walls=10)[0] for level in ("level-1", "level-5"))
    assert weak < champion - 4.0


@pytest.mark.long
def test_levels_are_strictly_ordered():
    scores = [score_against_rule_players(level, walls=400) for level in MahjongPpo.levels]
    for (_, (_, below)), (_, (above, _)) in pairwise(scores):
        assert below < above


def score_against_rule_players(level: str, walls: int) -> tuple[float, tuple[float, float]]:
    """Mean score a hand, with its 95 % interval."""
    contestants = (f"mahjong-ppo:{level}", *["rule-mahjong"] * 3)
    spec = MatchSpec(game="mahjong", rules={}, contestants=contestants, options=({},) * 4, deals=walls, seed=1701)
    figures = run_match(spec, build)["agents"]["A"]
    return figures["score"], tuple(figures["ci95"])


def test_a_model_is_needed_and_must_be_of_this_encoder(trained):
    with pytest.raises(ModelError, match="model"):
        MahjongPpo(PlayOptions())
    model = weights.find(MahjongPpo, "champion", trained / "weights")
    with pytest.raises(ModelError, match="encoder"):
        MahjongPpo(PlayOptions(), msgspec.structs.replace(model, encoder_version=9))
    assert MahjongPpo.supports(GAME) and not MahjongPpo.supports(rules.game("othello"))
    assert encode([], [])[0].shape == (0, STATE) and legal_masks([], ACTIONS).shape == (0, ACTIONS)
