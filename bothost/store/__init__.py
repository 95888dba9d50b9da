"""The database: what is logged, how it gets in, how it is read."""

from bothost.store.decision_log import DecisionLog, LogStats
from bothost.store.records import (
    DecisionRecord,
    EventsRecord,
    GameEndRecord,
    GameRecord,
    LoggedMove,
    OutcomeRecord,
    Record,
    SnapshotRecord,
)
from bothost.store.store import Store

__all__ = [
    "DecisionLog",
    "DecisionRecord",
    "EventsRecord",
    "GameEndRecord",
    "GameRecord",
    "LogStats",
    "LoggedMove",
    "OutcomeRecord",
    "Record",
    "SnapshotRecord",
    "Store",
]
