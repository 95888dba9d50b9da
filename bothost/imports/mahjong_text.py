"""The text format of Botzone's mahjong competitions: one line per action of a player.

``Match ID`` · ``Wind n`` · ``Player p Deal t×13`` · ``Player p Draw t`` · ``Player p Play t`` ·
``Player p Chi t`` (the middle tile), ``Peng``, ``Gang``, ``AnGang``, ``BuGang``, ``Hu``, each perhaps with
``Ignore Player q Chi t …`` (claims that were beaten) · ``Huang`` (no winner) · ``Fan n names`` · ``Score a b c d``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from bothost import rules
from bothost.imports.mahjong_wall import BOTZONE, Tiles, wall_of
from bothost.imports.record import BadRecord, HandRecord, Json, ReadRecord, Records, act, claiming
from bothost.lobbies.botzone.mahjong import WINDS
from bothost.rules.game import State

_DID = re.compile(r"Player ([0-3]) (Draw|Play|Chi|Peng|Gang|AnGang|BuGang|Hu) ([WTB][1-9]|F[1-4]|J[1-3])")
_DEAL = re.compile(r"Player ([0-3]) Deal ((?:[WTBFJ][1-9] ?){13})")
_STARTED = re.compile(r"[0-9a-f]{24}")

Line = tuple[int, str]


def read(lines: Iterable[Line]) -> Records:
    """Yield the matches."""
    for number, match in _matches(lines):
        try:
            yield ReadRecord(number, _record(match))
        except (BadRecord, ValueError, IndexError) as error:
            yield ReadRecord(number, None, str(error))


def _matches(lines: Iterable[Line]) -> Iterator[tuple[int, list[Line]]]:
    match: list[Line] = []
    for line in lines:
        if line[1].startswith("Match") and match:
            yield match[0][0], match
            match = []
        match.append(line)
    if match:
        yield match[0][0], match


def _record(match: list[Line]) -> HandRecord:
    source = match[0][1].removeprefix("Match").strip()
    deal, scores = _dealt(match)
    state = rules.game("mahjong", **BOTZONE).state_from_deal(deal)
    for number, text in match:
        if text.startswith("Player") and not _DEAL.fullmatch(text):
            _happened(state, number, [(int(p), what, tile) for p, what, tile in _DID.findall(text)])
    _pass_claims(state)
    started = int(source[:8], 16) * 1_000_000 if _STARTED.fullmatch(source) else None
    actions = tuple(state.actions)
    return HandRecord(
        game="mahjong", rules=BOTZONE, deal=deal, actions=actions, scores=scores, source=source, started_us=started
    )


def _dealt(match: list[Line]) -> tuple[Json, tuple[float, ...]]:
    wind = ""
    tiles = Tiles()
    scores: tuple[float, ...] | None = None
    for number, text in match:
        if (dealt := _DEAL.fullmatch(text)) is not None:
            tiles.dealt(int(dealt[1]), [0] * 4, dealt[2].split(), [])
        elif text.startswith("Wind"):
            wind = WINDS[int(text.split()[1])]
        elif text.startswith("Score"):
            scores = tuple(float(word) for word in text.split()[1:])
        elif text.startswith("Player"):
            done = _DID.match(text)
            if done is None:
                raise BadRecord(f"line {number} is unknown: {text[:60]}")
            if done[2] == "Draw":
                tiles.drew(int(done[1]), done[3])
        elif not text.startswith(("Match", "Fan", "Huang")):
            raise BadRecord(f"line {number} is unknown: {text[:60]}")
    if not wind or scores is None:
        raise BadRecord(f"the match has no line {'Score' if wind else 'Wind'}: it is incomplete")
    return {"prevalent_wind": wind, "wall": wall_of(tiles)}, scores


def _happened(state: State, number: int, done: list[tuple[int, str, str]]) -> None:
    """A line: what one player did, and the claims that were beaten. Raises BadRecord."""
    seat, what, tile = done[0]
    if what == "Draw":
        _pass_claims(state)
        if state.terminal or state.to_act != (seat,) or state.view(seat).to_json()["drawn"] != tile:
            raise BadRecord(f"line {number}: seat {seat} cannot draw {tile} here")
    elif claiming(state) and what in ("Chi", "Peng", "Gang", "Hu"):
        claims = {who: _word(claim, said) for who, claim, said in done}
        for who in state.to_act:
            act(state, who, claims.pop(who, "pass"), f"line {number}")
        if claims:
            raise BadRecord(f"line {number}: seat {min(claims)} claims what it cannot")
    else:
        _pass_claims(state)
        act(state, seat, _word(what, tile), f"line {number}")


def _word(what: str, tile: str) -> str:
    return "hu" if what == "Hu" else f"{what.lower()}:{tile}"


def _pass_claims(state: State) -> None:
    if claiming(state):
        for seat in state.to_act:
            state.apply(seat, state.game.parse("pass"))
