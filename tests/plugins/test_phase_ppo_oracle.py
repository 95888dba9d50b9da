"""Method oracle of phase-ppo: self-play on a device, and a critic that sees all cards."""

import json
from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch

from bothost import Model, TrainingRun, rules
from bothost.errors import ModelError, UsageError
from bothost.plugins import weights
from bothost.plugins.weights import Manifest
from bothost.training.checkpoint import load_model, parameters_of, save_tensors
from bothost.training.metrics import read
from bothost.training.model_pool import ModelPool
from bothost.training.ppo import PpoOptions
from bothost_phase_ppo.decide import PhasePpo, PlayOptions
from bothost_phase_ppo.improve import ImproveOptions
from bothost_phase_ppo.model import ActorCritic, CandidateNet, Critic, begin_with, listed, sizes
from bothost_phase_ppo.oracle import OracleOptions
from bothost_phase_ppo.selfplay import DeviceSelfPlay, Step, advantages
from bothost_phase_ppo.train import Options, PhasePpoTrainer, sized

GAME = rules.game("pairing")
CPU = torch.device("cpu")
OPTIONS = Options(method="oracle", environments=6, horizon=90, win_points=10.0, ppo=PpoOptions(gae_lambda=1.0))


def networks(seed):
    torch.manual_seed(seed)
    return ActorCritic(CandidateNet((32,), 16), Critic((16,)))


def follow(seed, actions, hands=6, horizon=90):
    """Play the choices again. Yields for each step: environment, hands with a choice, and what was done."""
    env, taken = rules.vec_env(GAME, hands, seed), iter(actions)
    for _ in range(horizon):
        asked = np.flatnonzero(np.diff(env.legal_offsets) > 1)
        done = env.legal_ids[env.legal_offsets[:-1]].astype(np.int32)
        done[asked] = [next(taken) for _ in asked]
        yield env, asked
        env.step(done)
    assert next(taken, None) is None


def test_samples_are_the_choices_of_both_seats_with_what_they_saw_and_how_their_hands_counted():
    model = networks(1)
    samples, leads = DeviceSelfPlay(OPTIONS.task, OPTIONS, 1, CPU).play(model, [None], [3])
    seen, hidden, scores = (np.empty((6, width), np.float32) for width in (400 + 58 * 32, 104, 2))
    positions, cards, owners, began, counts = [], [], [], [], {}
    numbers, turn_leads, ends = np.zeros(6, int), {}, []
    for env, asked in follow(3, samples.actions.tolist()):
        for hand in np.flatnonzero(env.done):
            lead = env.returns[hand, 0]
            ends.append(lead)
            counts[hand, numbers[hand]] = 0.1 * (lead + 10.0 * np.sign(lead))
            numbers[hand] += 1
        env.encode("candidates", seen)
        env.encode("scores", scores)
        env.encode_oracle("hidden", hidden.reshape(6, 2, 52))
        for hand in asked:
            key = (hand, numbers[hand], env.seat[hand])
            turn = seen[hand, 381]
            if turn_leads.get(key, (None,))[0] != turn:
                turn_leads[key] = turn, 0.1 * (scores[hand, 0] - scores[hand, 1])
            began.append(turn_leads[key][1])
            owners.append(key)
            positions.append(seen[hand, :400].copy())
            cards.append(hidden[hand].copy())
    assert len(ends) >= 6 and leads.tolist()[: len(ends)] == pytest.approx(ends)
    np.testing.assert_allclose(samples.positions, np.stack(positions), atol=1e-3)
    np.testing.assert_allclose(samples.hidden, np.stack(cards), atol=1e-3)
    np.testing.assert_allclose(samples.leads, began, atol=1e-4)
    last = {key: at for at, key in enumerate(owners)}
    for at, (hand, number, seat) in enumerate(owners):
        over = (hand, number) in counts
        assert samples.known[at] == (over or last[hand, number, seat] != at) or number == numbers[hand]
        if over:
            expected = counts[hand, number] * (1 if seat == 0 else -1)
            assert samples.returns[at].item() == pytest.approx(expected, abs=1e-4)

    number_of = samples.legal.sum(dim=1)
    rows, actions, at = listed(samples.legal, number_of.cumsum(0) - number_of, torch.arange(len(owners)))
    with torch.no_grad():
        log_probs, _ = model.actor.policy(samples.positions.float(), rows, actions, samples.candidates[at].float())
        values = model.critic(samples.positions.float(), samples.hidden.float())
    chosen = log_probs.gather(1, samples.actions[:, None])[:, 0]
    torch.testing.assert_close(samples.log_probs, chosen, atol=1e-3, rtol=0.0)
    torch.testing.assert_close(samples.returns - samples.advantages, values, atol=1e-3, rtol=0.0)


