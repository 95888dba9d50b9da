"""Learning from logged hands: V-trace, behaviour probabilities, rewards, and the encoded files."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from bothost import LoggedStep, Trajectory, rules
from bothost.training.offpolicy import UNKNOWN, LeadEncoder, LoggedHands, behaviour, rewards_of, vtrace
from bothost.training.ppo import PpoOptions, generalized_advantages, joined
from bothost.training.rollout import RolloutTask

GAME = rules.game("pairing")
TASK = RolloutTask(GAME, "features", turns=381, reward_scale=0.1)


def random_batch(seed, steps=12, hands=5):
    rng = np.random.default_rng(seed)
    rewards, values = (rng.normal(size=(steps, hands)).astype("f4") for _ in range(2))
    dones = np.zeros((steps, hands), bool)
    dones[-1] = True
    return rng, rewards, values, dones


@pytest.mark.parametrize("seed", range(5))
def test_on_policy_targets_are_those_of_generalized_advantages(seed):
    _, rewards, values, dones = random_batch(seed)
    zeros = np.zeros_like(rewards)
    _, targets = vtrace(rewards, values, dones, zeros, gamma=0.97, gae_lambda=0.9)
    _, expected = generalized_advantages(rewards, values, dones, values[0] * 0, gamma=0.97, gae_lambda=0.9)
    np.testing.assert_allclose(targets, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_targets_are_the_sum_of_the_paper(seed):
    """v_s = V_s + Σ_t γ^(t−s) (Π_{i<t} c_i) δ_t, equation 1."""
    rng, rewards, values, dones = random_batch(seed)
    ratios = rng.normal(size=rewards.shape).astype("f4")
    gamma, lam = 0.97, 0.9
    _, targets = vtrace(rewards, values, dones, ratios, gamma=gamma, gae_lambda=lam)
    steps = len(rewards)
    for n in range(rewards.shape[1]):
        for s in range(steps):
            total, weight = float(values[s, n]), 1.0
            for t in range(s, steps):
                rho = min(1.0, math.exp(ratios[t, n]))
                following = 0.0 if t == steps - 1 else gamma * values[t + 1, n]
                total += weight * rho * (rewards[t, n] + following - values[t, n])
                weight *= gamma * lam * rho
            assert targets[s, n] == pytest.approx(total, rel=1e-3, abs=1e-4)


def test_what_others_chose_teaches_nothing_about_the_policy():
    rewards, values = np.ones((3, 1), "f4"), np.zeros((3, 1), "f4")
    dones = np.array([[False], [False], [True]])
    ratios = np.array([[0.0], [-np.inf], [0.0]], "f4")
    advantages, targets = vtrace(rewards, values, dones, ratios, gamma=1.0, gae_lambda=1.0)
    assert advantages[:, 0].tolist() == [1.0, 0.0, 1.0] and targets[:, 0].tolist() == [1.0, 0.0, 1.0]


def step(action=3, policy=(0.2, 0.5, 0.3), own=True, **stats):
    return LoggedStep(
        view=GAME.new_view(0),
        legal=np.array([1, 3, 7], np.int32),
        action=action,
        policy=None if policy is None else np.array(policy, "f4"),
        stats=stats,
        own=own,
        model_sha256=None,
    )


def test_behaviour_is_certain_without_a_temperature_and_drawn_with_one():
    assert behaviour(step()) == behaviour(step(action=7, playouts=64)) == 0.0
    assert behaviour(step(temperature=1.0)) == pytest.approx(math.log(0.5), abs=1e-6)
    assert behaviour(step(temperature=0.5)) == pytest.approx(math.log(0.25 / 0.38), abs=1e-6)
    assert behaviour(step(temperature=1e-4)) == pytest.approx(0.0)
    assert behaviour(step(action=7, temperature=0.01)) == pytest.approx(100 * math.log(0.6), rel=1e-4)
    for wrong in (step(policy=(math.nan, 0.5, 0.5), temperature=1.0), step(temperature=math.nan)):
        assert behaviour(wrong) == UNKNOWN
    for unknown in (step(own=False), step(policy=None), step(policy=(1.0,)), step(action=2), step(action=9)):
        assert behaviour(unknown) == UNKNOWN


def test_rewards_are_the_changes_of_the_lead_between_own_turns():
    leads = np.array([0, 0, 3, 3, 3, -2], "f4")
    turns = np.array([0, 0, 2, 2, 2, 4], "f4")
    assert rewards_of(leads, turns, 5.0, 0.5).tolist() == [0, 1.5, 0, 0, -2.5, 3.5]
    assert rewards_of(leads, turns, 5.0, 1.0).sum() == 5.0


def played(hands=4):
    """Hands of random play, seen from seat 0."""
    rng = np.random.default_rng(3)
    for hand in range(hands):
        state, steps = GAME.new_state(hand), []
        while not state.terminal:
            seat = state.to_act[0]
            legal = state.legal(seat)
            action = int(rng.choice(legal))
            if seat == 0:
                policy = np.full(len(legal), 1 / len(legal), "f4")
                steps.append(LoggedStep(state.view(0), legal, action, policy, {"temperature": 1.0}, True, None))
            state.apply(seat, action)
        yield Trajectory(GAME, f"{hand:032x}", 0, tuple(state.returns), tuple(steps))


class Uniform(torch.nn.Module):
    def forward(self, x):
        return torch.zeros(len(x), 58), torch.zeros(len(x))


def test_encoded_hands_come_back_with_rewards_that_sum_to_the_lead(tmp_path):
    hands = list(played())
    logged = LoggedHands.encoded(tmp_path / "a", LeadEncoder(TASK), iter(hands))
    assert len(logged) == 4 and logged.decisions == sum(len(hand.steps) for hand in hands)
    again = LoggedHands.encoded(tmp_path / "a", LeadEncoder(TASK), iter(()))  # complete already
    assert again.decisions == logged.decisions
    batch = logged.batch_of(Uniform(), PpoOptions(gae_lambda=1.0), np.arange(4))
    assert batch.actions.tolist() == [step.action for hand in hands for step in hand.steps]
    for number, hand in enumerate(hands):
        first = batch.returns[logged.offsets[number]]  # drawn by the policy that learns: the sum of the rewards
        assert float(first) == pytest.approx(0.1 * hand.scores[0], abs=1e-4)
    assert logged.value_error(Uniform(), 1.0) > 0


def test_values_are_measured_by_returns_with_the_discount_of_the_training(tmp_path):
    class Of(torch.nn.Module):
        """Gives the values that it was made with, decision by decision."""

        def __init__(self, values):
            super().__init__()
            self.values = values

        def forward(self, x):
            values, self.values = self.values[: len(x)], self.values[len(x) :]
            return torch.zeros(len(x), 58), values

    logged = LoggedHands.encoded(tmp_path / "a", LeadEncoder(TASK), played())
    for gamma in (1.0, 0.9):
        options = PpoOptions(
            gamma=gamma, gae_lambda=1.0
        )  # hands that the policy itself played: targets are the returns
        values = logged.batch_of(Uniform(), options, np.arange(4)).returns
        assert logged.value_error(Of(values), gamma) == pytest.approx(0.0, abs=1e-6)
        assert logged.value_error(Of(values), 0.5) > 1e-3


def test_hands_of_another_encoding_are_encoded_again(tmp_path):
    class Half(LeadEncoder):
        precision = np.float16

    LoggedHands.encoded(tmp_path / "a", LeadEncoder(TASK), played())
    assert LoggedHands.encoded(tmp_path / "a", Half(TASK), played()).decisions > 0
    assert (tmp_path / "a" / "observations.raw").stat().st_size == 2 * TASK.observation_size * sum(
        len(hand.steps) for hand in played()
    )


def test_an_encoding_that_was_cut_short_is_made_again(tmp_path, monkeypatch):
    write = Path.write_text

    def cut(path, text):
        write(path, text[: len(text) // 2])
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Path, "write_text", cut)
        LoggedHands.encoded(tmp_path, LeadEncoder(TASK), played())
    whole = LoggedHands.encoded(tmp_path, LeadEncoder(TASK), played()).decisions

    def some():
        yield from played(1)
        raise KeyboardInterrupt

    (tmp_path / "rest.raw").unlink()
    with pytest.raises(KeyboardInterrupt):
        LoggedHands.encoded(tmp_path, LeadEncoder(TASK), some())
    assert LoggedHands.encoded(tmp_path, LeadEncoder(TASK), played()).decisions == whole


@pytest.mark.parametrize("damaged", [("hands.json", "{"), ("hands.json", "[]"), ("rest.raw", "")])
def test_damaged_files_are_made_again(tmp_path, damaged):
    file, text = damaged
    whole = LoggedHands.encoded(tmp_path, LeadEncoder(TASK), played()).decisions
    (tmp_path / file).write_text(text)
    assert LoggedHands.encoded(tmp_path, LeadEncoder(TASK), played()).decisions == whole > 0


def test_a_batch_of_whole_hands_is_what_ppo_takes_and_joins_those_of_self_play(tmp_path):
    logged = LoggedHands.encoded(tmp_path / "a", LeadEncoder(TASK), played())
    options = PpoOptions(gae_lambda=1.0)
    batch = logged.batch(Uniform(), options, np.random.default_rng(0), 100)
    same = logged.batch(Uniform(), options, np.random.default_rng(0), 100)
    assert all(torch.equal(a, b) for a, b in zip(batch, same, strict=True))
    assert 100 <= batch.samples < 100 + max(np.diff(logged.offsets))
    assert batch.masks.gather(1, batch.actions[:, None]).all()
    # Drawn by the policy that learns: weights of 1, so that with λ = 1 targets are the rewards to come.
    chosen = 1 / batch.masks.sum(1)
    torch.testing.assert_close(batch.log_probs, chosen.log())
    torch.testing.assert_close(batch.advantages, batch.returns, atol=1e-4, rtol=1e-4)
    assert joined(batch, same).samples == 2 * batch.samples
    least = logged.extra_batch(0.01)(Uniform(), options, np.random.default_rng(0), 10)
    assert least.samples in np.diff(logged.offsets)


@pytest.mark.parametrize("other", [rules.game("othello"), rules.game("pairing", preset="four-phase")])
def test_hands_of_another_game_or_of_other_rules_are_left_out_and_counted(tmp_path, other):
    strange = Trajectory(other, "0", 0, (1.0, -1.0), next(played(1)).steps)
    for _ in range(2):  # the second time from the completed files
        logged = LoggedHands.encoded(tmp_path / "a", LeadEncoder(TASK), iter([*played(2), strange]))
        assert (len(logged), logged.left_out) == (2, 1)
