"""The native network of values Q(s, a) against autograd, on every instruction set that this processor has."""

import copy
from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch.nn import functional

from bothost.native._native import ActionValues, network_kernels
from bothost.training.action_values import ActionValueNet, NativeActionValues

EXACT = [name for name in network_kernels() if not name.endswith("bf16")]
SHAPES = [(30, 20, (32, 16), (48, 16)), (7, 3, (16,), (16,)), (40, 50, (64, 32, 32), (32, 16, 16))]


def build(inputs=30, features=20, trunk=(32, 16), head=(48, 16), seed=0):
    torch.manual_seed(seed)
    net = ActionValueNet(inputs, features, trunk, head)
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return net


def candidates(net, n, seed=0, density=0.2, fewest=1):
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(fewest, 9, size=n))])
    positions, moves = (
        (rng.standard_normal(shape) * (rng.random(shape) < density)).astype(np.float32)
        for shape in ((n, net.inputs), (offsets[-1], net.features))
    )
    return positions, moves, offsets


def is_smooth(net, given_, margin=1e-6):
    """Whether no unit's input is about 0, where rounding decides which of two gradients is found."""
    rectified = []

    def relu(x):
        rectified.append(x.flatten())
        return x.clamp_min(0.0)

    with torch.no_grad(), mock.patch.object(functional, "relu", relu):
        positions, moves, offsets = map(torch.from_numpy, given_)
        copy.deepcopy(net).double()(positions.double(), moves.double(), offsets)
    return bool((torch.cat(rectified).abs() > margin).all())


def gradients(net, compute, seed=0):
    """Gradients of the parameters of one function of values and representations, with what it was made of."""
    net.zero_grad()
    values, representations = compute()
    generator = torch.Generator().manual_seed(seed)
    weights = [torch.randn(x.shape, generator=generator) for x in (values, representations)]
    ((weights[0] * values).sum() + (weights[1] * representations).sum()).backward()
    return values.detach(), representations.detach(), [p.grad.clone() for p in net.in_order()]


@pytest.mark.parametrize("kernels", EXACT)
@settings(max_examples=8, deadline=None)
@given(shape=st.sampled_from(SHAPES), n=st.integers(1, 150), seed=st.integers(0, 2**16), fewest=st.integers(0, 2))
def test_values_and_gradients_are_those_of_autograd(kernels, shape, n, seed, fewest):
    net = build(*shape, seed=seed)
    given_ = candidates(net, n, seed, fewest=fewest)
    assume(is_smooth(net, given_))
    native = NativeActionValues(net, kernels)
    *expected, theirs = gradients(net, lambda: net(*map(torch.from_numpy, given_)))
    *found, ours = gradients(net, lambda: native(*map(torch.from_numpy, given_)))
    for mine, other in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-4)
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-3, atol=2e-5 * float(other.abs().max() + 1e-2))


@pytest.mark.parametrize("kernels", EXACT)
@pytest.mark.parametrize("density", [0.0, 0.1, 1.0])
def test_evaluation_is_the_forward_pass_however_many_positions(kernels, density):
    net = build()
    given_ = candidates(net, 200, density=density)
    native = NativeActionValues(net, kernels)
    with torch.no_grad():
        expected, _ = net(*map(torch.from_numpy, given_))
    np.testing.assert_allclose(native.evaluate(*given_), expected.numpy(), rtol=1e-4, atol=1e-4)


def test_gradients_add_up_and_parameters_are_those_of_the_last_load():
    net = build()
    native, given_ = NativeActionValues(net), candidates(net, 20)
    _, _, once = gradients(net, lambda: native(*map(torch.from_numpy, given_)))
    values, _ = native(*map(torch.from_numpy, given_))
    values.sum().backward()
    net2 = build()
    net2(*map(torch.from_numpy, given_))[0].sum().backward()
    for parameter, single, more in zip(net.in_order(), once, net2.in_order(), strict=True):
        torch.testing.assert_close(parameter.grad, single + more.grad, rtol=1e-3, atol=1e-3)
    before = native.evaluate(*given_)
    with torch.no_grad():
        net.value.bias += 1.0
    np.testing.assert_array_equal(native.evaluate(*given_), before)
    native.load()
    np.testing.assert_allclose(native.evaluate(*given_), before + 1.0, atol=1e-5)


def test_wrong_shapes_and_orders_are_refused():
    net = build()
    native = NativeActionValues(net)
    positions, moves, offsets = candidates(net, 4)
    with pytest.raises(ValueError, match="positions"):
        native.evaluate(positions[:, 1:].copy(), moves, offsets)
    with pytest.raises(ValueError, match="moves"):
        native.evaluate(positions, moves[:, 1:].copy(), offsets)
    for wrong in (offsets[:-1], offsets[::-1].copy(), offsets + 1):
        with pytest.raises(ValueError, match="offsets"):
            native.evaluate(positions, moves, wrong)
    trunk, head = net.widths
    bare = ActionValues([net.inputs, *trunk], [net.features, *head])
    with pytest.raises(ValueError, match="parameter 0"):
        bare.load([parameter.detach().numpy()[:1] for parameter in net.in_order()])
    with pytest.raises(ValueError, match="parameter 0"):
        bare.load([parameter.detach().numpy().T.copy() for parameter in net.in_order()])
    with pytest.raises(ValueError, match="parameters"):
        bare.load([])
    values, representations = bare.forward(positions, moves, offsets)
    with pytest.raises(TypeError, match="parameter 0"):
        bare.backward(values, representations, [parameter.detach().double().numpy() for parameter in net.in_order()])
    for trunk, head in (([5], [5, 16]), ([5, 17], [5, 16]), ([5, 16], [0, 16]), ([5, 16], [5, 16, 20])):
        with pytest.raises(ValueError, match=r"trunk|head"):
            ActionValues(trunk, head)


def test_there_is_nothing_to_go_back_through_before_the_first_forward_pass():
    net = build()
    nothing = np.zeros(0, np.float32)
    NativeActionValues(net).backward(nothing, nothing.reshape(0, net.widths[1][-1]))
    assert all(parameter.grad is not None and not parameter.grad.any() for parameter in net.in_order())


def test_only_the_newest_forward_pass_can_be_gone_back_through():
    net = build()
    native = NativeActionValues(net)
    values, _ = native(*map(torch.from_numpy, candidates(net, 5)))
    native.evaluate(*candidates(net, 6))
    with pytest.raises(ValueError, match="last forward"):
        values.sum().backward()
    given_ = candidates(net, 5)
    values, _ = native(*map(torch.from_numpy, given_))
    native(*map(torch.from_numpy, given_))
    with pytest.raises(RuntimeError, match="newest"):
        values.sum().backward()
