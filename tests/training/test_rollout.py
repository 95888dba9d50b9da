import msgspec
import numpy as np
import pytest
import torch

from bothost import rules
from bothost.training import rollout
from bothost.training.ppo import PpoOptions
from bothost.training.rollout import Ledger, RolloutTask, SelfPlay

GAME = rules.game("pairing")
TASK = RolloutTask(GAME, "features", turns=381, reward_scale=0.5)
N, T = 6, 40


class Linear(torch.nn.Module):
    def __init__(self, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.heads = torch.nn.Linear(384, 59)

    def forward(self, x):
        out = self.heads(x)
        return out[:, :58], out[:, 58]


def collect(seed=3, learner=0, opponent=1, horizon=T, task=TASK):
    return SelfPlay(task, N, horizon).collect(Linear(learner), Linear(opponent), seed)


def retrace(played, environment, seed):
    """One environment of a rollout, played again from its deals with the learner's recorded actions.

    The opponent's moves are not recorded, so the environment itself is stepped: yields, per decision of the learner,
    (lead before it, turn before it, final lead where the hand ended before the next one, else None).
    """
    env = rules.vec_env(GAME, N, seed)
    rng = np.random.default_rng([seed, 1])
    learner, opponent = Linear(0), Linear(1)
    at = np.zeros(N, int)
    trace = [[] for _ in range(N)]
    while True:
        observations, masks, scores = np.empty((N, 384), "f"), np.empty((N, 58), bool), np.empty((N, 2), "f")
        env.encode("features", observations)
        env.encode("scores", scores)
        env.legal_mask(masks)
        mine = env.seat == np.arange(N) % 2
        own, other = np.flatnonzero(mine & (at < T)), np.flatnonzero(~mine)
        for i in np.flatnonzero(mine):
            if len(trace[i]) == at[i]:
                trace[i].append([float(scores[i, 0] - scores[i, 1]), float(observations[i, 381]), None])
        if not len(own) and not len(other):
            return trace[environment]
        actions = np.full(N, -1, np.int32)
        if len(own):
            actions[own] = rollout.choose(learner, observations[own], masks[own], rng).actions
            assert np.array_equal(actions[own], played.actions[at[own], own])
            at[own] += 1
        if len(other):
            actions[other] = rollout.choose(opponent, observations[other], masks[other], rng).actions
        env.step(actions)
        for i in np.flatnonzero(env.done):
            trace[i][-1][2] = float(env.returns[i, i % 2])


@pytest.mark.parametrize("environment", range(N))
def test_rewards_are_changes_of_the_lead_between_own_turns_on_the_last_decision_of_the_earlier(environment):
    played = collect()
    trace = retrace(played, environment, 3)
    expected, begin = np.zeros(T), 0
    for t in range(T):
        _, turn, final = trace[t]
        if turn != trace[begin][1] or (t > begin and trace[t - 1][2] is not None):
            begin = t
        if final is not None:
            expected[t] = 0.5 * (final - trace[begin][0])
        elif trace[t + 1][1] != turn:
            expected[t] = 0.5 * (trace[t + 1][0] - trace[begin][0])
    np.testing.assert_allclose(played.rewards[:, environment], expected, atol=1e-5)
    assert played.dones[:, environment].tolist() == [step[2] is not None for step in trace[:T]]
    assert np.count_nonzero(expected) > 3 and played.dones.any()


def test_the_example_of_the_source_ahead_by_six_then_behind_by_two_is_minus_eight():
    ledger, row = Ledger(4, 1, scale=1.0), np.array([0])
    ledger.asked(row, np.array([6.0], "f"), np.array([0.0], "f"))
    ledger.decided(row)
    ledger.asked(row, np.array([9.0], "f"), np.array([0.0], "f"))  # same turn: a forced pair scored, no reward yet
    ledger.decided(row)
    ledger.asked(row, np.array([-2.0], "f"), np.array([0.2], "f"))
    ledger.decided(row)
    ledger.ended(row, np.array([5.0], "f"), np.array([5.0], "f"))
    assert ledger.rewards[:, 0].tolist() == [0.0, -8.0, 7.0, 0.0]
    assert ledger.dones[:, 0].tolist() == [False, False, True, False]
    assert ledger.final_leads == [5.0]


def test_a_win_counts_for_its_points_beside_the_lead():
    plain, bonus = collect(), collect(task=msgspec.structs.replace(TASK, win_points=10.0))
    assert np.array_equal(plain.actions, bonus.actions)
    more = (bonus.rewards - plain.rewards).reshape(-1)
    ends = plain.dones.reshape(-1)
    assert not more[~ends].any(), "only the last decision of a hand is rewarded differently"
    assert np.array_equal(plain.final_leads, bonus.final_leads)
    results = sorted(np.sign(plain.final_leads))
    assert sorted(np.rint(more[ends] / 5.0)) == results
    assert {-1.0, 1.0} <= set(results)


def test_without_weight_of_the_lead_only_a_win_counts():
    task = msgspec.structs.replace(TASK, lead_weight=0.0, win_points=10.0)
    played = collect(task=task)
    ends = played.dones
    assert not played.rewards[~ends].any()
    assert sorted(played.rewards[ends]) == sorted(5.0 * np.sign(played.final_leads))


@pytest.mark.parametrize(("share", "others"), [(0.0, 6), (0.5, 3), (1.0, 0)])
def test_the_rule_player_has_the_other_seat_of_its_share(share, others):
    asked = []

    class Opponent(Linear):
        def forward(self, x):
            asked.append(len(x))
            return super().forward(x)

    task = msgspec.structs.replace(TASK, rule_share=share)
    played = SelfPlay(task, N, T).collect(Linear(0), Opponent(1), seed=3)
    assert max(asked, default=0) == others
    if share == 1.0:
        assert played.final_leads.mean() < -8.0, "a network of random parameters loses to it by far"


def test_what_is_recorded_is_what_the_policy_saw_and_did():
    played = collect()
    actions = played.actions[..., None]
    assert np.take_along_axis(played.masks, actions, axis=2).all()
    learner = Linear(0)
    with torch.no_grad():
        logits, values = learner(torch.from_numpy(played.observations.reshape(-1, 384)))
        logits = logits.masked_fill(~torch.from_numpy(played.masks.reshape(-1, 58)), -torch.inf)
        log_probs = logits.log_softmax(dim=1).gather(1, torch.from_numpy(actions.reshape(-1, 1)))
    np.testing.assert_allclose(played.log_probs.reshape(-1), log_probs[:, 0].numpy(), atol=1e-4)
    np.testing.assert_allclose(played.values.reshape(-1), values.numpy(), atol=1e-4)
    assert played.steps > 1.8 * N * T


class Sure(Linear):
    """Always the same action in the same position."""

    def forward(self, x):
        logits, values = super().forward(x)
        return 1e4 * logits, values


def test_forced_decisions_left_out_change_neither_the_hands_nor_what_they_bring():
    """The same hands with and without: what is left out are the decisions without a choice, and each choice has the
    rewards up to the next one."""
    horizon = 120
    every, choices = (
        SelfPlay(msgspec.structs.replace(TASK, skip_forced=skip), N, horizon).collect(Sure(0), Sure(1), 3)
        for skip in (False, True)
    )
    assert (choices.masks.sum(axis=2) > 1).all()
    hands = 0
    for i in range(N):
        real = np.flatnonzero(every.masks[:, i].sum(axis=1) > 1)
        assert 0.5 * horizon < len(real) < 0.9 * horizon
        for name in ("observations", "masks", "actions", "values"):
            ours, theirs = getattr(choices, name)[: len(real), i], getattr(every, name)[real, i]
            np.testing.assert_allclose(ours, theirs, atol=1e-5, err_msg=name)
        hand = np.cumsum(every.dones[:, i]) - every.dones[:, i]
        ends = [real[hand[real] == number][-1] for number in range(hand[-1])]
        assert np.flatnonzero(choices.dones[: len(real), i]).tolist() == np.searchsorted(real, ends).tolist()
        ours = np.split(choices.rewards[:, i], np.flatnonzero(choices.dones[:, i]) + 1)
        theirs = np.split(every.rewards[:, i], np.flatnonzero(every.dones[:, i]) + 1)
        for number in range(hand[-1]):
            assert np.count_nonzero(ours[number]) <= np.count_nonzero(theirs[number])
            assert ours[number].sum() == pytest.approx(theirs[number].sum(), abs=1e-4)
            hands += 1
    assert hands > N


def test_a_turn_without_a_choice_counts_for_the_turn_before():
    ledger, row = Ledger(4, 1, scale=1.0), np.array([0])
    for lead, turn in ((0.0, 0.0), (-3.0, 0.2)):  # the turn 0.1 had no choice: the learner was not asked in it
        ledger.asked(row, np.array([lead], "f"), np.array([turn], "f"))
        ledger.decided(row)
    ledger.ended(row, np.array([4.0], "f"), np.array([4.0], "f"))
    assert ledger.rewards[:, 0].tolist() == [-3.0, 7.0, 0.0, 0.0]


def test_a_rollout_is_a_function_of_the_policies_and_the_seed():
    one, two, other = collect(seed=5), collect(seed=5), collect(seed=6)
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))
    assert not np.array_equal(one.actions, other.actions)


