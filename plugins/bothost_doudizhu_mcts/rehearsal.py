"""A teacher's values beside the records of a fit.

Records of searches are few, and often of contested positions alone. A network that learns from nothing else forgets
what it knows of others. So each step of the fit also learns a teacher's values, as in the first stage.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from bothost import Evaluator
from bothost_doudizhu_mcts import distil
from bothost_doudizhu_mcts.distil import Chunk, Source
from bothost_doudizhu_mcts.model import Networks, RoleNet

STEPS = 32
"""Steps that share a chunk."""


class Rehearsal:
    """Batches of a teacher's positions. Each depends on the seed and the step's number only, and is used once."""

    def __init__(self, teacher: Evaluator, positions: int, seed: int) -> None:
        """``positions``: of a step."""
        self.options = distil.Options(batch=positions, chunk=STEPS * positions)
        self.source = Source(teacher, self.options, seed)
        self._made: tuple[int, Chunk] | None = None

    def loss(self, net: Networks, step: int) -> Tensor:
        """The loss of the first stage on the batch of step number ``step``."""
        number, place = divmod(step, STEPS)
        if self._made is None or self._made[0] != number:
            self._made = (number, self.source.chunk(number, self.options.chunk))
        rows = np.arange(place * self.options.batch, (place + 1) * self.options.batch)
        total = torch.zeros(())
        for role, part in distil.parts(self._made[1], rows, shared=False, device="cpu").items():
            of_role = net.of[role]
            assert isinstance(of_role, RoleNet)
            total = total + distil.loss(of_role, part, self.options)[0] * (len(part.best) / len(rows))
        return total
