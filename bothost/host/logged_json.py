"""What plugins and lobbies gave, as JSON: for the log, and on its way from a process."""

from __future__ import annotations

from typing import Any

import msgspec

from bothost.strategy import MAX_STATS_BYTES

as_json = msgspec.json.Encoder(enc_hook=repr).encode
"""JSON of any value. What JSON does not have is written as ``repr`` shows it."""


def stats_as_json(stats: Any) -> bytes:
    """A plugin's statistics as JSON, or why they are none."""
    try:
        text = as_json(stats)
    except Exception as error:  # a plugin's objects may raise anything
        return as_json({"error": f"not written, because they are no JSON: {type(error).__name__}"})
    if len(text) > MAX_STATS_BYTES:
        return as_json({"error": f"not written, because they have {len(text)} bytes, more than {MAX_STATS_BYTES}"})
    return text
