"""The messages between a host and a strategy's worker process: MessagePack, each with its length in front."""

from __future__ import annotations

import struct
from typing import Any

import msgspec

LENGTH = struct.Struct("<I")
MOST_BYTES = 64 * 1024 * 1024
"""Longer messages are refused."""


class StrategySpec(msgspec.Struct, frozen=True):
    """How to make a strategy."""

    module: str
    name: str
    """Qualified name of the class in ``module``."""
    options: Any
    model: Any


class LoadStrategy(msgspec.Struct, frozen=True, tag=True):
    """The first message: the strategy of this process."""

    strategy: StrategySpec
    evaluators: dict[str, StrategySpec]
    """By the option that names them."""
    plugins_dir: str | None
    path: list[str]
    """``sys.path`` of the host."""


class Ask(msgspec.Struct, frozen=True, tag=True):
    """A request for a decision. ``table`` is set in a player's first request to this process."""

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
    """A decision as plain data, or the error."""

    decision: dict[str, Any] | None
    error: str | None = None
    stats: bytes | None = None
    """JSON."""


encode = msgspec.msgpack.Encoder(enc_hook=repr).encode
decode_request = msgspec.msgpack.Decoder(LoadStrategy | Ask | ClosePlayer).decode
decode_answer = msgspec.msgpack.Decoder(Reply).decode


def frame(message: msgspec.Struct) -> bytes:
    """Encode a message with its length."""
    data = encode(message)
    return LENGTH.pack(len(data)) + data
