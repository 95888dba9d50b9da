"""The long polls of Botzone's local AI: one at a time, each with all answers that are ready."""

from __future__ import annotations

from typing import Literal

from bothost import messages as m
from bothost.lobbies.base import Account
from bothost.lobbies.botzone import protocol as wire
from bothost.lobbies.botzone.match import Match
from bothost.lobbies.botzone.options import AGAIN, GATHER, HELLO, START, TAKEN, BotzoneOptions

TAKEN_S, PROBE_S = 5.0, 10.0
FAILURES = 4
"""Failed polls in a row after which the connection counts as lost."""
REFUSED = (400, 401, 403, 404, 410)
GARBLED = -1
"""Our status for an answer that violates the protocol."""

Failure = Literal["stood", "probed", "refused", "lost", "retry"]


class Polls:
    """The session. There is no login: a poll that stays open shows that the lobby accepts us."""

    def __init__(self, account: Account, options: BotzoneOptions, matches: dict[str, Match]) -> None:
        self.up = False
        """Whether we are logged in, or trying to be."""
        self.ready = False
        """Whether we are logged in."""
        self.standing = 0
        """Number of the open poll; 0: none."""
        self.patient = True
        """Whether the next poll waits for the host's decisions."""
        self.waiting = False
        """Whether the next poll waits for a timer."""
        self.count = 0
        """The number of calls so far."""
        self._account = account
        self._options = options
        self._matches = matches
        self._base = ""
        self._worked = False
        """Whether the lobby ever accepted this secret."""
        self._probing = False
        """Whether the open poll leaves out an answer that the lobby may lack."""
        self._failures = 0

    @property
    def user(self) -> str:
        return self._base.rsplit("/", 2)[-2]

    def begin(self) -> None:
        """Log in. Raises ValueError if the token gives no valid address."""
        self._base = wire.address(self._account.url, self._account.name, self._account.token)
        self.up, self._failures = True, 0

    def end(self) -> list[m.Output]:
        """Stop polling."""
        self.up = self.ready = self.waiting = False
        self.standing = 0
        for match in self._matches.values():
            match.delivery.lost()
        return [m.CancelTimer(name) for name in (HELLO, AGAIN, TAKEN, GATHER, START)]

    def call(self, verb: str, headers: tuple[tuple[str, str], ...], timeout_s: float) -> m.HttpRequest:
        self.count += 1
        headers = (("User-Agent", self._account.user_agent), *headers)
        return m.HttpRequest(self.count, "GET", f"{self._base}/{verb}", headers, b"", timeout_s)

    @property
    def asked(self) -> bool:
        """Whether the host owes a decision."""
        return any(match.asked for match in self._matches.values())

    def remember(self) -> m.Remember:
        """The memo for a new process: the lobby does not repeat earlier requests."""
        return m.Remember({"matches": {name: match.memo() for name, match in self._matches.items()}})

    def next(self, *, news: bool = False) -> list[m.Output]:
        """Start the next poll, unless one is open or the host owes a decision.

        With news, or answers to send, save the matches first: a new process must know which answers were sent.
        """
        waits = self.asked and self.patient and self.ready
        if not self.up or self.standing or self.waiting or waits:
            return [self.remember()] if news else []
        deliveries = [match.delivery for match in self._matches.values()]
        carried = [match for match in self._matches.values() if match.delivery.where == "ready"]
        headers = tuple(wire.answer_header(match.id, match.transcript.text()) for match in carried)
        for match in carried:
            match.delivery.where = "carried"
        self._probing = any(delivery.where == "unsure" for delivery in deliveries)
        short = self._probing or (self.asked and self.ready)
        poll = self.call("localai", headers, PROBE_S if short else self._options.poll_s)
        self.standing = poll.request
        out: list[m.Output] = [self.remember(), poll] if news or carried else [poll]
        if any(not match.delivery.acknowledged for match in carried):
            out.append(m.SetTimer(TAKEN, TAKEN_S))
        return out if self.ready else [*out, m.SetTimer(HELLO, self._options.hello_s)]

    def pause(self, seconds: float) -> list[m.Output]:
        self.waiting = True
        return [m.SetTimer(AGAIN, seconds)]

    def succeeded(self) -> None:
        """Record that the lobby answered: it has the answers in the poll."""
        self._failures, self._worked = 0, True
        for match in self._matches.values():
            match.delivery.arrived()

    def failed(self, item: m.HttpResult) -> Failure:
        """Record a failed poll. Its answers may have arrived. A poll that only timed out did not fail."""
        stood = item.status == 504 or (item.status == 0 and b"ReadTimeout" in item.body)
        arrived = stood or item.status == GARBLED or (item.status == 0 and b"Connect" not in item.body)
        for match in self._matches.values():
            match.delivery.failed(likely_taken=arrived)
        if stood:
            self._failures = 0
            if item.status == 504 or not self._probing:
                return "stood"
            for match in self._matches.values():
                match.delivery.send_again()
            return "probed"
        if item.status in REFUSED and not self._worked:
            return "refused"
        self._failures += 1
        login_failed = not self.ready and item.status not in (502, GARBLED)
        return "lost" if self._failures >= FAILURES or login_failed else "retry"
