"""Expert iteration of phase-ppo: what it learns from playouts."""

import json

import msgspec
import numpy as np
import pytest
import safetensors.torch
import torch

from bothost import TrainingRun, cli, rules
from bothost.errors import UsageError
from bothost.plugins import Plugins
from bothost.training.loop import Iteration
from bothost.training.metrics import read
from bothost.training.model_pool import ModelPool
from bothost_phase_ppo.encode import Symmetries
from bothost_phase_ppo.improve import Batch, Choices, ExpertLearner, ImproveOptions, Memory, Seen, averaged, losses
from bothost_phase_ppo.train import Options, PhasePpoTrainer

SMALL = ImproveOptions(collecting=0.6, hands=3, deals=2, steps=2, minibatch=64)


def train(out, improve=SMALL, iterations=5, until=None):
    """Train, in two runs if the first is to end after iteration ``until``."""

    def report(done, *_):
        if done == until:
            raise KeyboardInterrupt

    chosen = Options(method="improve", improve=improve, iterations=iterations, checkpoint_every=1, levels=(1.0,))
    run = TrainingRun(out=out, seed=2)
    if until is not None:
        with pytest.raises(KeyboardInterrupt):
            PhasePpoTrainer(chosen).train(run, report)
        run = TrainingRun(out=out, seed=2, resume=True)
    PhasePpoTrainer(chosen).train(run, lambda *_: None)
    return (out / "weights/v8-level-1/model.safetensors").read_bytes()


@pytest.fixture(scope="module")
def learner(tmp_path_factory):
    """A learner, its first network in a pool, and what it collects."""
    folder = tmp_path_factory.mktemp("learner")
    made = ExpertLearner(ImproveOptions(hands=12, deals=16), rules.game("pairing"), folder, seed=3)
    pool = ModelPool(folder / "pool")
    pool.add(0, made.model)
    return made, made.collect(Iteration(1, 0.0, np.random.default_rng(5), pool))


@pytest.mark.parametrize("temperature", [2.0, None])
def test_the_loss_has_its_minimum_at_the_first_policy_times_the_exponential_of_the_gains(temperature):
    first, gains = torch.tensor([0.5, 0.3, 0.2]), torch.tensor([-1.0, 0.5, 2.0])
    rows = torch.zeros(3, dtype=torch.long)
    seen = Seen(torch.zeros(1, 400), rows, rows, torch.zeros(3, 32))
    batch = Batch(seen, torch.tensor([0.25]), gains, first.log())
    logits, value = torch.zeros(3, requires_grad=True), torch.zeros(1, requires_grad=True)

    class Net:
        def among(self, *_):
            return logits.log_softmax(dim=0), value

    optimizer = torch.optim.Adam([logits, value], lr=0.1)
    for _ in range(200):
        optimizer.zero_grad()
        losses(Net(), batch, temperature)[0].backward()
        optimizer.step()
    expected = first * torch.exp(gains / temperature) if temperature else first
    torch.testing.assert_close(logits.detach().softmax(dim=0), expected / expected.sum(), atol=2e-3, rtol=0.0)
    assert value.item() == pytest.approx(0.25, abs=1e-2)


def test_gains_are_those_of_playouts_of_the_likely_actions(monkeypatch, tmp_path):
    """They add up to nothing under the policy, and an action without playouts has none."""
    monkeypatch.setattr(
        "bothost_phase_ppo.improve.rule_returns", lambda view, *, actions, **_: np.float32(actions)[None]
    )
    learner = ExpertLearner(ImproveOptions(least_odds=0.5, others=0.0), rules.game("pairing"), tmp_path, seed=0)
    state = rules.game("pairing").new_state(1)
    view = state.view(state.to_act[0])
    legal = view.legal()
    assert len(legal) > 2
    odds = np.full(len(legal), 0.01 / (len(legal) - 2))
    odds[:2] = 0.6, 0.4
    log_probs = torch.full((1, 58), -1e9)
    log_probs[0, legal] = torch.from_numpy(odds).log().float()
    allowed = torch.zeros(1, 58, dtype=torch.bool)
    allowed[0, legal] = True
    seen = torch.zeros(1, 400 + 58 * 32)
    monkeypatch.setattr("bothost_phase_ppo.improve.averaged", lambda *_: (log_probs, torch.zeros(1)))
    found, _ = learner.valued([view], seen, allowed, np.random.default_rng(0))
    worth = legal[:2] + 10.0
    expected = worth - (0.6 * worth[0] + 0.4 * worth[1])
    np.testing.assert_allclose(found.gains[:2], expected, atol=1e-4)
    assert not found.gains[2:].any()


