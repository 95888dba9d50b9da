"""Steered coefficients: signs, ranges, and that they bring a policy to its targets."""

import pytest
import torch

from bothost.training import ppo
from bothost.training.adaptive import Coefficients, SteeringOptions, steer, steer_entropy, steer_kl

OPTIONS = SteeringOptions(entropy_target=0.5, kl_target=0.02, entropy_rate=0.1, kl_rate=2.0)


def test_too_little_entropy_raises_its_weight_and_too_much_lowers_it():
    assert steer_entropy(0.01, 0.4, OPTIONS) == pytest.approx(0.01 + 0.1 * 0.1)
    assert steer_entropy(0.05, 0.7, OPTIONS) == pytest.approx(0.05 - 0.1 * 0.2)
    assert steer_entropy(0.03, 0.5, OPTIONS) == 0.03


def test_too_large_steps_raise_the_penalty_on_them():
    assert steer_kl(0.005, 0.05, OPTIONS) == pytest.approx(0.005 + 2.0 * 0.03)
    assert steer_kl(0.1, 0.01, OPTIONS) == pytest.approx(0.1 - 2.0 * 0.01)


def test_the_printed_rule_turns_the_sign_of_the_second():
    literal = SteeringOptions(kl_target=0.02, kl_rate=2.0, literal=True)
    assert steer_kl(0.1, 0.05, literal) == pytest.approx(0.1 - 2.0 * 0.03)
    assert steer_entropy(0.01, 0.4, literal) == pytest.approx(0.01 + 0.002 * (0.3 - 0.4))


def test_weights_stay_within_their_ranges():
    tight = SteeringOptions(entropy_rate=1.0, kl_rate=100.0, entropy_range=(0.001, 0.02), kl_range=(0.0, 1.0))
    assert steer_entropy(0.01, 0.0, tight) == 0.02 and steer_entropy(0.01, 5.0, tight) == 0.001
    assert steer_kl(0.5, 1.0, tight) == 1.0 and steer_kl(0.5, 0.0, tight) == 0.0
    for bad in ({"kl_range": (-1.0, 1.0)}, {"entropy_range": (0.2, 0.1)}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            SteeringOptions(**bad)


def test_the_weights_enter_the_objective_with_their_signs():
    weights = Coefficients(entropy=0.3, kl=0.7)
    options = weights.into(ppo.PpoOptions(value_coef=0.5))
    batch = ppo.Batch(
        torch.zeros(4, 2),
        torch.ones(4, 3, dtype=torch.bool),
        torch.tensor([0, 1, 2, 0]),
        torch.full((4,), -1.5),
        torch.tensor([1.0, -1.0, 0.5, 0.0]),
        torch.tensor([0.1, 0.2, 0.3, 0.4]),
    )
    logits = torch.tensor([[0.0, 1.0, 2.0]]).repeat(4, 1)
    terms = ppo.losses(lambda _: (logits, torch.zeros(4)), batch, options)
    expected = terms.policy + 0.5 * terms.value - 0.3 * terms.entropy + 0.7 * terms.approx_kl
    assert float(terms.total) == pytest.approx(float(expected))


def test_entropy_comes_to_its_target():
    """A softmax over four actions, drawn towards the first: the steered weight holds its entropy where it shall be."""
    torch.manual_seed(0)
    logits = torch.nn.Parameter(torch.zeros(4))
    optimizer = torch.optim.SGD([logits], lr=0.5)
    options = SteeringOptions(entropy_target=0.8, entropy_rate=0.05, entropy_range=(0.0, 2.0))
    weights = Coefficients()
    for _ in range(400):
        log_probs = logits.log_softmax(0)
        spread = ppo.entropy(log_probs[None]).mean()
        loss = -log_probs.exp()[0] - weights.entropy * spread
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        weights = steer(weights, {"entropy": spread.item(), "approx_kl": 0.0}, options)
    assert spread.item() == pytest.approx(0.8, abs=0.05)
