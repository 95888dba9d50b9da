"""The statistics of a decision as JSON: for the log, and on their way from a process."""

from __future__ import annotations

from typing import Any

import msgspec

from bothost.strategy import MAX_STATS_BYTES

_json = msgspec.json.Encoder(enc_hook=repr).encode


def written(stats: Any) -> bytes:
    """A plugin's statistics as JSON, or why they are none."""
    try:
        text = _json(stats)
    except Exception as error:  # a plugin's objects may raise anything
        return _json({"error": f"not written, because they are no JSON: {type(error).__name__}"})
    if len(text) > MAX_STATS_BYTES:
        return _json({"error": f"not written, because they have {len(text)} bytes, more than {MAX_STATS_BYTES}"})
    return text
