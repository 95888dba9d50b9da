"""What fm-clone sees: features of the position, afterstates, and abstract moves with their kickers."""

import numpy as np
import pytest

from bothost import rules
from bothost.rules import doudizhu
from bothost.training.factorization import SparseRows
from bothost_fm_clone.encode import complete, encoding

DOUDIZHU, OTHELLO = rules.game("doudizhu"), rules.game("othello")


def names(view):
    own = encoding(view.game.name)
    return [own.features[index] for index in own.encode(view)]


def test_a_hand_written_position_of_dou_dizhu_has_these_features():
    hands = ["33334444555566667", "77788889999TTTTJJ", "JJQQQQKKKKAAAA222"]
    state = DOUDIZHU.state_from_deal({"hands": hands, "bottom": "2BR", "first": 0})
    for move in ("7", "8", "pass", "pass", "99", "pass"):
        state.apply(state.to_act[0], DOUDIZHU.parse(move))
    found = names(state.view(0))
    held = {name.removeprefix("holds ") for name in found if name.startswith("holds ")}
    assert {"3", "3333", "333*", "33", "333444", "333444555666", "BR"} <= held
    assert "7" not in held and "3333**" in held
    assert [name for name in found if name.startswith("to beat")] == ["to beat 99", "to beat the next player"]
    assert "leads" not in found and "is landlord" in found
    assert "unseen 8888" not in found and "unseen 888" in found and "unseen 7777" not in found
    assert "next has 14 cards" in found and "previous has 17 cards" in found
    assert "previous passed on 8" in found and "previous passed on 99 with two cards" not in found


def test_a_hand_written_position_of_othello_has_these_features():
    view = OTHELLO.new_state(0).view(0)
    found = names(view)
    assert len(found) == 64
    assert {name for name in found if not name.startswith("empty")} == {"own e4", "own d5", "enemy d4", "enemy e5"}
    assert encoding("othello").choices(view, view.legal()).tolist() == view.legal().tolist()


def played(game, seed, moves):
    """A state after some random moves, at which there is a choice."""
    rng, state = np.random.default_rng(seed), game.new_state(seed)
    while not state.terminal and (moves > 0 or len(state.view(state.to_act[0]).legal()) < 3):
        state.apply(state.to_act[0], int(rng.choice(state.view(state.to_act[0]).legal())))
        moves -= 1
    return state


@pytest.mark.parametrize(("game", "moves"), [(DOUDIZHU, 0), (DOUDIZHU, 14), (OTHELLO, 9), (OTHELLO, 40)])
def test_an_afterstate_is_what_the_mover_sees_after_the_move(game, moves):
    own = encoding(game.name)
    state = next(made for seed in range(50) if not (made := played(game, seed, moves)).terminal)
    seat = state.to_act[0]
    view = state.view(seat)
    choices = own.choices(view, view.legal())
    found = own.afterstates(SparseRows.of([own.encode(view)]), SparseRows.of([choices]))
    assert len(found) == len(choices) > 1
    for row, chosen in enumerate(choices):
        after = state.clone()
        after.apply(seat, complete(view, own.actions(view.legal(), int(chosen))))
        seen = after.view(seat)
        told = {own.leaves[index] for index in found[row]}
        base = {f"leaves {name.removeprefix('holds ')}" for name in names(seen)}
        if game is OTHELLO:
            assert base <= told
            replies = [] if after.terminal else after.view(1 - seat).legal()
            assert any(name.startswith(f"leaves {sum(r != 64 for r in replies)} repl") for name in told)
            continue
        held = {f"leaves {name.removeprefix('holds ')}" for name in names(seen) if name.startswith("holds ")}
        left = seen.to_json()["hand"]
        counted = {name for name in told if name.endswith(("cards", "card", "plays", "play"))}
        assert told - counted - {"is highest"} == held
        plays = doudizhu.fewest_plays(left) if left else 0
        assert counted & {f"leaves {len(left)} cards", f"leaves {len(left)} card"}
        assert counted & {f"leaves {n} play{'s' * (n != 1)}" for n in (plays, plays - 1)}


def test_a_move_is_the_highest_of_its_kind_where_no_higher_one_is_unseen():
    hands = ["33334444555566667", "77788889999TTTTJJ", "JJQQQQKKKKAAAA222"]
    state = DOUDIZHU.state_from_deal({"hands": hands, "bottom": "2BR", "first": 0})
    own, view = encoding("doudizhu"), state.view(0)
    choices = own.choices(view, view.legal())
    found = own.afterstates(SparseRows.of([own.encode(view)]), SparseRows.of([choices]))
    highest = {own.classes[r] for row, r in enumerate(choices) if len(own.leaves) - 1 in found[row]}
    assert highest == {"2", "B", "R", "BR"}


def test_afterstates_of_what_is_no_position_are_refused():
    own = encoding("doudizhu")
    for features in ([], [308], [*range(15), *range(15, 28)], [2000]):
        with pytest.raises(ValueError, match=r"hand|too large"):
            own.afterstates(SparseRows.of([features]), SparseRows.of([[0]]))


@pytest.mark.parametrize(("game", "features", "classes"), [("doudizhu", 1082, 309), ("othello", 192, 65)])
def test_every_feature_has_a_name_of_its_own(game, features, classes):
    own = encoding(game)
    assert len(own.features) == len(set(own.features)) == features
    assert len(own.classes) == len(own.groups) == classes
    assert set(own.groups) == set(range(max(own.groups) + 1))


def test_choices_are_the_abstract_moves_and_kickers_are_those_that_spare_the_hand():
    hands = ["3337799TTJJQQKKA2", "4444555566668888R", "37799TTJJQQKKAAA2"]
    state = DOUDIZHU.state_from_deal({"hands": hands, "bottom": "22B", "first": 0})
    view = state.view(0)
    own = encoding("doudizhu")
    cls = own.classes.index("333*")
    actions = own.actions(view.legal(), cls)
    assert cls in own.choices(view, view.legal()) and len(actions) > 3
    values = {
        int(action): doudizhu.hand_value(rest(view.to_json()["hand"], doudizhu.move(action).cards))
        for action in actions
    }
    assert values[complete(view, actions)] == max(values.values())


def rest(hand, cards):
    for card in cards:
        hand = hand.replace(card, "", 1)
    return hand
