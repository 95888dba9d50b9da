"""One hand at mailgyc/doudizhu as our seat knows it: the lobby's numbered cards, and the canonical view.

The lobby does not say whose turn it is; the rules do. So the adapter folds events into a view of its own. The view
also detects frames that contradict earlier ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from bothost import rules
from bothost.lobbies.doudizhu_cards import fold_first
from bothost.lobbies.frames import Mismatch
from bothost.lobbies.mailgyc import protocol as wire
from bothost.rules.game import Game, Json, View

RULES: Json = {"preset": "mailgyc"}
TOOK = 1
"""``rob`` of a player who calls or grabs. The server treats any other number as a refusal."""
BLIND_SEQ = 1000
"""Views that begin after the deal count their events from this number. No complete hand has so many events."""


@cache
def game() -> Game:
    """The game with this lobby's rules."""
    return rules.game("doudizhu", **RULES)


class MailgycHand:
    """One hand, from one seat."""

    __slots__ = ("cards", "dealt", "name", "seat", "uids", "view")

    def __init__(self, name: str, seat: int, uids: tuple[int, ...], cards: Iterable[int], view: View) -> None:
        self.name = name
        """Unique, because it encodes our 17 cards."""
        self.seat = seat
        self.uids = uids
        """Players by seat."""
        self.cards = set(cards)
        """Our hand."""
        self.dealt = cards_named(name)
        """The 17 cards that we were dealt; empty if we did not see the deal."""
        self.view = view

    # ------------------------------------------------------------------------------------------------ what happens

    @classmethod
    def begin(cls, seat: int, uids: tuple[int, ...], frame: wire.Dealt) -> tuple[MailgycHand, list[str]]:
        """Start a hand. Returns it with its first event. Raises Mismatch."""
        if len(set(frame.pokers)) != len(frame.pokers):
            raise Mismatch("a card was dealt twice")
        hand = cls(name_of(frame.pokers), seat, uids, frame.pokers, game().new_view(seat))
        line = f"deal {seat} {wire.text_of(frame.pokers)} {hand.seat_of(frame.uid)}"
        return hand, [fold_first(hand.view, [line])]

    def called(self, frame: wire.Called) -> list[str]:
        """Fold a call, and return its events. Raises Mismatch."""
        seat = self.seat_of(frame.uid)
        calls = ("call", "grab") if frame.rob == TOOK else ("bid0",)
        lines = [fold_first(self.view, (f"bid {seat} {call}" for call in calls))]
        if frame.landlord == -1:
            return lines
        landlord = self.seat_of(frame.landlord)
        lines.append(fold_first(self.view, [f"landlord {landlord} {wire.text_of(frame.pokers)}"]))
        if landlord == self.seat:
            self.cards.update(frame.pokers)
        return lines

    def shot(self, frame: wire.Shot) -> list[str]:
        """Fold a play or a pass, and return its event. Raises Mismatch."""
        seat = self.seat_of(frame.uid)
        if not frame.pokers:
            return [fold_first(self.view, [f"pass {seat}"])]
        if seat == self.seat and not self.cards.issuperset(frame.pokers):
            raise Mismatch("the lobby reports a play of cards that are not in our hand")
        line = fold_first(self.view, (f"play {seat} {text}" for text in _readings(frame.pokers)))
        if seat == self.seat:
            self.cards.difference_update(frame.pokers)
        return [line]

    def accept(self, frame: wire.Shot) -> bool:
        """Take a play of another seat that our rules refuse: the lobby compares only plays of the same kind.

        The view then begins here. Returns whether the hand continues. Raises Mismatch if the lobby refuses it too.
        """
        seat, shown, readings = self.seat_of(frame.uid), self.view.to_json(), _readings(frame.pokers)
        if shown["phase"] != "play" or seat == self.seat or seat != shown["turn"] or not readings:
            raise Mismatch("the lobby reports a play that cannot be")
        counts = shown["counts"]
        counts[seat] -= len(frame.pokers)
        if counts[seat] < 1:
            return False
        kept = ("seat", "phase", "hand", "landlord", "counts", "stake", "first", "bottom")
        position = {name: shown[name] for name in kept} | {"turn": (seat + 1) % 3, "last": [seat, readings[0]]}
        position["seq"] = max(_blind_seq(counts), self.view.seq + 1)
        self.view = game().view_from_snapshot(position)
        return True

    def revealed(self, frame: wire.Ended) -> list[str]:
        """Fold the event that reveals the deal, if the whole deal is known by now. Returns the events."""
        shown = self.view.to_json()
        left = {self.seat_of(result.uid): result.pokers for result in frame.players}
        if not (shown["complete"] and shown["bottom"] and self.view.terminal and len(left) == 3):
            return []
        hands = []
        for seat in range(3):
            cards = list(shown["played"][seat] + wire.text_of(left[seat]))
            for rank in shown["bottom"] if seat == shown["landlord"] else "":
                if rank not in cards:
                    return []
                cards.remove(rank)
            hands.append("".join(cards))
        line = f"reveal - {' '.join(hands)} {shown['bottom']} {shown['first']}"
        try:
            return [fold_first(self.view, [line])]
        except Mismatch:
            return []  # no decision depends on it

    def seat_of(self, uid: int) -> int:
        """The seat of a player. Raises Mismatch for a player who does not sit here."""
        try:
            return self.uids.index(uid)
        except ValueError:
            raise Mismatch(f"player {uid} does not sit here") from None

    # -------------------------------------------------------------------------------------------------- what we say

    def frame_of(self, action: str) -> str:
        """The frame that makes a move. Raises ValueError if we lack the cards."""
        if action in ("bid0", "call", "grab"):
            return wire.encode(wire.CALL, rob=0 if action == "bid0" else TOOK)
        return wire.encode(wire.SHOOT, pokers=[] if action == "pass" else wire.pick(self.cards, action))

    # ---------------------------------------------------------------------------------------- a process's memory

    def memo(self) -> Json:
        """What a new process needs to continue this hand."""
        return {"hand": self.name, "uids": self.uids, "cards": sorted(self.cards), "view": self.view.to_json()}

    @classmethod
    def recall(cls, memo: Json) -> MailgycHand | None:
        """Restore the hand of an earlier process; None if the memo has no valid hand."""
        try:
            view = game().view_from_json(memo["view"])
            return cls(str(memo["hand"]), view.seat, tuple(memo["uids"]), memo["cards"], view)
        except (KeyError, TypeError, ValueError):
            return None

    # ------------------------------------------------------------------------------------- against frame 1006

    def agrees(self, shown: wire.Joined) -> bool:
        """Whether frame 1006 shows the same position as our view."""
        mine = self.view.to_json()
        room = shown.room
        if self.uids != uids_of(shown.players) or mine["phase"] != ("bid" if room.state == wire.CALLING else "play"):
            return False
        if self.cards != set(shown.players[self.seat].pokers) or self.uids[mine["turn"]] != room.whose_turn:
            return False
        if room.state == wire.CALLING:
            return min(len(mine["bids"]), 3) == sum(player.rob != -1 for player in shown.players)
        if mine["counts"] != [len(player.pokers) for player in shown.players]:
            return False
        last = mine["last"]
        return last is None or (self.uids[last[0]] == room.last_shot_uid and last[1] in _readings(room.last_shot_poker))

    def continues(self, shown: wire.Joined) -> bool:
        """Whether this can be the hand that the lobby shows, now or at a later position."""
        if self.view.terminal or self.uids != uids_of(shown.players) or not self.dealt:
            return False
        strange = set(shown.players[self.seat].pokers) - self.dealt
        if room_landlord(shown) == self.seat:
            return len(strange) <= 3
        return not strange

    def caught_up(self, shown: wire.Joined) -> MailgycHand | None:
        """This hand with the moves that we missed; None if frame 1006 does not determine them."""
        if shown.room.state != wire.PLAYING or self.view.phase != "play":
            return None
        counts = [len(player.pokers) for player in shown.players]
        now = set(shown.players[self.seat].pokers)
        hand = MailgycHand(self.name, self.seat, self.uids, self.cards, self.view.clone())
        last = (shown.room.last_shot_uid, shown.room.last_shot_poker)
        for _ in range(4):
            turn = hand.view.to_act
            if turn is None:
                return None
            gone = hand.view.to_json()["counts"][turn] - counts[turn]
            uid = hand.uids[turn]
            cards: tuple[int, ...] = ()
            if gone and turn == self.seat:
                cards = tuple(hand.cards - now)
            elif gone and uid == last[0]:
                cards = last[1]
            if gone != len(cards):
                return None
            try:
                hand.shot(wire.Shot(uid, cards))
            except Mismatch:
                return None
            if hand.agrees(shown):
                return hand
        return None


