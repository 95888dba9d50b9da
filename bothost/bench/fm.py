"""``bothost bench fm``: the growing step of a clone's features, on one thread.

Decisions of the rule player in Dou Dizhu, features of the block ``move_types`` of which some 60 are set at a time, the
309 abstract moves.
Processor seconds for one epoch of training, and for the losses of one and of three ablated models for every pair of
features that occurs together.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import numpy as np
import typer

from bothost.bench.host_subject import peak_rss_mb
from bothost.bench.rules import played
from bothost.rules import doudizhu
from bothost.training.factorization import FactorizationMachine, Samples, SparseRows

T = TypeVar("T")

FACTORS = 64
ACTIVE = 60
"""Approximate number of set features per decision."""


def command(
    samples: Annotated[int, typer.Option(min=1, help="Decisions.")] = 200_000,
    features: Annotated[int, typer.Option(min=1, max=65536, help="Binary features.")] = 1000,
    mask: Annotated[bool, typer.Option(help="Let the rules mask the actions; without, all 309 are scored.")] = True,
) -> dict[str, Any]:
    """Processor seconds to score all pairs of features of a factorization machine, and to train it for an epoch."""
    data = decisions(samples, features)
    if not mask:
        every = np.arange(doudizhu.NUM_ABSTRACT_ACTIONS, dtype=np.int32)
        legal = SparseRows(np.arange(samples + 1, dtype=np.int64) * len(every), np.tile(every, samples))
        data = Samples(data.features, legal, data.labels)
    machine = FactorizationMachine(features, doudizhu.NUM_ABSTRACT_ACTIONS, FACTORS, seed=1, deviation=0.05)
    epoch_s, _ = cpu_s(lambda: machine.train(data))
    pair_s, losses = cpu_s(lambda: machine.pair_losses(data, "pair"))
    three_s, _ = cpu_s(lambda: machine.pair_losses(data, "nested"))
    return {
        "pair_term_cpu_s": round(pair_s, 2),
        "three_models_cpu_s": round(three_s, 2),
        "epoch_cpu_s": round(epoch_s, 2),
        "samples": samples,
        "features": features,
        "actions": doudizhu.NUM_ABSTRACT_ACTIONS,
        "factors": FACTORS,
        "active_features": round(len(data.features.items) / samples, 1),
        "legal_actions": round(len(data.legal.items) / samples, 1),
        "pairs": len(losses.first),
        "peak_rss_mb": round(peak_rss_mb()),
    }


def cpu_s(work: Callable[[], T]) -> tuple[float, T]:
    before = time.process_time()
    result = work()
    return time.process_time() - before, result


def decisions(count: int, most: int) -> Samples:
    """Decisions of the rule player with ``most`` features."""
    abstract = doudizhu.abstract_map()
    features: list[np.ndarray[Any, Any]] = []
    legal: list[np.ndarray[Any, Any]] = []
    labels: list[int] = []
    made = played("doudizhu", itertools.count(), lambda view: doudizhu.rule_choice(view)[0])
    for view, action in itertools.islice(made, count):
        features.append(np.flatnonzero(view.encode("move_types")).astype(np.int32))
        legal.append(np.unique(abstract[view.legal()]).astype(np.int32))
        labels.append(int(abstract[action]))
    return Samples(_chosen(features, most), SparseRows.of(legal), np.array(labels, np.int32))


def _chosen(rows: list[np.ndarray[Any, Any]], most: int) -> SparseRows:
    """The ``most`` most frequent features, except the top ones if more than ``ACTIVE`` would be set."""
    uses = np.bincount(np.concatenate(rows))
    ranked = np.argsort(-uses, kind="stable")
    skip = 0
    while skip + most < len(ranked) and uses[ranked[skip : skip + most]].sum() > ACTIVE * len(rows):
        skip += 1
    kept = np.sort(ranked[skip : skip + most])
    index = np.full(len(uses), -1, np.int32)
    index[kept] = np.arange(len(kept), dtype=np.int32)
    return SparseRows.of(index[row][index[row] >= 0] for row in rows)
