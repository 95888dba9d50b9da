"""Judges for the fake of Botzone. Each runs one match of a game against opponents that play at random.

A judge talks to one seat, ``me``: ``request`` is its request, and ``answer`` takes the response. It is strict: an
illegal or malformed response loses the match.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import msgspec

from bothost import rules
from bothost.lobbies.botzone.dialect import Mismatch
from bothost.lobbies.botzone.doudizhu import NUMBERING, Cards
from bothost.lobbies.botzone.mahjong import WINDS, action_of
from bothost.lobbies.botzone.reversi import square_of, word_of
from bothost.rules.game import State


class Illegal(ValueError):
    """A response that loses the match."""


def _action(decode: Callable[..., str], *message: Any) -> str:
    """Decode a response. Raises Illegal."""
    try:
        return decode(*message)
    except Mismatch as error:
        raise Illegal(str(error)) from None


class Judge(ABC):
    """One match. ``seed`` is for the deal, ``rng`` for the moves of the others."""

    players: ClassVar[int]
    state: State

    def __init__(self, me: int, seed: int, rng: random.Random) -> None:
        self.me = me
        self.rng = rng
        self.request: Any = None
        """The open request: an object or a line of text. None once the match is over."""
        self.scores: tuple[float, ...] = ()
        self.moves: list[str] = []
        """The moves of ``me`` in canonical notation."""

    def answer(self, response: Any) -> None:
        """Take a response. Raises Illegal, which ends and loses the match."""
        try:
            self._take(response)
        except Illegal:
            self.request = None
            self.scores = self._forfeit()
            raise
        if self.state.terminal:
            self.request, self.scores = None, tuple(self.state.returns)

    @abstractmethod
    def _take(self, response: Any) -> None: ...

    def _forfeit(self) -> tuple[float, ...]:
        return tuple(-2.0 if seat == self.me else 1.0 for seat in range(self.players))

    def _do(self, seat: int, word: str) -> None:
        try:
            action = self.state.game.parse(word)
        except ValueError as error:
            raise Illegal(str(error)) from None
        if action not in self.state.legal(seat):
            raise Illegal(f"{word} is not legal")
        if seat == self.me:
            self.moves.append(word)
        self.state.apply(seat, action)

    def _random(self, seat: int) -> str:
        action = int(self.rng.choice(list(self.state.legal(seat))))
        self.state.apply(seat, action)
        return self.state.game.notation(action)


class ReversiJudge(Judge):
    players = 2

    def __init__(self, me: int, seed: int, rng: random.Random) -> None:
        super().__init__(me, seed, rng)
        self.state = rules.game("othello").new_state(0)
        self.request = {"x": -1, "y": -1}
        if me == 1:
            self._opponent()

    def _take(self, response: Any) -> None:
        if not isinstance(response, dict):
            raise Illegal("the response must be a square")
        self._do(self.me, _action(word_of, response))
        if not self.state.terminal:
            self._opponent()

    def _opponent(self) -> None:
        self.request = square_of(self._random(1 - self.me))


class LandlordJudge(Judge):
    """FightTheLandlord; with ``bidding`` FightTheLandlord2."""

    players = 3
    bidding = False

    def __init__(self, me: int, seed: int, rng: random.Random) -> None:
        super().__init__(me, seed, rng)
        self.state = rules.game("doudizhu", preset="botzone-bid" if self.bidding else "botzone").new_state(seed)
        self.cards = Cards(self.state.deal, bidding=self.bidding)
        self._go_on()

    def _take(self, response: Any) -> None:
        if self.state.view(self.me).phase == "bid":
            if not isinstance(response, int):
                raise Illegal("a bid is a number")
            word, played = f"bid{response}", []
        else:
            if not isinstance(response, list) or not self.cards.hands[self.me].issuperset(response):
                raise Illegal("the hand does not have these cards")
            if len(set(response)) != len(response):
                raise Illegal("a card is played twice")
            word, played = self._reading(NUMBERING.text(response)) if response else "pass", response
        self._do(self.me, word)
        self.cards.did(self.me, word, played)
        self._go_on()

    def _reading(self, text: str) -> str:
        legal = [self.state.game.notation(int(action)) for action in self.state.legal(self.me)]
        word = next((word for word in legal if sorted(word) == sorted(text)), None)
        if word is None:
            raise Illegal(f"{text} cannot be played now")
        return word

    def _go_on(self) -> None:
        """The others play until our turn."""
        while not self.state.terminal:
            (seat,) = self.state.to_act
            request = self.cards.request(self.state.view(seat))
            if seat == self.me:
                self.request = request
                return
            self.cards.did(seat, self._random(seat))


class BiddingJudge(LandlordJudge):
    bidding = True


class MahjongJudge(Judge):
    """Every event of the seat is a request. ``me`` must answer PASS if it has nothing to decide."""

    players = 4
    flowers = False

    def __init__(self, me: int, seed: int, rng: random.Random) -> None:
        super().__init__(me, seed, rng)
        self.state = rules.game("mahjong", preset="botzone", flowers=self.flowers).new_state(seed)
        events = self.state.events(me)
        self.sent = self._dealt(events)
        self.queue: list[str] = []
        self.queue += self._beginning(events[: self.sent])
        self._collect()
        self.request = self.queue.pop(0)

    @staticmethod
    def _dealt(events: list[str]) -> int:
        """The number of events for the deal and its flowers."""
        owed = 0
        for at, event in enumerate(events[1:], 1):
            if event.startswith("flower"):
                owed += 1
            elif owed == 0:
                return at
            else:
                owed -= 1
        return len(events)

    def _beginning(self, events: list[str]) -> list[str]:
        _, _, wind, *hand = events[0].split()
        flowers: list[list[str]] = [[], [], [], []]
        for words in (event.split() for event in events[1:]):
            if words[0] == "flower":
                flowers[int(words[1])].append(words[2])
            elif len(words) == 3:
                hand.append(words[2])
        tiles = [tile for tile in hand if tile[0] != "H"]
        counts = " ".join(str(len(seat)) for seat in flowers)
        shown = [flower for seat in flowers for flower in seat]
        quan = WINDS.index(wind)
        return [f"0 {self.me} {quan}", " ".join(["1", counts, *tiles, *shown])]

    def _take(self, response: Any) -> None:
        if not isinstance(response, str):
            raise Illegal("the response must be a line of text")
        if (self.queue or self.me not in self.state.to_act) and response != "PASS":
            raise Illegal(f"{response} as the response to a request that needs PASS")
        if not self.queue:
            self._round(response)
            self._collect()
        if self.queue:
            self.request = self.queue.pop(0)

    def _round(self, response: str) -> None:
        """Everybody who is asked answers. A successful claim is followed by its discard."""
        asked, discard = self.state.to_act, ""
        for seat in asked:
            if seat == self.me:
                view = self.state.view(seat)
                last = None if view.phase == "turn" else view.to_json()["last_tile"]
                self._do(seat, _action(action_of, response, last))
                discard = response.split()[-1]
            else:
                self._other(seat)
        while not self.state.terminal and len(self.state.to_act) == 1:
            (seat,) = self.state.to_act
            if self.state.view(seat).phase != "discard":
                return
            if seat == self.me:
                self._do(seat, f"play:{discard}")
            else:
                self._random(seat)

    def _other(self, seat: int) -> None:
        legal = [self.state.game.notation(int(action)) for action in self.state.legal(seat)]
        if "hu" in legal:
            self.state.apply(seat, self.state.game.parse("hu"))
        elif legal[0] == "pass" and self.rng.random() < 0.7:
            self.state.apply(seat, self.state.game.parse("pass"))
        else:
            self._random(seat)

    def _collect(self) -> None:
        """Turn the new events of our seat into requests."""
        events = [event.split() for event in self.state.events(self.me, self.sent)]
        self.sent += len(events)
        at = 0
        while at < len(events):
            kind, seat, *tiles = events[at]
            after = events[at + 1] if at + 1 < len(events) else [""]
            at += 1
            if kind in ("chi", "peng"):
                middle = f"{tiles[0]} " if kind == "chi" else ""
                self.queue.append(f"3 {seat} {kind.upper()} {middle}{after[2]}")
                at += 1
            elif kind == "draw" and after[0] == "flower":
                self.queue.append(f"3 {seat} BUHUA {after[2]}")
                at += 1
            elif kind == "draw":
                self.queue.append(f"2 {tiles[0]}" if int(seat) == self.me else f"3 {seat} DRAW")
            elif kind in ("gang", "angang"):
                self.queue.append(f"3 {seat} GANG")
            elif kind in ("play", "bugang"):
                self.queue.append(f"3 {seat} {kind.upper()} {tiles[0]}")

    def _forfeit(self) -> tuple[float, ...]:
        return tuple(-30.0 if seat == self.me else 10.0 for seat in range(4))


class FlowerJudge(MahjongJudge):
    flowers = True


JUDGES: dict[str, type[Judge]] = {
    "FightTheLandlord": LandlordJudge,
    "FightTheLandlord2": BiddingJudge,
    "Chinese-Standard-Mahjong": MahjongJudge,
    "Reversi": ReversiJudge,
}


def written(request: Any, simple: bool) -> str:
    """Encode a request as the platform does."""
    if isinstance(request, dict) and simple and "x" in request:
        return f"{request['x']} {request['y']}"
    if isinstance(request, str) and simple:
        return request
    return msgspec.json.encode(request).decode()


def read(text: str, request: Any, simple: bool) -> Any:
    """Decode a response to ``request`` as the game's judge does. Raises Illegal."""
    try:
        if isinstance(request, str):
            return text if simple else msgspec.json.decode(text, type=str)
        if simple and "x" in request:
            x, y = map(int, text.split())
            return {"x": x, "y": y}
        return msgspec.json.decode(text)
    except (ValueError, msgspec.DecodeError):
        raise Illegal(f"{text[:60]} is not in the form of the request") from None