def resumed(shown: wire.Joined, uid: int, known: MailgycHand | None) -> MailgycHand:
    """The hand that frame 1006 shows, with as much history as we know. Raises Mismatch."""
    if known is not None and known.continues(shown):
        if known.agrees(shown):
            return known
        caught_up = known.caught_up(shown)
        if caught_up is not None:
            return caught_up
    else:
        known = None
    uids = uids_of(shown.players)
    if uid not in uids:
        raise Mismatch("none of the three players is us")
    own = shown.players[uids.index(uid)].pokers
    if 0 in own or len(set(own)) != len(own):
        raise Mismatch("frame 1006 hides or repeats our own cards")
    try:
        return _calling(shown, uids, uid) if shown.room.state == wire.CALLING else _playing(shown, uids, uid, known)
    except (ValueError, IndexError) as error:
        raise Mismatch(f"frame 1006 shows an impossible position: {error}") from None


def _calling(shown: wire.Joined, uids: tuple[int, ...], uid: int) -> MailgycHand:
    """A hand in the calling phase. Frame 1006 shows all calls."""
    seat, turn = uids.index(uid), uids.index(shown.room.whose_turn)
    robs = [player.rob for player in shown.players]
    calls = sum(rob != -1 for rob in robs)
    first = (turn - calls) % 3
    dealt = wire.Dealt(uids[first], shown.players[seat].pokers)
    hand, _ = MailgycHand.begin(seat, uids, dealt)
    for place in range(calls):
        caller = (first + place) % 3
        hand.called(wire.Called(uids[caller], robs[caller]))
    return hand