def test_a_batch_has_the_same_policy_as_whole_observations(learner):
    made, choices = learner
    memory = Memory([choices, choices])
    index = torch.tensor([3, len(choices.values) + 3, 0])
    batch = memory.batch(index)
    dense = torch.zeros(3, 58, 32)
    dense[batch.seen.rows, batch.seen.actions] = batch.seen.candidates
    for number in (0, 5):
        seen = torch.cat([batch.seen.positions, dense.reshape(3, -1)], dim=1).numpy()
        symmetry = Symmetries(24)
        observations = torch.from_numpy(seen[:, symmetry.features[number]])
        renamed = batch.seen.renamed(symmetry, number)
        with torch.no_grad():
            logits, values = made.model(observations)
            found, found_values = made.model.among(*renamed)
        assert found.exp().sum().item() == pytest.approx(3.0, abs=1e-5)
        for row in range(3):
            of_row = renamed.rows == row
            expected = logits[row, renamed.actions[of_row]].log_softmax(dim=0)
            torch.testing.assert_close(found[of_row], expected, atol=1e-5, rtol=0.0)
        torch.testing.assert_close(found_values, values)
    torch.testing.assert_close(batch.seen.positions[0], batch.seen.positions[1])


def test_the_average_over_rotations_is_the_policy_of_play(learner):
    """The same as from whole observations, renamed and named back as ``decide`` does."""
    made, choices = learner
    batch = Memory([choices]).batch(torch.arange(5))
    rotations, dense = Symmetries(4), torch.zeros(5, 58, 32)
    dense[batch.seen.rows, batch.seen.actions] = batch.seen.candidates
    whole = torch.cat([batch.seen.positions, dense.reshape(5, -1)], dim=1).numpy()
    with torch.no_grad():
        logits, values = made.model(torch.from_numpy(rotations.rename(whole)))
    back = torch.from_numpy(rotations.name_back(logits.numpy()))
    found, found_values = averaged(made.model, batch.seen, rotations)
    for row in range(5):
        legal = batch.seen.actions[batch.seen.rows == row]
        expected = back[row][:, legal].log_softmax(dim=1).mean(dim=0).log_softmax(dim=0)
        torch.testing.assert_close(found[row, legal], expected, atol=1e-5, rtol=0.0)
    assert found.exp().sum().item() == pytest.approx(5.0, abs=1e-4)
    torch.testing.assert_close(found_values, values.reshape(5, 4).mean(dim=1), atol=1e-5, rtol=0.0)


def test_choices_are_the_same_from_a_file(learner, tmp_path):
    _, choices = learner
    choices.save(tmp_path / "new" / "1.npz")
    for kept, read_back in zip(choices, Choices.load(tmp_path / "new" / "1.npz"), strict=True):
        assert torch.equal(kept, read_back) and kept.dtype == read_back.dtype


@pytest.mark.parametrize("length", [0, 4, 2000])
def test_a_file_that_is_cut_short_holds_no_choices(learner, tmp_path, length):
    _, choices = learner
    choices.save(tmp_path / "1.npz")
    (tmp_path / "1.npz").write_bytes((tmp_path / "1.npz").read_bytes()[:length])
    with pytest.raises(UsageError, match=r"1\.npz holds no choices"):
        Choices.load(tmp_path / "1.npz")


def test_a_training_resumes_bit_for_bit(tmp_path):
    whole = train(tmp_path / "a")
    record = read(tmp_path / "a" / "metrics.jsonl")
    assert [("choices" in line, "gain" in line) for line in record] == [(True, False)] * 3 + [(False, True)] * 2
    assert train(tmp_path / "b", until=4) == whole


