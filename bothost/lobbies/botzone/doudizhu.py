"""Dou Dizhu at Botzone: FightTheLandlord, and FightTheLandlord2 with bidding.

Cards are 0 … 53: four suits of each rank from 3 to 2, then the jokers. A request holds the two plays before ours
(``history``). The first one also holds our cards (``own``) and the three public cards (``publiccard``). A response is
a list of cards, empty for a pass. In the bidding, a request is ``{"own", "bid": [bids so far]}`` and the response is
0 … 3. The next request names the landlord, whose ``own`` lacks the public cards. Of the bids after ours it shows only
the highest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from bothost import rules
from bothost.lobbies.botzone.dialect import Dialect, Folded, Mismatch
from bothost.lobbies.doudizhu_cards import Numbering, fold_first
from bothost.rules.game import Game, Json, View

Card = Annotated[int, Meta(ge=0, le=53)]
Play = Annotated[tuple[Card, ...], Meta(max_length=20)]
Seat = Annotated[int, Meta(ge=0, le=2)]
Bid = Annotated[int, Meta(ge=0, le=3)]
SEATS = 3
BLIND_SEQ = 100
"""Views that do not know the bids count their events from this number. No bidding has so many events."""

NUMBERING = Numbering(lambda card: "BR"[card - 52] if card >= 52 else "3456789TJQKA2"[card // 4])


class Request(msgspec.Struct, frozen=True):
    """A request of the judge. Unknown members are ignored."""

    own: Play = ()
    history: Annotated[tuple[Play, ...], Meta(max_length=2)] = ((), ())
    publiccard: Annotated[tuple[Card, ...], Meta(max_length=3)] = ()
    bid: Annotated[tuple[Bid, ...], Meta(max_length=3)] | None = None
    landlord: Seat | None = None
    pos: Seat | None = None
    finalbid: int = 0


class FightTheLandlord(Dialect):
    """Without bidding: seat 0 is the landlord and starts with 20 cards."""

    name: ClassVar[str] = "FightTheLandlord"
    game: ClassVar[str] = "doudizhu"
    preset: ClassVar[str] = "botzone"
    players: ClassVar[int] = SEATS

    def __init__(self, rules: Json) -> None:
        super().__init__({"preset": self.preset, **rules})
        self._cards: frozenset[int] = frozenset()
        """Our hand."""

    def take(self, request: Any, answered: Any) -> Folded:
        parsed = _request(request)
        if self.view is not None:
            return self._later(parsed, answered)
        if len(parsed.own) not in (17, 20):
            raise Mismatch("the beginning of the match is missing")
        bottom, own = _three(parsed), frozenset(parsed.own)
        seat = 0 if len(own) == 20 else 2 if parsed.history and parsed.history[0] else 1
        self._begin(seat)
        self._cards = own
        dealt = own - frozenset(bottom) if seat == 0 else own
        events = self._observe(f"deal {seat} {NUMBERING.text(dealt)} 0", f"landlord 0 {NUMBERING.text(bottom)}")
        return Folded(events + self._others(parsed.history[-seat:] if seat else ()))

    def respond(self, actions: Sequence[str]) -> Any:
        (action,) = actions
        if action.startswith("bid"):
            return int(action.removeprefix("bid"))
        return [] if action == "pass" else NUMBERING.pick(self._cards, action)

    def blind(self, request: Any, answered: Any = None) -> Any:
        """A pass, or, if we must lead, one card that we still hold."""
        if isinstance(answered, list):
            self._cards = frozenset(card for card in self._cards if card not in answered)
        try:
            parsed = _request(request)
        except Mismatch:
            return []
        if parsed.bid is not None:
            return 0
        return [] if any(parsed.history) else sorted(self._cards or parsed.own)[:1]

    # --------------------------------------------------------------------------------------------------------- plays

    def _later(self, parsed: Request, answered: Any) -> Folded:
        """Handle a request after the first one of the play, which alone shows our cards."""
        if parsed.own:
            raise Mismatch("our cards are shown a second time")
        return Folded(self._own(answered) + self._others(parsed.history))

    def _own(self, answered: Any) -> list[str]:
        if self.view is not None and self.view.phase == "bid":
            return self._observe(f"bid {self.seat} bid{answered}")
        cards = _request({"own": answered or ()}).own  # the platform may tell us anything as our response
        lines = self._play(self.seat, cards)
        self._cards -= frozenset(cards)
        return lines

    def _others(self, plays: Sequence[Sequence[int]]) -> list[str]:
        """The plays of the seats before us, up to the last one."""
        lines: list[str] = []
        for back, cards in zip(range(len(plays), 0, -1), plays, strict=True):
            lines += self._play((self.seat - back) % SEATS, cards)
        return lines

    def _play(self, seat: int, cards: Sequence[int]) -> list[str]:
        if not cards:
            return self._observe(f"pass {seat}")
        assert self.view is not None
        readings = NUMBERING.readings(cards, self.view.game)
        return [fold_first(self.view, (f"play {seat} {text}" for text in readings))]


class FightTheLandlord2(FightTheLandlord):
    """With bidding: each seat once, from seat 0 on, until a seat bids 3."""

    name: ClassVar[str] = "FightTheLandlord2"
    preset: ClassVar[str] = "botzone-bid"

    def __init__(self, rules: Json) -> None:
        super().__init__(rules)
        self._bids: tuple[int, ...] = ()
        """Those before ours."""

    def take(self, request: Any, answered: Any) -> Folded:
        parsed = _request(request)
        if parsed.bid is not None:
            return self._bidding(parsed)
        if self.view is not None and self.view.phase == "play":
            return self._later(parsed, answered)
        if parsed.landlord is None or parsed.pos is None:
            raise Mismatch("the request after the bidding names no landlord")
        return self._settled(parsed, parsed.landlord, parsed.pos, answered)

    def _bidding(self, parsed: Request) -> Folded:
        if self.view is not None:
            raise Mismatch("the judge asks for a second bid")
        assert parsed.bid is not None
        seat = len(parsed.bid) if parsed.pos is None else parsed.pos
        if seat >= SEATS or len(parsed.own) != 17:
            raise Mismatch("a request for a bid has more than 2 earlier bids, or not 17 cards")
        self._begin(seat)
        self._cards, self._bids = frozenset(parsed.own), parsed.bid
        events = self._observe(f"deal {seat} {NUMBERING.text(parsed.own)} 0")
        return Folded(events + self._observe(*(f"bid {i} bid{bid}" for i, bid in enumerate(parsed.bid))))

    def _settled(self, parsed: Request, landlord: int, seat: int, answered: Any) -> Folded:
        """Handle the first request after the bidding. If the other bids cannot be inferred, the view begins here."""
        bottom = _three(parsed)
        dealt = frozenset(parsed.own) - frozenset(bottom)
        if len(dealt) != 17:
            raise Mismatch(f"the hand without the public cards has {len(dealt)} cards, not 17")
        if self.view is not None and dealt != self._cards:
            raise Mismatch("our cards are not those that we were dealt")
        known = dict(enumerate(self._bids))
        if self.view is not None:
            known[self.view.seat] = answered
        bids = bids_that_fit(known, landlord, parsed.finalbid, None if self.view is not None else seat)
        since = (seat - landlord) % SEATS
        plays = parsed.history[len(parsed.history) - since :]
        self._cards = dealt | frozenset(bottom) if seat == landlord else dealt
        events: list[str] = []
        if bids is None or (self.view is not None and self.view.seat != seat):
            self._from_here(seat, landlord, bottom, parsed.finalbid)
            return Folded(self._others(plays), anew=True)
        if self.view is None:
            self._begin(seat)
            events = self._observe(f"deal {seat} {NUMBERING.text(dealt)} 0")
        bids_known = len(self._bids)
        events += self._observe(*(f"bid {i} bid{bid}" for i, bid in enumerate(bids) if i >= bids_known))
        events += self._observe(f"landlord {landlord} {NUMBERING.text(bottom)}")
        return Folded(events + self._others(plays))

    def _from_here(self, seat: int, landlord: int, bottom: Sequence[int], stake: int) -> None:
        game: Game = rules.game(self.game, **self.rules)
        position: Json = {"seat": seat, "hand": NUMBERING.text(self._cards), "landlord": landlord, "turn": landlord}
        position |= {"bottom": NUMBERING.text(bottom), "stake": max(1, min(3, stake)), "seq": BLIND_SEQ}
        try:
            self.view = game.view_from_snapshot(position)
        except ValueError as error:
            raise Mismatch(str(error)) from None


def _request(value: Any) -> Request:
    """Raises Mismatch."""
    try:
        return msgspec.convert(value, Request)
    except (msgspec.ValidationError, UnicodeError) as error:
        raise Mismatch(str(error)) from None


def _three(parsed: Request) -> tuple[int, ...]:
    if len(parsed.publiccard) != 3:
        raise Mismatch(f"there are {len(parsed.publiccard)} public cards, not 3")
    return parsed.publiccard


# ----------------------------------------------------------------------------------------------------------- bidding


@cache
def _biddings() -> tuple[tuple[int, ...], ...]:
    """Every bidding that the rules allow."""

    def further(bids: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        best = max(bids, default=0)
        if best == 3 or len(bids) == SEATS:
            yield bids
            return
        for bid in (0, *range(best + 1, 4)):
            yield from further((*bids, bid))

    return tuple(further(()))


def bids_that_fit(
    known: Mapping[int, int], landlord: int, final: int, unasked: int | None = None
) -> tuple[int, ...] | None:
    """The only bidding with these bids, landlord and highest bid; None if there is not exactly one.

    ``unasked``: a seat that was never asked for a bid. If all pass, seat 0 is the landlord.
    """
    fitting = [
        bids
        for bids in _biddings()
        if all(seat < len(bids) and bids[seat] == bid for seat, bid in known.items())
        if (max(bids) == final and bids.index(final) == landlord) or (not any(bids) and landlord == 0 and final <= 1)
        if unasked is None or len(bids) <= unasked
    ]
    return fitting[0] if len(fitting) == 1 else None


# ------------------------------------------------------------------------------------------------- the judge's side


class Cards:
    """The numbered cards of a match: what a judge knows and asks."""

    def __init__(self, deal: Json, *, bidding: bool) -> None:
        deck = set(range(54))
        self.hands: list[set[int]] = []
        for text in (*deal["hands"], deal["bottom"]):
            self.hands.append(set(NUMBERING.pick(deck, text)))
            deck -= self.hands[-1]
        self._bottom = self.hands.pop()
        if not bidding:
            self.hands[0] |= self._bottom
        self._own = [sorted(hand) for hand in self.hands]
        self._bids: list[int] = []
        self._plays: list[list[int]] = []
        self._introduced: set[int] = set()
        """Seats that have received their cards for the play."""

    def request(self, view: View) -> Json:
        """The request to the seat of a view, whose turn it is."""
        seat = view.seat
        if view.phase == "bid":
            return {"own": self._own[seat], "bid": list(self._bids)}
        landlord = int(view.to_json()["landlord"])
        if not self._plays:
            self.hands[landlord] |= self._bottom
        request: Json = {"history": [[], [], *self._plays][-2:]}
        if seat not in self._introduced:
            self._introduced.add(seat)
            request |= {"own": self._own[seat], "publiccard": sorted(self._bottom)}
            if self._bids:
                request |= {"landlord": landlord, "pos": seat, "finalbid": max(self._bids)}
        return request

    def did(self, seat: int, word: str, cards: Sequence[int] = ()) -> Any:
        """Take an action after its request. Returns its response. ``cards``: which of these ranks are played."""
        if word.startswith("bid"):
            self._bids.append(int(word.removeprefix("bid")))
            return self._bids[-1]
        played = list(cards) if cards or word == "pass" else NUMBERING.pick(self.hands[seat], word)
        self.hands[seat].difference_update(played)
        self._plays.append(played)
        return played
