"""Options of ``exec``, as a route sets them."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from bothost.exec_protocol import START_S

Milliseconds = Annotated[float, Meta(ge=1, le=3_600_000)]


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of a program."""

    command: Annotated[tuple[str, ...], Meta(min_length=1)]
    """The program and its arguments; set by the address ``exec:COMMAND``."""
    pool: Annotated[int, Meta(ge=0, le=1024)] = 0
    """Number of processes of each worker thread (``limits.worker_threads``) that share its tables. 0: one process per
    table."""
    environment: tuple[Annotated[str, Meta(pattern=r"^(?!BOTHOST_)[A-Za-z_][A-Za-z0-9_]*\Z")], ...] = ()
    """Names of additional environment variables for the program, such as ``["OPENAI_API_KEY"]``."""
    memory_mb: Annotated[int, Meta(ge=0, le=1 << 20)] = 0
    """The program is killed if its resident memory, with that of its descendants, exceeds this. 0: no limit."""
    sandbox: Literal["none", "bwrap"] = "none"
    """``bwrap``: run the program in bubblewrap, without network and without access to other processes. It can only
    write to its own /tmp and /dev/shm. It can read the system and ``cwd``, but no home, /etc/bothost, /media, /mnt,
    /srv or /var. So give it its own ``cwd``."""
    cwd: str | None = None
    """Working folder. Relative paths start at the configuration's folder, which is also the default."""
    start_ms: Milliseconds = 1000 * START_S
    """Time limit for the program's hello."""
    hang_ms: Milliseconds = 5_000.0
    """If the program writes nothing for this long after a missed deadline, it counts as hanging."""
    stop_ms: Milliseconds = 1_000.0
    """Time limit for its exit after its stdin is closed."""
    unclocked_ms: Milliseconds = 60_000.0
    """Time per decision at tables without a clock."""
    max_restarts: Annotated[int, Meta(ge=0, le=1000)] = 3
    """Most restarts within ``restart_window_s``. After that the strategy fails at once."""
    restart_window_s: Annotated[float, Meta(gt=0, le=86400)] = 60.0
    """See ``max_restarts``."""
    max_line_bytes: Annotated[int, Meta(ge=4096, le=1 << 28)] = 1 << 20
    """The program is killed if it writes a longer line, or leaves as much input unread."""
