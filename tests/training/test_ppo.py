import math

import msgspec
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bothost.training import ppo


def _random_batch(samples=64, features=6, actions=5, seed=0):
    g = torch.Generator().manual_seed(seed)
    masks = torch.rand(samples, actions, generator=g) < 0.6
    masks[:, 0] = True
    return ppo.Batch(
        observations=torch.randn(samples, features, generator=g),
        masks=masks,
        actions=masks.float().multinomial(1, generator=g).squeeze(1),
        log_probs=-torch.rand(samples, generator=g) - 0.5,
        advantages=torch.randn(samples, generator=g),
        returns=torch.randn(samples, generator=g),
    )


class TwoHeads(torch.nn.Module):
    def __init__(self, features=6, actions=5):
        super().__init__()
        self.policy = torch.nn.Linear(features, actions)
        self.value = torch.nn.Linear(features, 1)

    def forward(self, x):
        return self.policy(x), self.value(x).squeeze(-1)


@given(st.integers(0, 2**31), st.floats(0.5, 1.0), st.floats(0.0, 1.0))
def test_advantages_equal_the_sum_of_discounted_errors(seed, gamma, lam):
    """Â_t = Σ_l (γλ)^l δ_{t+l}, cut at the end of an episode: the definition, written out."""
    rng = np.random.default_rng(seed)
    steps, n = 7, 3
    rewards, values = rng.normal(size=(2, steps, n)).astype(np.float32)
    dones = rng.random((steps, n)) < 0.3
    last = rng.normal(size=n).astype(np.float32)
    advantages, targets = ppo.generalized_advantages(rewards, values, dones, last, gamma=gamma, gae_lambda=lam)
    following = np.vstack([values[1:], last[None]])
    for i in range(n):
        for t in range(steps):
            expected, weight = 0.0, 1.0
            for k in range(t, steps):
                expected += weight * (rewards[k, i] + gamma * (0.0 if dones[k, i] else following[k, i]) - values[k, i])
                if dones[k, i]:
                    break
                weight *= gamma * lam
            assert advantages[t, i] == pytest.approx(expected, abs=1e-4)
    np.testing.assert_allclose(targets, advantages + values, atol=1e-6)


def test_with_lambda_one_targets_are_the_returns_themselves():
    rewards = np.array([[1.0], [2.0], [3.0]], dtype=np.float32)
    dones = np.array([[False], [False], [True]])
    values = np.full((3, 1), 0.5, dtype=np.float32)
    _, targets = ppo.generalized_advantages(
        rewards, values, dones, np.array([9.0], dtype=np.float32), gamma=1.0, gae_lambda=1.0
    )
    assert targets[:, 0].tolist() == [6.0, 5.0, 3.0]


def test_masked_probabilities_are_zero_where_illegal_and_sum_to_one():
    batch = _random_batch()
    probs = ppo.masked_log_probs(torch.randn(64, 5), batch.masks).exp()
    assert torch.all(probs[~batch.masks] == 0)
    torch.testing.assert_close(probs.sum(dim=1), torch.ones(64))


def test_entropy_of_a_uniform_choice_counts_legal_actions_only():
    masks = torch.tensor([[True, True, True, True, False], [True, False, False, False, False]])
    spread = ppo.entropy(ppo.masked_log_probs(torch.zeros(2, 5), masks))
    assert spread.tolist() == pytest.approx([math.log(4), 0.0], abs=1e-6)


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss"), [(1.5, 1.0, -1.2), (1.5, -1.0, 1.5), (0.5, 1.0, -0.5), (0.5, -1.0, 0.8)]
)
def test_clipping_takes_the_pessimistic_bound(ratio, advantage, loss):
    got = ppo.clipped_policy_loss(torch.tensor([math.log(ratio)]), torch.tensor([advantage]), clip=0.2)
    assert float(got) == pytest.approx(loss, abs=1e-6)


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=20))
def test_approximate_kl_is_never_negative(log_ratio):
    assert float(ppo.approximate_kl(torch.tensor(log_ratio))) >= -1e-6


def test_gradients_equal_finite_differences():
    torch.manual_seed(0)
    model = TwoHeads().double()
    batch = ppo.Batch(*(f.double() if f.is_floating_point() else f for f in _random_batch()))
    options = ppo.PpoOptions(entropy_coef=0.1, kl_coef=0.3)

    def objective():
        logits, values = model(batch.observations)
        log_probs = ppo.masked_log_probs(logits, batch.masks)
        log_ratio = log_probs.gather(1, batch.actions[:, None]).squeeze(1) - batch.log_probs
        return (
            ppo.clipped_policy_loss(log_ratio, batch.advantages, options.clip)
            + options.value_coef * ppo.value_loss(values, batch.returns)
            - options.entropy_coef * ppo.entropy(log_probs).mean()
            + options.kl_coef * ppo.approximate_kl(log_ratio)
        )

    objective().backward()
    weight = model.policy.weight
    for row, column in [(0, 0), (2, 3), (4, 5)]:
        with torch.no_grad():
            weight[row, column] += 1e-6
            above = float(objective())
            weight[row, column] -= 2e-6
            below = float(objective())
            weight[row, column] += 1e-6
        assert float(weight.grad[row, column]) == pytest.approx((above - below) / 2e-6, rel=1e-3, abs=1e-7)


