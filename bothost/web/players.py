"""The names of people who play in the browser: a name belongs to the browser that used it first.

A cookie holds a key that only this browser knows, and the name that it used last, percent-encoded. The database keeps
the key's sha256 beside each name. So what a person played and consented to stays theirs, also after a restart of the
server.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import unicodedata
from urllib.parse import quote, unquote

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from bothost.config.names import is_visible
from bothost.errors import UsageError
from bothost.store import consent
from bothost.store.query import HandQuery
from bothost.store.reader import latest_hands
from bothost.store.store import Store
from bothost.web.opponents import LOBBY

COOKIE = "bothost_player"
COOKIE_S = 365 * 86_400
MAX_NAME = 32
"""Characters of a name."""
LONGEST = 4 * MAX_NAME
"""Characters of a name before accents and letters are joined."""
_BOT = re.compile(r"robot-.*|.*-[0-9a-f]{8}-[0-9]+")
"""Names that the lobby and :func:`bothost.web.opponents.bots_of` give to bots."""


class Browser(msgspec.Struct, frozen=True):
    """What the cookie of a browser says. Nothing of it is proven."""

    key: str = ""
    name: str = ""

    @classmethod
    def of(cls, request: Request) -> Browser:
        """The browser that asks; one without a key where it has none."""
        key, _, name = request.cookies.get(COOKIE, "").partition(".")
        return cls(key, unquote(name))

    def remember(self, request: Request, answer: Response) -> None:
        """Let the browser keep its key and its name."""
        secure = request.url.scheme == "https"
        value = f"{self.key}.{quote(self.name)}"
        answer.set_cookie(COOKIE, value, max_age=COOKIE_S, httponly=True, samesite="strict", secure=secure)


def one_form(name: str) -> str:
    """A name in the form NFC. A long one stays as it is: many accents on one letter would take seconds."""
    return unicodedata.normalize("NFC", name) if len(name) <= LONGEST else name


def is_name(name: str) -> bool:
    """Whether it has only letters, marks and digits of any language and _ . -, and begins with a letter or a digit."""
    kinds = [unicodedata.category(character)[0] for character in name]
    plain = all(kind in "LMN" or character in "_.-" for kind, character in zip(kinds, name, strict=True))
    return is_visible(name, MAX_NAME) and plain and kinds[0] in "LN"


class Names:
    """Which browser a name belongs to."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def claim(self, browser: Browser, name: str, *, trusted: bool) -> Browser:
        """Take a name that is free, or that is this browser's; returns the browser with it.

        ``trusted``: may take a name under which a person played before names had owners. Raises UsageError.
        """
        if not is_name(name):
            advice = f"use 1 to {MAX_NAME} letters and digits of any language, and _ . -"
            raise UsageError(f"{name[:40]!r} is no name", advice=advice)
        if _BOT.fullmatch(name):
            raise UsageError(f"{name} is a name for bots", advice="choose another name")
        taken = UsageError(f"the name {name} belongs to another browser", advice="choose another name")
        key = browser.key or secrets.token_urlsafe(32)
        known = self._store.memo(LOBBY, name)
        if not known and not trusted and latest_hands(self._store, HandQuery(lobbies=(LOBBY,), players=(name,)), 1):
            raise taken
        owner = known or self._store.remember_first(LOBBY, name, {"browser": _digest(key)})
        if not _owned(owner.get("browser"), key):
            raise taken
        return Browser(key, name)

    def agree(self, name: str, *, granted: bool = True) -> None:
        """Record that a person agreed to be imitated, or takes that back."""
        reason = f"{'agreed' if granted else 'taken back'} in the browser"
        consent.record(self._store, LOBBY, name, granted=granted, reason=reason)

    def proven(self, browser: Browser) -> str | None:
        """The name that a browser says is its own, if it is."""
        if not browser.key or not is_name(browser.name):
            return None
        owner = self._store.memo(LOBBY, browser.name).get("browser")
        return browser.name if _owned(owner, browser.key) else None


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def _owned(owner: object, key: str) -> bool:
    return isinstance(owner, str) and hmac.compare_digest(owner.encode(), _digest(key).encode())
