"""Adapts a game of OpenSpiel to bothost's game contract.

Everything is public, so all seats receive the same events after the first: ``start SEAT``, then
``play SEAT ACTION LABEL`` and ``chance - OUTCOME LABEL``. ACTION is OpenSpiel's number. It is also the notation,
because OpenSpiel's strings depend on the position. LABEL is OpenSpiel's string in that position: ``play 0 673 Nf3``.

Future dice are the only secret. A state draws them by its seed, which is not part of any view.
"""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyspiel

from bothost.rules import ActionArray, Block, FloatArray, Json, State
from bothost.rules.plain import PlainBlock, PlainGame, PlainView, require, whole
from bothost_openspiel.names import load_checked

FORMAT = 1
CHANCE = -1
NUM_SEEDS = 2**53
"""Seeds of deals are below this number, so that JavaScript reads them exactly from JSON."""
_HEAD = struct.Struct("<BBBI")


class Step(tuple[int, int, str]):
    """(seat or CHANCE, action, label)."""


@dataclass(frozen=True)
class SpielGame(PlainGame):
    """A perfect-information game, made by :func:`load`. Games with the same name are equal."""

    name: str
    spiel: Any = field(compare=False, repr=False)
    format_version: int = FORMAT

    def __reduce__(self) -> tuple[Any, ...]:
        return load, (self.name.partition(":")[2],)

    @property
    def rules(self) -> Json:
        return {}

    @property
    def num_seats(self) -> int:
        return int(self.spiel.num_players())

    @property
    def num_actions(self) -> int:
        return int(self.spiel.num_distinct_actions())

    @property
    def stochastic(self) -> bool:
        """Whether there is chance, such as dice."""
        return bool(self.spiel.get_type().chance_mode != pyspiel.GameType.ChanceMode.DETERMINISTIC)

    @property
    def blocks(self) -> Mapping[str, Block]:
        if not self.spiel.get_type().provides_observation_tensor:
            return {}
        shape, doc = tuple(self.spiel.observation_tensor_shape()), "OpenSpiel's observation tensor of the seat."
        return {"observation": PlainBlock("observation", shape, doc)}

    def new_state(self, seed: int) -> SpielState:
        return SpielState(self, seed % NUM_SEEDS, [], self.spiel.new_initial_state())

    def state_from_deal(self, deal: Json) -> SpielState:
        """``{}`` without chance; with chance ``{"seed": …, "chance": [the first outcomes]}``."""
        require(isinstance(deal, dict), "a deal must be an object")
        if not self.stochastic:
            return self.new_state(0)
        chance = deal.get("chance")
        if not isinstance(chance, list):
            raise ValueError("deal: chance must be a list of outcomes")
        outcomes = [whole(outcome, 0, 2**31) for outcome in chance]
        return SpielState(self, whole(deal.get("seed"), 0, NUM_SEEDS - 1), outcomes, self.spiel.new_initial_state())

    def new_view(self, seat: int) -> SpielView:
        return SpielView(self, whole(seat, 0, self.num_seats - 1), self.spiel.new_initial_state())

    def view_from_bytes(self, data: bytes) -> SpielView:
        """Decode version, seat, whether it has started, number of steps (u32), and the action of each step (u32)."""
        require(len(data) >= _HEAD.size, "bytes end too early")
        version, seat, started, count = _HEAD.unpack_from(data)
        require(version == FORMAT and started in (0, 1), "bytes of another format")
        require(
            len(data) == _HEAD.size + 4 * count and (started or not count),
            "the number of bytes does not match the number of steps",
        )
        return self._rebuilt(seat, bool(started), list(struct.unpack_from(f"<{count}I", data, _HEAD.size)))

    def view_from_snapshot(self, data: Json) -> SpielView:
        require(isinstance(data, dict), "a view must be an object")
        steps = data.get("history", [])
        require(isinstance(steps, list), "history must be a list")
        require(all(isinstance(s, list) and len(s) == 3 for s in steps), "a step must be [seat, action, label]")
        started = data.get("started", bool(steps))
        require(isinstance(started, bool) and (started or not steps), "started must say whether there were events")
        actions = [whole(step[1], 0, 2**31) for step in steps]
        return self._rebuilt(whole(data.get("seat"), 0, self.num_seats - 1), started, actions)

    def _rebuilt(self, seat: int, started: bool, actions: Sequence[int]) -> SpielView:
        view = self.new_view(seat)
        view.started = started
        for action in actions:
            view.history.append(advance(view.spiel, action))
        return view

    def notation(self, action: int) -> str:
        return str(whole(action, 0, self.num_actions - 1))

    def parse(self, text: str) -> int:
        return whole(_decimal(text), 0, self.num_actions - 1)


