"""Strategies with ``execution = "process"``: each worker thread has a process that decides for it.

If the plugin crashes, leaks memory or hangs with the GIL, a fallback plays its move. Other tables are unaffected. The
process is killed at the decision's deadline or above its memory limit, and a new one is started.
"""

from __future__ import annotations

import contextlib
import itertools
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path

import msgspec
import structlog

from bothost import children
from bothost.host.last_words import LastWords
from bothost.host.process_messages import (
    LENGTH,
    MOST_BYTES,
    Ask,
    ClosePlayer,
    LoadStrategy,
    StrategySpec,
    decode_answer,
    frame,
)
from bothost.host.spares import Spares
from bothost.plugins import Resolved
from bothost.rules.game import ActionArray, View
from bothost.strategy import Budget, Decision, Player, Strategy, Table

_log = structlog.get_logger("bothost.host")

LOOK_S = 0.1
"""Interval between two memory checks while we wait for a decision."""
START_S = 30.0
"""How long a process may take to import its plugin and load its model."""
STARTS = 5
"""Most starts within ``STARTS_S``. After that the strategy fails at once."""
STARTS_S = 30.0


class ProcessLimits(msgspec.Struct, frozen=True):
    """Limits of worker processes."""

    memory_bytes: int = 2048 << 20
    """A process is killed if its resident memory, with that of its descendants, exceeds this."""
    plugins_dir: Path | None = None


class ProcessFailed(Exception):
    """The process crashed, did not start, or used too much memory; or the plugin raised in it."""


class HostFault(Exception):
    """The host could not send the request. The strategy is not at fault, so it does not count towards quarantine."""


class ProcessLate(ProcessFailed, TimeoutError):
    """The process had not answered at the deadline, and was killed."""


def encoded(ask: Ask) -> bytes:
    """Encode a request. Raises HostFault for values that cannot be sent, such as an integer of 65 bits."""
    try:
        return frame(ask)
    except (OverflowError, ValueError, TypeError, msgspec.MsgspecError) as error:
        raise HostFault(f"the request cannot be sent to the process: {error}") from error


