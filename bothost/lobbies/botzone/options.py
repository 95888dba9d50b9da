"""Options and timers of botzone."""

from __future__ import annotations

import msgspec

HELLO, AGAIN, TAKEN, GATHER, START = "hello", "again", "taken", "gather", "start"
"""Timers: a standing poll counts as logged in; poll again; a standing poll has delivered its answers; poll without the
host's decisions; the next match may be ordered."""
STALL = "stall:"
"""Prefix of a match's timer."""


class BotzoneOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[lobby.options]`` of botzone."""

    time_limit_s: float = 10.0
    """Time per move. We order matches with it, and assume it for matches that people make."""
    hello_s: float = 3.0
    """A poll that stands for so long is logged in."""
    poll_s: float = 120.0
    """How long a poll may stand."""
    retry_s: float = 5.0
    """Delay after a poll that failed."""
    start_every_s: float = 5.0
    """Least time between two matches that we order."""
    stall_s: float = 1800.0
    """Leave a match that was silent for so long."""
