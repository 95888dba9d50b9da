"""Every registered game under every preset keeps every law of bothost/testing/game_laws.py."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bothost import rules
from bothost.testing.check_game import check_game

HANDS = 2
"""Of each game and preset."""
ALL = [(name, preset) for name in rules.games(plugins=False, testing=True) for preset in rules.presets(name)]


@pytest.mark.parametrize(("name", "preset"), ALL)
def test_laws_hold(name: str, preset: str):
    assert check_game(rules.game(name, preset=preset), n=HANDS) == []


@pytest.mark.long
@pytest.mark.parametrize(("name", "preset"), ALL)
def test_laws_hold_in_many_hands(name: str, preset: str):
    assert check_game(rules.game(name, preset=preset), n=50) == []


@pytest.mark.parametrize(("name", "preset"), ALL)
def test_rules_give_the_game_back(name: str, preset: str):
    game = rules.game(name, preset=preset)
    again = rules.game(name, **game.rules)
    assert again.rules == game.rules
    assert again.new_state(3).deal == game.new_state(3).deal
    state = game.new_state(3)
    assert again.view_from_bytes(state.view(0).to_bytes()) == state.view(0)


@pytest.mark.parametrize("name", rules.games(plugins=False, testing=True))
def test_first_preset_is_the_default(name: str):
    assert rules.game(name).rules == rules.game(name, preset=rules.presets(name)[0]).rules


@pytest.mark.parametrize("name", rules.games(plugins=False, testing=True))
def test_unknown_options_are_named(name: str):
    with pytest.raises(ValueError, match="colour_of_the_table"):
        rules.game(name, colour_of_the_table="green")
    with pytest.raises(ValueError, match="no-such-preset"):
        rules.game(name, preset="no-such-preset")


@pytest.mark.parametrize("name", rules.games(plugins=False, testing=True))
@settings(max_examples=150, deadline=None)
@given(data=st.binary(max_size=300))
def test_random_bytes_never_crash(name: str, data: bytes):
    game = rules.game(name)
    for form in (data, bytes([game.format_version]) + data):
        try:
            view = game.view_from_bytes(form)
        except ValueError:
            continue
        assert game.view_from_bytes(view.to_bytes()) == view


@pytest.mark.parametrize("name", rules.games(plugins=False, testing=True))
@settings(max_examples=100, deadline=None)
@given(text=st.text(max_size=60))
def test_random_text_never_crashes(name: str, text: str):
    game = rules.game(name)
    for call in (game.parse, game.new_view(0).observe, game.new_state(1).view(0).observe):
        try:
            call(text)
        except ValueError:
            continue
        except TypeError:
            assert any("\ud800" <= c <= "\udfff" for c in text)


@pytest.mark.parametrize("name", rules.games(plugins=False, testing=True))
@settings(max_examples=100, deadline=None)
@given(text=st.text(st.characters(codec="utf-8", exclude_characters="\ufffd"), max_size=60))
def test_errors_quote_whole_characters(name: str, text: str):
    """A part of a character would be shown as the replacement character, U+FFFD."""
    game = rules.game(name)
    for call in (game.parse, game.new_view(0).observe, game.new_state(1).view(0).observe):
        try:
            call(text)
        except ValueError as error:
            assert "\ufffd" not in str(error)


json_trees = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize("name", rules.games(plugins=False, testing=True))
@settings(max_examples=100, deadline=None)
@given(tree=st.dictionaries(st.sampled_from(["seat", "hand", "format", "turns", "first", "x"]), json_trees))
def test_random_json_never_crashes(name: str, tree: dict):
    game = rules.game(name)
    for call in (game.view_from_json, game.view_from_snapshot, game.state_from_deal):
        try:
            call(tree)
        except ValueError:
            continue


def test_json_that_is_too_deep_is_refused():
    tree: list = []
    for _ in range(100_000):
        tree = [tree]
    with pytest.raises(ValueError, match="64 levels"):
        rules.game("claims").state_from_deal({"hands": tree})
