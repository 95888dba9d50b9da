"""The protocol of xelnagamiao/open_mahjong_unity: text frames with ``{"type": …}``, and numbered tiles.

Tiles are 11-19 characters, 21-29 dots, 31-39 bamboos, 41-44 winds, 45 the red, 46 the white and 47 the green dragon
(the server's set of green tiles contains 47), 51-58 flowers. Types of our frames start with ``gamestate/GB/``, those of
the server's with ``gamestate/guobiao/``. A room's id is a string in the lobby and a number in the game.
"""

from __future__ import annotations

import contextlib
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from bothost.lobbies.frames import NOT_JSON, BadFrame

RELEASE_VERSION = 20
ROBOTS_BELOW = 10
"""User ids below this number are the server's robots."""

Tile = Annotated[int, Meta(ge=11, le=58)]
Tiles = Annotated[tuple[Tile, ...], Meta(max_length=64)]
Index = Annotated[int, Meta(ge=0, le=3)]
Tick = Annotated[int, Meta(ge=0, le=1_000_000)]
Seconds = Annotated[int, Meta(ge=-1_000_000, le=1_000_000)]
Word = Annotated[str, Meta(max_length=1000)]
Words = Annotated[tuple[Annotated[str, Meta(max_length=100)], ...], Meta(max_length=64)]
Number = Annotated[int, Meta(ge=-(2**53), le=2**53)]
User = Number
RoomId = Annotated[str, Meta(max_length=100)] | Number


class Body(msgspec.Struct, frozen=True):
    """Base class of frames. Unknown members are ignored."""

    member: ClassVar[str] = ""
    """The member of the frame that holds these fields; empty: the frame itself."""


class Ignored(Body, frozen=True):
    """A frame that only matters to people."""


class LoginInfo(Body, frozen=True):
    user_id: User
    username: Word = ""
    userkey: Word = ""
    """Secret: the key for the chat server."""


class Login(Body, frozen=True):
    success: bool = False
    message: Word = ""
    login_info: LoginInfo | None = None


class Tips(Body, frozen=True):
    """``tips`` and ``error_message``: a text for people. It does not say what it answers."""

    success: bool = False
    message: Word = ""


class MessageInfo(Body, frozen=True):
    title: Word = ""
    content: Word = ""


class Popup(Body, frozen=True):
    """``message`` is the kind: ``error_version``, ``reconnect_ask``, ``login_kickout``."""

    message: Word = ""
    message_info: MessageInfo = MessageInfo()


class Pong(Body, frozen=True):
    pass


# ------------------------------------------------------------------------------------------------------------- rooms


class Room(Body, frozen=True):
    room_id: RoomId
    player_list: Annotated[tuple[User, ...], Meta(max_length=16)] = ()
    room_rule: Word = ""
    sub_rule: Word = ""
    room_name: Word = ""
    hepai_limit: Annotated[int, Meta(ge=0, le=1000)] = 8
    max_player: Number = 4
    use_flowers: bool = True
    """Older servers do not say it: they always play flowers."""
    has_password: bool = False
    is_game_running: bool = False
    host_user_id: User = 0
    game_round: Number = 1
    round_timer: Number = 0
    step_timer: Number = 0
    ready_list: Annotated[tuple[User, ...], Meta(max_length=16)] = ()

    @property
    def id(self) -> str:
        return str(self.room_id)


class RoomShown(Body, frozen=True):
    """``refresh_room_info``, after every change, and ``create_room_done``."""

    success: bool = False
    message: Word = ""
    room_info: Room | None = None


class RoomList(Body, frozen=True):
    room_list: Annotated[tuple[msgspec.Raw, ...], Meta(max_length=10_000)] = ()

    @property
    def rooms(self) -> tuple[Room, ...]:
        """Invalid rooms are left out: players choose the names of their rooms, of any length."""
        rooms = []
        for raw in self.room_list:
            with contextlib.suppress(*NOT_JSON):
                rooms.append(_ROOM.decode(raw))
        return tuple(rooms)


class RoomJoined(Body, frozen=True):
    success: bool = False
    message: Word = ""


class RoomLeft(Body, frozen=True):
    """The answer when we leave a room, and what we hear when its host removes us."""