def test_it_learns_from_the_choices_of_another_training_but_for_those_held_out(learner, tmp_path):
    _, choices = learner
    for number in (1, 2):
        choices.save(tmp_path / "choices" / f"{number}.npz")
    options = ImproveOptions(choices=str(tmp_path / "choices"), steps=2, minibatch=64)
    other = ExpertLearner(options, rules.game("pairing"), tmp_path / "other", seed=0)
    before = other.model.score_out.detach().clone()
    outcome = other.iterate(Iteration(1, 0.0, np.random.default_rng(0), None))
    assert outcome.samples == 128 and not torch.equal(before, other.model.score_out)
    assert [len(memory) for memory in other.memories()] == [len(choices.values)] * 2
    assert not (tmp_path / "other").exists()


def test_a_training_that_only_collects_writes_no_version(tmp_path):
    improve = msgspec.structs.replace(SMALL, collecting=1.0)
    run = TrainingRun(out=tmp_path / "a", seed=2)
    options = Options(method="improve", improve=improve, iterations=2, levels=(1.0,))
    figures = PhasePpoTrainer(options).train(run, lambda *_: None)
    assert figures["choices"] == str(tmp_path / "a/choices") and "levels" not in figures
    assert not (tmp_path / "a/weights").exists() and not (tmp_path / "a/training.png").exists()
    train(tmp_path / "b", msgspec.structs.replace(SMALL, choices=figures["choices"]), iterations=1)


def test_too_few_choices_are_refused_with_the_fix(tmp_path):
    with pytest.raises(UsageError, match="choices of 1 iterations, and 2 are needed"):
        train(tmp_path / "a", ImproveOptions(collecting=0.1, hands=1, deals=1), iterations=2)
    with pytest.raises(UsageError, match="choices of 0 iterations"):
        train(tmp_path / "b", ImproveOptions(choices=str(tmp_path / "nowhere")))
    certain = msgspec.structs.replace(SMALL, least_odds=1.0, others=0.0)
    with pytest.raises(UsageError, match="too few choices that playouts value"):
        train(tmp_path / "c", certain)


def test_the_network_moves_towards_what_playouts_find_better(tmp_path):
    """Its choices are worth more by playouts of other hands."""
    improve = ImproveOptions(hands=12, deals=8, collecting=0.5, steps=30, minibatch=256, learning_rate=3e-3)
    train(tmp_path, improve, iterations=4)
    last = read(tmp_path / "metrics.jsonl")[-1]
    assert last["gain"] > 0.5


def test_options_of_improvement_are_checked():
    for wrong in ({"deals": 0}, {"others": 1.5}, {"temperature": 0.0}):
        with pytest.raises(msgspec.ValidationError, match=next(iter(wrong))):
            msgspec.convert(wrong, ImproveOptions)
    with pytest.raises(ValueError, match="candidates"):
        Options(method="improve", network="source")


def test_a_retraining_does_not_learn_by_ppo_where_improvement_was_asked_for(tmp_path):
    with pytest.raises(UsageError, match="learns by PPO"):
        PhasePpoTrainer(Options(method="improve")).retrain(TrainingRun(out=tmp_path), None, None, lambda *_: None)


def test_a_training_begins_with_the_version_that_start_names(tmp_path):
    words = [
        "--option",
        "iterations=1",
        "--option",
        "environments=4",
        "--option",
        "horizon=8",
        "--option",
        "start=level-2",
    ]
    assert cli.main(["train", "phase-ppo", "--out", str(tmp_path / "out"), *words]) == 0
    version = Plugins.load().resolve("phase-ppo:level-2").model
    begun = safetensors.torch.load_file(tmp_path / "out/pool/v000000.safetensors")
    shipped = safetensors.torch.load_file(f"{version.path}/model.safetensors")
    assert begun.keys() == shipped.keys() and all(torch.equal(begun[name], shipped[name]) for name in begun)
    assert json.loads((tmp_path / "out/weights/lineage.json").read_text())["start"] == version.label


def test_a_start_that_does_not_exist_leaves_no_folder(tmp_path, capsys):
    assert cli.main(["train", "phase-ppo", "--out", str(tmp_path / "out"), "--option", "start=level-9"]) != 0
    assert "level-9" in capsys.readouterr().err and not (tmp_path / "out").exists()
