"""Report a logged hand of any game as JSON data: events, decisions, and their reasons."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from bothost.errors import StoreError
from bothost.rules.game import Game, Json, View
from bothost.store.logged_games import GameCache
from bothost.store.query import players_of
from bothost.store.reader import Timeline, iter_views
from bothost.store.records import DecisionRecord, iso_time


def report(timeline: Timeline) -> Json:
    """Return everything about a hand, in the notation of its game if that is installed.

    ``problems`` lists defects of the log: a gap, or a logged view that the events do not produce.
    """
    record, end = timeline.hand.game, timeline.hand.end
    game = GameCache().get(record.game, record.rules)
    problems: list[str] = [] if game is not None else [f"the game {record.game} is not installed"]
    return {
        "id": record.game_id.hex(),
        "game": record.game,
        "rules": _parsed(record.rules),
        "lobby": record.lobby,
        "table": record.table,
        "hand": record.hand,
        "host": record.host,
        "account": record.account,
        "seat": record.seat,
        "players": players_of(record.players),
        "strategy": record.strategy,
        "strategy_version": record.strategy_version,
        "model_sha256": record.model_sha256,
        "seed": record.seed,
        "started": iso_time(record.started_us),
        "ended": None if end is None else iso_time(end.ended_us),
        "state": "live" if end is None else end.reason,
        "scores": timeline.hand.scores,
        "away": sorted(timeline.hand.away),
        "deal": None if game is None or (whole := revealed(game, timeline)) is None else whole[0],
        "events": [
            {"seq": stretch.seq + i, "event": line}
            for stretch in timeline.events
            for i, line in enumerate(stretch.events.split("\n"))
        ],
        "decisions": [_decision(row, game, timeline) for row in timeline.decisions],
        "chat": [{"at": iso_time(row.at_us), "player": row.player, "text": row.text} for row in timeline.chat],
        "problems": problems + (_check(timeline, game) if game is not None else []),
    }


def _decision(row: DecisionRecord, game: Game | None, timeline: Timeline) -> Json:
    view = _view(row, game)
    legal = np.frombuffer(row.legal, "<i4").tolist()
    return {
        "id": row.id.hex(),
        "seq": row.seq,
        "substep": row.substep,
        "attempt": row.attempt,
        "role": row.role,
        "phase": row.phase,
        "at": iso_time(row.at_us),
        "strategy": row.strategy,
        "strategy_version": row.strategy_version,
        "model_sha256": row.model_sha256,
        "legal": len(legal),
        "action": row.action,
        "notation": row.notation,
        "actions": _weighed(row, legal, view),
        "value": row.value,
        "stats": None if row.stats is None else _parsed(row.stats),
        "fallback": row.fallback,
        "budget_ms": row.budget_ms,
        "elapsed_ms": row.elapsed_ms,
        "outcomes": [{"kind": o.kind, "detail": o.detail} for o in timeline.outcomes.get(row.id, [])],
        "view": None if view is None else view.to_json(),
    }


def _weighed(row: DecisionRecord, legal: list[int], view: View | None) -> list[Json]:
    """The legal actions with their weights, sorted by probability, or else by value, descending."""
    policy, values = _floats(row.policy, len(legal)), _floats(row.action_values, len(legal))
    weights = policy if policy is not None else values
    order = range(len(legal)) if weights is None else sorted(range(len(legal)), key=lambda i: -weights[i])
    return [
        {
            "action": legal[i],
            "notation": row.notation if legal[i] == row.action else _notation(view, legal[i]),
            "probability": None if policy is None else policy[i],
            "value": None if values is None else values[i],
            "chosen": legal[i] == row.action,
        }
        for i in order
    ]


def _floats(blob: bytes | None, length: int) -> list[float] | None:
    if blob is None or len(blob) != 4 * length:
        return None
    return [float(value) for value in np.frombuffer(blob, "<f4")]


def _notation(view: View | None, action: int) -> str:
    try:
        return str(action) if view is None else view.notation(action)
    except ValueError:
        return str(action)


def _view(row: DecisionRecord, game: Game | None) -> View | None:
    try:
        return None if game is None else game.view_from_bytes(row.view)
    except ValueError:
        return None


def revealed(game: Game, timeline: Timeline) -> tuple[Json, list[tuple[int, int]]] | None:
    """The deal and all actions, (seat, action), of a hand; None if it was not revealed."""
    view = game.new_view(timeline.hand.game.seat)
    try:
        view.observe_all(timeline.lines())
        return view.record()
    except (StoreError, ValueError):
        return None


def _check(timeline: Timeline, game: Game) -> list[str]:
    """The problems of the log: gaps, and views that folding the events does not produce."""
    found = []
    try:
        for row, view in iter_views(game, timeline):
            if view.to_bytes() != row.view:
                found.append(f"the view logged at event {row.seq} does not follow from the events")
    except (StoreError, ValueError) as error:
        found.append(str(error))
    return found


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