def load(name: str) -> SpielGame:
    """The game called ``openspiel:NAME``. Raises UsageError."""
    return SpielGame(f"openspiel:{name}", load_checked(name))


def _decimal(text: str) -> int:
    require(re.fullmatch(r"0|[1-9][0-9]{0,9}", text, re.ASCII) is not None, f"{text[:20]!r} is not a number")
    return int(text)


def label(spiel: Any, player: int, action: int) -> str:
    """OpenSpiel's string for an action in this position, as one printable word."""
    try:
        word = spiel.action_to_string(player, action)
    except (RuntimeError, UnicodeDecodeError):
        return "?"
    return re.sub(r"[^!-~]+", "_", word.strip())[:64] or "?"


def advance(spiel: Any, action: int) -> Step:
    """Apply an action of the player on turn, or an outcome of chance. Raises ValueError if it is illegal."""
    require(not spiel.is_terminal(), "the hand has ended")
    player = spiel.current_player() if not spiel.is_chance_node() else CHANCE
    # OpenSpiel may abort the process on an illegal action.
    require(action in spiel.legal_actions(), f"{action} is not legal now")
    step = Step((player, int(action), label(spiel, player, action)))
    spiel.apply_action(int(action))
    return step


def _line(step: Step) -> str:
    seat, action, word = step
    return f"chance - {action} {word}" if seat == CHANCE else f"play {seat} {action} {word}"


def _legal(spiel: Any) -> ActionArray:
    return np.array(sorted(spiel.legal_actions()), np.int32)


NOTHING = np.zeros(0, np.int32)


@dataclass
class SpielState:
    """The position, and the seed of the dice to come."""

    game: SpielGame
    seed: int
    fixed: list[int]
    """The first outcomes of chance. Later ones are drawn by the seed."""
    spiel: Any
    history: list[Step] = field(default_factory=list)
    rolled: int = 0
    """Number of outcomes of chance so far."""

    def __post_init__(self) -> None:
        self._roll()

    @property
    def to_act(self) -> tuple[int, ...]:
        return () if self.terminal else (int(self.spiel.current_player()),)

    @property
    def terminal(self) -> bool:
        return bool(self.spiel.is_terminal())

    @property
    def returns(self) -> tuple[float, ...]:
        require(self.terminal, "the hand has not ended")
        return tuple(float(score) for score in self.spiel.returns())

    @property
    def deal(self) -> Json:
        return {"seed": self.seed, "chance": list(self.fixed)} if self.game.stochastic else {}

    @property
    def actions(self) -> list[tuple[int, int]]:
        return [(seat, action) for seat, action, _ in self.history if seat != CHANCE]

    def legal(self, seat: int) -> ActionArray:
        whole(seat, 0, self.game.num_seats - 1)
        return _legal(self.spiel) if seat in self.to_act else NOTHING

    def apply(self, seat: int, action: int) -> None:
        require(seat in self.to_act, f"seat {seat} may not act now")
        self.history.append(advance(self.spiel, action))
        self._roll()

    def _roll(self) -> None:
        while not self.terminal and self.spiel.is_chance_node():
            if self.rolled < len(self.fixed):
                outcome = self.fixed[self.rolled]
            else:
                outcomes, odds = zip(*self.spiel.chance_outcomes(), strict=True)
                draw = random.Random(f"{self.seed} {self.rolled}")
                outcome = draw.choices(outcomes, odds)[0]
            self.history.append(advance(self.spiel, outcome))
            self.rolled += 1

    def events(self, seat: int, since: int = 0) -> list[str]:
        start = [f"start {whole(seat, 0, self.game.num_seats - 1)}"] if since == 0 else []
        return start + [_line(step) for step in self.history[max(0, since - 1) :]]

    def view(self, seat: int) -> SpielView:
        whole(seat, 0, self.game.num_seats - 1)
        return SpielView(self.game, seat, self.spiel.clone(), True, list(self.history))

    def clone(self) -> SpielState:
        return replace(self, spiel=self.spiel.clone(), history=list(self.history))


