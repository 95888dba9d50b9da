"""The open questions of a hand, and the time that each seat has left."""

from __future__ import annotations

import msgspec

from bothost.lobbies.embedded import protocol as wire
from bothost.lobby_server.seating import Seating


class Ask(msgspec.Struct):
    """A question that waits for its answer."""

    id: str
    since: float
    grant_ms: float
    bank_ms: float
    """The bank at ``since``."""
    rejects: int = 0
    sent: bool = False

    def left(self, now: float) -> tuple[float, float]:
        """(grant, bank) in ms that are left at ``now``."""
        over = (now - self.since) * 1000.0 - self.grant_ms
        return (max(0.0, -over), self.bank_ms) if over < 0 else (0.0, max(0.0, self.bank_ms - over))


class Questions:
    """At most one question a seat."""

    def __init__(self, seating: Seating) -> None:
        self.open: dict[int, Ask] = {}
        """By seat."""
        self._rules = seating.rules
        self._numbers = seating.ask_numbers
        self._banks = [float(seating.rules.bank_ms)] * len(seating.members)

    def ask(self, seat: int, now: float) -> None:
        """Ask, unless the seat has a question already."""
        if seat not in self.open:
            self.open[seat] = Ask(self._new_id(), now, float(self._rules.grant_ms), self._banks[seat])

    def ask_again(self, seat: int) -> Ask | None:
        """Ask the same under another id, while the clock runs on. None: the seat had enough attempts."""
        ask = self.open[seat]
        if ask.rejects + 1 >= self._rules.max_rejects:
            return None
        again = self.open[seat] = Ask(self._new_id(), ask.since, ask.grant_ms, ask.bank_ms, ask.rejects + 1)
        return again

    def _new_id(self) -> str:
        return f"r{next(self._numbers)}"

    def close(self, seat: int, now: float) -> Ask:
        """The question is answered: charge the bank."""
        ask = self.open.pop(seat)
        self._banks[seat] = ask.left(now)[1]
        return ask

    def frame(self, ask: Ask | None, now: float) -> wire.Ask | None:
        """A question as it is sent, with the time that is left."""
        if ask is None:
            return None
        ask.sent = True
        if not self._rules.grant_ms:
            return wire.Ask(ask.id)
        grant, bank = ask.left(now)
        return wire.Ask(ask.id, int(grant), int(bank))

    def deadlines(self) -> dict[int, float]:
        """Return seat → deadline of its question; {} without a clock."""
        if not self._rules.grant_ms:
            return {}
        lag_ms = self._rules.lag_ms
        return {s: ask.since + (ask.grant_ms + ask.bank_ms + lag_ms) / 1000.0 for s, ask in self.open.items()}
