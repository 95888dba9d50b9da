"""The classes with which a plugin repeats an experiment: ``bothost reproduce NAME`` runs a :class:`Reproduction`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol

import msgspec

from bothost.strategy import NoOptions, PlayerLog, ReportProgress


class Contestant(msgspec.Struct, frozen=True):
    """One side of a match."""

    address: str
    """``NAME``, ``NAME:ALIAS`` or ``exec:COMMAND``."""
    options: Mapping[str, Any] = {}
    weights: Path | None = None
    """Folder with the ``manifest.json`` of a training, in which the alias (default: ``champion``) is resolved. None:
    it is resolved in the registry and the strategy's package."""


class PlayMatch(Protocol):
    """Plays a match on duplicate deals and returns the figures of ``bothost arena --json``.

    With ``each_deal`` the result also has ``scores``: contestant A's share of wins in each deal. A match that an
    earlier run in the same folder started is continued.
    """

    def __call__(
        self,
        game: str,
        contestants: Sequence[Contestant],
        *,
        deals: int,
        seed: int = 0,
        ms: float | None = None,
        rules: Mapping[str, Any] | None = None,
        each_deal: bool = False,
    ) -> dict[str, Any]: ...


class RecordGames(Protocol):
    """Plays hands between strategies and logs them in the run's folder, as a host does.

    Hands that an earlier run logged are not played again.
    """

    def __call__(
        self,
        game: str,
        players: Mapping[str, Contestant],
        *,
        hands: int,
        seed: int = 0,
        rules: Mapping[str, Any] | None = None,
        report: ReportProgress | None = None,
    ) -> PlayerLog:
        """Play the hands. ``players``: name → contestant. All play equally many hands and agree to be imitated."""
        ...


class ReproductionRun(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of one reproduction."""

    out: Path
    """Output folder. It exists, and may hold the files of an interrupted run."""
    play: PlayMatch
    record: RecordGames
    full: bool = False
    """Use the sizes of the source instead of sizes for two cores and a few minutes."""
    seed: int = 0
    workers: int = 1
    """Number of processes for parallel work."""
    command: str = ""
    """The command line, for the lineage of the models."""


class ResultTable(msgspec.Struct, frozen=True):
    """A table of results."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """Formatted cells; ``Reproduced.figures`` has the numbers."""


class Reproduced(msgspec.Struct, frozen=True, kw_only=True):
    """The results of a reproduction."""

    figures: Mapping[str, Any]
    """Name → number or other JSON value."""
    tables: tuple[ResultTable, ...]
    plots: tuple[str, ...] = ()
    """File names within ``ReproductionRun.out``."""
    notes: tuple[str, ...] = ()
    """Conditions of the run: sizes, machine, differences from the source."""


class Reproduction(ABC):
    """An experiment: a reproduction of a paper's tables, an ablation or a comparison."""

    name: ClassVar[str]
    """Name of the experiment, as in ``bothost reproduce NAME``."""
    Options: ClassVar[type[msgspec.Struct]] = NoOptions
    """Schema of the options, a frozen msgspec Struct that forbids unknown fields."""

    def __init__(self, options: Any) -> None:
        self.options = options

    @abstractmethod
    def run(self, run: ReproductionRun, report: ReportProgress) -> Reproduced:
        """Run the experiment and write its plots into ``run.out``. It must be repeatable when killed at any time.

        The command line prints the tables and writes them, with the figures, to ``results.md`` and ``results.json``.
        """
