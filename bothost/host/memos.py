"""Writes adapters' memos in a thread. While the database is unreachable, the newest memo of each account waits."""

from __future__ import annotations

import threading
from collections.abc import Callable

import structlog

from bothost.errors import StoreUnavailable
from bothost.messages import Json
from bothost.store.leases import AccountKey

_log = structlog.get_logger("bothost.host")

RETRY_S = 1.0


class MemoWriter:
    """``write(lobby, account, memo)`` replaces an account's memo. It is synchronous and may raise anything."""

    def __init__(self, write: Callable[[str, str, Json], None], *, retry_s: float = RETRY_S) -> None:
        self._write = write
        self._retry_s = retry_s
        self._newest: dict[AccountKey, Json] = {}  # guarded by _changed, as is the next
        self._closing = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="memos", daemon=True)
        self._thread.start()

    def remember(self, key: AccountKey, memo: Json) -> None:
        """Queue a memo. It replaces an older one that still waits."""
        with self._changed:
            self._newest[key] = memo
            self._changed.notify()

    def close(self) -> None:
        """Write the waiting memos. Those that cannot be written are lost, and the log reports it."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._newest or self._closing)
                if not self._newest:
                    return
                key = next(iter(self._newest))
                memo = self._newest.pop(key)
            if not self._written(key, memo):
                with self._changed:
                    self._newest.setdefault(key, memo)
                    self._changed.wait_for(lambda: self._closing, self._retry_s)

    def _written(self, key: AccountKey, memo: Json) -> bool:
        """Try to write. Returns False if the database is unreachable and we can try again."""
        try:
            self._write(*key, memo)
        except StoreUnavailable as error:
            if not self._closing:
                return False
            _log.error("memo_lost", lobby=key[0], account=key[1], error=str(error), advice=error.advice)
        except Exception:
            _log.exception("memo_lost", lobby=key[0], account=key[1])
        return True
