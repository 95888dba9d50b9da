"""Checks of every request, and the headers of every response.

A browser sends requests on behalf of any page that it shows. So a request must name a host of ours (against DNS
rebinding), and a request that changes something must come from our own page (against forged requests).
"""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
BODY_BYTES = 64 * 1024
"""Most bytes of a request's body."""
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def host_of(header: str) -> str:
    """Return the host name of a ``Host`` header without its port, or ""."""
    try:
        return (urlsplit(f"//{header}").hostname or "").lower()
    except ValueError:
        return ""


def _is_ours(origin: str, host: str) -> bool:
    """Whether an ``Origin`` header names the same server as the ``Host`` header."""
    try:
        return urlsplit(origin).netloc == host
    except ValueError:
        return False


class Guard:
    """ASGI middleware: refuses foreign hosts, foreign origins and large bodies; adds the security headers."""

    def __init__(self, app: ASGIApp, *, hosts: Collection[str] = LOOPBACK) -> None:
        """``hosts``: the host names by which browsers reach this server."""
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # there are no websockets here
            return
        headers = Headers(scope=scope)
        send = self._protected(send, private=scope["path"].startswith("/api/"))
        problem = self._problem(scope["method"], headers)
        if problem is not None:
            status, text = problem
            await JSONResponse({"error": text}, status)(scope, receive, send)
            return
        await self._app(scope, _limited(receive), send)

    def _problem(self, method: str, headers: Headers) -> tuple[int, str] | None:
        """Status and reason of a refusal; None where the request may pass."""
        host = headers.get("host", "")
        if host_of(host) not in self._hosts:
            return 421, f"this server does not answer for the host {host_of(host)!r}: see web.hosts"
        if method not in ("GET", "HEAD"):
            if not _is_ours(headers.get("origin", ""), host):
                return 403, "the request does not come from a page of this server"
            if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
                return 415, "the body must be JSON"
        try:
            length = int(headers.get("content-length", "0"))
        except ValueError:
            return 400, "the content length is not a number"
        return (413, f"the body is larger than {BODY_BYTES} bytes") if length > BODY_BYTES else None

    def _protected(self, send: Send, *, private: bool) -> Send:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store" if private else "no-cache")
            await send(message)

        return send_with_headers


def _limited(receive: Receive) -> Receive:
    """The body in parts, cut off where it grows too large: a client may lie about its length or not state it."""
    seen = 0

    async def receive_limited() -> Message:
        nonlocal seen
        message = await receive()
        if message["type"] == "http.request":
            seen += len(message.get("body", b""))
            if seen > BODY_BYTES:
                return {"type": "http.disconnect"}
        return message

    return receive_limited
