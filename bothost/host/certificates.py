"""Which certificates of lobbies are trusted: the system's, or those that ``$SSL_CERT_FILE`` names."""

from __future__ import annotations

import functools
import ssl
import time

TRUST_S = 3600.0
"""Interval at which the certificates are read again."""
ADVICE = "renew the lobby's certificate, or name the file of its own authority in $SSL_CERT_FILE"


def trusted() -> ssl.SSLContext:
    """A context for connections to lobbies. It is cached, because reading certificates blocks the loop for 20 ms."""
    return _read(int(time.monotonic() // TRUST_S))


@functools.lru_cache(maxsize=1)
def _read(_hour: int) -> ssl.SSLContext:
    context = ssl.create_default_context()
    paths = ssl.get_default_verify_paths()
    if paths.cafile is None and paths.capath is None:  # as in Python's installer for macOS
        import certifi

        context.load_verify_locations(certifi.where())
    return context


def advice_for(problem: str, otherwise: str) -> str:
    """How to fix that a lobby cannot be reached: ``otherwise``, unless its certificate is not trusted."""
    return ADVICE if "CERTIFICATE_VERIFY_FAILED" in problem else otherwise
