"""bothost: a host for game bots. You write ``decide()``, it does everything else.

This module is the public API for plugins, beside :mod:`bothost.rules`, :mod:`bothost.training` and
:mod:`bothost.inference`. It imports neither torch nor the command line.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bothost.errors import BothostError, ConfigError, ModelError, PluginError, ProtocolError
    from bothost.hookspecs import API_VERSION, Board, DecisionMade, LazyClass, TableClosed, hookimpl
    from bothost.reproduction import (
        Contestant,
        PlayMatch,
        RecordGames,
        Reproduced,
        Reproduction,
        ReproductionRun,
        ResultTable,
    )
    from bothost.strategy import (
        Budget,
        Decision,
        Evaluator,
        Execution,
        LoggedGames,
        LoggedStep,
        Model,
        Player,
        PlayerLog,
        PlayerMove,
        ReportProgress,
        Request,
        Strategy,
        Table,
        Trainer,
        TrainingRun,
        Trajectory,
    )

__version__ = "0.1.0"

__all__ = [
    "API_VERSION",
    "Board",
    "BothostError",
    "Budget",
    "ConfigError",
    "Contestant",
    "Decision",
    "DecisionMade",
    "Evaluator",
    "Execution",
    "LazyClass",
    "LoggedGames",
    "LoggedStep",
    "Model",
    "ModelError",
    "PlayMatch",
    "Player",
    "PlayerLog",
    "PlayerMove",
    "PluginError",
    "ProtocolError",
    "RecordGames",
    "ReportProgress",
    "Reproduced",
    "Reproduction",
    "ReproductionRun",
    "Request",
    "ResultTable",
    "Strategy",
    "Table",
    "TableClosed",
    "Trainer",
    "TrainingRun",
    "Trajectory",
    "__version__",
    "hookimpl",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Import a name when it is first used: what needs none of them, as most commands, starts sooner."""
        homes = ("errors", "hookspecs", "strategy", "reproduction")
        if name in (*homes, "rules"):
            return import_module(f"bothost.{name}")
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        home = next(module for each in homes if hasattr(module := import_module(f"bothost.{each}"), name))
        globals()[name] = found = getattr(home, name)
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
