"""Options of ``exec``, as a route sets them."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

Milliseconds = Annotated[float, Meta(ge=1, le=3_600_000)]


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of a program."""

    command: Annotated[tuple[str, ...], Meta(min_length=1)]
    """The program and its arguments; set by the address ``exec:COMMAND``."""
    pool: Annotated[int, Meta(ge=0, le=1024)] = 0
    """Processes that share the tables; 0: one process per table."""
    environment: tuple[Annotated[str, Meta(pattern=r"^(?!BOTHOST_)[A-Za-z_][A-Za-z0-9_]*$")], ...] = ()
    """Environment variables that it also gets, as in ``["OPENAI_API_KEY"]``."""
    memory_mb: Annotated[int, Meta(ge=0, le=1 << 20)] = 0
    """Resident memory above which it is ended, with that of the processes that it started; 0: no limit."""
    sandbox: Literal["none", "bwrap"] = "none"
    """``bwrap``: run it by bubblewrap. Then it has no network, sees no other process, and can write only to a /tmp of
    its own. It can read the system and ``cwd``, but no home folder: give it a ``cwd`` of its own."""
    cwd: str | None = None
    """Folder that it runs in. Relative paths, and the default, start at the configuration's folder."""
    start_ms: Milliseconds = 10_000.0
    """Time to say hello."""
    hang_ms: Milliseconds = 5_000.0
    """Silence after a missed deadline that counts as a hang."""
    stop_ms: Milliseconds = 1_000.0
    """Time to exit once its stdin is closed."""
    unclocked_ms: Milliseconds = 60_000.0
    """Time per decision at tables without a clock."""
    max_restarts: Annotated[int, Meta(ge=0, le=1000)] = 3
    """Restarts within ``restart_window_s``; then the strategy fails without trying."""
    restart_window_s: Annotated[float, Meta(gt=0, le=86400)] = 60.0
    max_line_bytes: Annotated[int, Meta(ge=4096, le=1 << 28)] = 1 << 20
    """A longer line ends the program; so does as much unread input."""
