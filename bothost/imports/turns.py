"""Convert a match of Botzone, given as requests and responses, to a hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from bothost import rules
from bothost.imports.mahjong_wall import BOTZONE, Tiles, wall_of
from bothost.imports.record import Action, BadRecord, HandRecord, Json, act, claiming
from bothost.lobbies.botzone.dialect import Mismatch
from bothost.lobbies.botzone.doudizhu import NUMBERING, FightTheLandlord2
from bothost.lobbies.botzone.games import of_request
from bothost.lobbies.botzone.mahjong import WINDS, action_of
from bothost.lobbies.botzone.reversi import word_of
from bothost.rules.game import State

DECK = range(54)


class Turn(msgspec.Struct, frozen=True):
    """Requests to some seats, and their responses."""

    requests: dict[int, Any]
    responses: dict[int, Any]


def record(turns: Sequence[Turn], *, initdata: Json, scores: tuple[float, ...] | None) -> HandRecord:
    """Convert a match to a hand. Raises BadRecord."""
    if not turns or not turns[0].requests:
        raise BadRecord("the match has no requests")
    first = turns[0].requests
    try:
        kind = of_request(first[min(first)])
        made = _GAMES[kind.game](turns, initdata, kind is FightTheLandlord2)
    except Mismatch as error:
        raise BadRecord(str(error)) from None
    return msgspec.structs.replace(made, scores=scores, exact=kind.game == "mahjong")


# ------------------------------------------------------------------------------------------------------------ reversi


def _reversi(turns: Sequence[Turn], initdata: Json, _: bool) -> HandRecord:
    actions: list[Action] = []
    for turn in turns:
        for seat, said in turn.responses.items():
            actions.append((seat, word_of(said)))
    return HandRecord(game="othello", actions=tuple(actions))


# --------------------------------------------------------------------------------------------------------- Dou Dizhu


def _doudizhu(turns: Sequence[Turn], initdata: Json, bidding: bool) -> HandRecord:
    preset = {"preset": "botzone-bid" if bidding else "botzone"}
    deal = _cards_dealt(turns)
    game = rules.game("doudizhu", **preset)
    state = game.state_from_deal(deal)
    for turn in turns:
        for seat, said in turn.responses.items():
            _play_cards(state, seat, said)
    return HandRecord(game="doudizhu", rules=preset, deal=deal, actions=tuple(state.actions))


def _cards_dealt(turns: Sequence[Turn]) -> Json:
    """Return the deal, from the first request to each seat and the three public cards."""
    own: dict[int, frozenset[int]] = {}
    bottom: frozenset[int] = frozenset()
    for turn in turns:
        for seat, asked in turn.requests.items():
            if not isinstance(asked, dict):
                raise BadRecord("a request of Dou Dizhu is an object")
            bottom = bottom or frozenset(asked.get("publiccard") or ())
            if asked.get("own"):
                own.setdefault(seat, frozenset(asked["own"]))
    hands = [
        own.get(seat, frozenset()) - (bottom if len(own.get(seat, ())) == 20 else frozenset()) for seat in range(3)
    ]
    unknown = [seat for seat in range(3) if not hands[seat]]
    if len(unknown) == 1:
        hands[unknown[0]] = frozenset(DECK) - bottom - frozenset().union(*hands)
    if sorted([*bottom, *(card for hand in hands for card in hand)]) != list(DECK):
        raise BadRecord("the hands and the public cards are not the 54 cards")
    return {"hands": [NUMBERING.text(hand) for hand in hands], "bottom": NUMBERING.text(bottom), "first": 0}


def _play_cards(state: State, seat: int, said: Any) -> None:
    """Apply a response of Dou Dizhu. Raises BadRecord."""
    where = f"action {len(state.actions) + 1} ({seat}:{str(said)[:60]})"
    if state.terminal or seat not in state.to_act:
        raise BadRecord(f"{where}: seat {seat} is not asked")
    view = state.view(seat)
    if view.phase == "bid":
        words = [f"bid{int(said)}"]
    elif said:
        cards = [int(card) for card in said]
        words = NUMBERING.readings(cards, state.game) if all(card in DECK for card in cards) else []
    else:
        words = ["pass"]
    for word in words:
        action = state.game.parse(word)
        if view.is_legal(action):
            state.apply(seat, action)
            return
    raise BadRecord(f"{where}: not legal there")


# ----------------------------------------------------------------------------------------------------------- mahjong


def _mahjong(turns: Sequence[Turn], initdata: Json, _: bool) -> HandRecord:
    deal, flowers = _tiles_dealt(turns, initdata)
    options: Json = {**BOTZONE, **({"flowers": True} if flowers else {})}
    state = rules.game("mahjong", **options).state_from_deal(deal)
    for number, turn in enumerate(turns):
        try:
            _answer(state, turn, number)
        except Mismatch as error:
            raise BadRecord(f"round {number}: {error}") from None
    return HandRecord(game="mahjong", rules=options, deal=deal, actions=tuple(state.actions))


def _tiles_dealt(turns: Sequence[Turn], initdata: Json) -> tuple[Json, bool]:
    """Return the deal and whether it has flowers. Without a recorded wall, use the dealt and drawn tiles."""
    wind = ""
    tiles = Tiles()
    for turn in turns:
        for seat, asked in turn.requests.items():
            match str(asked).split():
                case ["0", _, number]:
                    wind = WINDS[int(number)]
                case ["1", *words]:
                    tiles.dealt(seat, [int(word) for word in words[:4]], words[4:17], words[17:])
                case ["2", tile]:
                    tiles.drew(seat, tile)
                case ["3", who, "BUHUA", flower] if int(who) == seat:
                    tiles.laid(seat, flower)
    if not wind:
        raise BadRecord("the record does not name the prevalent wind")
    tiles_text = initdata.get("walltiles")
    wall = tiles_text.split() if isinstance(tiles_text, str) else tiles_text
    if not isinstance(wall, list) or tiles.flowers:
        wall = wall_of(tiles)
    return {"prevalent_wind": wind, "wall": wall}, tiles.flowers


def _answer(state: State, turn: Turn, number: int) -> None:
    """Apply the seats' responses to a round of requests. Raises BadRecord."""
    said = {seat: " ".join(str(answer or "PASS").split()) for seat, answer in turn.responses.items()}
    drawn = [seat for seat, asked in turn.requests.items() if str(asked).startswith("2 ")]
    if drawn:
        act(state, drawn[0], action_of(said.get(drawn[0], "PASS"), None), f"round {number}")
        return
    if not claiming(state):
        claimed = [seat for seat, answer in said.items() if answer != "PASS"]
        if claimed and number > 1:
            raise BadRecord(f"round {number}: seat {claimed[0]} answers {said[claimed[0]]}, but may not")
        return
    asked = state.to_act
    for seat in said:
        if said[seat] != "PASS" and seat not in asked:
            raise BadRecord(f"round {number}: seat {seat} claims what it cannot")
    last = str(state.view(asked[0]).to_json()["last_tile"])
    for seat in asked:
        act(state, seat, action_of(said.get(seat, "PASS"), last), f"round {number}")
    if not state.terminal and state.view(state.to_act[0]).phase == "discard":
        (seat,) = state.to_act
        act(state, seat, f"play:{said[seat].split()[-1]}", f"round {number}")


_GAMES: dict[str, Callable[[Sequence[Turn], Json, bool], HandRecord]] = {
    "othello": _reversi,
    "doudizhu": _doudizhu,
    "mahjong": _mahjong,
}
