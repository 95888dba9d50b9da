"""The trainers of one training, as their coordinator uses them.

All have the same model and optimizer, and the coordinator has a copy. If one died, all begin the update again from that
copy, so its death changes no bit of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch

from bothost.errors import BothostError
from bothost.training import roles
from bothost.training.processes import ATTEMPTS, Process, Processes, Role, Setup, WorkerDied

Result = TypeVar("Result")


class Trainers:
    """Processes whose role is a ``roles.Member``."""

    def __init__(
        self,
        processes: Processes,
        role: Role,
        setup: Setup,
        count: int,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
    ) -> None:
        """Start ``count`` of them. ``model`` and ``optimizer`` are the copy."""
        self._processes, self._model, self._optimizer = processes, model, optimizer
        self.members: list[Process] = [processes.start(role, setup) for _ in range(count)]
        self._formed = False  # whether they are a group whose state is that of the copy

    def repeated(self, step: Callable[[], Result], forget: Callable[[], None] = lambda: None) -> Result:
        """Return what ``step`` returns. After a death, ``forget`` and do it again from the same state."""
        for attempt in range(ATTEMPTS):
            try:
                return step()
            except (WorkerDied, RuntimeError):  # torch reports trainers that died by RuntimeErrors
                if attempt == ATTEMPTS - 1:
                    raise
                forget()
                if not self._formed:
                    for member in self.members:
                        member.restart()
        raise AssertionError("unreachable")

    def update(self, method: str, arguments: Sequence[Sequence[Any]]) -> list[Any]:
        """One update by all, each with its own arguments. Returns the receipts; the copy is then equal to them.

        A receipt has the ``digest`` of the state. The first member's payload is the state.
        """
        if not self._formed:
            self._form()
        asked = [member.ask(method, *of) for member, of in zip(self.members, arguments, strict=True)]
        self._formed = False  # until the update succeeds
        failures: list[Exception] = []
        receipts: list[Any] = []
        for answer in asked:
            try:
                receipts.append(answer.receive())
            except Exception as error:
                failures.append(error)
        if failures:
            # Trainers that waited for a dead one fail as well: report the one that died.
            raise next((error for error in failures if isinstance(error, WorkerDied)), failures[0])
        if len({receipt.digest for receipt in receipts}) > 1:
            raise BothostError("the trainers' models differ after an update", advice="this is a bug in bothost")
        roles.restore(asked[0].fetch(), self._model, self._optimizer)
        self._formed = True
        return receipts

    def _form(self) -> None:
        """Make them a group with the state of the copy."""
        self._processes.meet(self.members)
        state = roles.state_of(self._model, self._optimizer)
        for answer in [member.ask("restore", state) for member in self.members]:
            answer.receive()
        self._formed = True
