"""The HTTP protocol of Botzone's local AI: addresses, headers, and the text of a poll's answer.

The address ``…/api/USER/SECRET/localai`` contains the secret, so no error and no log entry quotes it.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec

VERBS = ("localai", "runmatch", "abortmatch")
MATCH_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")
"""Match ids that are safe in a header's name."""
MOST = 1000
"""Most matches that one poll may name."""
MAX_REQUEST = 4096
"""Characters of a request. A longer one is odd."""


class BadAnswer(ValueError):
    """A body that violates the protocol."""


class Finished(msgspec.Struct, frozen=True):
    """A match that is over; without scores it was aborted."""

    match: str
    slot: int
    scores: tuple[float, ...]


class Polled(msgspec.Struct, frozen=True):
    """A poll's answer: (match, request) pairs, and finished matches."""

    requests: tuple[tuple[str, str], ...] = ()
    finished: tuple[Finished, ...] = ()
    odd: tuple[str, ...] = ()
    """Lines that could not be parsed."""


def polled(body: bytes) -> Polled:
    """Parse the body of a poll: ``m n``, m × (match, request), n × ``match slot p s0 … s(p−1)``. Raises BadAnswer.

    If the body has fewer lines than the first line announces, the lines that are there are still read.
    """
    lines = [line.strip() for line in body.decode(errors="replace").splitlines()]
    try:
        wanted, ended = map(int, lines[0].split())
    except (IndexError, ValueError):
        raise BadAnswer("the first line of a poll is not two numbers") from None
    if not (0 <= wanted <= MOST and 0 <= ended <= MOST):
        raise BadAnswer(f"a poll announces {wanted} requests and {ended} ends; at most {MOST} are allowed")
    requests, finished, odd = [], [], []
    for at in range(1, 2 * wanted, 2):
        match, request, *_ = *lines[at : at + 2], "", ""
        if MATCH_ID.fullmatch(match) and 0 < len(request) <= MAX_REQUEST:
            requests.append((match, request))
        else:
            odd.append(f"{match} {request}"[:MAX_REQUEST])
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
    if not MATCH_ID.fullmatch(match) or len(scores) != players or not all(abs(score) <= 1e9 for score in scores):
        return None
    return Finished(match, slot, scores)


def fits_header(text: str) -> bool:
    """Whether a text can be the value of a header: one line of printable ASCII."""
    return text.isascii() and text.isprintable()


def answer_header(match: str, text: str) -> tuple[str, str]:
    """The header with our answer to a match. Raises ValueError if the text is not one line of ASCII."""
    if not fits_header(text):
        raise ValueError("an answer must be one line of ASCII")
    return f"X-Match-{match}", text


def address(url: str, name: str, token: str) -> str:
    """The API's address without the verb, from the configuration. Raises ValueError without quoting the address.

    ``token`` is the whole address that Botzone shows, or ``USER/SECRET``, or the secret alone, where ``name`` is the
    user's id.
    """
    if re.search(r"/api/[^/]+/[^/]+", urlsplit(url).path):
        raise ValueError("the lobby's url contains the secret: move the whole address to the account's token")
    if token.startswith(("http://", "https://")):
        parts = urlsplit(token)
        path = parts.path.rstrip("/")
        for verb in VERBS:
            path = path.removesuffix("/" + verb)
        return urlunsplit((parts.scheme, parts.netloc, path, "", ""))
    who = token.strip("/") if "/" in token else f"{name}/{token}"
    if not re.fullmatch(r"[^/?#\s]+/[^/?#\s]+", who) or not token:
        raise ValueError("the token must be the address that Botzone shows, or USER/SECRET")
    parts = urlsplit(url)
    path, scheme = parts.path.rstrip("/"), parts.scheme.replace("ws", "http", 1)
    return urlunsplit((scheme, parts.netloc, f"{path.removesuffix('/api')}/api/{who}", "", ""))


def run_headers(
    game: str, players: list[str], *, simple: bool, time_limit_s: float, initdata: Any
) -> tuple[tuple[str, str], ...]:
    """The headers that order a match. Raises ValueError for a value that does not fit into a header."""
    headers = [("X-Game", game), *((f"X-Player-{slot}", player) for slot, player in enumerate(players))]
    if initdata is not None:
        text = initdata if isinstance(initdata, str) else msgspec.json.encode(initdata).decode()
        headers.append(("X-Initdata", text))
    headers += [("X-UseSimpleIO", "true" if simple else "false"), ("X-Timelimit", f"{time_limit_s:g}")]
    for name, value in headers:
        if not fits_header(value):
            raise ValueError(f"{name} must be one line of ASCII")
    return tuple(headers)