# -------------------------------------------------------------------------------------------------------------- hands


class PlayerInfo(Body, frozen=True):
    user_id: User
    player_index: Index
    hand_tiles_count: Annotated[int, Meta(ge=0, le=14)]
    original_player_index: Index | None = None
    """The index in the first hand of the match."""
    username: Word = ""
    hand_tiles: Tiles | None = None
    """Our own tiles, in the order in which they came; None for other players."""
    discard_tiles: Tiles = ()
    """Without the claimed ones. ``discard_origin_tiles`` has them, but also those of earlier hands of the match."""
    combination_tiles: Annotated[tuple[Annotated[str, Meta(max_length=4)], ...], Meta(max_length=4)] = ()
    """``s23`` a chow by its middle, ``k17`` a pung, ``g22`` a melded, ``G22`` a concealed, ``G0`` a hidden kong."""
    combination_mask: Annotated[tuple[Annotated[tuple[int, ...], Meta(max_length=16)], ...], Meta(max_length=8)] = ()
    """Flat pairs of (how it lies, tile). 1: the claimed tile, 2: face down, 3: added to a pung."""
    huapai_list: Tiles = ()
    has_draw_slot: bool = False
    tag_list: Words = ()
    score_history: Words = ()
    """The scores of the hands that are over, such as ``+08``."""
    round_number_history: Annotated[tuple[Number, ...], Meta(max_length=64)] = ()
    """The number of the hand for each of these scores."""


class GameInfo(Body, frozen=True):
    """The whole position: when a hand begins, and after a reconnect."""

    member = "game_info"
    gamestate_id: Annotated[str, Meta(min_length=1, max_length=100)]
    room_id: RoomId
    current_player_index: Index
    players_info: Annotated[tuple[PlayerInfo, ...], Meta(min_length=4, max_length=4)]
    tile_count: Annotated[int, Meta(ge=0, le=144)]
    action_tick: Tick = 0
    current_round: Annotated[int, Meta(ge=1, le=10_000)] = 1
    step_time: Seconds = 0
    dealer_index: Index = 0
    hepai_limit: Annotated[int, Meta(ge=0, le=1000)] = 8


class HandAsk(Body, frozen=True):
    """Sent to everybody. We must act if the index is ours and the list is not empty."""

    member = "ask_hand_action_info"
    player_index: Index
    action_tick: Tick
    action_list: Words = ()
    remaining_time: Seconds = 0
    """The bank in seconds, without the time for the move."""
    deal_tile_type: Word = ""
    opening_buhua_complete: bool = False


class ClaimAsk(Body, frozen=True):
    member = "ask_other_action_info"
    player_index: Index
    action_tick: Tick
    cut_tile: Tile
    action_list: Words = ()
    remaining_time: Seconds = 0


class Action(Body, frozen=True):
    member = "do_action_info"
    action_list: Annotated[Words, Meta(min_length=1)]
    action_player: Index
    action_tick: Tick
    deal_tile: Tile | None = None
    """Only sent to the player who draws."""
    cut_tile: Tile | None = None
    cut_class: bool | None = None
    buhua_tile: Tile | None = None
    combination_target: Annotated[str, Meta(max_length=4)] | None = None
    is_timeout_action: bool = False
    is_claim: bool = False
    """Whether this only announces a claim. It changes nothing yet."""


class Result(Body, frozen=True):
    member = "show_result_info"
    hu_class: Word = ""
    """``hu_self``; ``hu_first``, ``hu_second``, ``hu_third`` of the seats after the discarder; ``liuju`` a draw."""
    action_tick: Tick = 0
    hepai_player_index: Index | None = None
    hepai_player_hand: Tiles | None = None
    hu_fan: Words | None = None
    score_changes: dict[str, Number] | None = None
    """By ``original_player_index``."""
    next_status: Word = ""


class FinalData(Body, frozen=True):
    score: Number = 0


class GameEnd(Body, frozen=True):
    member = "game_end_info"
    player_final_data: dict[str, FinalData] = {}
    """By index in the last hand."""


class VotedEnd(Body, frozen=True):
    """The people at the table voted to end the game. Who is offline counts as agreeing."""


