"""The native network against autograd, on every instruction set that this processor has."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from bothost.native._native import Mlp, network_kernels
from bothost.training import ppo
from bothost.training.fused import FusedNetwork, Scorer, fused
from bothost.training.ppo import Batch, PpoOptions

EXACT = [name for name in network_kernels() if not name.endswith("bf16")]
BF16 = [name for name in network_kernels() if name.endswith("bf16")]
"""Empty if the processor does not multiply in bfloat16."""


class Net(torch.nn.Module):
    def __init__(self, *widths, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.chain = torch.nn.ModuleList(torch.nn.Linear(a, b) for a, b in pairwise(widths))

    def linear_layers(self):
        return list(self.chain)

    def forward(self, x):
        for layer in self.chain[:-1]:
            x = torch.relu(layer(x))
        out = self.chain[-1](x)
        return out[:, :-1], out[:, -1]


class ScoredNet(Net):
    """Also scores each action from features of its own."""

    def __init__(self, *widths, features, hidden, seed=0):
        super().__init__(*widths[:-1], widths[-1] + hidden, seed=seed)
        self.actions, self.features = widths[-1] - 1, features
        self.weight = torch.nn.Parameter(torch.randn(hidden, features) * features**-0.5)
        self.out = torch.nn.Parameter(torch.randn(hidden) * hidden**-0.5)

    def scorer(self):
        return Scorer(self.weight, self.out)

    def units(self, x):
        """The scorer's inputs to its hidden units, and the outputs of the chain."""
        inputs = self.chain[0].in_features
        logits, last = super().forward(x[:, :inputs])
        out = torch.cat([logits, last[:, None]], dim=1)
        features = x[:, inputs:].reshape(-1, self.actions, self.features)
        return features @ self.weight.T + out[:, None, self.actions + 1 :], out

    def forward(self, x):
        units, out = self.units(x)
        return out[:, : self.actions] + torch.relu(units) @ self.out, out[:, self.actions]


def scored_minibatch(model, n, seed):
    """Samples whose illegal actions have features 0."""
    plain = Net(model.chain[0].in_features, 16, model.actions + 1)
    batch = minibatch(plain, n, seed)
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((n, model.actions, model.features)) * (rng.random((n, model.actions, 1)) < 0.7)
    features = torch.from_numpy(features.astype(np.float32)) * batch.masks[:, :, None]
    return batch._replace(observations=torch.cat([batch.observations, features.flatten(1)], dim=1))


class Opaque(torch.nn.Module):
    """A model that does not say what it is made of."""

    def __init__(self, model):
        super().__init__()
        self.chain = model.chain
        self.forward = model.forward


def minibatch(model, n, seed=0, density=0.2):
    """Samples of an older policy than the model's: some ratios are clipped, on either side."""
    inputs, actions = model.chain[0].in_features, model.chain[-1].out_features - 1
    rng = np.random.default_rng(seed)
    observations = rng.standard_normal((n, inputs)) * (rng.random((n, inputs)) < density)
    masks = rng.random((n, actions)) < 0.4
    chosen = rng.integers(actions, size=n)
    masks[np.arange(n), chosen] = True
    floats = [observations, -1.0 - rng.random(n), rng.standard_normal(n), rng.standard_normal(n)]
    x, log_probs, advantages, returns = (torch.from_numpy(f.astype(np.float32)) for f in floats)
    return Batch(x, torch.from_numpy(masks), torch.from_numpy(chosen), log_probs, advantages, returns)


def where_smooth(model, batch, clip, margin=2e-6):
    """The samples at which the loss has one gradient.

    Where a unit's input is 0, or a ratio stands at the clip, rounding decides which of two gradients a computation in
    float32 finds, and each is right.
    """
    smooth = torch.ones(len(batch.actions), dtype=torch.bool)
    with torch.no_grad():
        x = batch.observations.double()
        for layer in model.chain[:-1]:
            x = torch.nn.functional.linear(x, layer.weight.double(), layer.bias.double())
            smooth &= (x.abs() > margin).all(dim=1)
            x = torch.relu(x)
        logits = model(batch.observations)[0]
        log_probs = ppo.masked_log_probs(logits, batch.masks).gather(1, batch.actions[:, None])[:, 0]
        ratio = (log_probs - batch.log_probs).exp()
        smooth &= ((ratio - 1.0).abs() - clip).abs() > margin
    return Batch(*(field[smooth] for field in batch))


