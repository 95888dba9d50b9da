"""Replay a recorded hand under our rules, and make the rows that a host at each seat would have logged."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Sequence

import msgspec

from bothost import rules
from bothost.config.names import MOST_LOGGED, is_loggable
from bothost.errors import BothostError
from bothost.imports.record import BadRecord, HandRecord, Json
from bothost.messages import PlayerInfo
from bothost.rules.game import Game, State, View
from bothost.store.records import (
    IMPORT_HOST,
    IMPORTED,
    DecisionRecord,
    EventsRecord,
    GameEndRecord,
    GameRecord,
    Record,
)
from bothost.tables.hand import valid_scores

VERSION = "1"
NEAR = 1e-4
_NOT_RECORDED: dict[str, None] = dict.fromkeys(
    ("policy", "action_values", "value", "model_sha256", "encoder_version", "stats", "fallback", "budget_ms", "raw")
)
"""What the records of others do not have."""

_text = msgspec.json.Encoder(order=None).encode


def game_of(record: HandRecord) -> Game:
    """Make the game of a record. Raises BadRecord for an unknown game or rules."""
    try:
        return rules.game(record.game, **record.rules)
    except (BothostError, ValueError, TypeError) as error:
        raise BadRecord(str(error)) from None


class Played(msgspec.Struct, frozen=True):
    """A replayed hand."""

    game: Game
    state: State
    """The state at the end."""
    moves: list[tuple[int, View, int]]
    """Seat, view before the move, action."""


def play(record: HandRecord) -> Played:
    """Replay the hand. Raises BadRecord with the first action that is not possible."""
    game = game_of(record)
    state = _start(record, game)
    moves = []
    for number, (seat, text) in enumerate(record.actions, 1):
        where = f"action {number} ({seat}:{text})"
        if state.terminal:
            raise BadRecord(f"{where}: the hand was over before")
        if seat not in state.to_act:
            asked = ", ".join(map(str, state.to_act))
            raise BadRecord(f"{where}: seat {seat} is not asked, but {asked}")
        view = state.view(seat)
        action = _action(view, text, where)
        moves.append((seat, view, action))
        state.apply(seat, action)
    if not state.terminal:
        raise BadRecord(f"the hand is not over after {len(record.actions)} actions")
    ours = tuple(state.returns)
    if valid_scores(ours, game.num_seats) is None:
        raise BadRecord(f"{game.name} gives the scores {ours}, not a finite number for each seat")
    _check_scores(record, ours)
    return Played(game, state, moves)


def _start(record: HandRecord, game: Game) -> State:
    try:
        if record.deal is not None:
            return game.state_from_deal(record.deal)
        if record.seed is not None:
            return game.new_state(record.seed)
    except (ValueError, TypeError, KeyError) as error:
        raise BadRecord(f"the deal: {error}") from None
    deals = [game.new_state(seed).deal for seed in (0, 1)]
    if deals[0] != deals[1]:
        raise BadRecord(f"{game.name} deals by chance, and the record has neither `deal` nor `seed`")
    return game.new_state(0)


def _action(view: View, text: str | int, where: str) -> int:
    try:
        action = view.parse(text) if isinstance(text, str) else text
    except ValueError as error:
        raise BadRecord(f"{where}: {error}") from None
    legal = view.legal()
    if action not in legal:
        shown = " ".join(view.notation(int(each)) for each in legal[:8])
        raise BadRecord(f"{where}: not legal there; legal: {shown}{' …' if len(legal) > 8 else ''}")
    return action


def _check_scores(record: HandRecord, ours: Sequence[float]) -> None:
    theirs = record.scores
    if theirs is None:
        return
    if len(theirs) != len(ours):
        raise BadRecord(f"the record has {len(theirs)} scores, and the game {len(ours)} seats")
    if record.exact:
        agree = all(abs(a - b) <= NEAR for a, b in zip(theirs, ours, strict=True))
    else:
        best = [score for score, own in zip(theirs, ours, strict=True) if own > 0]
        rest = [score for score, own in zip(theirs, ours, strict=True) if own <= 0]
        agree = min(best) > max(rest) if best and rest else max(theirs) - min(theirs) <= NEAR
    if not agree:
        raise BadRecord(f"the record's scores are {_numbers(theirs)}; under our rules they are {_numbers(ours)}")


def _numbers(scores: Sequence[float]) -> str:
    return ", ".join(f"{score:g}" for score in scores)


class Origin(msgspec.Struct, frozen=True):
    """The origin of a hand, and its consent."""

    lobby: str
    format: str
    file: str
    line: int
    names: tuple[str, ...] = ()
    """Names by seat for players that the record does not name; empty: no name."""
    consents: bool = False
    reason: str = ""


def seated(record: HandRecord, seats: int, origin: Origin) -> tuple[tuple[PlayerInfo, ...], bool]:
    """Return a player for each seat, and whether all were named. Raises BadRecord."""
    named = {player.seat: player for player in record.players}
    if any(seat is None or not 0 <= seat < seats for seat in (*named, *record.away)):
        raise BadRecord(f"the record names seats that {record.game} does not have")
    given = {seat: name for seat, name in enumerate(origin.names) if name}
    infos = []
    for seat in range(seats):
        name = given.get(seat, f"seat-{seat}")
        info = named.get(seat) or PlayerInfo(name, seat, name)
        if not is_loggable(info.player) or not is_loggable(info.name or info.player):
            what = f"cannot be shown or is longer than {MOST_LOGGED} characters"
            raise BadRecord(f"the name of seat {seat} {what}")
        infos.append(msgspec.structs.replace(info, consents=origin.consents))
    return tuple(infos), named.keys() | given.keys() >= set(range(seats))


def rows(record: HandRecord, played: Played, origin: Origin) -> list[Record]:
    """Make the rows of the hand, for each seat as if it were ours. Raises BadRecord."""
    game, state = played.game, played.state
    infos, named = seated(record, game.num_seats, origin)
    now_us = time.time_ns() // 1000
    started = record.started_us if record.started_us is not None else now_us
    if not 0 <= started <= now_us + 86_400_000_000:
        raise BadRecord("the time at which it started lies before 1970 or in the future")
    digest = record.digest()
    game_id = _uuid7(started, f"{origin.lobby}\0{digest}")
    about: Json = {"format": origin.format, "file": origin.file, "line": origin.line, "named": named}
    about |= {key: value for key, value in (("id", record.source), ("consent", origin.reason)) if value}
    ended = started + len(played.moves)
    made: list[Record] = []
    for seat, info in enumerate(infos):
        head = GameRecord(
            game_id=game_id,
            host=IMPORT_HOST,
            lobby=origin.lobby,
            account=info.player,
            table=origin.format,
            hand=digest,
            game=game.name,
            rules=_json(game.rules),
            format_version=game.format_version,
            seat=seat,
            players=_json(infos),
            seed=record.seed or 0,
            strategy=IMPORTED,
            strategy_version=VERSION,
            model_sha256=None,
            config_hash="",
            attributes=_json({"imported": about}),
            started_us=started,
        )
        scores, away = _json(tuple(state.returns)), _json(record.away)
        end = GameEndRecord(game_id=game_id, seat=seat, reason="normal", scores=scores, ended_us=ended, away=away)
        made += [head, end, EventsRecord(game_id, seat, 0, "\n".join(state.events(seat)))]
    return made + _decisions(played, made[0], digest)


def _decisions(played: Played, head: Record, digest: str) -> list[Record]:
    assert isinstance(head, GameRecord)
    steps: Counter[tuple[int, int]] = Counter()
    made: list[Record] = []
    for number, (seat, view, action) in enumerate(played.moves):
        substep = steps[seat, view.seq]
        steps[seat, view.seq] += 1
        made.append(
            DecisionRecord(
                id=_uuid7(head.started_us, f"{head.lobby}\0{digest}\0{number}"),
                game_id=head.game_id,
                seat=seat,
                seq=view.seq,
                substep=substep,
                attempt=0,
                role="live",
                host=IMPORT_HOST,
                lobby=head.lobby,
                table=head.table,
                request_id=str(number),
                game=head.game,
                phase=view.phase,
                state_hash=view.hash(),
                view=view.to_bytes(),
                legal=view.legal().astype("<i4").tobytes(),
                action=action,
                notation=view.notation(action),
                strategy=IMPORTED,
                strategy_version=VERSION,
                elapsed_ms=0.0,
                config_hash="",
                seed=head.seed,
                **_NOT_RECORDED,
                at_us=head.started_us + number,
            )
        )
    return made


def _json(value: object) -> str:
    return _text(value).decode()


def _uuid7(us: int, name: str) -> bytes:
    """Make a uuid7 of this time whose other bits are a hash of the name."""
    rest = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=10).digest(), "big")
    bits = (us // 1000) << 80 | 7 << 76 | (rest >> 62 & 0xFFF) << 64 | 2 << 62 | rest & (1 << 62) - 1
    return bits.to_bytes(16, "big")
