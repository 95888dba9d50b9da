"""What a host and the worker process of a strategy say to each other: MessagePack, each message after its length."""

from __future__ import annotations

import struct
from typing import Any

import msgspec

LENGTH = struct.Struct("<I")
MOST_BYTES = 64 * 1024 * 1024
"""A longer message is not believed."""


class StrategySpec(msgspec.Struct, frozen=True):
    """What a strategy is made from."""

    module: str
    name: str
    """Qualified name of the class in ``module``."""
    options: Any
    model: Any


class LoadStrategy(msgspec.Struct, frozen=True, tag=True):
    """The first message: which strategy this process is for."""

    strategy: StrategySpec
    evaluators: dict[str, StrategySpec]
    """By the option that names them."""
    plugins_dir: str | None
    path: list[str]
    """``sys.path`` of the host."""


class Ask(msgspec.Struct, frozen=True, tag=True):
    """A decision is wanted. ``table`` comes with a player's first request to this process."""

    player: int
    view: bytes
    legal: bytes
    """int32, little-endian."""
    deadline: float
    bank_ms: float
    events: list[str]
    table: dict[str, Any] | None = None


class ClosePlayer(msgspec.Struct, frozen=True, tag=True):
    """The hand of this player is over."""

    player: int


class Reply(msgspec.Struct, frozen=True, tag=True):
    """A decision as plain data, or why there is none."""

    decision: dict[str, Any] | None
    error: str | None = None


encode = msgspec.msgpack.Encoder(enc_hook=repr).encode
decode_request = msgspec.msgpack.Decoder(LoadStrategy | Ask | ClosePlayer).decode
decode_answer = msgspec.msgpack.Decoder(Reply).decode


def frame(message: msgspec.Struct) -> bytes:
    """A message as it goes over the socket."""
    data = encode(message)
    return LENGTH.pack(len(data)) + data
