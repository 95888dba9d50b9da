"""Explanations of decisions, as strategies give them in ``Decision.stats``, in lines for people.

``stats["reasons"]`` is a list of ``{"features": [names], "weight": float}``, the weightiest first: combinations of
features that hold together, and how much they speak for the action (negative: for another one).
"""

from __future__ import annotations

import json
import math
from typing import Any

from bothost.cli.output import printable

KEY = "reasons"


def explanation(stats: Any, top: int) -> list[str]:
    """The weightiest reasons, aligned, one a line; empty where ``stats`` hold none."""
    found = [reason for reason in map(_reason, _listed(stats)) if reason is not None]
    width = max((len(features) for features, _ in found[:top]), default=0)
    lines = [
        f"{'and' if i else 'because':<8}{features:<{width}}  {weight:+.2f}"
        for i, (features, weight) in enumerate(found[:top])
    ]
    return [*lines, *([f"… {len(found) - top} more reasons"] if len(found) > top else [])]


def remarks(stats: Any) -> str:
    """Return the other statistics in one line."""
    if not isinstance(stats, dict):
        return printable(stats)
    explained = any(_reason(reason) is not None for reason in _listed(stats))
    rest = {name: value for name, value in stats.items() if not (explained and name == KEY)}
    return printable(
        ", ".join(f"{name}: {value if isinstance(value, str) else json.dumps(value)}" for name, value in rest.items())
    )


def _listed(stats: Any) -> list[Any]:
    listed = stats.get(KEY) if isinstance(stats, dict) else None
    return listed if isinstance(listed, list) else []


def _reason(reason: Any) -> tuple[str, float] | None:
    """Its features and its weight; None where it is no reason: a plugin may have logged anything."""
    if not isinstance(reason, dict):
        return None
    features, weight = reason.get("features"), reason.get("weight")
    if (
        not isinstance(features, list)
        or not features
        or isinstance(weight, bool)
        or not isinstance(weight, int | float)
    ):
        return None
    return (" and ".join(map(printable, features)), float(weight)) if math.isfinite(weight) else None
