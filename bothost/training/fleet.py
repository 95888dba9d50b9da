"""Training by self-play in many processes, on this machine or on a Ray cluster: the loop of their coordinator.

Every update: the pool publishes the newest model and the opponents that were drawn; each worker plays one rollout;
each trainer takes its share of the workers' rollouts, and together they make one update. What worker w plays in update
i is a function of (seed, i, w) and of the models, so whatever is lost with a process is made again, bit for bit: a lost
worker plays its rollout again; when a trainer is lost, all are brought back to where they were before the update and
make it again. The coordinator alone writes to the training's folder. Killed, it resumes from its last checkpoint.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import safetensors.torch

from bothost.errors import BothostError, UsageError
from bothost.strategy import ReportProgress, TrainingRun
from bothost.training import loop, roles
from bothost.training.checkpoint import Progress
from bothost.training.distributed import shares
from bothost.training.loop import Build, More, SelfPlayOptions
from bothost.training.model_pool import ModelPool
from bothost.training.processes import ATTEMPTS, Answer, Process, Processes, WorkerDied, retry_on_death
from bothost.training.roles import Device, Played, Setup, Tensors, Updated
from bothost.training.rollout import Task
from bothost.training.runners import Runner, processes_of

KEPT = 64
"""Past versions that stay published."""


class FleetOptions(SelfPlayOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of a training by self-play in one process or in many."""

    runner: Runner = "local"
    """Where processes run: on this machine, or where Ray puts them."""
    workers: int = 0
    """Processes that play, each ``environments`` hands at once; 0: all is done in this process."""
    trainers: int = 1
    """Processes that share the update of ``workers``."""
    device: Device = "cpu"
    """Of the trainers: ``cuda`` takes a GPU for each."""
    ray_address: str | None = None
    """Of the Ray cluster, as in ``auto``; None: Ray is started on this machine and stopped in the end."""
    timeout_s: float = 600.0
    """A process that takes longer for an answer counts as lost."""


class Order(NamedTuple):
    """What a worker is to play, and in which order its samples are used."""

    opponent: int
    seed: int
    order_seed: int


def train(
    options: FleetOptions,
    task: Task,
    build: Build,
    run: TrainingRun,
    encoder_version: int,
    report: ReportProgress,
    *,
    start: Path | None = None,
    more: More | None = None,
) -> Progress:
    """Train as ``loop.train`` does, in as many processes as the options say.

    With workers the result depends on their number, and not on the number of trainers but for rounding. ``more`` is
    called by the coordinator, once for each worker's rollout.
    """
    if options.runner == "local" and options.workers == 0:
        return loop.train(options, task, build, run, encoder_version, report, start=start, more=more)
    _check(options, run)
    setup = Setup.of(task, build, options, options.device, options.timeout_s)
    cores = options.workers + options.trainers
    with processes_of(options.runner, options.ray_address, cores=cores, device=options.device) as processes:
        return Coordinator(options, setup, run, processes, more).train(encoder_version, report, start)


def _check(options: FleetOptions, run: TrainingRun) -> None:
    loop.check_end(options, run)
    if options.workers < 1:
        raise UsageError(f"--runner {options.runner} needs workers", advice="give --workers N")
    if not 1 <= options.trainers <= options.workers:
        raise UsageError(f"{options.trainers} trainers cannot share {options.workers} workers")
    if options.ppo.minibatch < options.workers:
        raise UsageError(
            f"minibatches of {options.ppo.minibatch} samples cannot hold one of each of {options.workers} workers",
            advice=f"give --ppo.minibatch {options.workers} or more",
        )


