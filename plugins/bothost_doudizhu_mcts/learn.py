"""What the trainings of the networks have in common: gradient steps, measurements and checkpoints."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar

import msgspec
import numpy as np
import torch
from torch import Tensor

from bothost import ReportProgress, TrainingRun
from bothost.training import checkpoint
from bothost.training.loop import begun_or_resumed, check_finite, set_learning_rate
from bothost.training.metrics import FILE, Metrics, plot, read, read_until
from bothost_doudizhu_mcts.encode import VERSION
from bothost_doudizhu_mcts.model import Networks

MakeOptimizer = Callable[[Iterable[torch.nn.Parameter]], torch.optim.Optimizer]


class SteppedTraining(ABC):
    """Gradient steps of the networks until the time or the work is over.

    All randomness of a step depends on the seed and its number, and checkpoints are between two steps. So a training
    that is limited by its work gives the same networks if it is interrupted and resumed.
    """

    plotted: ClassVar[Sequence[str]]
    """Metrics that ``training.png`` shows."""
    axis: ClassVar[str] = "samples"
    """The metric that it shows them over."""

    def __init__(self, run: TrainingRun, options: msgspec.Struct, make: MakeOptimizer, device: str = "cpu") -> None:
        """``make`` makes the optimizer. Its learning rate is the initial one: it falls linearly to 0 at the end."""
        torch.set_num_threads(1)
        torch.manual_seed(run.seed)
        self.run = run
        self.net = Networks().to(device)
        self.net.start_with(run.start)
        self.optimizer = make(self.net.parameters())
        self.progress = begun_or_resumed(run, VERSION, self.net, self.optimizer)
        if self.progress.iteration:
            read_until(run.out / FILE, self.progress.iteration)
        self.progress.options = msgspec.to_builtins(options)

    @abstractmethod
    def part_of_work(self) -> float:
        """The completed part of the work; 0 if only the time limits the training."""

    @abstractmethod
    def loss(self) -> tuple[Tensor, Tensor, int]:
        """The loss of the next step, the L1 of its values, and the number of its samples."""

    @abstractmethod
    def measure(self) -> dict[str, float]:
        """Figures of the networks on held-out positions; ``l1`` is one."""

    def part_done(self) -> float:
        """The completed part of the training, at most 1."""
        by_time = self.progress.seconds / (60 * self.run.minutes) if self.run.minutes else 0.0
        return min(1.0, max(by_time, self.part_of_work()))

    def make_steps(self, every: int, report: ReportProgress) -> list[dict[str, float]]:
        """Make all steps that are left, with a measurement and a checkpoint every so many. Returns all metrics."""
        progress = self.progress
        before, started = progress.seconds, time.monotonic()
        losses: list[float] = []
        with Metrics(self.run.out, after=progress.iteration, tensorboard=False) as metrics:
            while (part := self.part_done()) < 1.0:
                losses.append(self.step(part))
                progress.seconds = before + time.monotonic() - started
                if progress.iteration % every and self.part_done() < 1.0:
                    continue
                check_finite(self.net, progress.iteration)
                figures = self.measure() | {"l1_train": float(np.mean(losses))}
                losses.clear()
                metrics.write(progress.iteration, {"samples": progress.samples, **figures})
                checkpoint.save(self.run.out, progress, self.net, self.optimizer)
                note = f"{progress.samples:,} samples, L1 {figures['l1']:.4f}"
                report(int(100 * self.part_done()), note, 100)
        records = read(self.run.out / FILE)
        plot(records, self.plotted, self.run.out / "training.png", x=self.axis)
        return records

    def step(self, part_done: float) -> float:
        """Make one gradient step. Returns the L1 of its values."""
        set_learning_rate(self.optimizer, self.optimizer.defaults["lr"] * (1.0 - part_done))
        loss, l1, samples = self.loss()
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        self.optimizer.step()
        self.progress.iteration += 1
        self.progress.samples += samples
        return float(l1.detach())
