"""The journal of a match: JSON lines, one deal each. An interrupted match continues from it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import msgspec

from bothost.arena.match import DealResult
from bothost.arena.spec import MatchSpec
from bothost.errors import UsageError
from bothost.locking import lock_if_possible
from bothost.rules.game import Game

OTHER = "name another file with --journal, or another folder with --out"


class Header(msgspec.Struct, frozen=True):
    """The identity of a match. Results of different matches are never mixed."""

    game: str
    rules: str
    """JSON object with all options."""
    contestants: tuple[str, ...]
    """Addresses with the model's sha256, if there is one, and the given options."""
    seed: int
    ms: float | None
    format: int = 1
    luck_adjusted: bool = False

    @classmethod
    def of(cls, spec: MatchSpec, game: Game, contestants: tuple[str, ...], seed: int) -> Header:
        """The header of a match that is played as ``spec`` says."""
        rules = msgspec.json.encode(game.rules).decode()
        return cls(game.name, rules, contestants, seed, spec.ms, luck_adjusted=spec.luck_adjusted)


class Journal:
    """Appends finished deals to a file and reads those of an earlier run. Without a path it does nothing."""

    def __init__(self, path: Path | None, header: Header) -> None:
        self.path = path
        self.header = header
        self._file: IO[bytes] | None = None

    def open(self) -> list[DealResult]:
        """Deals in the file.

        Raises UsageError if it is damaged or belongs to another match, or another process writes to it.
        """
        if self.path is None:
            return []
        self.path.parent.mkdir(parents=True, exist_ok=True)
        file = self._file = self.path.open("a+b")
        try:
            lock_if_possible(file.fileno(), self.path)
        except BlockingIOError:
            advice = f"wait until that one ends, or {OTHER}"
            raise UsageError(f"another match is writing to {self.path} now", advice=advice) from None
        if not file.tell():
            file.write(msgspec.json.encode(self.header) + b"\n")
            return []
        file.seek(0)
        try:
            header, deals = read(file)
        except ValueError:
            raise UsageError(f"{self.path} is not a match journal", advice=OTHER) from None
        if header != self.header:
            raise UsageError(
                f"{self.path} holds another match ({header.game}: {' against '.join(header.contestants)}, "
                f"seed {header.seed})",
                advice=f"{OTHER}, or delete this one",
            )
        start, done = file.tell(), list(deals)
        file.truncate(done[-1][1] if done else start)  # without a line that was cut
        return [deal for deal, _ in done]

    def append(self, result: DealResult) -> None:
        if self._file is not None:
            self._file.write(msgspec.json.encode(result) + b"\n")
            self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._file = None


def read(file: IO[bytes]) -> tuple[Header, Iterator[tuple[DealResult, int]]]:
    """The header of a journal, and its deals for figures, each with the offset after it. They end where a line was cut.

    Raises ValueError for a file without a header. The deals raise UsageError at a damaged line before others.
    """
    first = file.readline()
    if not first.endswith(b"\n"):
        raise ValueError("its first line was cut")
    return msgspec.json.decode(first, type=Header), _deals(file)


def _deals(file: IO[bytes]) -> Iterator[tuple[DealResult, int]]:
    for number, line in enumerate(file, 2):
        if (deal := _deal(line)) is None:
            if any(map(_deal, file)):
                advice = "remove that line: its deal is then played again"
                raise UsageError(f"line {number} of {file.name} is damaged", advice=advice)
            return
        yield deal.for_figures(), file.tell()


def _deal(line: bytes) -> DealResult | None:
    try:
        return msgspec.json.decode(line, type=DealResult) if line.endswith(b"\n") else None
    except ValueError:
        return None
