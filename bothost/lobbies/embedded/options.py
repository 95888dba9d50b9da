"""Options of the embedded lobby."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from bothost.lobbies.base import PositiveSeconds


class EmbeddedOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[lobby.options]`` of the embedded lobby."""

    hello_timeout_s: PositiveSeconds = 10.0
    """How long the lobby may take to answer our hello."""


class EmbeddedAttributes(msgspec.Struct, frozen=True):
    """Attributes of a wish that the embedded lobby understands. All others are labels."""

    level: int | str | None = None
    """How strong the players wish to be."""
    hands: Annotated[int, Meta(ge=1)] = 1
    """Hands that are played before the table ends."""
    grant_ms: Annotated[int, Meta(ge=0, le=3_600_000)] = 0
    """Time per action; 0: no clock."""
    bank_ms: Annotated[int, Meta(ge=0, le=86_400_000)] = 0
    """Reserve per seat and hand."""
    robots: bool = False
    """Whether robots take the free seats at once."""
    accept: bool = False
    """Whether all players are asked again once they have taken all seats."""
    private: bool = False
    """Always false: only a table that a player creates can be private. A wish takes any table."""

    def __post_init__(self) -> None:
        if self.private:
            raise ValueError("private: a wish takes any table; only a table that a player creates can be private")