def test_against_an_opponent_only_the_own_choices_are_samples_and_the_opponent_plays_its_policy():
    """An opponent that always takes the first legal action is told from the learner, which does not."""
    model = networks(2)

    class First(torch.nn.Module):
        def policy(self, positions, rows, actions, candidates):
            return torch.full((len(positions), 58), -1e9).index_put((rows, actions), -1e6 * actions), None

    samples, leads = DeviceSelfPlay(OPTIONS.task, OPTIONS, 1, CPU).play(model, [First()], [5])
    env, taken, ends = rules.vec_env(GAME, 6, 5), iter(samples.actions.tolist()), []
    for _ in range(90):
        choice = np.diff(env.legal_offsets) > 1
        done = env.legal_ids[env.legal_offsets[:-1]].astype(np.int32)
        own = np.flatnonzero(choice & (env.seat == np.arange(6) % 2))
        done[own] = [next(taken) for _ in own]
        env.step(done)
        ends += [env.returns[hand, hand % 2] for hand in np.flatnonzero(env.done)]
    assert next(taken, None) is None
    assert leads.tolist() == pytest.approx(ends)


def test_advantages_are_sums_of_the_errors_of_the_values_that_follow():
    """A hand of seat 0 with three choices, then another that has not ended; seat 1 has one choice in between."""
    none, over = np.zeros(0, np.int64), np.array([0])
    empty = np.zeros((0, 2), np.float32)
    steps = [
        Step(np.array([0]), np.float32([1.0]), none, empty),
        Step(np.array([1]), np.float32([0.5]), none, empty),
        Step(np.array([0]), np.float32([2.0]), none, empty),
        Step(np.array([0]), np.float32([4.0]), over, np.float32([[3.0, -3.0]])),
        Step(np.array([1]), np.float32([7.0]), none, empty),
        Step(np.array([1]), np.float32([8.0]), none, empty),
    ]
    gains, known = zip(*advantages(steps, 1, 0.5), strict=True)
    third = 3.0 - 4.0
    second = 4.0 - 2.0 + 0.5 * third
    first = 2.0 - 1.0 + 0.5 * second
    assert np.concatenate(known).tolist() == [True, True, True, True, True, False]
    assert np.concatenate(gains)[:5].tolist() == [first, -3.0 - 0.5, second, third, 8.0 - 7.0]


def test_a_larger_network_takes_what_a_smaller_one_computes(tmp_path):
    torch.manual_seed(3)
    small, large = CandidateNet((32, 48), 16), CandidateNet((64, 96, 96), 48)
    save_tensors(small.state_dict(), tmp_path / "small")
    begin_with(tmp_path / "small", large)
    seen = torch.rand(5, 400 + 58 * 32)
    for found, expected in zip(large(seen), small(seen), strict=True):
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    large(seen)[0].sum().backward()
    assert large.body[4].weight.grad[:, 48:].abs().sum() > 0, "what is new can learn"
    save_tensors(large.state_dict(), tmp_path / "large")
    assert sizes(parameters_of(tmp_path / "large")) == ((64, 96, 96), 48)
    with pytest.raises(ModelError, match="larger"):
        begin_with(tmp_path / "large", small)
    for foreign in ({"body.x.bias": torch.zeros(3)}, {"body.0.bias": torch.zeros(16), "score_out": torch.zeros(16)}):
        save_tensors(foreign, tmp_path / "foreign")
        with pytest.raises(ModelError, match="another network"):
            begin_with(tmp_path / "foreign", large)


def train(out, until=None, **changes):
    """Train for four iterations, in two runs if the first is to end after iteration ``until``."""

    def report(done, *_):
        if done == until:
            raise KeyboardInterrupt

    own = OracleOptions(threads=2, critic=(16,), warm_up=1)
    options = Options(
        method="oracle",
        iterations=4,
        learning_rate=0.01,
        environments=8,
        horizon=40,
        hidden=(32, 32, 32),
        units=16,
        oracle=own,
        pool_every=1,
        checkpoint_every=1,
        levels=(0.5, 1.0),
        ppo=PpoOptions(minibatch=128),
    )
    options = msgspec.structs.replace(options, **changes)
    run = TrainingRun(out=out, seed=2)
    if until is not None:
        with pytest.raises(KeyboardInterrupt):
            PhasePpoTrainer(options).train(run, report)
        run = TrainingRun(out=out, seed=2, resume=True)
    return PhasePpoTrainer(options).train(run, lambda *_: None)


