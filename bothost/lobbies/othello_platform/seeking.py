"""Waiting for a game at othello-platform: the seek that is out, and the room that we sit in."""

from __future__ import annotations

import msgspec

from bothost import messages as m
from bothost.lobbies.othello_platform import protocol as wire


class Seek(msgspec.Struct):
    """A seat that the host asked for."""

    id: str
    attributes: m.Json
    room: str = ""
    """The room that we are entering; empty while none is chosen."""
    queued: bool = False
    created: bool = False
    """Whether the room is one that we made."""
    choices: list[str] = []
    """Further rooms to try."""


class Room(msgspec.Struct):
    """A room where we wait for a game to begin."""

    id: str
    table: str
    attributes: m.Json
    opponent: str | None = None
    said_ready: bool = False
    said_start: bool = False


def info(room: wire.Room) -> m.TableInfo:
    attributes = {"name": room.name, "mode": room.mode, "ai_level": room.ai_level, "password": room.has_password}
    return m.TableInfo(f"room-{room.id}", "othello", {}, attributes, 1)


def public(attributes: m.Json) -> m.Json:
    """A wish without its secrets."""
    return {key: value for key, value in attributes.items() if key != "password"}
