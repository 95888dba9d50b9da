"""The hands at the fake of mailgyc/doudizhu: dealing, calling, playing, and robots."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any, Protocol

from bothost import rules
from bothost.lobbies.mailgyc import protocol as wire
from bothost.rules import doudizhu
from bothost.testing.fake_mailgyc.parts import OVER, FakePlayer, Room, Traps


class Lobby(Protocol):
    """The server, as its hands use it."""

    rng: random.Random
    traps: Traps
    rooms: dict[int, Room]

    def sit(self, player: FakePlayer, room: Room) -> None: ...
    def remove(self, player: FakePlayer, room: Room) -> None: ...
    def say(self, player: FakePlayer, code: int, /, **body: Any) -> None: ...
    def broadcast(self, room: Room, code: int, /, **body: Any) -> None: ...
    def fail(self, player: FakePlayer, reason: str) -> None: ...
    def later(self, after_s: float, call: Callable[..., object], *args: object) -> asyncio.TimerHandle: ...


class Hands:
    """Plays hands at tables with three players."""

    def __init__(self, lobby: Lobby) -> None:
        self.game = rules.game("doudizhu", preset="mailgyc")
        self.played = 0
        self.moves = 0
        self.refusals: dict[tuple[int, int, str], int] = {}
        """(player, move number, frame) → how often it was refused."""
        self._lobby = lobby
        self._client_moves = 0

    def fill_with_robots(self, room: Room) -> None:
        if len(room.players) != 1:
            return
        while None in room.seats:
            place = room.seats.index(None)
            uid = 10_000 + 3 * room.number + place
            robot = FakePlayer(uid, f"IDIOT-{place}", robot=True, room=room, state=wire.WAITING)
            self._lobby.sit(robot, room)
            self.ready(robot, room, 1)

    def ready(self, player: FakePlayer, room: Room, ready: int) -> None:
        player.ready = ready
        self._lobby.broadcast(room, wire.READY_CHANGED, uid=player.uid, ready=ready)
        if len(room.players) == 3 and all(each.ready for each in room.players):
            self._deal(room)

    def _deal(self, room: Room) -> None:
        deck = list(range(1, 55))
        self._lobby.rng.shuffle(deck)
        hands = [deck[i * 17 : i * 17 + 17] for i in range(3)]
        room.bottom, room.multiple, room.last = deck[51:], 15, (0, [])
        deal = {"hands": [wire.text_of(hand) for hand in hands], "bottom": wire.text_of(room.bottom)}
        room.truth = self.game.state_from_deal({**deal, "first": room.first})
        for player, hand in zip(room.players, hands, strict=True):
            player.cards, player.state = hand, wire.CALLING
        first = room.players[room.first].uid
        for player in room.players:
            self._lobby.say(player, wire.DEALT, uid=first, timer=40, pokers=player.cards)
        self._robot_turn(room)

    def _robot_turn(self, room: Room) -> None:
        dead = self._lobby.traps.dead_after is not None and self.moves >= self._lobby.traps.dead_after
        mover = room.mover
        if mover is not None and mover.robot and not dead:
            self._lobby.later(0.0, self._robot_moves, room, mover)

    def wake_robots(self) -> None:
        """Let robots move that ``dead_after`` had stopped."""
        for room in self._lobby.rooms.values():
            self._robot_turn(room)

    def _robot_moves(self, room: Room, robot: FakePlayer) -> None:
        seat = room.truth.to_act[0]
        action = self.game.notation(int(self._lobby.rng.choice(list(room.truth.legal(seat)))))
        if robot.state == wire.CALLING:
            body: dict[str, Any] = {"rob": int(action != "bid0")}
        else:
            body = {"pokers": [] if action == "pass" else wire.pick(robot.cards, action)}
        self.move(room, robot, "", body)

    def move(self, room: Room, player: FakePlayer, text: str, body: dict[str, Any]) -> None:
        """A move of the player whose turn it is."""
        seat = room.truth.to_act[0]
        calling = player.state == wire.CALLING
        action, reason = self._call(room, seat, body) if calling else self._shot(room, seat, player, body)
        if (
            action is not None
            and not player.robot
            and len(room.truth.legal(seat)) > 3
            and self._lobby.rng.random() < self._lobby.traps.refuse
        ):
            action, reason = None, "Poker does not comply with the rules"
        if action is None:
            key = (player.uid, self.moves, wire.text_of(body["pokers"]) if reason and "comply" in reason else text)
            self.refusals[key] = self.refusals.get(key, 0) + 1
            return self._lobby.fail(player, reason)
        self.moves += 1
        room.truth.apply(seat, action)
        self._client_moves += not player.robot
        drop_every = self._lobby.traps.drop_every
        if player.line is not None and drop_every and self._client_moves % drop_every == 0:
            player.line.abort()
        if calling:
            self._tell_call(room, player, int(body["rob"]))
        else:
            self._tell_shot(room, seat, player, list(body["pokers"]))
        self._robot_turn(room)

    def _call(self, room: Room, seat: int, body: dict[str, Any]) -> tuple[int | None, str]:
        legal = {self.game.notation(int(a)): int(a) for a in room.truth.legal(seat)}
        took = next(action for name, action in legal.items() if name != "bid0")
        return (took if body["rob"] == 1 else legal["bid0"]), ""

    def _shot(self, room: Room, seat: int, player: FakePlayer, body: dict[str, Any]) -> tuple[int | None, str]:
        cards = body.get("pokers") or []
        legal = {int(action) for action in room.truth.legal(seat)}
        if not cards:
            return (0, "") if 0 in legal else (None, "Last shot player does not allow pass")
        if not isinstance(cards, list) or not set(player.cards).issuperset(cards):
            return None, "Poker does not exist"
        readings = doudizhu.readings(wire.text_of(cards))
        if not readings:
            return None, "Poker does not comply with the rules"
        fitting = [action for action in readings if action in legal]
        return (fitting[0], "") if fitting else (None, "Poker small than last shot")

    def _tell_call(self, room: Room, player: FakePlayer, rob: int) -> None:
        player.rob = rob
        room.multiple *= 2 if rob == 1 else 1
        position = room.truth.view(0).to_json()
        result: dict[str, Any] = {"uid": player.uid, "rob": rob, "multiple": room.multiple}
        result |= {"landlord": -1, "pokers": []}
        if position["phase"] != "bid":
            landlord = room.seats[position["landlord"]]
            assert landlord is not None
            landlord.cards = landlord.cards + room.bottom
            room.last = (position["landlord"], [])
            for each in room.players:
                each.state = wire.PLAYING
            result |= {"landlord": landlord.uid, "pokers": room.bottom}
        self._lobby.broadcast(room, wire.CALLED, **result)

    def _tell_shot(self, room: Room, seat: int, player: FakePlayer, cards: list[int]) -> None:
        if cards:
            room.last = (seat, cards)
            player.cards = [card for card in player.cards if card not in cards]
        self._lobby.broadcast(room, wire.SHOT, uid=player.uid, pokers=cards, multiple=room.multiple)
        if room.truth.terminal and None not in room.seats:  # with an empty seat, the lobby fails
            self._end(room, player.uid)

    def _end(self, room: Room, winner: int) -> None:
        self.played += 1
        results = [
            {"uid": player.uid, "point": int(points), "pokers": player.cards}
            for player, points in zip(room.players, room.truth.returns, strict=True)
        ]
        multiple = {"origin": 10, "origin_multiple": 15}
        self._lobby.broadcast(
            room, wire.ENDED, winner=winner, spring=0, antispring=0, multiple=multiple, players=results
        )
        room.first, room.last = (room.first + 1) % 3, (0, [])
        gone = [player for player in room.players if player.left]
        for player in room.players:
            if player.left:
                player.state = OVER
            else:
                player.restart(wire.WAITING)
        for player in room.players:
            if player.left or (gone and player.robot):
                self._lobby.later(0.0, self._lobby.remove, player, room)  # nobody is told
            elif player.robot:
                self._lobby.later(0.01, self._robot_ready, player, room)

    def _robot_ready(self, player: FakePlayer, room: Room) -> None:
        if player in room.players:
            self.ready(player, room, 1)
