"""Lock files, so that two processes do not write one of them. Some file systems have no locks."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_NO_LOCKS = frozenset((errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS))


def lock_if_possible(file: int, path: Path) -> None:
    """Lock the open file at ``path`` until it is closed. Some file systems, as of networks, have no locks.

    Raises BlockingIOError if another process has locked it, and OSError if it cannot be locked for another reason.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            error.filename = str(path)
            raise


@contextmanager
def locked(folder: Path, *, wait: bool = False) -> Iterator[int]:
    """Lock a folder until it is left, and until the processes that inherit the descriptor have ended.

    Raises BlockingIOError if it is locked. ``wait``: wait for the lock instead.
    """
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield handle
    finally:
        os.close(handle)
