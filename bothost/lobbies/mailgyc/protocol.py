"""The protocol of mailgyc/doudizhu: text frames with ``[code, {…}]``, and numbered cards.

Cards are 1 … 54: ``p % 13`` is 1 for an ace, 2 for a two, 3 … 12 for three to queen, 0 for a king; 53 and 54 are the
jokers. In frames about other players 0 stands for a hidden card. Players are named by ``uid``; seats are their places
in frame 1006.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from bothost.lobbies.doudizhu_cards import Numbering
from bothost.lobbies.frames import NOT_JSON, BadFrame

PING, PONG = "ping", "pong"
FAILURE, ROOMS, ROOM_LIST, JOIN, JOINED, LEAVE, LEFT = 0, 1001, 1002, 1005, 1006, 1007, 1008
READY, READY_CHANGED, DEALT, CALL, CALLED = 2001, 2002, 2004, 2005, 2006
SHOOT, SHOT, ENDED = 3001, 3002, 4002

WAITING, CALLING, PLAYING = 1, 2, 3
"""``Room.state``."""
HAND_OVER = "STATE[4]"
"""Why the lobby refuses all messages of a player whom it removed from a room when a hand ended."""

Card = Annotated[int, Meta(ge=1, le=54)]
Cards = Annotated[tuple[Card, ...], Meta(max_length=20)]
AnyCards = Annotated[tuple[Annotated[int, Meta(ge=0, le=54)], ...], Meta(max_length=20)]
Uid = Annotated[int, Meta(ge=-(2**53), le=2**53)]
Word = Annotated[str, Meta(max_length=1000)]


class Body(msgspec.Struct, frozen=True):
    """The object after the code. Unknown members are ignored."""


class Failure(Body, frozen=True):
    reason: Word = ""


class RoomCount(Body, frozen=True):
    """How many players are at a level."""

    level: int
    number: int = 0


class Rooms(Body, frozen=True):
    rooms: Annotated[tuple[RoomCount, ...], Meta(max_length=1000)] = ()


class Room(Body, frozen=True):
    id: int
    state: int
    whose_turn: Uid = -1
    timer: float = 0.0
    last_shot_uid: Uid = -1
    last_shot_poker: Cards = ()


class PlayerBody(Body, frozen=True):
    """One seat; an empty one is ``{}``."""

    uid: Uid | None = None
    name: Word = ""
    ready: int = 0
    rob: int = -1
    leave: int = 0
    landlord: int = 0
    pokers: AnyCards = ()


class Joined(Body, frozen=True):
    """The whole room. Everybody gets it whenever a player takes a seat or comes back."""

    room: Room
    players: Annotated[tuple[PlayerBody, ...], Meta(min_length=3, max_length=3)]


class Left(Body, frozen=True):
    uid: Uid


class ReadyChanged(Body, frozen=True):
    uid: Uid
    ready: int = 1


class Dealt(Body, frozen=True):
    uid: Uid
    """Who calls first."""
    pokers: Annotated[tuple[Card, ...], Meta(min_length=17, max_length=17)]
    timer: float = 0.0


class Called(Body, frozen=True):
    uid: Uid
    rob: int
    landlord: Uid = -1
    """-1 until the landlord is known."""
    pokers: Cards = ()
    """The bottom cards, once the landlord is known."""


class Shot(Body, frozen=True):
    uid: Uid
    pokers: Cards = ()


class Result(Body, frozen=True):
    uid: Uid
    point: float = 0.0
    pokers: Cards = ()
    """What was left in the hand."""


class Ended(Body, frozen=True):
    winner: Uid
    players: Annotated[tuple[Result, ...], Meta(max_length=3)] = ()


class Pong(Body, frozen=True):
    """The text ``pong``."""


class Login(Body, frozen=True):
    """The answer of ``POST /login``. The websocket uses the cookie and not the token."""

    uid: Uid
    name: Word = ""
    room: int = -1
    """The room that keeps a seat for us; -1: none."""
    rooms: Annotated[tuple[RoomCount, ...], Meta(max_length=1000)] = ()


_BODIES: dict[int, type[Body]] = {
    FAILURE: Failure,
    ROOM_LIST: Rooms,
    JOINED: Joined,
    LEFT: Left,
    READY_CHANGED: ReadyChanged,
    DEALT: Dealt,
    CALLED: Called,
    SHOT: Shot,
    ENDED: Ended,
}
_ENVELOPE = msgspec.json.Decoder(tuple[int, msgspec.Raw])
_DECODERS: dict[int, msgspec.json.Decoder[Body]] = {code: msgspec.json.Decoder(kind) for code, kind in _BODIES.items()}
_LOGIN = msgspec.json.Decoder(Login)


def decode(data: str | bytes) -> Body:
    """Decode a frame of the server. Raises BadFrame."""
    if data in (PONG, b"pong"):
        return Pong()
    try:
        code, body = _ENVELOPE.decode(data)
        decoder = _DECODERS.get(code)
        if decoder is None:
            raise BadFrame(f"unknown code {code}")
        return decoder.decode(body)
    except NOT_JSON as error:
        raise BadFrame(str(error)) from None


def decode_login(data: bytes) -> Login:
    """Decode the answer to the login. Raises BadFrame, which does not quote the answer."""
    try:
        return _LOGIN.decode(data)
    except NOT_JSON:
        raise BadFrame("the answer to the login is invalid") from None


def encode(code: int, **body: Any) -> str:
    """Encode a frame for the server."""
    return msgspec.json.encode((code, body)).decode()


_RANKS = ("K", "A", "2", "3", "4", "5", "6", "7", "8", "9", "T", "J", "Q")


def rank_of(card: int) -> str:
    """The canonical letter of a card (1 … 54); B and R are the small and the big joker."""
    if card > 52:
        return "B" if card == 53 else "R"
    return _RANKS[card % 13]


NUMBERING = Numbering(rank_of)
text_of, pick = NUMBERING.text, NUMBERING.pick
