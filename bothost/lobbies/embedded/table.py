"""A table at an embedded lobby: counts events, drops repeated ones, and asks for a snapshot if some are missing."""

from __future__ import annotations

from bothost import messages as m
from bothost.lobbies.embedded import protocol as wire
from bothost.lobbies.embedded.session import Session
from bothost.lobbies.frames import unknown


class EmbeddedTable:
    """Translates the frames of one table."""

    def __init__(self, name: str, session: Session) -> None:
        self.name = name
        self._session = session
        self._hand = ""
        self._seq = 0
        """Events of the hand that the host has received."""
        self._lost = False
        """Whether events are missing and we asked for them. Until the answer comes, new events are dropped."""
        self._over = False
        """Whether the host has received the end of the hand."""
        self._players: frozenset[str] = frozenset()
        self._away: frozenset[str] = frozenset()

    @property
    def known(self) -> wire.Known:
        """How much of the hand we know."""
        return wire.Known(self._hand, self._seq)

    def sync(self) -> m.SendFrame:
        """Ask for the position."""
        return self._session.send(wire.Sync(self.name, self._hand, self._seq))

    def events(self, frame: wire.Events, raw: str | bytes) -> list[m.Output]:
        count = len(frame.events)
        if frame.seq != self._seq or frame.hand != self._hand:
            if self._lost or (frame.hand == self._hand and frame.seq + count <= self._seq):
                return []  # asked for already, or sent twice
            self._lost = True
            return [self.sync()]
        self._lost = False
        out: list[m.Output] = []
        if count:
            self._seq += count
            out.append(m.Delta(frame.table, frame.hand, frame.seq, frame.events))
        if frame.done is not None:
            out.append(m.MoveAcknowledged(frame.table, frame.done))
        return out + self._request(frame.ask, raw)

    def _request(self, ask: wire.Ask | None, raw: str | bytes) -> list[m.Output]:
        if ask is None:
            return []
        return [m.ActionRequest(self.name, self._hand, ask.id, ask.grant_ms, ask.bank_ms, self._seq, None, raw)]

    def seated(self, frame: wire.Seated) -> list[m.Output]:
        self._lost = False
        news = [player for player in frame.players if not player.online or player.player in self._away]
        self._players = frozenset(player.player for player in frame.players)
        self._away = frozenset(player.player for player in frame.players if not player.online)
        attributes, seek = dict(frame.attributes), frame.seek or None
        return [
            m.Seated(self.name, frame.game, frame.rules, frame.seat, players(frame.players), attributes, seek),
            *(m.Presence(self.name, player.seat, player.online) for player in news),
        ]

    def frame(self, frame: wire.ServerMessage, raw: str | bytes) -> list[m.Output]:
        """Translate any other frame about this table."""
        match frame:
            case wire.HandStarted():
                self._begin(frame.hand, 0)
                return [m.HandStarted(self.name, frame.hand, frame.seat, players(frame.players))]
            case wire.Snapshot():
                self._begin(frame.hand, frame.seq)
                snapshot = m.Snapshot(self.name, frame.hand, frame.seat, {**frame.view, "seq": frame.seq})
                return [snapshot, *self._request(frame.ask, raw)]
            case wire.Rejected():
                rejected = m.Rejected(self.name, frame.id, f"{frame.reason}: {frame.message}")
                return [rejected, *([] if self._lost else self._request(frame.ask, raw))]
            case wire.Withdrawn():
                return [m.RequestWithdrawn(self.name, frame.id, frame.reason)]
            case wire.ServerActed():
                return [m.ServerActedForUs(self.name, frame.id, frame.action)]
            case wire.Resigned():
                return [m.ServerActedFor(self.name, frame.hand, frame.seat)]
            case wire.Presence():
                who = self._players & {frame.player}
                self._away = self._away - who if frame.online else self._away | who
                return [m.Presence(self.name, frame.seat, frame.online)]
            case wire.HandEnded():
                return self._hand_ended(frame)
            case _:
                return [unknown(raw)]

    def _begin(self, hand: str, seq: int) -> None:
        self._hand, self._seq, self._lost, self._over = hand, seq, False, False

    def _hand_ended(self, frame: wire.HandEnded) -> list[m.Output]:
        if self._hand == frame.hand:
            if self._over or self._lost:
                return []  # passed on already, or it comes again with the missing events
            self._over = True
        served = [m.ServerActedFor(self.name, frame.hand, seat) for seat in frame.played_for]
        return [*served, m.HandEnded(self.name, frame.hand, frame.scores, frame.reason)]


def players(infos: tuple[wire.PlayerInfo, ...]) -> tuple[m.PlayerInfo, ...]:
    return tuple(m.PlayerInfo(p.player, p.seat, p.player, True if p.robot else None) for p in infos)
