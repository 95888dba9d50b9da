"""Self-play training in many processes, on this machine or on a Ray cluster: the coordinator.

In every iteration the pool publishes the newest model and the opponents. Each worker plays one rollout. Each trainer
takes its share of the rollouts, and together they make one update.

What worker w plays in iteration i depends on (seed, i, w) and on the models alone. So a process that died costs time
but changes no bit of the result. A worker plays its rollout again. If a trainer died, all trainers return to the state
before the update and repeat it. Only the coordinator writes to the training's folder.
"""

from __future__ import annotations

import time
from functools import lru_cache, partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from msgspec import Meta

from bothost.errors import UsageError
from bothost.strategy import ReportProgress, TrainingRun
from bothost.training import checkpoint, roles
from bothost.training.checkpoint import Progress
from bothost.training.devices import Device, check_device
from bothost.training.distributed import shares
from bothost.training.loop import Iteration, Outcome, TrainerLoop, check_end
from bothost.training.model_pool import ModelPool
from bothost.training.ppo import ExtraBatch
from bothost.training.processes import PendingCall, Process, Processes, WorkerDied, retry_on_death
from bothost.training.roles import Played, Setup, Tensors, Updated
from bothost.training.rollout import Build, RolloutTask, SelfPlayLearner, SelfPlayOptions, rollout_figures
from bothost.training.runners import Runner, processes_of
from bothost.training.trainers import Trainers

KEPT = 64
"""How many past versions stay published."""