@dataclass
class SpielView(PlainView):
    """What a seat knows: everything that has happened."""

    game: SpielGame
    seat: int
    spiel: Any
    """OpenSpiel's state. Clone it before changing it."""
    started: bool = False
    history: list[Step] = field(default_factory=list)

    @property
    def seq(self) -> int:
        return len(self.history) + self.started

    @property
    def to_act(self) -> int | None:
        if not self.started or self.terminal or self.spiel.is_chance_node():
            return None
        return int(self.spiel.current_player())

    @property
    def terminal(self) -> bool:
        return self.started and bool(self.spiel.is_terminal())

    @property
    def phase(self) -> str:
        return "end" if self.terminal else "chance" if self.spiel.is_chance_node() else "play"

    def legal(self) -> ActionArray:
        return _legal(self.spiel) if self.asked else NOTHING

    def observe(self, event: str) -> None:
        match event.split(" "):
            case ["start", seat] if seat == str(self.seat) and not self.started:
                self.started = True
            case ["play", seat, action, word] if seat == str(self.to_act):
                self._fold(int(seat), _decimal(action), word)
            case ["chance", "-", outcome, word] if self.started and not self.terminal and self.spiel.is_chance_node():
                self._fold(CHANCE, _decimal(outcome), word)
            case _:
                raise ValueError(f"invalid event: {event[:40]!r}")

    def _fold(self, player: int, action: int, word: str) -> None:
        require(action in self.spiel.legal_actions(), f"{action} is not legal now")
        require(word == label(self.spiel, player, action), f"{action} is not called {word[:64]!r} here")
        self.history.append(advance(self.spiel, action))

    def apply(self, action: int) -> None:
        require(self.asked, "this seat is not asked")
        self.history.append(advance(self.spiel, action))

    def sample_state(self, seed: int) -> State:
        require(self.started, "nothing was dealt yet")
        deal, actions = self._so_far(seed % NUM_SEEDS)
        return self.game.replay(deal, actions)

    def record(self) -> tuple[Json, list[tuple[int, int]]] | None:
        return self._so_far(0) if self.terminal else None

    def _so_far(self, seed: int) -> tuple[Json, list[tuple[int, int]]]:
        outcomes = [action for seat, action, _ in self.history if seat == CHANCE]
        deal: Json = {"seed": seed, "chance": outcomes} if self.game.stochastic else {}
        return deal, [(seat, action) for seat, action, _ in self.history if seat != CHANCE]

    def encode(self, block: str, out: FloatArray | None = None) -> FloatArray:
        known = self.game.blocks.get(block)
        if known is None:
            raise ValueError(f"{self.game.name} has no view block {block!r}")
        values = np.array(self.spiel.observation_tensor(self.seat), np.float32).reshape(known.shape)
        if out is None:
            return values
        out[...] = values
        return out

    def to_bytes(self) -> bytes:
        actions = [action for _, action, _ in self.history]
        head = _HEAD.pack(FORMAT, self.seat, self.started, len(actions))
        return head + struct.pack(f"<{len(actions)}I", *actions)

    def to_json(self) -> Json:
        """``position``: OpenSpiel's text. ``labels``: its string for each legal action, by notation."""
        return {
            "format": FORMAT,
            "seat": self.seat,
            "started": self.started,
            "to_act": self.to_act,
            "position": self._text(),
            "labels": {str(action): label(self.spiel, self.seat, action) for action in self.legal().tolist()},
            "history": [list(step) for step in self.history],
        }

    def _text(self) -> str:
        try:
            if self.game.spiel.get_type().provides_observation_string:
                return str(self.spiel.observation_string(self.seat))
            return str(self.spiel)
        except (RuntimeError, UnicodeDecodeError):
            return ""

    def clone(self) -> SpielView:
        return replace(self, spiel=self.spiel.clone(), history=list(self.history))
