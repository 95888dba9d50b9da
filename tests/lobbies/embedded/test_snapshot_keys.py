"""The table of snapshot keys in the protocol reference says what each game does."""

import random
import re
from pathlib import Path

import pytest

from bothost import rules

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "lobby-protocol.md").read_text()
SECTION = PAGE.partition("## Snapshots")[2].partition("\n## ")[0]
ROWS = {
    cells[0].strip(" `"): [re.findall(r"`(\w+)`", cell) for cell in cells[1:4]]
    for cells in (line.strip("|").split("|") for line in SECTION.splitlines() if line.startswith("| `"))
}


def positions(name, count=12):
    """Views of seats that must decide, in the middle of random hands."""
    game = rules.game(name)
    for seed in range(count):
        rng, state = random.Random(seed), game.new_state(seed)
        for _ in range(rng.randrange(4, 20)):
            if state.terminal:
                break
            seat = state.to_act[0]
            state.apply(seat, int(rng.choice(list(state.legal(seat)))))
        if not state.terminal:
            yield game, state.view(state.to_act[0])


def outcome(game, snapshot):
    """What a position means for its seat; None where the game refuses it."""
    try:
        view = game.view_from_snapshot(snapshot)
    except ValueError:
        return None
    return view.seq, view.asked, list(view.legal())


def test_every_game_has_its_row():
    assert set(ROWS) == set(rules.games(plugins=False))


@pytest.mark.parametrize("name", ROWS)
def test_all_keys_of_a_view_are_listed(name):
    for _, view in positions(name):
        assert set(view.to_json()) - {"format"} == {key for cell in ROWS[name] for key in cell}


@pytest.mark.parametrize("name", ROWS)
def test_a_position_without_history_is_enough(name):
    needed, more, _ = ROWS[name]
    for game, view in positions(name):
        tree = view.to_json()
        snapshot = {key: tree[key] for key in (*needed, *more) if key in tree and key != "complete"}
        assert outcome(game, snapshot) == (view.seq, view.asked, list(view.legal()))


@pytest.mark.parametrize("name", ROWS)
def test_each_key_that_is_needed_is_needed(name):
    needed = ROWS[name][0]
    missed = set()
    for game, view in positions(name):
        tree = view.to_json()
        whole = {key: tree[key] for key in needed}
        right = (view.seq, view.asked, list(view.legal()))
        missed |= {key for key in needed if outcome(game, {k: v for k, v in whole.items() if k != key}) != right}
    assert missed == set(needed)
