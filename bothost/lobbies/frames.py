"""Helpers that several adapters share."""

from __future__ import annotations

import re

import msgspec

from bothost.config import nearest
from bothost.messages import Json, SocketClosed, SocketFailed, Unknown

NOT_JSON = (msgspec.DecodeError, UnicodeError, RecursionError)
"""What msgspec raises for data that is no JSON of the wanted type."""
MAX_LOGGED = 2000
"""Characters of a frame that is logged as not understood."""
MAX_CHAT = 300
"""Characters of a chat message."""
_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours and cursor movements
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"  # titles, links and the like
    r"|\x1b[ -/]*[0-~]?"
)


class BadFrame(ValueError):
    """An invalid frame, or one of an unknown type. It does not quote a frame that may contain a secret."""


class Mismatch(ValueError):
    """A frame or request that contradicts earlier ones."""


def plain_text(text: str, most: int = MAX_CHAT) -> str:
    """One line of printable text: without escape sequences, control characters and marks that reorder text."""
    kept = _ESCAPES.sub("", text[: 16 * most])
    return " ".join("".join(c if c.isprintable() else " " if c.isspace() else "" for c in kept).split())[:most]


def unknown_attribute(attributes: Json, schema: type[msgspec.Struct]) -> str:
    """Why a lobby refuses a wish with these attributes; empty if it knows them all."""
    known = schema.__struct_fields__
    strange = attributes.keys() - known
    return f"a wish has no attribute {min(strange)!r}; {nearest(min(strange), sorted(known))}" if strange else ""


def unknown(raw: str | bytes) -> Unknown:
    """The event that reports a frame that the adapter does not understand."""
    text = raw if isinstance(raw, str) else raw.decode(errors="replace")
    return Unknown(text[:MAX_LOGGED])


def loss_reason(item: SocketClosed | SocketFailed) -> str:
    """Why a socket was lost, for ``Disconnected``."""
    if isinstance(item, SocketFailed):
        where = f"HTTP {item.status}" if item.status else "no connection"
    else:
        where = f"closed with {item.code}"
    return f"{where}: {item.reason}" if item.reason else where
