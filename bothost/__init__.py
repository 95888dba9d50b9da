"""bothost: a host for game bots. You write ``decide()``, it does everything else.

This module is the public API for plugins, beside :mod:`bothost.rules`, :mod:`bothost.training` and
:mod:`bothost.inference`. It imports neither torch nor the command line.
"""

from bothost.errors import BothostError, ConfigError, ModelError, PluginError, ProtocolError
from bothost.hookspecs import API_VERSION, Board, DecisionMade, LazyClass, TableClosed, hookimpl
from bothost.strategy import (
    Budget,
    Contestant,
    Decision,
    Evaluator,
    Execution,
    LoggedGames,
    LoggedStep,
    Model,
    Player,
    PlayerLog,
    PlayerMove,
    PlayMatch,
    RecordGames,
    ReportProgress,
    Reproduced,
    Reproduction,
    ReproductionRun,
    Request,
    ResultTable,
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