def gradients(model, compute):
    model.zero_grad()
    terms = compute()
    return [parameter.grad.clone() for parameter in model.parameters()], torch.stack([*terms]).detach()


def both(model, batch, options, kernels=""):
    """Gradients and terms by autograd and by the native network."""
    network = FusedNetwork(model, bf16=options.bf16, kernels=kernels)
    assert not kernels or network.kernels == kernels
    plain = gradients(model, lambda: ppo.accumulate(model, batch, options))
    return plain, gradients(model, lambda: ppo.accumulate_fused(network, batch, options))


@pytest.mark.parametrize("kernels", EXACT)
@settings(max_examples=8, deadline=None)
@example(widths=(384, 256, 256, 59), n=212, seed=12090)  # a unit's input of 3e-9, which only rounding puts below 0
@given(
    widths=st.sampled_from(
        [(384, 256, 256, 59), (7, 16, 2), (33, 48, 3), (20, 32, 16, 64, 17), (50, 80, 130), (9, 16, 1201)]
    ),
    n=st.integers(1, 250),
    seed=st.integers(0, 2**16),
)
def test_gradients_and_terms_are_those_of_autograd(kernels, widths, n, seed):
    model = Net(*widths, seed=seed)
    options = PpoOptions(clip=0.15, value_coef=0.4, entropy_coef=0.03, kl_coef=0.2)
    batch = where_smooth(model, minibatch(model, n, seed), options.clip)
    assume(len(batch.actions) > n // 2)
    (expected, terms), (found, native_terms) = both(model, batch, options, kernels)
    torch.testing.assert_close(native_terms, terms, rtol=2e-4, atol=2e-5)
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=2e-5 * float(theirs.abs().max() + 1e-3))


@pytest.mark.parametrize("kernels", EXACT)
@pytest.mark.parametrize(
    ("widths", "features", "hidden"), [((400, 256, 256, 59), 32, 32), ((7, 16, 2), 1, 16), ((33, 48, 16, 12), 5, 48)]
)
@pytest.mark.parametrize("n", [1, 37, 200])
def test_scores_of_actions_and_their_gradients_are_those_of_autograd(kernels, widths, features, hidden, n):
    model = ScoredNet(*widths, features=features, hidden=hidden, seed=n)
    options = PpoOptions(clip=0.15, value_coef=0.4, entropy_coef=0.03, kl_coef=0.2)
    batch = scored_minibatch(model, n, n)
    with torch.no_grad():  # a unit at 0 has two gradients, and each is right
        units, _ = model.units(batch.observations)
        smooth = ((units.abs() > 2e-6) | ~batch.masks[:, :, None]).flatten(1).all(dim=1)
    batch = Batch(*(field[smooth] for field in batch))
    assert len(batch.actions) > 0.8 * n
    network = FusedNetwork(model, kernels=kernels)
    with torch.no_grad():
        logits, values = model(batch.observations)
    found_logits, found_values = network(batch.observations)
    torch.testing.assert_close(found_logits[batch.masks], logits[batch.masks], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(found_values, values, rtol=1e-4, atol=1e-5)
    (expected, terms), (found, native_terms) = both(model, batch, options, kernels)
    torch.testing.assert_close(native_terms, terms, rtol=2e-4, atol=2e-5)
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=2e-3, atol=5e-5 * float(theirs.abs().max() + 1e-3))


