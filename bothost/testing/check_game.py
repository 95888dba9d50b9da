"""The conformance kit for games, native or in plain Python.

::

    from bothost.testing.check_game import check_game

    def test_my_game():
        assert check_game(my_game, n=50) == []

Every breach says which law is broken, where, and how.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import msgspec
import numpy as np

from bothost.errors import UsageError
from bothost.rules import Game, VecEnv, vec_env
from bothost.testing import game_laws
from bothost.testing.game_laws import EVERY_STEP, NOW_AND_THEN, Broken, Hold, Law, Position, law, same


@dataclass(frozen=True)
class Breach:
    """A law that a game breaks."""

    law: str
    where: str
    """Seed and number of actions. ``check_game(game, n=1, seed=…)`` reproduces it."""
    detail: str

    def __str__(self) -> str:
        return f"{self.law}\n  {self.where}: {self.detail}"

    __repr__ = __str__


def check_game(game: Game, n: int = 20, *, seed: int = 0) -> list[Breach]:
    """Play ``n`` random hands and check every law. Returns the first breach of each law.

    Hand ``i`` uses the seed ``seed + i``. Expensive laws are checked at a few positions of each hand.
    Raises UsageError for what is no game.
    """
    if not hasattr(game, "new_state"):
        name = getattr(game, "__name__", type(game).__name__)
        raise UsageError(f"{name} is no game", advice="pass what it makes, as in check_game(make_my_game())")
    breaches: dict[str, Breach] = {}

    def note(e: Broken, where: str) -> None:
        detail = str(e) if len(str(e)) < 2000 else str(e)[:2000] + " …"
        breaches.setdefault(e.law, Breach(e.law, where, detail))

    for hand in range(seed, seed + n):
        for e, actions in _play(game, hand):
            note(e, f"seed {hand}, after {actions} actions")
    for check in (_rules_are_json, _deterministic, _batches_equal_hands):
        try:
            check(game, seed)
        except Broken as e:
            note(e, f"seed {seed}")
    return list(breaches.values())


def _play(game: Game, seed: int) -> list[tuple[Broken, int]]:
    """Play one random hand. Returns the first breach of each law, with the number of actions before it."""
    rng = random.Random(seed)
    broken: dict[Law, tuple[Broken, int]] = {}
    played = 0
    try:
        at = _begin(game, seed, rng)
        while True:
            _fold(at)
            for each in (*EVERY_STEP, *_now_and_then(at, played)):
                if each not in broken:
                    try:
                        each(at)
                    except Broken as e:
                        broken[each] = (e, played)
            if at.state.terminal:
                return list(broken.values())
            _act(at)
            played += 1
            with law("Every hand ends.") as hold:
                hold(played < game_laws.LONGEST_HAND, f"no end after {played} actions of random play")
    except Broken as e:  # the hand cannot continue
        return [*broken.values(), (e, played)]


def _begin(game: Game, seed: int, rng: random.Random) -> Position:
    with law("new_state(seed) deals a hand, and new_view(seat) is a view before any event.") as hold:
        state = game.new_state(seed)
        views = [game.new_view(seat) for seat in range(game.num_seats)]
        hold(all(v.seq == 0 and not v.asked for v in views), "a new view has received events, or is asked")
        return Position(game, state, views, rng)


def _act(at: Position) -> None:
    with law("A legal action of an asked seat can be applied, and is then one of state.actions.") as hold:
        seat = at.rng.choice(at.asked)
        action = int(at.rng.choice(at.state.legal(seat)))
        before = at.state.actions
        at.state.apply(seat, action)
        hold(at.state.actions == [*before, (seat, action)], f"actions are {at.state.actions}")


def _fold(at: Position) -> None:
    with law("Every event that a seat received can be folded by its view."):
        for seat, view in enumerate(at.folded):
            view.observe_all(at.state.events(seat, view.seq))


def _now_and_then(at: Position, played: int) -> tuple[Law, ...]:
    """The expensive laws: due at the beginning, at the end, and at about five positions between."""
    due = played == 0 or at.state.terminal or at.rng.random() < 5 / (played + 10)
    return NOW_AND_THEN if due else ()


def _rules_are_json(game: Game, seed: int) -> None:
    with law("rules reads back from its JSON as it is.") as hold:
        again = msgspec.json.decode(msgspec.json.encode(game.rules))
        hold(again == game.rules, f"{game.rules} became {again}")


def _deterministic(game: Game, seed: int) -> None:
    with law("Equal seeds deal equal hands; a seed may be any integer.") as hold:
        for s in (seed, -1, 2**64 + 5):
            first, second = game.new_state(s), game.new_state(s)
            hold(first.deal == second.deal, f"seed {s}: {first.deal} and {second.deal}")
            equal = all(same(first.view(seat), second.view(seat)) for seat in range(game.num_seats))
            hold(equal, f"seed {s}: the views differ")


def _batches_equal_hands(game: Game, seed: int) -> None:
    """Compare the batch environment with single states, if the game has one."""
    with law("A VecEnv plays exactly as single states do, asking the lowest of the seats that may act.") as hold:
        try:
            env = vec_env(game, 3, seed)
        except UsageError:
            return
        _compare_with_states(game, env, random.Random(seed), hold)


def _holds_arrays(game: Game, env: VecEnv, hold: Hold) -> None:
    """Check the types and shapes that VecEnv promises."""
    n, ids = env.n, len(env.legal_ids)
    promised: dict[str, tuple[type[np.generic], tuple[int, ...]]] = {
        "seat": (np.int8, (n,)),
        "legal_offsets": (np.int64, (n + 1,)),
        "legal_ids": (np.int32, (ids,)),
        "returns": (np.float32, (n, game.num_seats)),
        "done": (np.bool_, (n,)),
    }
    for name, (dtype, shape) in promised.items():
        array = getattr(env, name)
        found = f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray) else f"a {type(array).__name__}"
        hold(found == f"{np.dtype(dtype)} {shape}", f"{name} is {found}, not {np.dtype(dtype)} {shape}")


def _compare_with_states(game: Game, env: VecEnv, rng: random.Random, hold: Hold, steps: int = 300) -> None:
    _holds_arrays(game, env, hold)
    states = [game.state_from_deal(env.deal(i)) for i in range(env.n)]
    for _ in range(steps):
        actions = np.zeros(env.n, np.int32)
        for i, state in enumerate(states):
            seat, ids = int(env.seat[i]), env.legal_ids[env.legal_offsets[i] : env.legal_offsets[i + 1]]
            hold(seat == min(state.to_act), f"environment {i} asks seat {seat} of {state.to_act}")
            hold(np.array_equal(ids, state.legal(seat)), f"environment {i}: other legal actions")
            actions[i] = rng.choice(ids)
            state.apply(seat, int(actions[i]))
        env.step(actions)
        _holds_arrays(game, env, hold)
        for i, state in enumerate(states):
            returns = state.returns if state.terminal else [0.0] * game.num_seats
            hold(bool(env.done[i]) == state.terminal, f"environment {i}: done is {env.done[i]}")
            hold(np.allclose(env.returns[i], returns), f"environment {i}: returns {env.returns[i]}, not {returns}")
            if state.terminal:
                states[i] = game.state_from_deal(env.deal(i))