def test_a_batch_is_the_rollout_flattened():
    played = collect()
    batch = played.batch(PpoOptions(gamma=1.0, gae_lambda=1.0))
    assert batch.samples == N * T
    assert batch.observations.shape == (N * T, 384) and batch.masks.shape == (N * T, 58)
    end = int(np.flatnonzero(played.dones[:, 2])[0])
    total = float(played.rewards[: end + 1, 2].sum())  # λ = 1: the target of the first decision is the whole hand
    assert float(batch.returns.reshape(T, N)[0, 2]) == pytest.approx(total, abs=1e-3)


def test_draws_follow_the_probabilities_and_never_leave_the_legal_actions():
    probabilities = torch.tensor([0.0, 0.5, 0.0, 0.25, 0.25, 0.0])
    log_probs = torch.where(probabilities > 0, probabilities.log(), torch.tensor(-1e9)).expand(20000, 6).contiguous()
    drawn = rollout.draw(log_probs, np.random.default_rng(0)).numpy()
    assert np.bincount(drawn, minlength=6) / 20000 == pytest.approx(probabilities.numpy(), abs=0.015)


class Largest:
    def random(self, n, dtype):
        return np.full(n, np.nextafter(np.float32(1), np.float32(0)), dtype)


def test_even_the_largest_uniform_number_draws_a_legal_action():
    log_probs = rollout.masked_log_probs(torch.randn(500, 58), torch.arange(58).expand(500, 58) < 30)
    assert int(rollout.draw(log_probs, Largest()).max()) < 30
