"""``bothost bench search``: playouts and nodes per second of the native search, how late it stops, and its network.

Rates are per CPU second of one thread, so that other work on the machine does not count. Lateness and the network's
times are by the clock. For comparison a bare timer, a loop that reads the clock until the same deadline, runs in turns
with the search.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from statistics import median
from typing import Annotated, Any

import numpy as np
import typer

from bothost import Budget, Table
from bothost.inference import Session
from bothost.plugins import Plugins
from bothost.rules import View, doudizhu, game, search

RUNS = 5
SECONDS = 0.4
"""Processor seconds of a run."""
STRATEGY = "doudizhu-mcts"
LANDLORD = "landlord.onnx"
"""Graph of its network for the landlord."""
ITERATIONS = 300
HANDS = 6
RULE: dict[str, Any] = {"playout": "rule", "others": "policy", "widening": 1.0}
"""Options of the search as the strategy plays it, but for the deals' weights, which do not count by iteration."""


def command(
    deadlines: Annotated[int, typer.Option(help="Searches that are stopped by a deadline.", min=1)] = 200,
    ms: Annotated[float, typer.Option(help="Their time, ms.", min=1.0)] = 20.0,
) -> dict[str, Any]:
    """Dou Dizhu on one core.

    ``rollouts_per_s`` random playouts from the first lead, tree included, and ``nodes_per_s`` of that tree;
    ``rule_rollouts_per_s`` the same by the rule player. ``overrun_ms_p99`` how long after its deadline a search by the
    rule player returns, with deals weighted, and ``timer_overrun_ms_p99`` the bare timer; a median each. ``cnn_ms_1``
    and ``cnn_ms_8``: the strategy's network on 1 and 8 candidate moves of as many positions. ``decision_cpu_ms``: CPU
    time of a decision of 300 iterations with the network at the leaves, the mean of ``decisions``;
    ``evaluations_a_decision``: the positions that it valued. Null without a network.
    """
    view = game("doudizhu").new_state(1).view(0)
    rollouts, nodes = rates(view)
    rule, _ = rates(view, **RULE)
    late, bare = overruns(view, deadlines, ms)
    return {
        "rollouts_per_s": rollouts,
        "nodes_per_s": nodes,
        "rule_rollouts_per_s": rule,
        "overrun_ms_p99": float(np.percentile(late, 99)),
        "overrun_ms_p50": float(np.percentile(late, 50)),
        "timer_overrun_ms_p99": float(np.percentile(bare, 99)),
        "timer_overrun_ms_p50": float(np.percentile(bare, 50)),
        **network(),
    }


def rates(view: View, **options: Any) -> tuple[float, float]:
    """Iterations and nodes per second: the median over several searches of one seed each."""
    iterations, nodes = [], []
    for seed in range(RUNS):
        tree = search(view, seed, **options)
        began = time.thread_time()
        while (took := time.thread_time() - began) < SECONDS:
            tree.run(iterations=500)
        iterations.append(tree.iterations / took)
        nodes.append(tree.nodes / took)
    return float(f"{median(iterations):.4g}"), float(f"{median(nodes):.4g}")


def overruns(view: View, count: int, ms: float) -> tuple[list[float], list[float]]:
    """Milliseconds by which searches, and a bare timer, come after their deadlines."""

    def searching(seed: int) -> Callable[[], object]:
        tree = search(view, seed, belief=200, **RULE)
        return lambda: tree.run(ms=ms)

    def waiting() -> None:
        until = time.perf_counter() + ms / 1000.0
        while time.perf_counter() < until:
            pass

    late, bare = [], []
    for seed in range(count):
        late.append(_late(searching(seed), ms))
        bare.append(_late(waiting, ms))
    return late, bare


def _late(work: Callable[[], object], ms: float) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000.0 - ms


def network() -> dict[str, float | None]:
    """Milliseconds of one inference of the shipped network, the median of many, and what decisions cost."""
    resolved = Plugins.load().resolve(STRATEGY, {"iterations": ITERATIONS})
    model = resolved.model
    if model is None or LANDLORD not in model.files:
        names = ("cnn_ms_1", "cnn_ms_8", "decision_cpu_ms", "evaluations_a_decision", "decisions")
        return dict.fromkeys(names)
    assert model.encoder_version is not None
    session = Session(model, encoder_version=model.encoder_version, file=LANDLORD)
    times = {f"cnn_ms_{count}": inference_ms(session, count) for count in (1, 8)}
    return {**times, **decisions(resolved.make())}


def decisions(strategy: Any) -> dict[str, float | None]:
    """CPU time and evaluated positions of decisions with several legal moves, in hands that it plays against itself."""
    valued, values = 0, strategy.network.action_values

    def counted(views: Any, legal: Any) -> Any:
        nonlocal valued
        valued += len(views)
        return values(views, legal)

    strategy.network.action_values = counted
    rules, spent, made = game("doudizhu"), 0.0, 0
    for seed in range(HANDS):
        state = rules.new_state(seed)
        table = Table(lobby="bench", table=str(seed), game=rules, seat=0, seed=seed)
        player = strategy.player(table)
        while not state.terminal:
            view = state.view(state.to_act[0])
            legal = view.legal()
            if view.seat != 0 or len(legal) == 1:
                state.apply(view.seat, doudizhu.rule_choice(view)[0])
                continue
            began = time.process_time()
            decision = player.decide(view, legal, Budget(math.inf))
            spent += time.process_time() - began
            made += bool(decision.stats["iterations"])
            state.apply(0, decision.action)
        player.close()
    return {
        "decision_cpu_ms": float(f"{spent * 1000.0 / made:.3g}"),
        "evaluations_a_decision": float(f"{valued / made:.3g}"),
        "decisions": made,
    }


def inference_ms(session: Session, count: int) -> float:
    """One candidate move in each of ``count`` positions."""
    state = game("doudizhu").new_state(1)
    views = []
    for _ in range(count):
        seat = state.to_act[0]
        views.append(state.view(seat))
        state.apply(seat, int(state.legal(seat)[0]))
    inputs: dict[str, Any] = {
        "planes": np.stack([view.encode("planes") for view in views]),
        "moves": np.stack([view.encode_actions("move_plane", view.legal()[:1]) for view in views]),
        "owner": np.arange(count, dtype=np.int64),
    }
    times = []
    for _ in range(RUNS * 40):
        began = time.perf_counter()
        session.run(**inputs)
        times.append(time.perf_counter() - began)
    return float(f"{median(times) * 1000.0:.3g}")
