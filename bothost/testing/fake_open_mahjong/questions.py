"""The open request of a match of the fake open_mahjong lobby, its clock, and the answers to it."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

from bothost.testing.fake_open_mahjong.board import Board

OFFLINE_S = 0.5
"""The lobby discards for a player who is offline after this time."""
PRIORITY = {"hu_first": 5, "hu_second": 4, "hu_third": 3, "peng": 2, "gang": 2, "pass": 0}
"""Priorities of claims. A chow has 1."""


class Moves(Protocol):
    """The match, which carries answers out."""

    def hand_action(self, index: int, action: str, tile: int, place: int | None) -> None: ...
    def claim(self, index: int, action: str) -> None: ...
    def cut_tile(self, index: int, tile: int, drawn: bool, place: int | None, *, timeout: bool = False) -> None: ...


class Questions:
    """Asks the player who has drawn, or all who may claim a tile, and decides whose answer counts."""

    def __init__(self, board: Board, moves: Moves) -> None:
        self.board = board
        self.moves = moves
        self.owner = board.owner
        self.alarm: asyncio.TimerHandle | None = None

    def ask_hand(self, actions: list[str], **members: Any) -> None:
        board = self.board
        board.tick += 1
        board.asked, board.answers = {board.current: actions}, {}
        board.ask = {"kind": "hand", **members}
        for i in range(4):
            board.tell_asked(i)
        self.start_clock()

    def ask_claims(self, claims: dict[int, list[str]], status: str, tile: int) -> None:
        board = self.board
        board.tick += 1
        board.status, board.asked, board.answers = status, claims, {}
        board.ask = {"kind": "claims", "tile": tile}
        for i in claims:
            board.tell_asked(i)
        self.start_clock()

    def start_clock(self) -> None:
        board = self.board
        if self.alarm is not None:
            self.alarm.cancel()
        patience = max(board.seats[i].bank for i in board.asked) + board.room["step_timer"]
        self.alarm = self.owner.later(patience * self.owner.second, self.time_is_up, board.round, board.tick)
        for i in board.asked:
            if board.seats[i].robot or board.seats[i].offline:
                self.move_for(i)

    def move_for(self, index: int) -> None:
        """Move for a robot or a player who is offline, unless the player moves before."""
        board = self.board
        slow = not board.seats[index].robot and board.ask["kind"] == "hand"
        self.owner.later(OFFLINE_S * self.owner.second if slow else 0.0, self.auto, board.round, board.tick, index)

    def auto(self, hand: int, tick: int, index: int) -> None:
        """Discard the drawn tile. A player who is offline passes at flowers, and the clock makes the first discard."""
        board = self.board
        if board.over or (hand, tick) != (board.round, board.tick) or index not in board.asked:
            return
        actions, seat = board.asked[index], board.seats[index]
        if seat.robot and "buhua" in actions:
            self.take(index, "buhua", 0)
        elif "pass" in actions:
            self.take(index, "pass", 0)
        elif seat.spared:
            seat.spared = False
        elif "cut" in actions:
            self.take(index, "cut", seat.tiles[-1])

    def time_is_up(self, hand: int, tick: int) -> None:
        board = self.board
        if board.over or (hand, tick) != (board.round, board.tick) or not board.asked:
            return
        for i in list(board.asked):
            if i in board.answers:
                continue
            board.seats[i].bank = 0
            if "pass" in board.asked[i]:
                self.take(i, "pass", 0)
            elif "cut" in board.asked[i]:
                board.asked = {}
                self.moves.cut_tile(i, board.seats[i].tiles[-1], True, None, timeout=True)
            return self.time_is_up(hand, tick)

    def heard(self, index: int, action: str, frame: dict[str, Any]) -> None:
        """Handle a player's answer. An invalid one is ignored, and recorded as a silence."""
        board = self.board
        user = board.seats[index].user
        tile: Any = frame.get("TileId") if action == "cut" else frame.get("targetTile")
        if frame.get("action_tick") != board.tick:
            return self.owner.stale.append((user, str(action)))
        fits = action in board.asked.get(index, ())
        seat = board.seats[index]
        if action == "cut":
            fits = fits and tile in seat.tiles
        elif action == "angang":
            fits = fits and seat.tiles.count(tile) == 4
        elif action == "jiagang":
            fits = fits and f"k{tile}" in seat.combos
        choice = action == "cut" and len(set(seat.tiles)) > 3
        if not fits or index in board.answers or (choice and self.owner.chance(self.owner.traps.ignore, "ignore")):
            return self.owner.silence(user, board.place, f"{action} {tile}")
        self.take(index, action, tile or 0, frame.get("cutIndex"))
        self.owner.moved(user)

    def take(self, index: int, action: str, tile: int, place: int | None = None) -> None:
        board = self.board
        if board.ask["kind"] == "hand":
            board.asked = {}
            return self.moves.hand_action(index, action, tile, place)
        board.answers[index] = (action, tile)
        waiting = [i for i in board.asked if i not in board.answers]
        best = max(board.answers, key=lambda i: PRIORITY.get(board.answers[i][0], 1))
        most = PRIORITY.get(board.answers[best][0], 1)
        if any(PRIORITY.get(action, 1) > most for i in waiting for action in board.asked[i]):
            return
        if most == 0 and waiting:
            return
        board.asked = {}
        self.moves.claim(best, board.answers[best][0])

    def stop(self) -> None:
        if self.alarm is not None:
            self.alarm.cancel()
