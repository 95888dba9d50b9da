"""Tracks whether the lobby has our answer to a request. Botzone sends no confirmations.

If the lobby answers a poll, it has the answers in that poll. If a poll fails, its answers are *unsure*, and so are
all answers of an earlier process. The next poll is then sent without them: if the lobby lacks an answer, it repeats
the request.
"""

from __future__ import annotations

from typing import Literal

import msgspec


class Delivery(msgspec.Struct):
    """The answer to the last request of a match."""

    where: Literal["nowhere", "ready", "carried", "unsure"] = "nowhere"
    taken: bool = False
    """Whether an unsure answer probably arrived."""
    resent: bool = False
    acknowledged: bool = True
    repeats: int = 0
    """How often the lobby repeated the request although it was answered."""

    @property
    def sent(self) -> bool:
        """Whether the lobby has the answer, as far as we know."""
        return self.where in ("nowhere", "carried") or (self.where == "unsure" and self.taken)

    @property
    def urgent(self) -> bool:
        """Whether the next poll should leave at once."""
        return self.where == "ready" and self.repeats < 2

    def answer(self, *, unsure: bool) -> None:
        """Record the host's answer. ``unsure``: an earlier process may have sent the same answer."""
        self.where, self.taken, self.resent = "unsure" if unsure else "ready", False, False

    def failed(self, *, likely_taken: bool) -> None:
        """Record that the poll with the answer failed."""
        if self.where == "carried":
            self.where, self.taken = "unsure", likely_taken

    def lost(self) -> None:
        """Record that the connection was lost."""
        if self.where == "carried":
            self.where = "unsure"

    def arrived(self) -> None:
        """Record that the lobby answered the poll with the answer."""
        if self.where == "carried":
            self.where = "nowhere"

    def send_again(self) -> None:
        """A poll without the answer brought nothing. Send the answer once more, because the lobby may lack it."""
        if self.where == "unsure":
            self.where = "nowhere" if self.resent else "ready"
            self.resent = True

    def repeated(self) -> None:
        """The lobby repeated the request: send the answer again."""
        self.repeats += 1
        self.where = "ready"

    def next_request(self) -> None:
        """Another request came: the answer arrived."""
        self.repeats, self.where, self.taken = 0, "nowhere", False
