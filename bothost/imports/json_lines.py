"""Hands of any game as JSON lines: our own format. ``docs/guide/import-games.md`` describes it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from bothost.imports.files import lines
from bothost.imports.record import HandRecord, Json, ReadRecord, Records
from bothost.messages import PlayerInfo

Seat = Annotated[int, Meta(ge=0, le=15)]
Name = Annotated[str, Meta(min_length=1, max_length=200)]


class _PlayerOfRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    player: Name
    name: Annotated[str, Meta(max_length=200)] = ""
    bot: bool | None = None


class Line(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One hand. Unknown members are errors."""

    game: Name
    rules: Json = {}
    players: Annotated[tuple[_PlayerOfRecord | Name | None, ...], Meta(max_length=16)] = ()
    """One per seat: an id, an object, or null."""
    deal: Json | None = None
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)] | None = None
    actions: Annotated[tuple[tuple[Seat, str | int], ...], Meta(max_length=100_000)]
    scores: Annotated[tuple[float, ...], Meta(max_length=16)] | None = None
    started: datetime | None = None
    """In UTC, if it has no time zone."""
    id: Annotated[str, Meta(max_length=200)] = ""
    away: Annotated[tuple[Seat, ...], Meta(max_length=16)] = ()


_decode = msgspec.json.Decoder(Line).decode


def read(path: Path) -> Records:
    """Yield the hands of a file."""
    for number, text in lines(path):
        try:
            yield ReadRecord(number, _record(_decode(text)))
        except (msgspec.MsgspecError, RecursionError, ValueError) as error:
            yield ReadRecord(number, None, str(error))


def _record(line: Line) -> HandRecord:
    if line.deal is not None and line.seed is not None:
        raise ValueError("the hand has both `deal` and `seed`: give one of them")
    started = line.started
    if started is not None and started.tzinfo is None:
        started = started.replace(tzinfo=UTC)
    return HandRecord(
        game=line.game,
        rules=line.rules,
        deal=line.deal,
        seed=line.seed,
        actions=line.actions,
        players=tuple(_info(seat, who) for seat, who in enumerate(line.players) if who is not None),
        scores=line.scores,
        started_us=None if started is None else int(started.timestamp() * 1e6),
        source=line.id,
        away=tuple(sorted(set(line.away))),
    )


def _info(seat: int, who: _PlayerOfRecord | str) -> PlayerInfo:
    if isinstance(who, str):
        return PlayerInfo(who, seat, who)
    return PlayerInfo(who.player, seat, who.name or who.player, who.bot)
