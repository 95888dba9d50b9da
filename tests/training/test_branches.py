"""Policy gradients from branches: their arithmetic, their gradients, and that they find the better action."""

import numpy as np
import pytest
import torch

from bothost.training import branches
from bothost.training.branches import BranchBatch, branch_advantages, branch_losses, branch_policy_loss, weighted_mean
from bothost.training.ppo import PpoOptions, masked_log_probs


class Table(torch.nn.Module):
    """Logits and values of as many positions, independent of one another; an observation is a position's number."""

    def __init__(self, positions, actions):
        super().__init__()
        self.logits = torch.nn.Parameter(torch.zeros(positions, actions))
        self.values = torch.nn.Parameter(torch.zeros(positions))

    def forward(self, observations):
        rows = observations[:, 0].long()
        return self.logits[rows], self.values[rows]


def batch_of(model, scores, masks=None):
    """All legal actions of every position, tried once."""
    positions, actions = scores.shape
    observations = torch.arange(positions, dtype=torch.float32)[:, None]
    masks = torch.ones_like(scores, dtype=torch.bool) if masks is None else masks
    log_probs = masked_log_probs(model(observations)[0], masks).detach()
    weights = log_probs.exp() * masks
    tried = torch.arange(actions).expand(positions, actions)
    advantages, returns = branch_advantages(scores, weights), weighted_mean(scores, weights)
    return BranchBatch(observations, masks, log_probs, tried, weights, advantages, returns)


def test_an_advantage_is_the_score_less_the_mean_of_the_policy():
    scores = torch.tensor([[8.0, 0.0, 99.0], [1.0, 2.0, 3.0]])
    weights = torch.tensor([[0.3, 0.1, 0.0], [0.2, 0.2, 0.2]])
    assert weighted_mean(scores, weights).tolist() == [6.0, 2.0]
    found = branch_advantages(scores, weights)
    torch.testing.assert_close(found, torch.tensor([[2.0, -6.0, 0.0], [-1.0, 0.0, 1.0]]))
    torch.testing.assert_close((weights * found).sum(dim=1), torch.zeros(2))
    scaled = branches.scaled(found, weights)
    assert float((weights * scaled.square()).sum() / weights.sum()) == pytest.approx(1.0, abs=1e-5)


def test_ratios_beyond_the_clip_gain_nothing_more():
    advantages, weights = torch.tensor([[1.0, -1.0]]), torch.tensor([[0.75, 0.25]])
    ratios = torch.tensor([[1.5, 0.5]])
    assert float(branch_policy_loss(ratios.log(), advantages, weights, 0.2)) == pytest.approx(
        -(0.75 * 1.2 - 0.25 * 0.8)
    )
    worse = torch.tensor([[0.5, 1.5]])
    assert float(branch_policy_loss(worse.log(), advantages, weights, 0.2)) == pytest.approx(-(0.75 * 0.5 - 0.25 * 1.5))


def test_the_first_gradient_is_that_of_the_expected_score():
    """At the policy that tried all actions, the loss falls as the expected score rises: −dE[Q]/dlogits = −π·Â."""
    rng = np.random.default_rng(0)
    model = Table(3, 4)
    model.logits.data = torch.from_numpy(rng.normal(size=(3, 4)).astype(np.float32))
    scores = torch.from_numpy(rng.normal(size=(3, 4)).astype(np.float32))
    batch = batch_of(model, scores)
    branch_losses(model, batch, PpoOptions(value_coef=0.0, entropy_coef=0.0)).total.backward()
    expected = -(torch.softmax(model.logits.detach(), dim=1) * batch.advantages) / 3
    torch.testing.assert_close(model.logits.grad, expected)


def test_actions_that_were_not_tried_do_not_count():
    model = Table(2, 3)
    scores = torch.tensor([[1.0, -1.0, 0.0], [0.5, 0.0, 2.0]])
    batch = batch_of(model, scores)
    without = batch._replace(weights=batch.weights * torch.tensor([1.0, 1.0, 0.0]))
    changed = without._replace(advantages=without.advantages + torch.tensor([0.0, 0.0, 50.0]))
    one, other = (branch_losses(model, part, PpoOptions()).total for part in (without, changed))
    assert float(one.detach()) == float(other.detach())


def test_the_divergence_is_exact_and_is_zero_at_first():
    model = Table(2, 3)
    batch = batch_of(model, torch.randn(2, 3))
    assert float(branch_losses(model, batch, PpoOptions()).approx_kl.detach()) == 0.0
    model.logits.data = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    new = torch.softmax(model.logits.data[0], dim=0)
    expected = float((torch.full((3,), 1 / 3) * (torch.log(torch.full((3,), 1 / 3)) - new.log())).sum()) / 2
    assert float(branch_losses(model, batch, PpoOptions()).approx_kl.detach()) == pytest.approx(expected, abs=1e-6)


def test_updates_find_the_better_action_through_noise_and_leave_illegal_ones():
    torch.manual_seed(0)
    model = Table(4, 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    masks = torch.tensor([[True, True, True]] * 3 + [[True, True, False]])
    means = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 9.0]])
    generator = torch.Generator().manual_seed(1)
    options = PpoOptions(epochs=2, minibatch=4, entropy_coef=0.0, target_kl=None)
    for _ in range(60):
        figures = branches.update(
            model, optimizer, batch_of(model, means + torch.randn(4, 3), masks), options, generator
        )
    probabilities = masked_log_probs(model.logits.detach(), masks).exp()
    assert probabilities.argmax(dim=1).tolist() == [0, 1, 2, 1]
    assert float(probabilities.max(dim=1).values.min()) > 0.6
    assert figures["gradient_steps"] == 2.0 and figures["approx_kl"] >= 0.0
    assert float(probabilities[3, 2]) == 0.0


def test_an_update_stops_where_the_policy_has_moved_too_far():
    model = Table(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=50.0)
    batch = batch_of(model, torch.tensor([[1.0, 0.0, -1.0]] * 4))
    options = PpoOptions(epochs=50, minibatch=4, target_kl=0.01, max_grad_norm=10.0)
    figures = branches.update(model, optimizer, batch, options, torch.Generator().manual_seed(1))
    assert figures["gradient_steps"] < 50.0
