"""The stdin and stdout protocol of a program on Botzone, seen from the program.

There are two kinds of input. The first line shows which:

- JSON, one line: ``{"requests": [...], "responses": [...]}``, the whole match so far; answered with
  ``{"response": …}``;
- simple IO, lines: the number n of the turn, then n requests and n − 1 responses in turn, then the program's saved
  ``data`` and ``globaldata`` (we save nothing); answered with the response on a line.

If the program then writes ``KEEP_RUNNING`` on a line of its own, it keeps running and gets only the next request, on
a line. Otherwise it is started again for each turn, with the whole match as input.

Source: the platform's wiki, page "Bot".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from bothost.lobbies.botzone import dialect as dialects
from bothost.lobbies.botzone.dialect import Dialect, Mismatch, OtherRules
from bothost.lobbies.botzone.games import of_request
from bothost.lobbies.frames import NOT_JSON

KEEP_RUNNING = ">>>BOTZONE_REQUEST_KEEP_RUNNING<<<"
MAX_TURNS = 2000


class Program:
    """One match. ``kind``: its game; None: recognise it from the first request."""

    def __init__(self, kind: type[Dialect] | None = None, rules: dict[str, Any] | None = None) -> None:
        self._kind = kind
        self._rules = rules or {}
        self._dialect: Dialect | None = None
        self._requests: list[Any] = []
        self._responses: list[Any] = []
        self._simple = False
        self._form: dialects.Form = "json"

    @property
    def dialect(self) -> Dialect:
        """Raises Mismatch before the first turn."""
        if self._dialect is None:
            raise Mismatch("the program has received no request yet")
        return self._dialect

    def read_turn(self, read_line: Callable[[], str]) -> bool:
        """Read the input of one turn. Returns False at the end of the input. Raises Mismatch."""
        line = read_line()
        while line and not line.strip():
            line = read_line()
        if not line:
            return False
        if not self._requests:
            self._first(line.strip(), read_line)
        else:
            self._next(line.strip())
        return True

    def _first(self, line: str, read_line: Callable[[], str]) -> None:
        if line.isascii() and line.isdigit():
            turns = int(line[:9])  # Python converts no number of thousands of digits
            if not 0 < turns <= MAX_TURNS:
                raise Mismatch(f"turn {turns} is not from 1 to {MAX_TURNS}")
            self._simple = True
            lines = [read_line().strip() for _ in range(2 * turns - 1)]
            requests: list[Any] = [self._decoded(text) for text in lines[::2]]
            responses: list[Any] = [dialects.decode(text)[0] for text in lines[1::2]]
        else:
            requests, responses = self._whole(line)
        self._take(requests, [_plain(response) for response in responses])

    def _whole(self, line: str) -> tuple[list[Any], list[Any]]:
        try:
            message = msgspec.json.decode(line)
        except NOT_JSON as error:
            raise Mismatch(f"neither a number nor JSON: {error}") from None
        if not isinstance(message, dict):
            message = {}
        requests, responses = message.get("requests"), message.get("responses") or []
        if not isinstance(requests, list) or not isinstance(responses, list):
            raise Mismatch('the input must be {"requests": […], "responses": […]}')
        return [_inner(request) for request in requests], responses[: len(requests) - 1]

    def _next(self, line: str) -> None:
        """Read a later turn of a program that keeps running: one request. Some platforms send the whole match again."""
        value, _ = dialects.decode(line)
        if not self._simple and isinstance(value, dict) and ("requests" in value or "request" in value):
            message = value.get("requests", value.get("request"))
            value = _inner(message[-1] if isinstance(message, list) and message else message)
        elif self._simple:
            value = self._decoded(line)
        self._take([value], [])

    def _decoded(self, text: str) -> Any:
        value, self._form = dialects.decode(text)
        return value

    def _take(self, requests: Sequence[Any], responses: Sequence[Any]) -> None:
        if not requests or len(responses) < len(requests) - 1:
            raise Mismatch(f"a turn with {len(requests)} requests needs one response fewer, not {len(responses)}")
        for at, request in enumerate(requests):
            self._requests.append(request)
            self._fold(request)
            if at < len(requests) - 1:
                self._responses.append(responses[at])

    def _fold(self, request: Any) -> None:
        if self._dialect is None:
            self._kind = self._kind or of_request(request)
            self._dialect = self._kind(self._rules)
        answered = self._responses[-1] if self._responses else None
        trial = self._dialect.clone()
        try:
            trial.take(request, answered)
        except OtherRules as error:
            assert self._kind is not None
            trial = self._kind(error.rules)
            for before, said in zip(self._requests, [None, *self._responses], strict=True):
                trial.take(before, said)
        self._dialect = trial

    def output(self, actions: Sequence[str] | None, debug: str = "") -> str:
        """The turn's line of output. None: an acknowledgement, where the request asks for no action."""
        response = self.dialect.acknowledgement() if actions is None else self.dialect.respond(actions)
        return self._line(response, debug)

    def blind(self) -> str:
        """The turn's output when the match could not be followed: the response that is most likely legal."""
        request = self._requests[-1] if self._requests else None
        answered = self._responses[-1] if self._responses else None
        response = self._dialect.blind(request, answered) if self._dialect is not None else "PASS"
        return self._line(response, "lost track")

    def _line(self, response: Any, debug: str) -> str:
        self._responses.append(response)
        if self._simple:
            return dialects.encode(response, self._form)
        message = {"response": response, **({"debug": debug} if debug else {})}
        return msgspec.json.encode(message).decode()


def _inner(request: Any) -> Any:
    """Decode a request that is a string of JSON."""
    return dialects.decode(request)[0] if isinstance(request, str) else request


def _plain(response: Any) -> Any:
    """Convert a response of ours back to what the dialect returned: simple IO sends lists and numbers as text."""
    if not isinstance(response, str) or not (response[:1] == "[" or response.isdecimal()):
        return response
    try:
        return msgspec.json.decode(response)
    except NOT_JSON:
        return response
