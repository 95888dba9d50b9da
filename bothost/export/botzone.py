"""Export logged hands as Botzone match logs, one per line: the judge's requests and the responses.

Each hand is replayed under Botzone's rules, and left out if they do not allow it. The log does not have the discard
that would have followed a beaten claim, so another tile of the hand is written instead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from bothost import rules
from bothost.errors import UsageError
from bothost.export.folder import aside
from bothost.export.whole_hands import WholeHand, whole_hands
from bothost.lobbies.botzone.doudizhu import Cards
from bothost.lobbies.botzone.mahjong import WINDS
from bothost.lobbies.botzone.reversi import square_of
from bothost.rules.game import Game, Json, State
from bothost.store.query import HandQuery, players_of
from bothost.store.store import Store

FILE = "matches.jsonl"
_json = msgspec.json.Encoder().encode


class Unfit(ValueError):
    """A hand that Botzone's rules do not allow. The message says why."""


class Log:
    """A match log that grows."""

    def __init__(self, seats: int) -> None:
        self._seats = seats
        self.entries: list[Json] = []

    def ask(self, content: dict[int, Any], responses: dict[int, Any]) -> None:
        """Append a request of the judge to some seats, and their responses."""
        requests = {str(seat): request for seat, request in content.items()}
        self.entries.append({"output": {"command": "request", "content": requests}})
        answers = {str(seat): {"verdict": "OK", "response": responses.get(seat, "PASS")} for seat in content}
        self.entries.append(answers)

    def finish(self, scores: Sequence[float]) -> None:
        content = {str(seat): score for seat, score in enumerate(scores)}
        self.entries.append({"output": {"command": "finish", "content": content}})


def export_matches(
    store: Store,
    query: HandQuery,
    out: Path,
    *,
    name_of: Callable[[str], str] = str,
    progress: Callable[[int], None] = lambda done: None,
) -> Json:
    """Write the hands of a query to ``out/matches.jsonl``. Returns counts. Raises UsageError if the file exists."""
    out.mkdir(parents=True, exist_ok=True)
    path = out / FILE
    if path.exists():
        raise UsageError(f"{path} exists already", advice="name another folder with --out, or delete the file")
    left_out: Counter[str] = Counter()
    counted: Counter[str] = Counter()
    with aside(path) as file:
        for hand in whole_hands(store, query, left_out):
            try:
                match = match_of(hand, name_of)
            except Unfit as error:
                left_out[str(error)] += 1
                continue
            file.write(_json(match) + b"\n")
            counted[match["game"]] += 1
            progress(counted.total())
    return {"format": "botzone", "file": str(path), "matches": dict(counted), "left_out": dict(left_out)}


def match_of(hand: WholeHand, name_of: Callable[[str], str] = str) -> Json:
    """Make the match log of a hand. Raises Unfit."""
    kind = _KINDS.get(hand.game.name)
    if kind is None:
        raise Unfit("of a game that Botzone does not have")
    name, first, log, initdata = kind(hand)
    seats = hand.game.num_seats
    record = hand.timeline.hand.game
    players: list[Json] = [{"type": "bot", "bot": {"_id": f"seat-{seat}"}} for seat in range(seats)]
    for player in players_of(record.players):
        seat, who = player.get("seat"), player.get("player")
        if isinstance(seat, int) and 0 <= seat < seats and isinstance(who, str) and who:
            kind_of = "human" if player.get("bot") is False else "bot"
            named = {"_id": name_of(who), "name": name_of(str(player.get("name") or who))}
            players[(seat - first) % seats] = {"type": kind_of, "user" if kind_of == "human" else "bot": named}
    return {
        "_id": record.game_id.hex(),
        "game": name,
        "create_time": record.started_us // 1000,
        "players": players,
        "initdata": initdata,
        "scores": list(log.entries[-1]["output"]["content"].values()),
        "logs": log.entries,
    }


Kind = tuple[str, int, Log, Json]
"""Botzone's name of the game, our seat that is its seat 0, the log, and the judge's data."""


def _replay(game: Game, deal: Json, actions: Sequence[tuple[int, str]]) -> Iterator[tuple[State, int, str]]:
    """Yield (state, seat, notation) before each action under Botzone's rules. Afterwards the state is the end.

    Raises Unfit.
    """
    try:
        state = game.state_from_deal(deal)
        for seat, word in actions:
            action = game.parse(word)
            if state.terminal or seat not in state.to_act or action not in state.legal(seat):
                raise Unfit("that Botzone's rules do not allow")
            yield state, seat, word
            state.apply(seat, action)
    except ValueError:
        raise Unfit("that Botzone's rules do not allow") from None
    if not state.terminal:
        raise Unfit("that Botzone's rules do not allow")


def _words(hand: WholeHand, first: int = 0) -> list[tuple[int, str]]:
    seats = hand.game.num_seats
    return [((seat - first) % seats, hand.game.notation(action)) for seat, action in hand.actions]