@pytest.mark.parametrize("kernels", BF16)
def test_bfloat16_is_as_near_to_float32_as_torchs_own(kernels):
    model = Net(384, 256, 256, 59)
    batch = minibatch(model, 301)
    (exact, exact_terms), _ = both(model, batch, PpoOptions())
    (torchs, _), (ours, terms) = both(model, batch, PpoOptions(bf16=True), kernels)
    torch.testing.assert_close(terms, exact_terms, rtol=0.02, atol=0.005)
    for true, theirs, mine in zip(exact, torchs, ours, strict=True):
        assert (mine - true).norm() <= 1.2 * (theirs - true).norm() + 1e-3 * true.norm()


@pytest.mark.parametrize("kernels", BF16[1:])
@pytest.mark.parametrize("widths", [(384, 256, 256, 59), (50, 64, 32, 12), (50, 48, 80, 112, 40), (20, 16, 16, 3)])
@pytest.mark.parametrize("n", [1, 15, 16, 33, 95, 250])
def test_all_kernels_of_bfloat16_compute_the_same(kernels, widths, n):
    """They differ in the order of sums alone. Now and then that moves an intermediate result to the next bfloat16."""
    model, options = Net(*widths, seed=n), PpoOptions(bf16=True)
    batch = minibatch(model, n, n)
    (_, (expected, terms)), (_, (found, own_terms)) = (both(model, batch, options, each) for each in (BF16[0], kernels))
    torch.testing.assert_close(own_terms, terms, rtol=1e-3, atol=1e-5)
    for mine, theirs in zip(found, expected, strict=True):
        assert (mine - theirs).norm() <= 2e-3 * theirs.norm()
    with ThreadPoolExecutor(2) as threads:
        networks = [FusedNetwork(model, bf16=True, kernels=each) for each in (BF16[0], kernels)]
        (logits, values), (own, own_values) = threads.map(lambda network: network(batch.observations), networks)
    torch.testing.assert_close(own, logits, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(own_values, values, rtol=1e-3, atol=1e-3)


def test_gradients_add_up():
    model = Net(20, 32, 9)
    batch, options = minibatch(model, 40), PpoOptions()
    network = FusedNetwork(model)
    (once, _) = gradients(model, lambda: ppo.accumulate_fused(network, batch, options))
    ppo.accumulate_fused(network, batch, options)
    for parameter, single in zip(model.parameters(), once, strict=True):
        torch.testing.assert_close(parameter.grad, 2 * single, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kernels", EXACT)
@pytest.mark.parametrize("density", [0.0, 0.1, 1.0])
def test_outputs_are_the_models(kernels, density):
    model = Net(50, 64, 32, 12)
    observations = minibatch(model, 131, density=density).observations
    network = FusedNetwork(model, kernels=kernels)
    with torch.no_grad():
        for mine, theirs in zip(network(observations), model(observations), strict=True):
            torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kernels", network_kernels())
def test_actions_are_drawn_by_the_masked_policy(kernels):
    model = Net(10, 16, 8)
    model.chain[-1].bias.data = torch.linspace(-1, 1, 8)
    one = minibatch(model, 1, seed=2)
    n = 20000
    observations, masks = one.observations.expand(n, -1).numpy().copy(), one.masks.expand(n, -1).numpy().copy()
    network = FusedNetwork(model, bf16=kernels.endswith("bf16"), kernels=kernels)
    uniform = np.random.default_rng(0).random(n, np.float32)
    actions, log_probs, values = network.act(observations, masks, uniform)
    logits, value = network(one.observations)
    expected = ppo.masked_log_probs(logits, one.masks)[0]
    assert np.bincount(actions, minlength=7) / n == pytest.approx(expected.exp().numpy(), abs=0.015)
    np.testing.assert_allclose(log_probs, expected.numpy()[actions], atol=1e-5)
    np.testing.assert_allclose(values, value.expand(n).numpy(), atol=1e-6)


def test_numbers_at_the_ends_draw_legal_actions():
    model = Net(10, 16, 20)
    batch = minibatch(model, 500)
    network = FusedNetwork(model)
    for u in (0.0, np.nextafter(np.float32(1), np.float32(0))):
        uniform = np.full(500, u, np.float32)
        actions, _, _ = network.act(batch.observations.numpy(), batch.masks.numpy(), uniform)
        assert batch.masks.numpy()[np.arange(500), actions].all()


def test_parameters_are_those_of_the_last_load():
    model = Net(10, 16, 4)
    network = FusedNetwork(model)
    x = minibatch(model, 5).observations
    before = network(x)[0].clone()
    with torch.no_grad():
        model.chain[-1].bias += 1.0
    torch.testing.assert_close(network(x)[0], before)
    network.load()
    torch.testing.assert_close(network(x)[0], before + 1.0)


def test_an_update_is_that_of_autograd():
    fast, slow = Net(30, 32, 32, 9), Opaque(Net(30, 32, 32, 9))
    assert fused(fast) is not None and fused(slow) is None
    options = PpoOptions(minibatch=64, epochs=2, target_kl=None)
    figures = []
    for model in (fast, slow):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        batch = minibatch(model, 256)
        figures.append(ppo.update(model, optimizer, batch, options, torch.Generator().manual_seed(1)))
    assert figures[0] == pytest.approx(figures[1], rel=1e-3, abs=1e-5)
    for mine, theirs in zip(fast.parameters(), slow.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-5)


def test_networks_of_other_kinds_are_left_to_torch():
    assert fused(torch.nn.Linear(3, 4)) is None
    assert fused(Net(10, 20, 4)) is None  # not a multiple of 16
    assert fused(Net(10, 4)) is None  # no hidden layer
    assert fused(Net(10, 16, 4097)) is None
    assert fused(Net(10, 16, 4).double()) is None


def test_samples_and_shapes_are_checked():
    model = Net(10, 16, 4)
    network = FusedNetwork(model)
    batch, options = minibatch(model, 6), PpoOptions()
    illegal = batch._replace(masks=torch.zeros_like(batch.masks))
    with pytest.raises(ValueError, match="not legal"):
        ppo.accumulate_fused(network, illegal, options)
    with pytest.raises(ValueError, match="not legal"):
        ppo.accumulate_fused(network, batch._replace(actions=batch.actions + 99), options)
    with pytest.raises(ValueError, match="log_probs"):
        ppo.accumulate_fused(network, batch._replace(log_probs=batch.log_probs[:-1]), options)
    with pytest.raises(ValueError, match="observations"):
        network(torch.zeros(3, 11))
    with pytest.raises(ValueError, match="masks"):
        network.act(np.zeros((2, 10), "f"), np.ones((2, 4), bool), np.zeros(2, "f"))
    with pytest.raises(ValueError, match="row 1 has no legal action"):
        network.act(batch.observations.numpy(), batch.masks.numpy() & (np.arange(6) != 1)[:, None], np.zeros(6, "f"))
    with pytest.raises(ValueError, match="widths"):
        Mlp([10, 17, 4])
    with pytest.raises(ValueError, match="kernels"):
        Mlp([10, 16, 4], kernels="abacus")
    with pytest.raises(ValueError, match=r"parameter 0: shape \(16, 10\)"):
        Mlp([10, 16, 4]).load([np.zeros((16, 9), "f"), np.zeros(16, "f"), np.zeros((4, 16), "f"), np.zeros(4, "f")])


@pytest.mark.parametrize("lossy", [lambda p: p.astype(np.float64), lambda p: np.repeat(p, 2, axis=0)[::2]])
def test_gradients_that_would_be_added_to_a_copy_are_refused(lossy):
    model = Net(8, 16, 4)
    parameters = [p.detach() for layer in model.chain for p in (layer.weight, layer.bias)]
    native = Mlp([8, 16, 4])
    native.load([p.numpy() for p in parameters])
    batch = minibatch(model, 3)
    samples = (x.numpy() for x in (*batch[:2], batch.actions, batch.log_probs, batch.advantages, batch.returns))
    with pytest.raises(TypeError, match="parameter 0"):
        native.gradients(*samples, [lossy(p.numpy()) for p in parameters], 0.2, 0.5, 0.01, 0.0)
