"""Several trainers make one update: the same bits for all, and what one trainer with everyone's rollouts would make."""

from __future__ import annotations

import math
import multiprocessing
from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch._C._distributed_c10d import FileStore

from bothost.training import distributed, ppo
from bothost.training.distributed import Group, shares
from bothost.training.ppo import Batch, PpoOptions
from bothost.training.roles import state_of

OPTIONS = PpoOptions(minibatch=24, chunk=8, epochs=2, target_kl=None, entropy_coef=0.01, kl_coef=0.1)
SIZES = (40, 33, 27, 48, 12)
"""Samples of each worker's rollout: no share is like another."""


def net() -> torch.nn.Module:
    torch.manual_seed(1)
    return Net().double()  # so that only the order of additions differs


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.heads = torch.nn.Linear(6, 8), torch.nn.Linear(8, 5)

    def forward(self, x):
        out = self.heads(self.body(x.double()).tanh())
        return out[:, :4], out[:, 4]


def batch(worker: int) -> Batch:
    rng = np.random.default_rng(worker)
    size = SIZES[worker]
    masks = rng.random((size, 4)) < 0.7
    actions = rng.integers(0, 4, size)
    masks[np.arange(size), actions] = True
    observations = rng.normal(size=(size, 6)).astype(np.float32)
    with torch.no_grad():
        logits, _ = net()(torch.from_numpy(observations))
        log_probs = ppo.masked_log_probs(logits.float(), torch.from_numpy(masks))
    chosen = log_probs.gather(1, torch.from_numpy(actions)[:, None]).squeeze(1)
    numbers = (torch.from_numpy(rng.normal(worker, 1, size).astype(np.float32)) for _ in range(2))
    return Batch(torch.from_numpy(observations), torch.from_numpy(masks), torch.from_numpy(actions), chosen, *numbers)


def train(workers, group: Group, updates: int = 3, options: PpoOptions = OPTIONS):
    """(figures, state) after each update."""
    model = net()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, eps=1e-5)
    made = []
    for number in range(updates):
        generators = [torch.Generator().manual_seed(100 * number + worker) for worker in workers]
        figures = distributed.update(model, optimizer, [batch(w) for w in workers], options, generators, group)
        made.append((figures, state_of(model, optimizer)))
    return made


def one_of(rank: int, trainers: int, file: Path, options: PpoOptions, pipe) -> None:
    torch.set_num_threads(1)
    group = distributed.join(rank, trainers, FileStore(str(file), trainers), "cpu", 60.0)
    pipe.send(train(shares(len(SIZES), trainers)[rank], group, options=options))
    torch.distributed.destroy_process_group()


def together(trainers: int, folder: Path, monkeypatch, options: PpoOptions = OPTIONS):
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    context = multiprocessing.get_context("fork")
    ends, children = [], []
    for rank in range(trainers):
        end, theirs = context.Pipe()
        args = (rank, trainers, folder / "meeting", options, theirs)
        children.append(context.Process(target=one_of, args=args))
        children[-1].start()
        theirs.close()
        ends.append(end)
    made = [end.recv() for end in ends]
    for child in children:
        child.join(30)
        assert child.exitcode == 0
    return made


def differences(one, other) -> float:
    return max(
        float(np.abs(mine[name] - theirs[name]).max()) for mine, theirs in zip(one, other, strict=True) for name in mine
    )


@pytest.mark.parametrize("target_kl", [None, 0.002])
def test_two_trainers_are_bit_identical_after_every_update_and_equal_one_with_both_shares(
    tmp_path, monkeypatch, target_kl
):
    options = msgspec.structs.replace(OPTIONS, target_kl=target_kl)
    assert [len(share) for share in shares(len(SIZES), 2)] == [3, 2]
    first, second = together(2, tmp_path, monkeypatch, options)
    alone = train(range(len(SIZES)), Group(), options=options)
    for (figures, state), (other_figures, other), (expected_figures, expected) in zip(
        first, second, alone, strict=True
    ):
        assert figures == other_figures
        assert differences(state, other) == 0.0
        assert differences(state, expected) < 1e-6
        assert figures == pytest.approx(expected_figures, rel=1e-4, abs=1e-6)
    stopped = any(figures["gradient_steps"] < 2 * math.ceil(sum(SIZES) / 24) for figures, _ in first)
    assert stopped == (target_kl is not None)


def test_a_plain_mean_of_gradients_would_be_another_model(tmp_path, monkeypatch):
    """The shares are unequal on purpose: were they not weighted, this would show it."""
    weigh = distributed.mean_gradients
    monkeypatch.setattr(
        distributed, "mean_gradients", lambda model, terms, samples, group: weigh(model, terms, 1, group)
    )
    first, second = together(2, tmp_path, monkeypatch)
    monkeypatch.setattr(distributed, "mean_gradients", weigh)
    alone = train(range(len(SIZES)), Group())
    assert differences(first[0][1], second[0][1]) == 0.0
    assert differences(first[0][1], alone[0][1]) > 1e-4


def test_one_trainer_with_one_rollout_makes_the_update_of_a_single_process():
    model, other = net(), net()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    theirs = torch.optim.Adam(other.parameters(), lr=1e-2)
    generators = [torch.Generator().manual_seed(3) for _ in range(2)]
    figures = distributed.update(model, optimizer, [batch(0)], OPTIONS, generators[:1], Group())
    expected = ppo.update(other, theirs, batch(0), OPTIONS, generators[1])
    assert differences(state_of(model, optimizer), state_of(other, theirs)) < 1e-6
    assert figures == pytest.approx({**expected, "batch": 40.0}, rel=1e-4, abs=1e-6)


def test_the_shares_of_the_source():
    assert [len(share) for share in shares(70 * 45, 8)] == [394] * 6 + [393] * 2


@given(st.integers(1, 500), st.integers(1, 20))
def test_shares_are_all_the_workers_and_differ_by_at_most_one(workers, trainers):
    found = shares(workers, trainers)
    assert [worker for share in found for worker in share] == list(range(workers))
    assert len(found) == trainers and max(map(len, found)) - min(map(len, found)) <= 1


@given(st.lists(st.integers(3, 20), min_size=1, max_size=5), st.integers(1, 3), st.integers(0, 2**31))
def test_minibatches_hold_every_sample_once_and_a_part_of_every_rollout(sizes, parts, seed):
    total = sum(sizes)
    column = torch.arange(total)
    samples = Batch(*(column for _ in Batch._fields))
    generators = [torch.Generator().manual_seed(seed + rollout) for rollout in range(len(sizes))]
    found = list(distributed.minibatches(samples, sizes, parts, generators))
    assert len(found) == parts and sorted(torch.cat([part.actions for part in found]).tolist()) == list(range(total))
    begin = 0
    for size in sizes:
        counts = [int(((part.actions >= begin) & (part.actions < begin + size)).sum()) for part in found]
        assert max(counts) - min(counts) <= 1
        begin += size
