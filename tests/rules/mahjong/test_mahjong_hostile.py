"""What decoders accept of damaged views must be safe to use in every way, and stay what it is."""

from __future__ import annotations

import random

import pytest

from bothost import rules
from bothost.rules.game import Game, View

SNAPSHOT = {
    "seat": 1,
    "phase": "claims",
    "actor": 0,
    "last_tile": "W1",
    "prevalent_wind": "south",
    "hand": ["W2", "W3", "W4", "T5", "T6", "T7", "B2", "B2", "J1", "J1"],
    "melds": [[], [{"kind": "peng", "tile": "F2", "claimed": "F2"}], [{"kind": "angang", "tile": None}], []],
    "discards": [["F2", "W1"], ["J3"], ["B9"], ["T9", "T9"]],
}


def views(game: Game, rng: random.Random) -> list[View]:
    """Views of random hands at all stages, one that began with a snapshot among them."""
    out: list[View] = []
    for seed in range(6):
        state = game.new_state(seed)
        stop = rng.randrange(160)
        while not state.terminal and len(state.actions) < stop:
            seat = rng.choice(state.to_act)
            state.apply(seat, int(rng.choice(state.legal(seat))))
        out += [state.view(seat) for seat in range(4)]
    return out


def use(view: View, seed: int) -> None:
    """Everything that can be done with a view."""
    legal = view.legal()
    assert view.asked == bool(len(legal))
    for name, block in view.game.blocks.items():
        if block.of == "view":
            view.encode(name)
    for action in legal:
        view.clone().apply(int(action))
    try:
        state = view.sample_state(seed)
    except ValueError:
        return
    for _ in range(3):
        if state.terminal:
            return
        seat = state.to_act[0]
        state.apply(seat, int(state.legal(seat)[-1]))


def damage(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        place = rng.randrange(len(changed))
        match rng.randrange(4):
            case 0:
                changed[place] ^= 1 << rng.randrange(8)
            case 1:
                changed[place] = rng.randrange(64)
            case 2:
                del changed[place]
            case _:
                changed.insert(place, rng.randrange(64))
    return bytes(changed)


@pytest.mark.parametrize("preset", rules.presets("mahjong"))
def test_damaged_bytes_are_refused_or_safe(preset: str) -> None:
    game = rules.game("mahjong", preset=preset)
    rng = random.Random(preset)
    accepted = 0
    originals = [v.to_bytes() for v in views(game, rng)]
    if preset == "botzone":
        originals += [game.view_from_snapshot(SNAPSHOT).to_bytes()] * 8
    for _ in range(1500):
        data = damage(rng.choice(originals), rng)
        try:
            view = game.view_from_bytes(data)
        except ValueError:
            continue
        accepted += 1
        assert view.to_bytes() == data
        assert game.view_from_json(view.to_json()) == view
        use(view, rng.getrandbits(32))
    assert accepted > 10


def test_damaged_snapshots_are_refused_or_safe() -> None:
    game = rules.game("mahjong")
    rng = random.Random(8)
    words = ["W1", "J3", "H1", "east", "turn", "chi", "", None, -1, 0, 3, 144, 2**70, True, [], {}, 0.5]
    accepted = 0
    for _ in range(1500):
        data = game.view_from_snapshot(SNAPSHOT).to_json() if rng.random() < 0.5 else dict(SNAPSHOT)
        data.pop("base", None)
        data.pop("events", None)
        for _ in range(rng.choice([1, 1, 2])):
            key = rng.choice(list(data))
            value = data[key]
            if isinstance(value, list) and value and rng.random() < 0.7:
                value = list(value)
                value[rng.randrange(len(value))] = rng.choice(words)
                data[key] = value
            else:
                data[key] = rng.choice(words)
        try:
            view = game.view_from_snapshot(data)
        except ValueError:
            continue
        accepted += 1
        use(view, rng.getrandbits(32))
    assert accepted > 10


def test_the_wind_of_a_reveal_is_one_of_four() -> None:
    game = rules.game("mahjong")
    state = game.new_state(5)
    while not state.terminal:
        seat = state.to_act[0]
        legal = state.legal(seat)
        state.apply(seat, 0 if legal[0] == 0 else int(legal[(legal >= 2) & (legal < 36)][-1]))  # pass, or discard
    hand = [f"{suit}{rank}" for suit in "WT" for rank in range(1, 10)][:13]
    view = game.view_from_snapshot({"seat": 0, "phase": "drawing", "actor": 0, "hand": hand, "wall_left": [0] * 4})
    view.observe_all(["exhausted -", state.events(0)[-1]])
    data = bytearray(view.to_bytes())
    assert game.view_from_bytes(bytes(data)) == view
    actions = len(state.actions)
    place = len(data) - 2 * actions - (1 if actions < 128 else 2) - 136 - 1
    assert data[place] < 4
    data[place] = 200
    with pytest.raises(ValueError, match="wind"):
        game.view_from_bytes(bytes(data))
