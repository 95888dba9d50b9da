"""What fm-clone sees: features of the position, afterstates, and abstract moves with their kickers."""

import numpy as np
import pytest

from bothost import rules
from bothost.rules import doudizhu, othello
from bothost.training.factorization import SparseRows
from bothost_fm_clone.attributes import DISCS_BEHIND, DOUDIZHU_JUDGEMENTS, JUDGED, JUDGED_TWICE
from bothost_fm_clone.encode import complete, encoding
from bothost_fm_clone.sight import sight
from bothost_fm_clone.words import counted, move_words

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
    moves = ("3", "3333", "333*", "33", "333444", "333444555666", "BR", "3333**")
    assert {move_words(move) for move in moves} <= held
    assert "a 7" not in held
    beaten = [name for name in found if "beat" in name]
    assert beaten == ["has to beat a pair of 9s", "the move to beat is the next player's"]
    assert "leads freely" not in found and "is the landlord" in found
    unseen = {move for move in ("8888", "888", "7777") if f"an enemy may still hold {move_words(move)}" in found}
    assert unseen == {"888"}
    assert "the next player has 14 cards left" in found and "the previous player has 17 cards left" in found
    assert "the previous player passed on an 8" in found
    assert "the previous player passed on a pair of 9s while holding two cards" not in found


def test_a_hand_written_position_of_othello_has_these_features():
    view = OTHELLO.new_state(0).view(0)
    found = names(view)
    assert len(found) == 64
    own, others = {"holds e4", "holds d5"}, {"the opponent holds d4", "the opponent holds e5"}
    assert {name for name in found if not name.endswith("is empty")} == own | others
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
        if game is OTHELLO:
            assert {f"after it, {name}" for name in names(seen)} <= told
            replies = [] if after.terminal else after.view(1 - seat).legal()
            count = sum(r != 64 for r in replies)
            assert any(name.startswith(f"leaves the opponent {count} repl") for name in told)
            continue
        held = {f"keeps {name.removeprefix('holds ')}" for name in names(seen) if name.startswith("holds ")}
        left = seen.to_json()["hand"]
        plays = doudizhu.fewest_plays(left) if left else 0
        cards = f"keeps {counted(len(left), 'card')}" if left else "goes out"
        rest = {f"keeps {counted(n, 'play')}" if n else "needs no further play" for n in (plays, plays - 1)}
        assert cards in told
        assert len(told & rest) == 1
        assert told - rest - {cards, "no other player can hold a higher move of its kind"} == held


@pytest.mark.parametrize("moves", [6, 25, 45, 55])
def test_each_candidate_at_othello_tells_how_far_it_is_behind_the_best_by_each_judgement(moves):
    own, known = encoding("othello"), sight("othello")
    state = next(made for seed in range(50) if not (made := played(OTHELLO, seed, moves)).terminal)
    view = state.view(state.to_act[0])
    choices = own.choices(view, view.legal())
    seen = known.seen(own.one(view, choices))
    for what, (plies, weights) in {**JUDGED, **JUDGED_TWICE}.items():
        judged = othello.judge(view, depth=plies, weights=weights)
        for row, square in enumerate(choices.tolist()):
            behind = max(judged.values()) - judged[square]
            told = [name for n in seen.alternatives[row] if (name := known.choices[n]).endswith(f"the best {what}")]
            number = 0.0 if told[0].startswith("is the") else float(told[0].split()[1])
            assert len(told) == 1 and number == min(DISCS_BEHIND, key=lambda discs: abs(discs - behind))


@pytest.mark.parametrize("preset", ["rlcard", "botzone", "mailgyc", "douzero"])
def test_the_best_candidate_at_dou_dizhu_is_what_the_rule_player_prefers(preset):
    game, own, known, told = rules.game("doudizhu", preset=preset), encoding("doudizhu"), sight("doudizhu"), set()
    style = doudizhu.Style()
    for seed in range(30):
        state, rng = game.new_state(seed), np.random.default_rng(seed)
        while not state.terminal:
            view = state.view(state.to_act[0])
            legal, choices = view.legal(), own.choices(view, view.legal())
            state.apply(state.to_act[0], int(rng.choice(legal)))
            if len(choices) < 2:
                continue
            seen = known.seen(own.one(view, choices))
            words = [
                {known.choices[n] for n in row} & {*DOUDIZHU_JUDGEMENTS}
                for row in map(seen.alternatives.__getitem__, range(len(choices)))
            ]
            told |= set().union(*words)
            preferred = own.class_of[style.choose(view).action]
            if preferred < 0:  # a move that these rules alone have
                continue
            mine = words[choices.tolist().index(preferred)]
            certain = [n for n, found in enumerate(words) if DOUDIZHU_JUDGEMENTS[-1] in found]
            goes_out = {"goes out"} & {known.choices[n] for n in seen.alternatives[choices.tolist().index(preferred)]}
            assert goes_out or DOUDIZHU_JUDGEMENTS[0] in mine or DOUDIZHU_JUDGEMENTS[-1] in mine
            assert goes_out or not certain or DOUDIZHU_JUDGEMENTS[-1] in mine
    assert len(told) > 40


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