# ------------------------------------------------------------------------------------------------------------ reversi


def _reversi(hand: WholeHand) -> Kind:
    log = Log(2)
    before = square_of("pass")
    for state, seat, word in _replay(rules.game("othello"), hand.deal, _words(hand)):  # noqa: B007 - the end counts
        log.ask({seat: before}, {seat: square_of(word)})
        before = square_of(word)
    log.finish(state.returns)
    if hand.deal != rules.game("othello").new_state(0).deal:
        raise Unfit("that begin from another position")
    return "Reversi", 0, log, {}


# --------------------------------------------------------------------------------------------------------- Dou Dizhu


def _doudizhu(hand: WholeHand) -> Kind:
    bids = any(hand.game.notation(action).startswith("bid") for _, action in hand.actions)
    first = int(hand.deal.get("first", 0))
    deal = {**hand.deal, "hands": [hand.deal["hands"][(first + seat) % 3] for seat in range(3)], "first": 0}
    game = rules.game("doudizhu", preset="botzone-bid" if bids else "botzone")
    cards, log = Cards(deal, bidding=bids), Log(3)
    for state, seat, word in _replay(game, deal, _words(hand, first)):
        log.ask({seat: cards.request(state.view(seat))}, {seat: cards.did(seat, word)})
    log.finish(state.returns)
    return "FightTheLandlord2" if bids else "FightTheLandlord", first, log, {}


# ----------------------------------------------------------------------------------------------------------- mahjong


def _mahjong(hand: WholeHand) -> Kind:
    if hand.game.rules["flowers"]:
        raise Unfit("with flowers")
    if hand.game.rules["wall"] != "per-seat":
        raise Unfit("with one wall for all seats")
    game = rules.game("mahjong", preset="botzone")
    log = Log(4)
    wind = WINDS.index(hand.deal["prevalent_wind"])
    seats = range(4)
    log.ask({seat: f"0 {seat} {wind}" for seat in seats}, {})
    shares = [hand.deal["wall"][34 * seat : 34 * seat + 34] for seat in seats]
    log.ask({seat: f"1 0 0 0 0 {' '.join(shares[seat][:-14:-1])}" for seat in seats}, {})
    claims = _Claims(log)
    for state, seat, word in _replay(game, hand.deal, _words(hand)):
        view = state.view(seat)
        shown = view.to_json()
        verb, _, tile = word.partition(":")
        if view.phase in ("claims", "robbing"):
            claims.claim(seat, verb, tile, shown["hand"])
        elif view.phase == "discard":
            claims.taken(seat, tile)
        else:
            claims.close()
            answer = {"play": f"PLAY {tile}", "angang": f"GANG {tile}", "bugang": f"BUGANG {tile}", "hu": "HU"}[verb]
            drawn = {each: f"2 {shown['drawn']}" if each == seat else f"3 {seat} DRAW" for each in seats}
            log.ask(drawn, {seat: answer})
            if verb != "hu":
                claims.open(f"3 {seat} {'GANG' if verb == 'angang' else answer}")
    claims.close()
    scores = hand.timeline.hand.scores
    if scores is not None and list(scores) != list(state.returns):
        raise Unfit("whose scores differ under Botzone's rules")
    log.finish(state.returns)
    return "Chinese-Standard-Mahjong", 0, log, {"walltiles": " ".join(hand.deal["wall"]), "quan": wind}


class _Claims:
    """The last event that all seats received, until all have answered it."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._event = ""
        self._answers: dict[int, str] = {}
        self._claims: dict[int, str] = {}

    def open(self, event: str) -> None:
        self._event = event

    def claim(self, seat: int, verb: str, tile: str, hand: Sequence[str]) -> None:
        if verb == "pass":
            return
        other = next((each for each in hand if each != tile), hand[0])
        claim = {"hu": "HU", "gang": "GANG", "peng": "PENG", "chi": f"CHI {tile}"}[verb]
        self._claims[seat] = claim
        self._answers[seat] = claim if verb in ("hu", "gang") else f"{claim} {other}"

    def taken(self, seat: int, discard: str) -> None:
        """Record that a chow or pung succeeded and its seat discarded."""
        claim = self._claims[seat]
        self._answers[seat] = f"{claim} {discard}"
        self.close()
        self.open(f"3 {seat} {claim} {discard}")

    def close(self) -> None:
        """Write the event with all answers."""
        if not self._event:
            return
        self._log.ask(dict.fromkeys(range(4), self._event), self._answers)
        kong = [seat for seat, claim in self._claims.items() if claim == "GANG"]
        won = "HU" in self._claims.values()
        self._event, self._answers, self._claims = "", {}, {}
        if kong and not won:
            self._log.ask(dict.fromkeys(range(4), f"3 {kong[0]} GANG"), {})


_KINDS: dict[str, Callable[[WholeHand], Kind]] = {"othello": _reversi, "doudizhu": _doudizhu, "mahjong": _mahjong}