def test_minibatches_visit_every_sample_once_and_differ_by_at_most_one():
    batch = _random_batch(samples=101)._replace(returns=torch.arange(101.0))
    parts = list(ppo.minibatches(batch, 16, torch.Generator().manual_seed(0)))
    assert sorted(torch.cat([p.returns for p in parts]).tolist()) == list(range(101))
    assert {p.samples for p in parts} <= {14, 15}


def test_an_update_makes_good_actions_likelier_and_repeats_exactly():
    def run():
        torch.manual_seed(1)
        model = TwoHeads()
        batch = _random_batch(samples=512)
        with torch.no_grad():
            log_probs = ppo.masked_log_probs(model(batch.observations)[0], batch.masks)
        batch = batch._replace(
            log_probs=log_probs.gather(1, batch.actions[:, None]).squeeze(1),
            advantages=(batch.actions == 0).float() - 0.3,
        )
        before = log_probs[:, 0].exp().mean().detach()
        stats = ppo.update(
            model,
            torch.optim.Adam(model.parameters(), lr=0.01),
            batch,
            ppo.PpoOptions(minibatch=128, epochs=4, target_kl=None),
            torch.Generator().manual_seed(2),
        )
        after = ppo.masked_log_probs(model(batch.observations)[0], batch.masks)[:, 0].exp().mean().detach()
        return float(before), float(after), stats

    before, after, stats = run()
    assert after > before + 0.05
    assert stats["gradient_steps"] == 16
    assert run() == (before, after, stats)


@pytest.mark.parametrize("most", [0.5, 1e6])
def test_gradients_are_clipped_by_their_common_norm(most):
    net, other = (torch.nn.Sequential(torch.nn.Linear(7, 5), torch.nn.Linear(5, 2)) for _ in range(2))
    for parameter, twin in zip(net.parameters(), other.parameters(), strict=True):
        parameter.grad = torch.randn(parameter.shape)
        twin.grad = parameter.grad.clone()
    expected = float(torch.nn.utils.clip_grad_norm_(other.parameters(), most))
    assert ppo.clip_gradients(net.parameters(), most) == pytest.approx(expected, rel=1e-5)
    for parameter, twin in zip(net.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(parameter.grad, twin.grad)
    assert ppo.clip_gradients(torch.nn.Linear(2, 2).parameters(), most) == 0.0


def test_target_kl_ends_the_epochs_early():
    torch.manual_seed(1)
    model = TwoHeads()
    stats = ppo.update(
        model,
        torch.optim.Adam(model.parameters(), lr=0.5),
        _random_batch(samples=512),
        ppo.PpoOptions(minibatch=128, epochs=50, target_kl=0.05),
        torch.Generator().manual_seed(2),
    )
    assert stats["gradient_steps"] < 200


@pytest.mark.parametrize("chunk", [1, 10, 37, 64])
def test_gradients_of_chunks_add_up_to_those_of_the_minibatch(chunk):
    torch.manual_seed(3)
    model, batch = TwoHeads(), _random_batch()
    options = ppo.PpoOptions(kl_coef=0.2)
    whole = ppo.losses(model, batch, options)
    expected = torch.autograd.grad(whole.total, list(model.parameters()))
    terms = ppo.accumulate(model, batch, msgspec.structs.replace(options, chunk=chunk))
    for parameter, gradient in zip(model.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)
    torch.testing.assert_close(torch.stack(list(terms)), torch.stack([term.detach() for term in whole]))


def test_in_bfloat16_gradients_stay_near_those_in_float32():
    torch.manual_seed(3)
    model, batch = TwoHeads(), _random_batch(samples=256)
    ppo.accumulate(model, batch, ppo.PpoOptions())
    exact = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad(set_to_none=True)
    ppo.accumulate(model, batch, ppo.PpoOptions(bf16=True))
    for parameter, gradient in zip(model.parameters(), exact, strict=True):
        assert parameter.grad.dtype == torch.float32
        assert float((parameter.grad - gradient).norm()) < 0.03 * float(gradient.norm()) + 1e-4


def test_the_weight_of_entropy_falls_linearly() -> None:
    options = ppo.PpoOptions(entropy_coef=0.01, entropy_final=0.002)
    assert [options.at(part).entropy_coef for part in (0.0, 0.5, 1.0)] == pytest.approx([0.01, 0.006, 0.002])
    assert ppo.PpoOptions(entropy_coef=0.01).at(0.7).entropy_coef == 0.01
