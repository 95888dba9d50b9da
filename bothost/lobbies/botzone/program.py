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
from bothost.lobbies.botzone.dialect import Dialect, Mismatch
from bothost.lobbies.botzone.transcript import Transcript, Turn
from bothost.lobbies.frames import NOT_JSON

KEEP_RUNNING = ">>>BOTZONE_REQUEST_KEEP_RUNNING<<<"
MAX_TURNS = 2000


class Program:
    """One match. ``kind``: its game; None: recognise it from the first request."""

    def __init__(self, kind: type[Dialect] | None = None) -> None:
        self._match = Transcript(kind)
        self._simple = False

    @property
    def dialect(self) -> Dialect:
        """Raises Mismatch before the first turn."""
        if self._match.dialect is None:
            raise Mismatch("the program has received no request yet")
        return self._match.dialect

    def read_turn(self, read_line: Callable[[], str]) -> bool:
        """Read the input of one turn. Returns False at the end of the input. Raises Mismatch."""
        line = read_line()
        while line and not line.strip():
            line = read_line()
        if not line:
            return False
        if not self._match.turns:
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
            turns_read = [Turn.read(text) for text in lines[::2]]
            responses: list[Any] = [dialects.decode(text)[0] for text in lines[1::2]]
        else:
            requests, responses = self._whole(line)
            turns_read = [Turn("", request) for request in requests]
        self._take(turns_read, [_plain(response) for response in responses])

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
        turn = Turn.read(line)
        value = turn.request
        if not self._simple and isinstance(value, dict) and ("requests" in value or "request" in value):
            message = value.get("requests", value.get("request"))
            turn.request = _inner(message[-1] if isinstance(message, list) and message else message)
        self._take([turn], [])

    def _take(self, turns: Sequence[Turn], responses: Sequence[Any]) -> None:
        if not turns or len(responses) < len(turns) - 1:
            raise Mismatch(f"a turn with {len(turns)} requests needs one response fewer, not {len(responses)}")
        for turn, response in zip(turns, [*responses[: len(turns) - 1], None], strict=True):
            self._match.turns.append(turn)
            self._match.fold()
            turn.response = response

    def output(self, actions: Sequence[str] | None, debug: str = "") -> str:
        """The turn's line of output. None: an acknowledgement, where the request asks for no action."""
        response = self.dialect.acknowledgement() if actions is None else self.dialect.respond(actions)
        return self._line(response, debug)

    def blind(self) -> str:
        """The turn's output when the match could not be followed: the response that is most likely legal."""
        response = "PASS" if self._match.dialect is None else self._match.respond_blind()
        return self._line(response, "lost track")

    def _line(self, response: Any, debug: str) -> str:
        turn = self._match.last
        if turn is not None:
            turn.response = response
        if self._simple:
            return dialects.encode(response, turn.form if turn is not None else "json")
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