def test_a_training_that_was_interrupted_ends_with_the_same_network_and_its_levels_play(tmp_path):
    train(tmp_path / "whole")
    train(tmp_path / "parts", until=2)
    whole, parts = (
        (tmp_path / name / "weights/v8-level-2/model.safetensors").read_bytes() for name in ("whole", "parts")
    )
    assert whole == parts
    folder = tmp_path / "whole/weights"
    assert sizes(parameters_of(folder / "v8-level-2/model.safetensors")) == ((32, 32, 32), 16)
    first, *_, last = read(tmp_path / "whole/metrics.jsonl")
    assert first["approx_kl"] < 1e-6 < last["approx_kl"], "at first only the critic learns"
    assert 0.0 <= last["start_win_rate"] <= 1.0
    made = msgspec.json.decode((folder / "manifest.json").read_bytes(), type=Manifest).versions["v8-level-2"]
    model = Model("phase-ppo", "v", "0" * 64, str(folder / "v8-level-2"), made.files, 2)
    state = GAME.new_state(1)
    view = state.view(state.to_act[0])
    policy, _ = PhasePpo(PlayOptions(), model).infer([view], [view.legal()])
    assert policy[0][view.legal()].sum() == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("options", [{}, {"workers": 1}, {"method": "oracle"}, {"method": "improve"}])
def test_a_network_that_grows_computes_what_the_version_to_begin_with_does(options, tmp_path):
    found = weights.find(PhasePpo, "level-2")
    shipped, larger = CandidateNet(), CandidateNet((320, 256, 256), 48)
    load_model(Path(found.path) / "model.safetensors", shipped)
    chosen = Options(
        hidden=(320, 256, 256), units=48, iterations=1, environments=4, horizon=40, levels=(1.0,), **options
    )
    own = {"oracle": OracleOptions(critic=(16,)), "improve": ImproveOptions(collecting=1.0, hands=1, deals=1)}
    run = TrainingRun(out=tmp_path, seed=1, start=found)
    PhasePpoTrainer(msgspec.structs.replace(chosen, **own)).train(run, lambda *_: None)
    whole = ActorCritic(larger, Critic((16,))) if options.get("method") == "oracle" else larger
    ModelPool(tmp_path / "pool").load(0, whole)
    seen = torch.rand(20, 400 + 58 * 32)
    for again, before in zip(larger(seen), shipped(seen), strict=True):
        torch.testing.assert_close(again, before, atol=1e-4, rtol=1e-4)


def test_a_critic_learns_to_tell_how_hands_end(tmp_path):
    own = OracleOptions(threads=1, critic=(64,), warm_up=100)
    train(tmp_path, oracle=own, iterations=6, environments=64, horizon=100, learning_rate=3e-3)
    records = read(tmp_path / "metrics.jsonl")
    assert records[-1]["explained_variance"] > records[0]["explained_variance"] + 0.2


def test_of_one_choice_the_critic_has_nothing_to_explain(tmp_path):
    figures = train(tmp_path, oracle=OracleOptions(threads=1, critic=(16,)), iterations=1, environments=1, horizon=2)
    assert figures["samples"] == 1 and read(tmp_path / "metrics.jsonl")[-1]["explained_variance"] == 0.0


def test_a_rollout_that_is_too_short_says_so(tmp_path):
    with pytest.raises(UsageError, match="chose twice"):
        train(tmp_path, horizon=1)


def test_a_training_has_the_sizes_of_the_version_to_begin_with_unless_it_says_others(tmp_path):
    found = weights.find(PhasePpo, "level-5")
    folder = Path(found.path)
    made = json.loads((folder.parent / "lineage.json").read_text())[folder.name]["options"]
    file = folder / "model.safetensors"
    taken = sized(Options(), file)
    assert (list(taken.hidden), taken.units) == (made["hidden"], made["units"])
    assert sized(Options(hidden=(1024,), units=512), file) == Options(hidden=(1024,), units=512)
    assert sized(Options(), None) == Options() and sized(Options(network="source"), file) == Options(network="source")
    own = OracleOptions(critic=(16,), warm_up=1)
    short = Options(method="oracle", iterations=1, environments=4, horizon=40, levels=(1.0,), oracle=own)
    PhasePpoTrainer(short).train(TrainingRun(out=tmp_path, seed=1, start=found), lambda *_: None)
    again, level = (parameters_of(path) for path in (tmp_path / "weights/v8-level-1/model.safetensors", file))
    assert all(torch.equal(again[name], tensor.float()) for name, tensor in level.items())
