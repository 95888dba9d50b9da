"""Options of the embedded lobby."""

from __future__ import annotations

import msgspec


class EmbeddedOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[lobby.options]`` of the embedded lobby."""

    hello_timeout_s: float = 10.0
    """How long the lobby may take to answer our hello."""
