"""The lobby's accounts: names and digests of tokens."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping

from bothost.errors import ConfigError
from bothost.lobby_server.settings import check_accounts


class Accounts:
    """The accounts. They may be added and removed while the lobby runs."""

    def __init__(self, tokens: Mapping[str, str]) -> None:
        self._digests = {name: _digest(token) for name, token in tokens.items()}

    def __contains__(self, name: str) -> bool:
        return name in self._digests

    def add(self, name: str, token: str) -> None:
        """Add an account. Raises ConfigError for an invalid or used name or token."""
        if name in self._digests:
            raise ConfigError(f"the account {name!r} exists already", key="lobby_server.tokens")
        check_accounts({name: token})
        self._digests[name] = _digest(token)

    def remove(self, name: str) -> None:
        self._digests.pop(name, None)

    def of_token(self, token: str) -> str | None:
        """Return the account of a token, or None. Takes the same time for every token."""
        digest = _digest(token)
        found = None
        for name, known in self._digests.items():
            if hmac.compare_digest(digest, known):
                found = name
        return found


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
