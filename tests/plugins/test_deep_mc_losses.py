"""The losses of deep-mc against their formulas."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bothost_deep_mc import losses
from bothost_deep_mc.learn import expert_margins

RATES = st.floats(0.0, 1.0)


def test_self_play_loss_is_the_mean_squared_error():
    values, returns = torch.tensor([0.5, -1.0]), torch.tensor([1.0, -1.0])
    assert losses.self_play_loss(values, returns).item() == pytest.approx(0.125)


def test_difference_loss_does_not_see_what_both_moves_share():
    a, b = torch.tensor([0.3, -0.2]), torch.tensor([0.1, 0.4])
    g, h = torch.tensor([1.0, -1.0]), torch.tensor([-1.0, -1.0])
    expected = ((0.2 - 2.0) ** 2 + (-0.6 - 0.0) ** 2) / 2
    assert losses.difference_loss(a, b, g, h).item() == pytest.approx(expected)
    assert losses.difference_loss(a + 7, b + 7, g - 3, h - 3).item() == pytest.approx(expected, rel=1e-4)


def test_regularizer_is_what_moves_are_valued_above_the_experts():
    values = torch.tensor([[0.2, 0.5, -0.1], [0.9, 0.9, 1.4]], requires_grad=True)
    expert = torch.tensor([0.3, 1.0], requires_grad=True)
    loss = losses.experience_regularizer(values, expert)
    assert loss.item() == pytest.approx((0.2 + 0.4) / 6)
    loss.backward()
    # It lowers the moves above the expert's, raises the expert's, and leaves the others.
    assert torch.equal(values.grad.sign(), torch.tensor([[0.0, 1, 0], [0, 0, 1]]))
    assert torch.equal(expert.grad.sign(), torch.tensor([-1.0, -1.0]))


@settings(deadline=None)
@given(st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=8))
def test_regularizer_is_zero_where_the_experts_move_is_the_best(values):
    row = torch.tensor([values])
    assert losses.experience_regularizer(row, row.max(dim=1).values).item() == 0.0
    assert losses.experience_regularizer(row, row.min(dim=1).values).item() >= 0.0


@settings(deadline=None)
@given(st.lists(st.floats(-1, 1, width=32), min_size=2, max_size=8), st.floats(0, 1, width=32))
def test_with_a_margin_every_other_move_is_to_be_valued_below_the_experts(values, margin):
    row = torch.tensor([values])
    margins = torch.full_like(row, margin)
    margins[0, 0] = 0.0  # the expert's own
    found = losses.experience_regularizer(row, row[:, 0], margins).item()
    expected = sum(max(value + margin - values[0], 0.0) for value in values[1:]) / len(values)
    assert found == pytest.approx(expected, abs=1e-5)
    assert losses.experience_regularizer(row, row[:, 0]).item() <= found + 1e-6


def test_only_moves_that_are_not_the_experts_have_a_margin():
    moves = torch.tensor([[[1, 0], [0, 1], [0, 1], [1, 1]], [[1, 1], [1, 1], [1, 0], [0, 0]]], dtype=torch.uint8)
    assert expert_margins(moves, 0.5).tolist() == [[0.5, 0, 0, 0.5], [0, 0, 0.5, 0.5]]
    assert expert_margins(moves, 0.0) == 0.0


def test_similarity_of_right_angles_opposites_and_equals():
    first = torch.tensor([[3.0, 0.0], [1.0, 0.0], [2.0, 1.0]])
    second = torch.tensor([[0.0, 4.0], [-2.0, 0.0], [2.0, 1.0]])
    found = losses.similarity(first, second, beta=0.5)
    expected = [12.5 + 0.5 * math.pi / 2, 2.5 + 0.5 * math.pi, 5.0]
    torch.testing.assert_close(found, torch.tensor(expected), atol=2e-3, rtol=0)
    torch.testing.assert_close(losses.similarity(second, first, beta=0.5), found)


@pytest.mark.parametrize("second", [[0.0, 0.0], [1.0, 1.0], [-1.0, -1.0]])
def test_similarity_has_finite_gradients_where_the_angle_has_none(second):
    first = torch.tensor([[1.0, 1.0]], requires_grad=True)
    other = torch.tensor([second], requires_grad=True)
    losses.similarity(first, other, beta=1.0).sum().backward()
    assert first.grad.isfinite().all() and other.grad.isfinite().all()


def test_reduction_loss_leaves_out_pairs_of_one_sample_with_itself():
    representations = torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 2.0]], requires_grad=True)
    returns = torch.tensor([1.0, -1.0, 1.0])
    loss = losses.reduction_loss(representations, returns, torch.tensor([1, 1, 2]), beta=0.1)
    distance = 1.0 + 0.1 * math.pi / 2
    assert loss.item() == pytest.approx(0.5 * (2.0 - distance) ** 2, abs=1e-3)
    loss.backward()
    assert representations.grad[2].abs().sum() == 0.0
    alone = losses.reduction_loss(representations, returns, torch.arange(3), beta=0.1)
    assert alone.item() == 0.0
    alone.backward()


@settings(deadline=None)
@given(st.floats(0.0, 10.0), RATES, RATES, st.floats(0.1, 1.0))
def test_the_regularizers_weight_falls_to_nothing_as_the_expert_is_overtaken(alpha, rate, better, parity):
    rate, better = sorted((rate, better))
    weight = losses.adaptive_weight(alpha, rate, parity)
    assert 0.0 <= losses.adaptive_weight(alpha, better, parity) <= weight <= alpha
    assert losses.adaptive_weight(alpha, 0.0, parity) == alpha
    assert losses.adaptive_weight(alpha, max(rate, parity), parity) == 0.0


def test_rates_that_are_none_are_refused():
    for rate, parity in ((1.1, 0.5), (-0.1, 0.5), (0.5, 0.0)):
        with pytest.raises(ValueError, match="win rate"):
            losses.adaptive_weight(1.0, rate, parity)
