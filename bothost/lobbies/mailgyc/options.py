"""What the configuration sets at mailgyc, and the names of the adapter's timers."""

from __future__ import annotations

import msgspec

HELLO, REJOIN = "hello", "rejoin"
"""Timers of the session: the lobby must answer; name our room again."""
READY, STALL, AWAY = "ready", "stall", "away"
"""Timers of a seat: say ready; look at the table's progress; our leaving is done."""
TIMERS = (HELLO, REJOIN, READY, STALL, AWAY)


class MailgycOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[lobby.options]`` of mailgyc."""

    level: int = 1
    """Where a wish names none. At level 1 the server's robots join a lone player after 10 s; at 2 and 3 they do not."""
    ready_after_s: float = 1.0
    """Delay before we say ready, after taking a seat and after a hand."""
    stall_s: float = 120.0
    """Leave a table without a move for so long: the lobby does not enforce its 40 s. 0: never."""
    wait_s: float = 600.0
    """Leave a table at which no hand started for so long. 0: never."""
    answer_timeout_s: float = 10.0
    """How long logging in, greeting and coming back may each take."""
    pause_s: float = 1.0
    """Delay between the end of one socket and the next login. The lobby must first see the old socket end."""