class ProcessStrategy(Strategy):
    """The host's side of a strategy that runs in a process. Used by one thread, except for ``close``."""

    name = "process"
    version = "1"
    games = ("*",)

    def __init__(
        self, resolved: Resolved, limits: ProcessLimits, spares: Spares | None = None, *, wait: bool = True
    ) -> None:
        super().__init__(resolved.options, resolved.model)
        self.starts = 0
        self._resolved = resolved
        self._limits = limits
        self._spares = spares or Spares()
        self._numbers = itertools.count(1)
        self._began: deque[float] = deque(maxlen=STARTS)
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False
        self._connection: socket.socket | None = None
        self._last_words: LastWords
        """Of the process that was started last."""
        self._ready = False
        self._looked = 0.0
        """When the memory of the process's descendants was last measured."""
        self._start()
        if wait:  # so that the first move does not wait for imports
            try:
                self._await_ready(time.monotonic() + START_S)
            except ProcessFailed as error:
                _log.error("process_not_started", strategy=resolved.address, error=str(error))

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def player(self, table: Table) -> Player:
        return _ProcessPlayer(self, next(self._numbers), table)

    def close(self) -> None:
        """End the process for good. May be called from any thread, even while another waits for an answer."""
        self._closed = True
        self.kill()

    # -------------------------------------------------------------------------------------------------- the process

    def _start(self) -> None:
        if self._closed:
            raise ProcessFailed("the strategy was closed")
        now = time.monotonic()
        if len(self._began) == STARTS and now - self._began[0] < STARTS_S:
            raise ProcessFailed(f"the process ended {STARTS} times within {STARTS_S:g} s")
        self._began.append(now)
        self._ready = False
        self.starts += 1
        self._process, self._connection, self._last_words = self._spares.take()
        if self._closed:  # another thread closed it meanwhile
            self.kill()
            raise ProcessFailed("the strategy was closed")
        folder = self._limits.plugins_dir
        load = LoadStrategy(
            _strategy_spec(self._resolved),
            {option: _strategy_spec(evaluator) for option, evaluator in self._resolved.evaluators.items()},
            None if folder is None else str(folder.absolute()),
            [str(Path(entry).absolute()) for entry in sys.path],
        )
        self._connection.sendall(frame(load))

    def revive(self) -> None:
        """Start a process if there is none. Raises ProcessFailed if it ended too often."""
        if self._process is None:
            self._start()

    def kill(self) -> None:
        """Kill the process."""
        process, self._process = self._process, None
        connection, self._connection = self._connection, None
        if process is not None:
            children.end(process.pid)
            process.wait()
        if connection is not None:
            connection.close()

    def await_ready(self, deadline: float) -> None:
        """Wait until a process is ready for requests. Raises ProcessLate and ProcessFailed."""
        self.revive()
        if time.monotonic() >= deadline:
            raise ProcessLate("decisions of other tables took all the time")
        self._await_ready(deadline)

    def ask(self, message: bytes, deadline: float) -> Decision:
        """Send an encoded ``Ask`` to the ready process, and return its decision.

        Raises ProcessLate and ProcessFailed. The process is then gone, unless the plugin only raised an exception.
        """
        try:
            self._send(message, deadline)
            answer = decode_answer(self._read(deadline))
        except TimeoutError:
            self._replace()
            raise ProcessLate("no answer at the deadline") from None
        except (OSError, EOFError, msgspec.MsgspecError) as error:
            raise self._died(error, deadline) from None
        except ProcessFailed:
            self._replace()
            raise
        if answer.decision is None:
            raise ProcessFailed(answer.error or "no decision")
        decision = msgspec.convert(answer.decision, Decision)
        stats = None if answer.stats is None else msgspec.json.decode(answer.stats)
        return msgspec.structs.replace(decision, stats=stats)

    def _await_ready(self, deadline: float) -> None:
        if self._ready:
            return
        try:
            answer = decode_answer(self._read(deadline))
        except TimeoutError:
            if time.monotonic() - self._began[-1] > START_S:
                self._replace()
            raise ProcessLate("the process is still starting") from None
        except (OSError, EOFError, msgspec.MsgspecError) as error:
            raise self._died(error, deadline) from None
        except ProcessFailed:
            self.kill()
            raise
        if answer.error is not None:
            self.kill()
            raise ProcessFailed(answer.error)
        self._ready = True

    def _died(self, error: Exception, deadline: float) -> ProcessFailed:
        process, code, last_words = self._process, None, self._last_words
        if process is not None:  # its connection closes a little before its exit code is available
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = process.wait(min(1.0, max(0.1, deadline - time.monotonic())))
        self._replace()
        if code is not None:
            said = last_words.text()
            return ProcessFailed(f"the process ended with code {code}" + (f"; last on stderr: {said}" if said else ""))
        return ProcessFailed("the process closed its connection" if isinstance(error, EOFError) else repr(error))

    def _replace(self) -> None:
        """Kill the process and start another, which gets ready while fallbacks play."""
        self.kill()
        with contextlib.suppress(ProcessFailed):
            self._start()

    def forget(self, player: int) -> None:
        """Close the player of a hand that is over."""
        if self._connection is not None:
            try:
                self._send(frame(ClosePlayer(player)), time.monotonic() + LOOK_S)
            except OSError:  # includes TimeoutError: the process does not read
                self.kill()

    def _send(self, data: bytes, deadline: float) -> None:
        assert self._connection is not None
        self._connection.settimeout(max(0.001, deadline - time.monotonic()))
        self._connection.sendall(data)

    def _read(self, deadline: float) -> bytes:
        length: int = LENGTH.unpack(self._exactly(LENGTH.size, deadline))[0]
        if length > MOST_BYTES:
            raise ProcessFailed(f"an answer of {length} bytes")
        return self._exactly(length, deadline)

    def _exactly(self, length: int, deadline: float) -> bytes:
        connection = self._connection
        assert connection is not None
        data = bytearray()
        while len(data) < length:
            left = deadline - time.monotonic()
            if left <= 0.0:
                raise TimeoutError
            connection.settimeout(min(left, LOOK_S))
            try:
                part = connection.recv(length - len(data))
            except TimeoutError:
                self._check_memory()
                continue
            if not part:
                raise EOFError
            data += part
        self._check_memory()
        return bytes(data)

    def _check_memory(self) -> None:
        if self._process is None:
            return
        used, now = children.resident_bytes(self._process.pid), time.monotonic()
        if now - self._looked >= LOOK_S:
            self._looked = now
            used += sum(map(children.resident_bytes, children.descendants(self._process.pid)))
        if used > self._limits.memory_bytes:
            raise ProcessFailed(f"the process used {used >> 20} MiB, more than {self._limits.memory_bytes >> 20}")


def _strategy_spec(resolved: Resolved) -> StrategySpec:
    strategy = resolved.strategy
    options, model = msgspec.to_builtins(resolved.options), msgspec.to_builtins(resolved.model)
    return StrategySpec(strategy.__module__, strategy.__qualname__, options, model)


class _ProcessPlayer(Player):
    """The host's side of a player that runs in the process."""

    def __init__(self, strategy: ProcessStrategy, number: int, table: Table) -> None:
        self._strategy = strategy
        self._number = number
        self._known_since = 0
        """Number of the process start that knows this player; 0: none."""
        self._events: list[str] = []
        self._table = {
            **msgspec.structs.asdict(table),
            "game": table.game.name,
            "rules": table.game.rules,
            "attributes": dict(table.attributes),
        }

    def observe(self, events: Sequence[str]) -> None:
        self._events += events

    def decide(self, view: View, legal: ActionArray, budget: Budget) -> Decision:
        strategy = self._strategy
        strategy.await_ready(budget.deadline)
        table = None if self._known_since == strategy.starts else self._table
        message = encoded(
            Ask(self._number, view.to_bytes(), legal.tobytes(), budget.deadline, budget.bank_ms, self._events, table)
        )
        # From here on the process knows the table and its events.
        self._events = []
        self._known_since = strategy.starts
        return strategy.ask(message, budget.deadline)

    def close(self) -> None:
        if self._known_since == self._strategy.starts:
            self._strategy.forget(self._number)
