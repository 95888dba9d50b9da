"""The strategy ``exec``: players that ask programs."""

from __future__ import annotations

import asyncio
import concurrent.futures
import itertools
import math
import threading
import time
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from bothost import Budget, Decision, Model, ModelError, Player, ProtocolError, Request, Strategy, Table
from bothost import exec_protocol as protocol
from bothost.rules import ActionArray, View
from bothost_exec.options import Options as ExecOptions
from bothost_exec.process import StderrLog
from bothost_exec.program import Program

T = TypeVar("T")

MARGIN_MS = 20.0
"""Stop waiting for an answer this long before the deadline, so that the host has time for a fallback."""

_NOTICE_S = 2.0
"""How long after its time to start a program counts as not started at the latest."""


class IoThread:
    """A thread with an event loop for all programs of a strategy."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="exec-io", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def submit(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def stop(self) -> None:
        """Stop the loop. After this nothing can be submitted."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(5.0)
        if not self._thread.is_alive():
            self.loop.close()


class Exec(Strategy):
    """Runs a program in any language, with JSON lines over its stdin and stdout. Its address is ``exec:COMMAND``."""

    name = "exec"
    version = "1"
    games = ("*",)
    execution = "thread"
    deterministic = False
    wants_events = True
    Options = ExecOptions

    def __init__(self, options: ExecOptions, model: Model | None = None) -> None:
        super().__init__(options, model)
        if model is not None:  # a stranger's could end the sandbox, and pass on variables
            advice = "set its options in its route; bothost model rollback exec --alias NAME gives up an alias"
            raise ModelError(f"exec takes no model, and there is {model.version}", advice=advice)
        self.io = IoThread()
        self._names = itertools.count(1)
        self._ids = itertools.count(1)
        self._stderr = StderrLog()
        self._pool = [Program(options, self._stderr) for _ in range(options.pool)]
        self._own: set[Program] = set()

    def player(self, table: Table) -> ExecPlayer:
        """Make a player, and start its program without waiting for it."""
        if self._pool:
            program = min(self._pool, key=lambda program: program.players)
            program.players += 1
        else:
            program = Program(self.options, self._stderr)
            self._own.add(program)
        return ExecPlayer(self, program, table, str(next(self._names)))

    def decide_many(self, requests: Sequence[Request]) -> Iterator[tuple[int, Decision | Exception]]:
        """Ask all programs at the same time, and yield each decision as soon as it is there, or why there is none."""
        players: list[Any] = [request.player for request in requests]
        asked = {
            index: player.ask(request.view, request.legal, request.budget)
            for index, (player, request) in enumerate(zip(players, requests, strict=True))
        }
        while asked:
            left_s = min(question.deadline for question in asked.values()) - time.monotonic()
            answers = [question.answer for question in asked.values()]
            concurrent.futures.wait(answers, max(0.0, left_s), concurrent.futures.FIRST_COMPLETED)
            now = time.monotonic()
            for index, question in list(asked.items()):
                if question.answer.done() or question.deadline <= now:
                    del asked[index]
                    made: Decision | Exception
                    try:
                        made = players[index].take(question, requests[index].view, requests[index].legal)
                    except Exception as error:
                        made = error
                    yield index, made

    def leave(self, player: ExecPlayer) -> None:
        """Close the hand of a player, and stop its program if it is not shared."""
        self.io.loop.call_soon_threadsafe(player.program.close, player.name)
        if player.program in self._own:
            self._own.discard(player.program)
            self.io.submit(player.program.stop())
        player.program.players -= 1

    def close(self) -> None:
        """Stop all programs, and wait for their end."""

        async def stop_all() -> None:
            await asyncio.gather(*(program.stop() for program in (*self._pool, *self._own)), return_exceptions=True)
            others = asyncio.all_tasks() - {asyncio.current_task()}
            await asyncio.wait(others, timeout=2.0) if others else None

        if self.io.loop.is_closed():
            return
        try:
            self.io.submit(stop_all()).result(self.options.stop_ms / 1000.0 + 5.0)
        finally:
            self.io.stop()

    def next_id(self) -> int:
        return next(self._ids)


