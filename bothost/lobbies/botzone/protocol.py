"""The HTTP side of Botzone's local AI: addresses, headers, and the text that a poll brings.

The address ``…/api/USER/SECRET/localai`` is itself the secret: no error quotes it, and nothing logs it.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec

VERBS = ("localai", "runmatch", "abortmatch")
MATCH_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")
"""What may stand in a header's name."""
MOST = 1000
"""Matches in one poll; more are not read."""


class BadAnswer(ValueError):
    """A body that is not what the protocol says."""


class Finished(msgspec.Struct, frozen=True):
    """A match that is over; without scores it was aborted."""

    match: str
    slot: int
    scores: tuple[float, ...]


class Polled(msgspec.Struct, frozen=True):
    """What a poll brought: (match, request) pairs, and matches that are over."""

    requests: tuple[tuple[str, str], ...] = ()
    finished: tuple[Finished, ...] = ()
    odd: tuple[str, ...] = ()
    """Lines that make no sense."""


def polled(body: bytes) -> Polled:
    """The body of a poll: ``m n``, m × (match, request), n × ``match slot p s0 … s(p−1)``. Raises BadAnswer.

    What is there is read even where less is there than the first line says.
    """
    lines = [line.strip() for line in body.decode(errors="replace").splitlines()]
    try:
        wanted, ended = map(int, lines[0].split())
    except (IndexError, ValueError):
        raise BadAnswer("a poll begins with two numbers") from None
    if not (0 <= wanted <= MOST and 0 <= ended <= MOST):
        raise BadAnswer(f"{wanted} requests and {ended} ends are more than can be")
    requests, finished, odd = [], [], []
    for at in range(1, 2 * wanted, 2):
        match, request, *_ = *lines[at : at + 2], "", ""
        if MATCH_ID.fullmatch(match) and request:
            requests.append((match, request))
        else:
            odd.append(f"{match} {request}")
    for line in lines[2 * wanted + 1 : 2 * wanted + 1 + ended]:
        over = _finished(line.split())
        if over is None:
            odd.append(line)
        else:
            finished.append(over)
    return Polled(tuple(requests), tuple(finished), tuple(odd))


def _finished(words: list[str]) -> Finished | None:
    try:
        match, slot, players = words[0], int(words[1]), int(words[2])
        scores = tuple(float(word) for word in words[3:])
    except (IndexError, ValueError):
        return None
    if not MATCH_ID.fullmatch(match) or len(scores) != players or any(abs(score) > 1e9 for score in scores):
        return None
    return Finished(match, slot, scores)


def fits_header(text: str) -> bool:
    """Whether a text can be an answer: a line of ASCII, because it goes into a header."""
    return text.isascii() and text.isprintable()


def answer_header(match: str, text: str) -> tuple[str, str]:
    """The header that answers a match. Raises ValueError for a text that is no line of ASCII."""
    if not fits_header(text):
        raise ValueError("an answer is one line of ASCII")
    return f"X-Match-{match}", text


def address(url: str, name: str, token: str) -> str:
    """The API's address up to the last slash, from what is configured. Raises ValueError, whose text quotes nothing.

    ``token`` is the whole address that Botzone shows, or ``USER/SECRET``, or the secret alone, where ``name`` is the
    user's id.
    """
    if re.search(r"/api/[^/]+/[^/]+", urlsplit(url).path):
        raise ValueError("the lobby's url holds the secret: put the whole address into the account's token")
    if token.startswith(("http://", "https://")):
        parts = urlsplit(token)
        path = parts.path.rstrip("/")
        for verb in VERBS:
            path = path.removesuffix("/" + verb)
        return urlunsplit((parts.scheme, parts.netloc, path, "", ""))
    who = token.strip("/") if "/" in token else f"{name}/{token}"
    if not re.fullmatch(r"[^/?#\s]+/[^/?#\s]+", who) or not token:
        raise ValueError("the token is the address that Botzone shows, or USER/SECRET")
    parts = urlsplit(url)
    path = parts.path.rstrip("/")
    return urlunsplit((parts.scheme, parts.netloc, f"{path.removesuffix('/api')}/api/{who}", "", ""))


def run_headers(
    game: str, players: list[str], *, simple: bool, time_limit_s: float, initdata: Any
) -> tuple[tuple[str, str], ...]:
    """The headers that order a match. Raises ValueError where they cannot be said."""
    headers = [("X-Game", game), *((f"X-Player-{slot}", player) for slot, player in enumerate(players))]
    if initdata is not None:
        text = initdata if isinstance(initdata, str) else msgspec.json.encode(initdata).decode()
        headers.append(("X-Initdata", text))
    headers += [("X-UseSimpleIO", "true" if simple else "false"), ("X-Timelimit", f"{time_limit_s:g}")]
    for name, value in headers:
        if not value.isascii() or not value.isprintable():
            raise ValueError(f"{name} is one line of ASCII")
    return tuple(headers)
