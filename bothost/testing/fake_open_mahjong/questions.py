"""The open request of a match of the fake open_mahjong lobby, its clock, and the answers to it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bothost.testing.fake_open_mahjong.game import Match

OFFLINE_S = 0.5
"""The lobby discards for a player who is offline after this time."""
PRIORITY = {"hu_first": 5, "hu_second": 4, "hu_third": 3, "peng": 2, "gang": 2, "pass": 0}
"""Priorities of claims. A chow has 1."""


class Questions:
    """Asks the player who has drawn, or all who may claim a tile, and decides whose answer counts."""

    def __init__(self, match: Match) -> None:
        self.match = match
        self.owner = match.owner
        self.alarm: asyncio.TimerHandle | None = None

    def ask_hand(self, actions: list[str], **members: Any) -> None:
        match = self.match
        match.tick += 1
        match.asked, match.answers = {match.current: actions}, {}
        match.ask = {"kind": "hand", **members}
        for i in range(4):
            match.tell_asked(i)
        self.start_clock()

    def ask_claims(self, claims: dict[int, list[str]], status: str, tile: int) -> None:
        match = self.match
        match.tick += 1
        match.status, match.asked, match.answers = status, claims, {}
        match.ask = {"kind": "claims", "tile": tile}
        for i in claims:
            match.tell_asked(i)
        self.start_clock()

    def start_clock(self) -> None:
        match = self.match
        if self.alarm is not None:
            self.alarm.cancel()
        patience = max(match.seats[i].bank for i in match.asked) + match.room["step_timer"]
        self.alarm = self.owner.later(patience * self.owner.second, self.time_is_up, match.round, match.tick)
        for i in match.asked:
            if match.seats[i].robot or match.seats[i].offline:
                self.move_for(i)

    def move_for(self, index: int) -> None:
        """Move for a robot or a player who is offline, unless the player moves before."""
        match = self.match
        slow = not match.seats[index].robot and match.ask["kind"] == "hand"
        self.owner.later(OFFLINE_S * self.owner.second if slow else 0.0, self.auto, match.round, match.tick, index)

    def auto(self, hand: int, tick: int, index: int) -> None:
        """Discard the drawn tile. A player who is offline passes at flowers, and the clock makes the first discard."""
        match = self.match
        if match.over or (hand, tick) != (match.round, match.tick) or index not in match.asked:
            return
        actions, seat = match.asked[index], match.seats[index]
        if seat.robot and "buhua" in actions:
            self.take(index, "buhua", 0)
        elif "pass" in actions:
            self.take(index, "pass", 0)
        elif seat.spared:
            seat.spared = False
        elif "cut" in actions:
            self.take(index, "cut", seat.tiles[-1])

    def time_is_up(self, hand: int, tick: int) -> None:
        match = self.match
        if match.over or (hand, tick) != (match.round, match.tick) or not match.asked:
            return
        for i in list(match.asked):
            if i in match.answers:
                continue
            match.seats[i].bank = 0
            if "pass" in match.asked[i]:
                self.take(i, "pass", 0)
            elif "cut" in match.asked[i]:
                match.asked = {}
                self.match.cut_tile(i, match.seats[i].tiles[-1], True, None, timeout=True)
            return self.time_is_up(hand, tick)

    def heard(self, index: int, action: str, frame: dict[str, Any]) -> None:
        """Handle a player's answer. An invalid one is ignored, and recorded as a silence."""
        match = self.match
        user = match.seats[index].user
        tile: Any = frame.get("TileId") if action == "cut" else frame.get("targetTile")
        if frame.get("action_tick") != match.tick:
            return self.owner.stale.append((user, str(action)))
        fits = action in match.asked.get(index, ())
        seat = match.seats[index]
        if action == "cut":
            fits = fits and tile in seat.tiles
        elif action == "angang":
            fits = fits and seat.tiles.count(tile) == 4
        elif action == "jiagang":
            fits = fits and f"k{tile}" in seat.combos
        choice = action == "cut" and len(set(seat.tiles)) > 3
        if not fits or index in match.answers or (choice and self.owner.chance(self.owner.traps.ignore, "ignore")):
            return self.owner.silence(user, match.place, f"{action} {tile}")
        self.take(index, action, tile or 0, frame.get("cutIndex"))
        self.owner.moved(user)

    def take(self, index: int, action: str, tile: int, place: int | None = None) -> None:
        match = self.match
        if match.ask["kind"] == "hand":
            match.asked = {}
            return self.match.hand_action(index, action, tile, place)
        match.answers[index] = (action, tile)
        waiting = [i for i in match.asked if i not in match.answers]
        best = max(match.answers, key=lambda i: PRIORITY.get(match.answers[i][0], 1))
        most = PRIORITY.get(match.answers[best][0], 1)
        if any(PRIORITY.get(action, 1) > most for i in waiting for action in match.asked[i]):
            return
        if most == 0 and waiting:
            return
        match.asked = {}
        self.match.claim(best, match.answers[best][0])

    def stop(self) -> None:
        if self.alarm is not None:
            self.alarm.cancel()
