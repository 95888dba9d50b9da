"""Who may log in: account names and the digests of their tokens."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping

from bothost.errors import ConfigError
from bothost.lobby_server.settings import check_accounts


class Accounts:
    """Accounts may be added and removed while the lobby runs."""

    def __init__(self, tokens: Mapping[str, str]) -> None:
        self._digests = {name: _digest(token) for name, token in tokens.items()}

    def add(self, name: str, token: str) -> None:
        """Raises ConfigError for an invalid name or token."""
        if name in self._digests:
            raise ConfigError(f"there is an account {name!r} already", key="lobby_server.tokens")
        check_accounts({name: token})
        self._digests[name] = _digest(token)

    def remove(self, name: str) -> None:
        self._digests.pop(name, None)

    def of_token(self, token: str) -> str | None:
        """The account of a token. The time this takes does not depend on the tokens."""
        digest = _digest(token)
        found = None
        for name, known in self._digests.items():
            if hmac.compare_digest(digest, known):
                found = name
        return found


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
