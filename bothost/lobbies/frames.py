"""What adapters share about frames."""

from __future__ import annotations

from bothost.messages import Unknown

MAX_LOGGED = 2000
"""Characters of a frame that is logged as not understood."""


def unknown(raw: str | bytes) -> Unknown:
    """A frame that the adapter does not understand, as it is logged."""
    text = raw if isinstance(raw, str) else raw.decode(errors="replace")
    return Unknown(text[:MAX_LOGGED])
