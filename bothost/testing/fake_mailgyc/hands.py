"""The hands at the fake of mailgyc/doudizhu: dealing, calling, playing, and robots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bothost import rules
from bothost.lobbies.mailgyc import protocol as wire
from bothost.rules import doudizhu
from bothost.testing.fake_mailgyc.parts import Room, Seat

if TYPE_CHECKING:
    from bothost.testing.fake_mailgyc.server import MailgycFake


class Hands:
    """Plays hands at tables with three players."""

    def __init__(self, lobby: MailgycFake) -> None:
        self.game = rules.game("doudizhu", preset="mailgyc")
        self.played = 0
        self.moves = 0
        self.refusals: dict[tuple[int, int, str], int] = {}
        """(player, move number, frame) → how often it was refused."""
        self._lobby = lobby
        self._client_moves = 0

    def fill_with_robots(self, room: Room) -> None:
        while room.taken and None in room.seats:
            place = room.seats.index(None)
            robot = room.seats[place] = Seat(-100 * room.number - place, f"robot-{place}")
            self._lobby.show(room)
            self.ready(room, robot.uid, 1)

    def ready(self, room: Room, uid: int, ready: int) -> None:
        room.seat(uid).ready = ready
        self._lobby.broadcast(room, wire.READY_CHANGED, uid=uid, ready=ready)
        if len(room.taken) == 3 and all(seat.ready for seat in room.taken):
            self._deal(room)

    def _deal(self, room: Room) -> None:
        deck = list(range(1, 55))
        self._lobby.rng.shuffle(deck)
        room.first = self._lobby.rng.randrange(3)
        hands = [deck[i * 17 : i * 17 + 17] for i in range(3)]
        room.bottom, room.state, room.multiple, room.last = deck[51:], wire.CALLING, 15, (-1, [])
        deal = {"hands": [wire.text_of(hand) for hand in hands], "bottom": wire.text_of(room.bottom)}
        room.truth = self.game.state_from_deal({**deal, "first": room.first})
        for seat, hand in zip(room.taken, hands, strict=True):
            seat.cards, seat.rob = hand, -1
        for seat in room.taken:
            self._lobby.say(seat.uid, wire.DEALT, uid=room.taken[room.first].uid, timer=40, pokers=seat.cards)
        self._robot_turn(room)

    def _robot_turn(self, room: Room) -> None:
        dead = self._lobby.traps.dead_after is not None and self.moves >= self._lobby.traps.dead_after
        if room.truth.to_act and -(10**9) < room.taken[room.turn].uid < 0 and not dead:
            self._lobby.later(0.0, self._robot_moves, room, room.taken[room.turn])

    def wake_robots(self) -> None:
        """Let robots move that ``dead_after`` had stopped."""
        for room in self._lobby.rooms.values():
            if room.state != wire.WAITING:
                self._robot_turn(room)

    def _robot_moves(self, room: Room, seat: Seat) -> None:
        action = self.game.notation(int(self._lobby.rng.choice(list(room.truth.legal(room.turn)))))
        if room.state == wire.CALLING:
            body: dict[str, Any] = {"rob": int(action != "bid0")}
        else:
            body = {"pokers": [] if action == "pass" else wire.pick(seat.cards, action)}
        self.move(room, seat.uid, "", body)

    def move(self, room: Room, uid: int, text: str, body: dict[str, Any]) -> None:
        place = room.turn
        calling = room.state == wire.CALLING
        action, reason = self._call(room, body) if calling else self._shot(room, body)
        if (
            action is not None
            and uid > 0
            and len(room.truth.legal(place)) > 3
            and self._lobby.rng.random() < self._lobby.traps.refuse
        ):
            action, reason = None, "Poker does not comply with the rules"
        if action is None:
            key = (uid, self.moves, wire.text_of(body["pokers"]) if reason and "comply" in reason else text)
            self.refusals[key] = self.refusals.get(key, 0) + 1
            return self._lobby.fail(uid, reason)
        self.moves += 1
        room.truth.apply(place, action)
        self._client_moves += uid > 0
        if (
            uid in self._lobby.lines
            and self._lobby.traps.drop_every
            and self._client_moves % self._lobby.traps.drop_every == 0
        ):
            self._lobby.lines.pop(uid).abort()
        if calling:
            self._tell_call(room, uid, place, int(body["rob"]))
        else:
            self._tell_shot(room, uid, place, list(body["pokers"]))
        self._robot_turn(room)

    def _call(self, room: Room, body: dict[str, Any]) -> tuple[int | None, str]:
        legal = {self.game.notation(int(a)): int(a) for a in room.truth.legal(room.turn)}
        took = next(action for name, action in legal.items() if name != "bid0")
        return (took if body["rob"] == 1 else legal["bid0"]), ""

    def _shot(self, room: Room, body: dict[str, Any]) -> tuple[int | None, str]:
        seat, cards = room.taken[room.turn], body.get("pokers") or []
        legal = {int(action) for action in room.truth.legal(room.turn)}
        if not cards:
            return (0, "") if 0 in legal else (None, "Last shot player does not allow pass")
        if not isinstance(cards, list) or not set(seat.cards).issuperset(cards):
            return None, "Poker does not exist"
        readings = doudizhu.readings(wire.text_of(cards))
        if not readings:
            return None, "Poker does not comply with the rules"
        fitting = [action for action in readings if action in legal]
        return (fitting[0], "") if fitting else (None, "Poker small than last shot")

    def _tell_call(self, room: Room, uid: int, place: int, rob: int) -> None:
        room.taken[place].rob = rob
        room.multiple *= 2 if rob == 1 else 1
        position = room.truth.view(0).to_json()
        over = position["phase"] != "bid"
        result: dict[str, Any] = {"uid": uid, "rob": rob, "landlord": -1, "multiple": room.multiple, "pokers": []}
        if over:
            landlord = room.taken[position["landlord"]]
            landlord.cards = landlord.cards + room.bottom
            room.state = wire.PLAYING
            result |= {"landlord": landlord.uid, "pokers": room.bottom}
        self._lobby.broadcast(room, wire.CALLED, **result)

    def _tell_shot(self, room: Room, uid: int, place: int, cards: list[int]) -> None:
        seat = room.taken[place]
        if cards:
            room.last = (uid, cards)
            seat.cards = [card for card in seat.cards if card not in cards]
        self._lobby.broadcast(room, wire.SHOT, uid=uid, pokers=cards, multiple=room.multiple)
        if room.truth.terminal:
            self._end(room, uid)

    def _end(self, room: Room, winner: int) -> None:
        self.played += 1
        returns = room.truth.returns
        results = [
            {"uid": seat.uid, "point": int(points), "pokers": seat.cards}
            for seat, points in zip(room.taken, returns, strict=True)
        ]
        multiple = {"origin": 10, "origin_multiple": 15}
        self._lobby.broadcast(
            room, wire.ENDED, winner=winner, spring=0, antispring=0, multiple=multiple, players=results
        )
        room.state = wire.WAITING
        for seat in room.taken:
            seat.ready, seat.rob, seat.cards = 0, -1, []
        for seat in room.taken:
            if seat.leave:
                self._lobby.leave(room, seat.uid)
        for seat in room.taken:
            if seat.uid < 0:
                self._lobby.later(0.01, self._robot_ready, room, seat.uid)

    def _robot_ready(self, room: Room, uid: int) -> None:
        if room.number in self._lobby.rooms and room.seat_of(uid) is not None:
            self.ready(room, uid, 1)