class Coordinator:
    """Runs the processes of one training."""

    def __init__(
        self,
        options: FleetOptions,
        setup: Setup,
        run: TrainingRun,
        processes: Processes,
        more: More | None = None,
    ) -> None:
        self.options, self.setup, self.run = options, setup, run
        self._more = more
        self._processes = processes
        self.workers = [processes.start(roles.Worker, setup) for _ in range(options.workers)]
        self.trainers = [processes.start(roles.Trainer, setup) for _ in range(options.trainers)]
        self.pool = processes.start(roles.Pool, setup)
        self._published: OrderedDict[int, Answer] = OrderedDict()
        self._formed = False  # whether the trainers are a group, in the state of ``_model``

    def train(self, encoder_version: int, report: ReportProgress, start: Path | None = None) -> Progress:
        """Train until it is over; see ``loop.train``."""
        options, run = self.options, self.run
        self._model, self._optimizer = loop.prepare(options, self.setup.build, run)
        made = (self._model, self._optimizer)
        with loop.Course(options, run, encoder_version, *made, report, start=start) as course:
            self._versions = course.pool
            for part_done in course.updates():
                figures = self._again(partial(self._iterate, course.progress.iteration, part_done))
                course.record(figures, samples=int(figures.pop("batch")))
        return course.progress

    def _iterate(self, iteration: int, part_done: float) -> dict[str, float]:
        """One update of the model; on failure nothing has changed."""
        began = time.monotonic()
        orders = self._draw(iteration)
        played = self._play(iteration, orders)
        receipts: list[Played] = [receipt for receipt, _ in played]
        seconds = time.monotonic() - began
        others = self._others(iteration)
        rate = self.options.learning_rate * (1.0 - part_done)
        updated = self._update(rate, orders, [load for _, load in played], others)
        steps = sum(receipt.steps for receipt in receipts)
        figures = updated.figures | loop.rollout_figures(
            np.concatenate([receipt.final_leads for receipt in receipts]), steps / seconds
        )
        return figures | {
            "batch": figures["batch"] - sum(len(other["actions"]) for other in others),
            "opponent": float(np.mean([order.opponent for order in orders])),
            "worker_steps_per_s": round(float(np.mean([r.steps / r.seconds for r in receipts]))),
            "rollout_bytes": round(float(np.mean([r.nbytes for r in receipts]))),
            "play_seconds": round(seconds, 3),
            "update_seconds": round(updated.seconds, 3),
        }

    def _draw(self, iteration: int) -> list[Order]:
        versions = self._versions.versions
        orders = []
        for worker in range(self.options.workers):
            rng = np.random.default_rng([self.run.seed, iteration, worker])
            version = ModelPool.draw_from(versions, rng, self.options.newest_share)
            orders.append(Order(version, int(rng.integers(2**63)), int(rng.integers(2**63))))
        return orders

    def _others(self, iteration: int) -> list[Tensors]:
        """What is learnt beside each worker's rollout; nothing where there is nothing."""
        if self._more is None:
            return []
        rngs = [np.random.default_rng([self.run.seed, iteration, w, 1]) for w in range(self.options.workers)]
        return [roles.arrays(self._more(self._model, rng)) for rng in rngs]

    # ---------------------------------------------------------------------------------------------------- self-play

    def _play(self, iteration: int, orders: list[Order]) -> list[tuple[Played, Any]]:
        """One rollout of each worker: receipt, and what stands for the rollout."""
        learner = self.pool.ask("publish", iteration, roles.state_of(self._model, self._optimizer).model)
        self._receive(self.pool, learner)
        opponents = {version: self._opponent(version) for version in sorted({order.opponent for order in orders})}

        def ask(worker: Process, order: Order) -> Answer:
            return worker.ask("play", order.seed, learner.payload, opponents[order.opponent].payload)

        asked = [ask(worker, order) for worker, order in zip(self.workers, orders, strict=True)]
        played = []
        for worker, order, answer in zip(self.workers, orders, asked, strict=True):
            played.append(
                retry_on_death(worker, answer, partial(ask, worker, order), lambda got: (got.receive(), got.payload))
            )
        return played

    def _opponent(self, version: int) -> Answer:
        """A past version, published."""
        if version not in self._published:
            parameters = safetensors.torch.load_file(self._versions.path(version))
            answer = self.pool.ask("publish", version, {name: tensor.numpy() for name, tensor in parameters.items()})
            self._receive(self.pool, answer)
            self._published[version] = answer
        self._published.move_to_end(version)
        while len(self._published) > KEPT:
            self._published.popitem(last=False)
        return self._published[version]

    # ------------------------------------------------------------------------------------------------------- updates

    def _update(self, learning_rate: float, orders: list[Order], rollouts: list[Any], others: list[Tensors]) -> Updated:
        """One update by all trainers; the coordinator's model is then what theirs is."""
        if not self._formed:
            self._form()

        def ask(trainer: Process, share: range) -> Answer:
            seeds = [orders[w].order_seed for w in share]
            beside = [others[w] for w in share] if others else []
            return trainer.ask("update", learning_rate, seeds, beside, *(rollouts[w] for w in share))

        asked = [ask(*pair) for pair in zip(self.trainers, shares(len(orders), len(self.trainers)), strict=True)]
        self._formed = False  # until all is well
        failures: list[Exception] = []
        receipts: list[Updated] = []
        for answer in asked:
            try:
                receipts.append(answer.receive())
            except Exception as error:
                failures.append(error)
        if failures:
            # Those who were waiting for a lost trainer fail as well: the cause is the one that was lost.
            raise next((error for error in failures if isinstance(error, WorkerDied)), failures[0])
        if len({receipt.digest for receipt in receipts}) > 1:
            raise BothostError("the trainers' models differ after an update", advice="this is a bug in bothost")
        roles.restore(asked[0].fetch(), self._model, self._optimizer)
        self._formed = True
        return receipts[0]

    def _form(self) -> None:
        """Make the trainers a group that stands where the coordinator's model stands."""
        self._processes.meet(self.trainers)
        state = roles.state_of(self._model, self._optimizer)
        for answer in [trainer.ask("restore", state) for trainer in self.trainers]:
            answer.receive()
        self._formed = True

    # ------------------------------------------------------------------------------------------------------ failures

    def _again(self, step: Callable[[], dict[str, float]]) -> dict[str, float]:
        """Do a step, again where processes were lost; whatever fails every time is raised."""
        for attempt in range(ATTEMPTS):
            try:
                return step()
            except (WorkerDied, RuntimeError):  # torch tells of lost trainers by RuntimeErrors
                if attempt == ATTEMPTS - 1:
                    raise
                self._published.clear()
                if not self._formed:
                    for trainer in self.trainers:
                        trainer.restart()
        raise AssertionError("unreachable")

    @staticmethod
    def _receive(process: Process, answer: Answer) -> None:
        """Wait for an answer; a process that is lost is started again, for the next attempt."""
        try:
            answer.receive()
        except WorkerDied:
            process.restart()
            raise