def _playing(shown: wire.Joined, uids: tuple[int, ...], uid: int, known: MailgycHand | None) -> MailgycHand:
    """A hand in the playing phase. Frame 1006 shows no history."""
    room, seat = shown.room, uids.index(uid)
    cards = shown.players[seat].pokers
    landlord = room_landlord(shown)
    if landlord is None:
        raise Mismatch("frame 1006 shows no landlord")
    counts = [len(player.pokers) for player in shown.players]
    turn = uids.index(room.whose_turn)
    last: list[Any] | None = None
    if room.last_shot_poker and room.last_shot_uid != room.whose_turn:
        readings = _readings(room.last_shot_poker)
        if not readings:
            raise Mismatch(f"the last cards form no legal play: {wire.text_of(room.last_shot_poker)}")
        last = [uids.index(room.last_shot_uid), readings[0]]
    passes = 0 if last is None else (turn - last[0] - 1) % 3
    seq = _blind_seq(counts) + passes
    view: Json = {"seat": seat, "phase": "play", "hand": wire.text_of(cards), "landlord": landlord}
    view |= {"turn": turn, "counts": counts, "last": last}
    view["stake"] = min(16, 2 ** sum(player.rob == TOOK for player in shown.players))
    if known is not None:
        before = known.view.to_json()
        seq = max(seq, known.view.seq + 1)
        view |= {"first": before["first"], "bottom": before["bottom"]}
        new = set(cards) - known.dealt
        if landlord == seat and not before["bottom"] and len(new) == 3:
            view["bottom"] = wire.text_of(new)
    view["seq"] = seq
    name = known.name if known is not None else f"joined-{name_of(cards)}"
    return MailgycHand(name, seat, uids, cards, game().view_from_snapshot(view))


def _blind_seq(counts: Sequence[int]) -> int:
    """The count of events at a position without a history. It grows with every play."""
    return BLIND_SEQ + 8 * (54 - sum(counts))


def uids_of(players: Iterable[wire.PlayerBody]) -> tuple[int, ...]:
    """Players by seat; -1 for an empty one."""
    return tuple(-1 if player.uid is None else player.uid for player in players)


def room_landlord(shown: wire.Joined) -> int | None:
    """Seat of the landlord."""
    return next((seat for seat, player in enumerate(shown.players) if player.landlord), None)


def name_of(cards: Iterable[int]) -> str:
    """The name of a hand, from the cards that we were dealt. Two hands of an account practically never share it."""
    return f"{sum(1 << card for card in cards):x}"


def cards_named(name: str) -> frozenset[int]:
    """Inverse of ``name_of``; empty for hands whose deal we did not see."""
    try:
        bits = int(name, 16)
    except ValueError:
        return frozenset()
    return frozenset(card for card in range(1, 55) if bits >> card & 1)


def _readings(cards: Sequence[int]) -> list[str]:
    """Notations of the plays that consist of exactly these cards."""
    return wire.NUMBERING.readings(cards, game())
