"""Options of the embedded lobby."""

from __future__ import annotations

import msgspec

from bothost.lobbies.base import PositiveSeconds


class EmbeddedOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[lobby.options]`` of the embedded lobby."""

    hello_timeout_s: PositiveSeconds = 10.0
    """How long the lobby may take to answer our hello."""
