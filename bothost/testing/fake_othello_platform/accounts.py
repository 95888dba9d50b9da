"""Accounts and login tokens of the fake of othello-platform."""

from __future__ import annotations

import random
import time
from collections import deque

TOKEN_S = 15 * 60.0
LOGINS_PER_MINUTE = 10


class Accounts:
    """Passwords, tokens that expire, and the limit of logins a minute."""

    def __init__(self, rng: random.Random) -> None:
        self.passwords: dict[str, str] = {}
        self.ids: dict[str, int] = {}
        self._rng = rng
        self._tokens: dict[str, tuple[int, float]] = {}
        self._refresh: dict[str, int] = {}
        self._logins: deque[float] = deque()

    def add(self, name: str, password: str) -> int:
        self.passwords[name] = password
        self.ids[name] = len(self.ids) + 1
        return self.ids[name]

    def name(self, user: int | None) -> str | None:
        return next((name for name, number in self.ids.items() if number == user), None)

    def throttled(self) -> bool:
        """Count a login. Returns whether there were too many."""
        now = time.monotonic()
        while self._logins and self._logins[0] < now - 60.0:
            self._logins.popleft()
        if len(self._logins) >= LOGINS_PER_MINUTE:
            return True
        self._logins.append(now)
        return False

    def token(self, user: int) -> str:
        token = f"jwt-{user}-{self._rng.getrandbits(64):x}"
        self._tokens[token] = (user, time.monotonic() + TOKEN_S)
        return token

    def refresh_token(self, user: int) -> str:
        token = f"refresh-{user}-{self._rng.getrandbits(64):x}"
        self._refresh[token] = user
        return token

    def refreshed(self, token: str) -> int | None:
        """The user of a refresh token, which is valid once."""
        return self._refresh.pop(token, None)

    def of_header(self, authorization: str) -> int | None:
        """The user of a header ``Bearer TOKEN``."""
        return self.user_of(authorization.removeprefix("Bearer "))

    def user_of(self, token: str) -> int | None:
        user, until = self._tokens.get(token, (0, 0.0))
        return user if user and time.monotonic() < until else None
