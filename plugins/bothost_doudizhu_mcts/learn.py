"""What the trainings of the networks have in common: many gradient steps make an iteration of the training loop."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec
import numpy as np
import torch
from torch import Tensor

from bothost import ReportProgress, TrainingRun
from bothost.training.loop import Iteration, Learner, LoopOptions, Outcome, TrainerLoop, set_learning_rate
from bothost_doudizhu_mcts.encode import VERSION
from bothost_doudizhu_mcts.model import Networks

BLOCK = 50
"""Most steps of an iteration."""
NEVER = 2**31
"""No past version is an opponent in training, so the pool has the first and the last version."""
MakeOptimizer = Callable[[Iterable[torch.nn.Parameter]], torch.optim.Optimizer]


class StepLearner(Learner):
    """Gradient steps of the networks on positions that do not depend on them.

    All randomness of a step depends on the seed and its number.
    """

    model: Networks

    def __init__(
        self, run: TrainingRun, make: MakeOptimizer, steps: int | None, every: int, device: str = "cpu"
    ) -> None:
        """``make`` makes the optimizer. Its learning rate is the initial one: it falls linearly to 0 at the end.

        ``steps`` of the whole training; None: until the time is over. It is measured, and saved, about ``every`` steps.
        """
        torch.set_num_threads(1)
        torch.manual_seed(run.seed)
        self.run, self.steps = run, steps
        self.model = Networks().to(device)
        self.model.start_with(run.start)
        self.optimizer = make(self.model.parameters())
        self.done = 0
        """Steps so far."""
        self.block = min(BLOCK, every)
        iterations = None if steps is None else max(1, -(-steps // self.block))
        self.loop_options = LoopOptions(
            iterations=iterations, pool_every=NEVER, checkpoint_every=max(1, every // self.block)
        )

    @abstractmethod
    def loss(self, part_done: float) -> tuple[Tensor, Tensor, int]:
        """The loss of the next step, the L1 of its values, and the number of its samples."""

    @abstractmethod
    def measure(self) -> dict[str, float]:
        """Figures of the networks on held-out positions; ``l1`` is one."""

    def loop(self, options: msgspec.Struct, report: ReportProgress) -> TrainerLoop:
        """Begins or resumes the training. ``options`` are those of its lineage."""
        made = TrainerLoop(self.loop_options, self.run, VERSION, self, report)
        made.progress.options = msgspec.to_builtins(options)
        return made

    def resume(self, records: Sequence[Mapping[str, float]]) -> None:
        self.done = int(records[-1]["steps"])

    def collect(self, iteration: Iteration) -> int:
        """The number of steps to make."""
        if self.steps is None or iteration.number < (self.loop_options.iterations or 0):
            return self.block
        return max(0, self.steps - self.done)

    def update(self, iteration: Iteration, collected: int) -> Outcome:
        distances, learnt = [], 0
        for _ in range(collected):
            part_done = max(iteration.part_done, self.done / self.steps if self.steps else 0.0)
            distance, samples = self.step(part_done)
            distances.append(distance)
            learnt += samples
        return Outcome({"steps": self.done, "l1_train": float(np.mean(distances or [0.0]))}, learnt)

    def step(self, part_done: float) -> tuple[float, int]:
        """Make one gradient step. Returns the L1 of its values, and the number of its samples."""
        set_learning_rate(self.optimizer, self.optimizer.defaults["lr"] * (1.0 - part_done))
        loss, l1, samples = self.loss(part_done)
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.done += 1
        return float(l1.detach()), samples

    def evaluate(self, iteration: Iteration, *, last: bool) -> dict[str, float]:
        return self.measure() if last or iteration.number % self.loop_options.checkpoint_every == 0 else {}

    def note(self, figures: Mapping[str, float]) -> str:
        return f"L1 {figures['l1']:.4f}" if "l1" in figures else f"L1 {figures['l1_train']:.4f} in training"
