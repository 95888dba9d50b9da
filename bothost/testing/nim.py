"""Nim with a secret: the smallest complete game in plain Python. Copy it to start your own game.

Two seats take 1 to 3 stones in turn. Who takes the last stone wins 1 point plus a bonus that only the winner knew.
:data:`NIM` registers it: ``register_game(NIM)``, or a plugin's hook for games.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bothost.rules import ActionArray, Block, FloatArray, GameFactory, Json, State
from bothost.rules.plain import PlainBlock, PlainGame, PlainView, require, whole

NUM_SEATS = 2
MOST_STONES = 50
MOST_BONUS = 3


@dataclass(frozen=True)
class Nim(PlainGame):
    """The game; ``stones`` is its only rule."""

    stones: int = 10
    name: str = "nim"
    num_seats: int = NUM_SEATS
    num_actions: int = 3
    format_version: int = 1

    @property
    def rules(self) -> Json:
        return {"stones": self.stones}

    @property
    def blocks(self) -> Mapping[str, Block]:
        return {"pile": PlainBlock("pile", (2,), "Stones left, own bonus.")}

    def new_state(self, seed: int) -> NimState:
        rng = random.Random(seed % 2**64)
        return NimState(self, [rng.randint(0, MOST_BONUS) for _ in range(NUM_SEATS)])

    def state_from_deal(self, deal: Json) -> NimState:
        bonus = deal.get("bonus")
        require(isinstance(bonus, list) and len(bonus) == NUM_SEATS, "deal: bonus must list one number for each seat")
        return NimState(self, [whole(b, 0, MOST_BONUS) for b in deal["bonus"]])

    def new_view(self, seat: int) -> NimView:
        return NimView(self, whole(seat, 0, NUM_SEATS - 1))

    def view_from_snapshot(self, data: Json) -> NimView:
        require(isinstance(data, dict), "a view must be an object")
        view = self.new_view(whole(data.get("seat"), 0, NUM_SEATS - 1))
        bonus, moves, reveal = data.get("bonus"), data.get("moves"), data.get("reveal")
        if bonus is None:
            return view
        require(isinstance(moves, list) and len(moves) <= MOST_STONES, "moves must be a list")
        require(reveal is None or isinstance(reveal, list), "reveal must be a list")
        view.observe(f"deal {view.seat} {whole(bonus, 0, MOST_BONUS)}")
        for i, taken in enumerate(data["moves"]):
            view.observe(f"take {i % NUM_SEATS} {whole(taken, 1, 3)}")
        if reveal is not None:
            view.observe("reveal - " + ",".join(str(whole(b, 0, MOST_BONUS)) for b in reveal))
        return view

    def notation(self, action: int) -> str:
        return f"take{whole(action, 0, 2) + 1}"

    def parse(self, text: str) -> int:
        require(text in ("take1", "take2", "take3"), f"a move is take1, take2 or take3, not {text[:20]!r}")
        return int(text[-1]) - 1


@dataclass
class NimState:
    game: Nim
    bonus: list[int]
    moves: list[int] = field(default_factory=list)
    streams: tuple[list[str], ...] = ()

    def __post_init__(self) -> None:
        if not self.streams:
            self.streams = tuple([f"deal {seat} {self.bonus[seat]}"] for seat in range(NUM_SEATS))

    @property
    def left(self) -> int:
        return self.game.stones - sum(self.moves)

    @property
    def to_act(self) -> tuple[int, ...]:
        return () if self.terminal else (len(self.moves) % NUM_SEATS,)

    @property
    def terminal(self) -> bool:
        return self.left == 0

    @property
    def returns(self) -> tuple[float, ...]:
        require(self.terminal, "the hand has not ended")
        winner = (len(self.moves) - 1) % NUM_SEATS
        points = 1.0 + self.bonus[winner]
        return tuple(points if seat == winner else -points for seat in range(NUM_SEATS))

    @property
    def deal(self) -> Json:
        return {"bonus": list(self.bonus)}

    @property
    def actions(self) -> list[tuple[int, int]]:
        return [(i % NUM_SEATS, taken - 1) for i, taken in enumerate(self.moves)]

    def legal(self, seat: int) -> ActionArray:
        whole(seat, 0, NUM_SEATS - 1)
        return np.arange(min(3, self.left) if seat in self.to_act else 0, dtype=np.int32)

    def apply(self, seat: int, action: int) -> None:
        require(action in self.legal(seat), f"seat {seat} may not do {action} now")
        self.moves.append(int(action) + 1)
        news = [f"take {seat} {action + 1}"]
        if self.terminal:
            news.append("reveal - " + ",".join(map(str, self.bonus)))
        for stream in self.streams:
            stream.extend(news)

    def events(self, seat: int, since: int = 0) -> list[str]:
        return self.streams[whole(seat, 0, NUM_SEATS - 1)][since:]

    def view(self, seat: int) -> NimView:
        view = self.game.new_view(seat)
        view.bonus, view.moves = self.bonus[seat], list(self.moves)
        view.reveal = list(self.bonus) if self.terminal else None
        return view

    def clone(self) -> NimState:
        return replace(self, moves=list(self.moves), streams=tuple(map(list, self.streams)))


@dataclass
class NimView(PlainView):
    game: Nim
    seat: int
    bonus: int | None = None
    moves: list[int] = field(default_factory=list)
    reveal: list[int] | None = None

    @property
    def left(self) -> int:
        return self.game.stones - sum(self.moves)

    @property
    def seq(self) -> int:
        return 0 if self.bonus is None else 1 + len(self.moves) + (self.reveal is not None)

    @property
    def to_act(self) -> int | None:
        return None if self.bonus is None or self.terminal else len(self.moves) % NUM_SEATS

    @property
    def terminal(self) -> bool:
        return self.left == 0

    @property
    def phase(self) -> str:
        return "end" if self.terminal else "take"

    def legal(self) -> ActionArray:
        return np.arange(min(3, self.left) if self.asked else 0, dtype=np.int32)

    def observe(self, event: str) -> None:
        match event.split(" "):
            case ["deal", seat, bonus] if seat == str(self.seat) and bonus in ("0", "1", "2", "3"):
                require(self.bonus is None, "the deal is the first event")
                self.bonus = int(bonus)
            case ["take", seat, taken] if seat == str(self.to_act) and taken in ("1", "2", "3"):
                require(int(taken) <= self.left, "more stones than there are")
                self.moves.append(int(taken))
            case ["reveal", "-", all_of_them] if self.terminal and self.reveal is None:
                bonus_of = all_of_them.split(",")
                require(len(bonus_of) == NUM_SEATS and set(bonus_of) <= set("0123"), "not a reveal")
                require(bonus_of[self.seat] == str(self.bonus), "we had another bonus")
                self.reveal = [int(b) for b in bonus_of]
            case _:
                raise ValueError(f"invalid event: {event[:40]!r}")

    def apply(self, action: int) -> None:
        require(self.is_legal(action), f"{action} is not legal now")
        self.observe(f"take {self.seat} {action + 1}")

    def sample_state(self, seed: int) -> State:
        require(self.bonus is not None, "nothing was dealt yet")
        rng = random.Random(seed % 2**64)
        bonus = self.reveal or [rng.randint(0, MOST_BONUS) for _ in range(NUM_SEATS)]
        bonus[self.seat] = self.bonus or 0
        return self.game.replay({"bonus": bonus}, [(i % NUM_SEATS, taken - 1) for i, taken in enumerate(self.moves)])

    def record(self) -> tuple[Json, list[tuple[int, int]]] | None:
        if self.reveal is None:
            return None
        return {"bonus": self.reveal}, [(i % NUM_SEATS, taken - 1) for i, taken in enumerate(self.moves)]

    def encode(self, block: str, out: FloatArray | None = None) -> FloatArray:
        require(block == "pile", f"nim has no view block {block!r}")
        result = np.empty(2, np.float32) if out is None else out
        result[:] = (self.left, self.bonus or 0)
        return result

    def to_json(self) -> Json:
        return {"seat": self.seat, "bonus": self.bonus, "moves": list(self.moves), "reveal": self.reveal}

    def clone(self) -> NimView:
        return replace(self, moves=list(self.moves))


def make_nim(**options: Any) -> Nim:
    unknown = set(options) - {"stones"}
    require(not unknown, f"nim has no option {', '.join(sorted(unknown))}; it has: stones")
    return Nim(stones=whole(options.get("stones", 10), 1, MOST_STONES))


NIM = GameFactory("nim", make_nim)