class ReadyStatus(Body, frozen=True):
    member = "ready_status_info"
    player_to_ready: dict[str, bool] = {}


class Tags(Body, frozen=True):
    """Who is ``offline``, by index."""

    member = "refresh_player_tag_list_info"
    player_to_tag_list: dict[str, Words] = {}


class SeatsSwitched(Body, frozen=True):
    """The indices of the players change, some seconds before the next hand begins."""


_BODIES: dict[str, type[Body]] = {
    "login": Login,
    "tips": Tips,
    "error_message": Tips,
    "message": Popup,
    "pong": Pong,
    "room/refresh_room_info": RoomShown,
    "room/create_room_done": RoomShown,
    "room/get_room_list": RoomList,
    "room/join_room_done": RoomJoined,
    "room/leave_room_done": RoomLeft,
    "match/join_queue_done": Ignored,
    "match/leave_queue_done": Ignored,
    "match/queue_status": Ignored,
    "match/match_found": Ignored,
    "gamestate/guobiao/game_start": GameInfo,
    "gamestate/guobiao/broadcast_hand_action": HandAsk,
    "gamestate/guobiao/ask_other_action": ClaimAsk,
    "gamestate/guobiao/do_action": Action,
    "gamestate/guobiao/show_result": Result,
    "gamestate/guobiao/game_end": GameEnd,
    "gamestate/guobiao/ready_status": ReadyStatus,
    "gamestate/vote_update": Ignored,
    "gamestate/vote_end": VotedEnd,
    "gamestate/broadcast_sticker": Ignored,
    "refresh_player_tag_list": Tags,
    "switch_seat": SeatsSwitched,
    "get_server_stats": Ignored,
    "game_tip": Ignored,
}


_FRAME = msgspec.json.Decoder(dict[str, msgspec.Raw])
_TYPE = msgspec.json.Decoder(str)
_ROOM = msgspec.json.Decoder(Room)
_DECODERS: dict[str, msgspec.json.Decoder[Body]] = {kind: msgspec.json.Decoder(body) for kind, body in _BODIES.items()}
_NOTHING = msgspec.Raw(b"{}")


def decode(data: str | bytes) -> Body:
    """Decode a frame of the server. Raises BadFrame, which does not quote the frame."""
    try:
        members = _FRAME.decode(data)
        kind = _TYPE.decode(members.get("type", _NOTHING))
        if kind not in _BODIES:
            raise BadFrame("unknown type")
        member = _BODIES[kind].member
        return _DECODERS[kind].decode(members.get(member, _NOTHING) if member else data)
    except NOT_JSON as error:
        raise BadFrame(type(error).__name__) from None


def encode(kind: str, **body: Any) -> str:
    """Encode a frame for the server. After a frame without valid JSON or a type, the server ignores us silently."""
    return msgspec.json.encode({"type": kind, **body}).decode()


# -------------------------------------------------------------------------------------------------------------- tiles

_HONOURS = {41: "F1", 42: "F2", 43: "F3", 44: "F4", 45: "J1", 46: "J3", 47: "J2"}
_WORDS: dict[int, str] = (
    {10 * tens + rank: f"{suit}{rank}" for tens, suit in ((1, "W"), (2, "B"), (3, "T")) for rank in range(1, 10)}
    | _HONOURS
    | {50 + n: f"H{n}" for n in range(1, 9)}
)
_NUMBERS = {word: number for number, word in _WORDS.items()}
FIRST_FLOWER = 51


def word(tile: int) -> str:
    """The canonical name of a tile. Raises ValueError if there is no such tile."""
    try:
        return _WORDS[tile]
    except KeyError:
        raise ValueError(f"{tile} is not a tile") from None


def number(canonical: str) -> int:
    """Inverse of ``word``. Raises ValueError."""
    try:
        return _NUMBERS[canonical]
    except KeyError:
        raise ValueError(f"{canonical!r} is not a tile") from None


def is_flower(tile: int) -> bool:
    return tile >= FIRST_FLOWER


def is_robot(user: int) -> bool:
    """Whether a user id is one of the server's robots."""
    return user < ROBOTS_BELOW