class FleetOptions(SelfPlayOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of a training by self-play, in one process or in many."""

    runner: Runner = "local"
    """Where processes run: on this machine (local) or on a Ray cluster (ray)."""
    workers: Annotated[int, Meta(ge=0)] = 0
    """Processes that play, each ``environments`` hands at once. 0: do everything in this process."""
    trainers: Annotated[int, Meta(ge=1)] = 1
    """Processes that share the update."""
    device: Device = "cpu"
    """Device of the trainers. cuda: a GPU for each."""
    ray_address: str | None = None
    """Address of the Ray cluster, such as auto. None: start Ray on this machine and stop it at the end."""
    timeout_s: Annotated[float, Meta(gt=0)] = 600.0
    """A process that takes longer to answer counts as dead."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.runner == "local" and not self.workers and (self.device != "cpu" or self.trainers > 1):
            raise ValueError("device and trainers are those of processes: give workers, too")


class Order(NamedTuple):
    """The task of a worker, and a seed for the order of its samples."""

    opponent: int
    seed: int
    order_seed: int


def train(
    options: FleetOptions,
    task: RolloutTask,
    build: Build,
    run: TrainingRun,
    encoder_version: int,
    report: ReportProgress,
    *,
    start: Path | None = None,
    extra: ExtraBatch | None = None,
) -> Progress:
    """Train in ``options.workers`` processes that play and ``options.trainers`` that share the updates.

    The result depends on the number of workers, and on the number of trainers only by rounding. ``start``: a
    safetensors file with parameters to begin with. ``extra``: samples to learn from beside each worker's rollout.
    """
    _check(options, run)
    setup = Setup(task, build, options, options.device, options.timeout_s)
    cores = options.workers + options.trainers
    with processes_of(options.runner, options.ray_address, cores=cores, device=options.device) as processes:
        learner = Coordinator(options, setup, run.seed, processes, extra)
        return TrainerLoop(options, run, encoder_version, learner, report, start=start).train()


def _check(options: FleetOptions, run: TrainingRun) -> None:
    check_end(options, run)
    if options.runner == "local":
        check_device(options.device)
    if options.workers < 1:
        raise UsageError(f"--runner {options.runner} needs workers", advice="give --workers N")
    if not 1 <= options.trainers <= options.workers:
        raise UsageError(f"{options.trainers} trainers cannot share {options.workers} workers")
    if options.ppo.minibatch < options.workers:
        raise UsageError(
            f"minibatches of {options.ppo.minibatch} samples cannot hold one of each of {options.workers} workers",
            advice=f"give --ppo.minibatch {options.workers} or more",
        )


class Collected(NamedTuple):
    """The rollouts of one iteration."""

    orders: list[Order]
    played: list[tuple[Played, Any]]
    """Per worker: the receipt, and a reference to the rollout."""
    seconds: float


class Coordinator(SelfPlayLearner):
    """Runs the processes of one training."""

    options: FleetOptions

    def __init__(
        self, options: FleetOptions, setup: Setup, seed: int, processes: Processes, extra: ExtraBatch | None = None
    ) -> None:
        super().__init__(options, setup.build, seed)
        self.seed, self._extra = seed, extra
        self.workers = [processes.start(roles.RolloutWorker, setup) for _ in range(options.workers)]
        self.trainers = Trainers(processes, roles.Trainer, setup, options.trainers, self.model, self.optimizer)
        self.pool = processes.start(roles.Pool, setup)
        self._opponent = lru_cache(maxsize=KEPT)(self._publish)

    def iterate(self, iteration: Iteration) -> Outcome:
        """Collect and update. If a process died, repeat both from the same state."""
        return self.trainers.repeated(lambda: super(Coordinator, self).iterate(iteration), self._opponent.cache_clear)

    def collect(self, iteration: Iteration) -> Collected:
        """One rollout of each worker."""
        began = time.monotonic()
        orders = self._draw(iteration)
        played = self._play(iteration, orders)
        return Collected(orders, played, time.monotonic() - began)

    def update(self, iteration: Iteration, collected: Collected) -> Outcome:
        """One update by all trainers."""
        orders, played, seconds = collected
        receipts: list[Played] = [receipt for receipt, _ in played]
        others = self._others(iteration.number)
        updated = self._update(iteration.part_done, orders, [load for _, load in played], others)
        steps = sum(receipt.steps for receipt in receipts)
        leads = np.concatenate([receipt.final_leads for receipt in receipts])
        figures = updated.figures | rollout_figures(leads, steps / seconds)
        samples = int(figures.pop("batch")) - sum(len(other["actions"]) for other in others)
        figures |= {
            "opponent": float(np.mean([order.opponent for order in orders])),
            "worker_steps_per_s": round(float(np.mean([r.steps / r.seconds for r in receipts]))),
            "rollout_bytes": round(float(np.mean([r.nbytes for r in receipts]))),
            "play_seconds": round(seconds, 3),
            "update_seconds": round(updated.seconds, 3),
        }
        return Outcome(figures, samples)

    def _draw(self, iteration: Iteration) -> list[Order]:
        versions = iteration.pool.versions
        orders = []
        for worker in range(self.options.workers):
            rng = np.random.default_rng([self.seed, iteration.number, worker])
            version = ModelPool.draw_from(versions, rng, self.options.newest_share)
            orders.append(Order(version, int(rng.integers(2**63)), int(rng.integers(2**63))))
        return orders

    def _others(self, iteration: int) -> list[Tensors]:
        """Extra samples for each worker's rollout, if any."""
        if self._extra is None:
            return []
        options, samples = self.options.ppo, self.options.environments * self.options.horizon
        rngs = [np.random.default_rng([self.seed, iteration, w, 1]) for w in range(self.options.workers)]
        return [roles.arrays(self._extra(self.model, options, rng, samples)._asdict()) for rng in rngs]

    def _play(self, iteration: Iteration, orders: list[Order]) -> list[tuple[Played, Any]]:
        """One rollout of each worker: its receipt and a reference to the rollout."""
        learner = self.pool.ask("publish", iteration.number, roles.state_of(self.model, self.optimizer).model)
        self._receive(self.pool, learner)
        opponents = {
            version: self._opponent(iteration.pool, version) for version in sorted({order.opponent for order in orders})
        }

        def ask(worker: Process, order: Order) -> PendingCall:
            return worker.ask("play", order.seed, learner.payload, opponents[order.opponent].payload)

        asked = [ask(worker, order) for worker, order in zip(self.workers, orders, strict=True)]
        played = []
        for worker, order, answer in zip(self.workers, orders, asked, strict=True):
            played.append(
                retry_on_death(worker, answer, partial(ask, worker, order), lambda got: (got.receive(), got.payload))
            )
        return played

    def _publish(self, versions: ModelPool, version: int) -> PendingCall:
        """Publish a past version. ``_opponent`` does it once for each."""
        parameters = checkpoint.parameters_of(versions.path(version))
        answer = self.pool.ask("publish", version, {name: tensor.numpy() for name, tensor in parameters.items()})
        self._receive(self.pool, answer)
        return answer

    def _update(self, part_done: float, orders: list[Order], rollouts: list[Any], others: list[Tensors]) -> Updated:
        """One update by all trainers."""

        def of(share: range) -> tuple[Any, ...]:
            seeds = [orders[w].order_seed for w in share]
            beside = [others[w] for w in share] if others else []
            return part_done, seeds, beside, *(rollouts[w] for w in share)

        trainers = shares(len(orders), len(self.trainers.members))
        receipts: list[Updated] = self.trainers.update("update", [of(share) for share in trainers])
        return receipts[0]

    @staticmethod
    def _receive(process: Process, answer: PendingCall) -> None:
        """Wait for an answer. If the process died, restart it for the next attempt."""
        try:
            answer.receive()
        except WorkerDied:
            process.restart()
            raise
