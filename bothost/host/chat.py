"""What an account says at its tables, and what is said to it. It says its two texts, and never answers."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Sequence

import structlog

from bothost.host.manners import Manners
from bothost.lobbies.frames import MAX_CHAT, plain_text
from bothost.messages import Chat, PlayerInfo, Say
from bothost.tables.clock import TokenBucket
from bothost.tables.hand import Hand
from bothost.tables.session import Session

_log = structlog.get_logger("bothost.host")

HEARD_PER_MINUTE = 60.0
"""Messages of others that one account logs; more are dropped and counted."""
ENDED_TABLES = 64
"""Tables that have ended and whose last words still come into the log."""

Record = Callable[[bytes, int, str, str], None]
"""Logs (game id, seat, speaker, text)."""


class TableTalk:
    """The chat of one account: a greeting and a goodbye a table, and a log of what others say. Times are monotonic."""

    def __init__(self, account: str, manners: Manners, say: Callable[[Say], None] | None, record: Record) -> None:
        """``say`` sends; None where the lobby has no chat."""
        self.dropped = 0
        """Messages of others that came too fast."""
        self._account = account
        self._manners = manners
        self._say = say
        self._record = record
        self._hands: dict[str, Hand] = {}
        """Open table → its last hand."""
        self._ended: OrderedDict[str, tuple[bytes, int]] = OrderedDict()
        """Table that has ended → game id and seat of its last hand. The hand itself is released."""
        self._greeted: set[str] = set()
        """Open tables at which the greeting was said or is not due."""
        self._speech: TokenBucket | None = None
        self._heard = TokenBucket(HEARD_PER_MINUTE / 60.0, HEARD_PER_MINUTE, 0.0)

    def resumed(self, table: str) -> None:
        """We sit at this table since before a restart or a reconnect: the greeting is not due."""
        self._greeted.add(table)

    def hand_started(self, session: Session, now: float) -> None:
        """The position of a hand is known. Greets at the first one of a table."""
        hand, table = session.hand, session.key.table
        if hand is None:
            return
        self._hands[table] = hand
        if table not in self._greeted:
            self._greeted.add(table)
            self._speak(self._manners.settings.greeting, session.game.name, hand, now)

    def leaves(self, session: Session, now: float) -> None:
        """The table has ended, or we are about to leave it. Sends the closing text if a hand was played."""
        table = session.key.table
        self._greeted.discard(table)
        hand = self._hands.get(table)
        if hand is not None:
            self._speak(self._manners.settings.goodbye, session.game.name, hand, now)

    def forget(self, table: str) -> None:
        """The table is closed. Its last hand is kept for a while."""
        self._greeted.discard(table)
        if (hand := self._hands.pop(table, None)) is not None:
            self._ended[table] = hand.game_id, hand.seat
            if len(self._ended) > ENDED_TABLES:
                self._ended.popitem(last=False)

    def heard(self, event: Chat, now: float) -> None:
        """Log what another player said, as text."""
        text, player = plain_text(event.text), plain_text(event.player, 100)
        if not text:
            return
        if not self._heard.take(now):
            self.dropped += 1
            return
        _log.info("chat", account=self._account, table=event.table, player=player, text=text)
        hand = self._hands.get(event.table)
        game_id, seat = (hand.game_id, hand.seat) if hand is not None else self._ended.get(event.table, (b"", 0))
        self._keep(game_id, seat, player, text)

    def _speak(self, template: str, game: str, hand: Hand, now: float) -> None:
        if not template or self._say is None or not self._manners.people(hand.players, hand.seat):
            return
        rate = self._manners.settings.chat_per_minute / 60.0
        if self._speech is None or self._speech.rate != rate:
            self._speech = TokenBucket(rate, max(1.0, 60.0 * rate), now)
        if not self._speech.take(now):
            return
        text = fill(template, self._account, self._manners.others(hand.players, hand.seat), game)
        self._say(Say(hand.key.table, text))
        self._keep(hand.game_id, hand.seat, self._account, text)

    def _keep(self, game_id: bytes, seat: int, player: str, text: str) -> None:
        if game_id:
            self._record(game_id, seat, player, text)


def fill(template: str, account: str, others: Sequence[PlayerInfo], game: str) -> str:
    """The text with names in the place of ``{account}``, ``{opponents}`` and ``{game}``. Names are not templates."""
    names = {
        "account": account,
        "opponents": ", ".join(plain_text(player.name or player.player, 100) for player in others),
        "game": game,
    }
    return plain_text(re.sub(r"\{(\w+)\}", lambda match: names.get(match[1], match[0]), template), MAX_CHAT)