@dataclass(slots=True)
class Question:
    """A request to a program: the position and its legal actions, the future answer, and the deadline."""

    place: tuple[int, int, bytes]
    answer: concurrent.futures.Future[protocol.Action]
    deadline: float = 0.0


class ExecPlayer(Player):
    """One seat for one hand, played by a program."""

    def __init__(self, strategy: Exec, program: Program, table: Table, name: str) -> None:
        self.strategy = strategy
        self.program = program
        self.name = name
        self._question: Question | None = None
        """The last one, unless it failed."""
        opening = protocol.Open(
            table=name,
            game=table.game.name,
            rules=dict(table.game.rules),
            seat=table.seat,
            seats=table.game.num_seats,
            seed=table.seed,
        )
        self.opened = strategy.io.submit(program.open(opening))
        """Done when the program knows the hand, or has not started."""
        self._prepared = False

    def prepare(self) -> None:
        """Wait for the program. Raises PluginError if it has not started; ``decide`` then starts it again."""
        if not self._prepared:
            self._prepared = True
            self.opened.result(self.strategy.options.start_ms / 1000.0 + _NOTICE_S)

    def observe(self, events: Sequence[str]) -> None:
        tell = self.program.tell
        self.strategy.io.loop.call_soon_threadsafe(tell, [protocol.Event(table=self.name, event=e) for e in events])

    def decide(self, view: View, legal: ActionArray, budget: Budget) -> Decision:
        """Ask the program. Raises TimeoutError before the deadline, PluginError and ProtocolError."""
        return self.take(self.ask(view, legal, budget), view, legal)

    def ask(self, view: View, legal: ActionArray, budget: Budget) -> Question:
        """Send the request without waiting for the answer. If it was sent before, its answer counts."""
        left_ms = min(budget.left_ms(), self.strategy.options.unclocked_ms)
        margin = min(MARGIN_MS, left_ms / 10.0)
        place = (view.seq, view.hash(), legal.tobytes())  # fewer are legal once the lobby has refused an answer
        if self._question is None or self._question.place != place:
            message = protocol.Decide(
                table=self.name,
                id=self.strategy.next_id(),
                seq=view.seq,
                phase=view.phase,
                ms=round(left_ms - margin, 1) if math.isfinite(budget.deadline) else None,
                legal=tuple(view.notation(int(action)) for action in legal),
                view=view.to_json(),
            )
            self._question = Question(place, self.strategy.io.submit(self.program.ask(message)))
        self._question.deadline = time.monotonic() + (left_ms - margin) / 1000.0
        return self._question

    def take(self, question: Question, view: View, legal: ActionArray) -> Decision:
        """Wait for the answer, and check it."""
        self._question = None
        try:
            action = question.answer.result(max(0.0, question.deadline - time.monotonic()))
        except TimeoutError:
            question.answer.cancel()
            raise TimeoutError(f"{self.program.name} did not answer in time") from None
        decision = _decision(action, view, legal, self.program.name)
        self._question = question
        return decision

    def close(self) -> None:
        self.opened.cancel()
        self.strategy.leave(self)


def _decision(answer: protocol.Action, view: View, legal: ActionArray, name: str) -> Decision:
    try:
        action = view.parse(answer.action)
        good = action in legal
    except ValueError:
        good = False
    if not good:
        raise ProtocolError(f"{name} answered {answer.action[:40]!r}, which is not legal", frame=answer.action)
    for numbers in (answer.policy or (), () if answer.value is None else (answer.value,)):
        if not all(math.isfinite(number) for number in numbers):
            raise ProtocolError(f"{name}: policy or value is not finite")
    if answer.policy is not None and len(answer.policy) != len(legal):
        raise ProtocolError(f"{name} sent a policy of {len(answer.policy)} for {len(legal)} legal actions")
    return Decision(action=action, policy=answer.policy, value=answer.value, stats=answer.stats)
