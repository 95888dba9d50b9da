"""Players with a style: each is itself, and can be told from the others."""

import itertools
import math
import random

import numpy as np
import pytest

from bothost import Budget, Table, rules
from bothost.errors import ConfigError
from bothost.plugins import Plugins
from bothost.rules import doudizhu, othello
from bothost_baselines import styled_doudizhu, styled_othello

STYLES = {"doudizhu": styled_doudizhu.STYLES, "othello": styled_othello.STYLES}
BUDGET = Budget(math.inf)


def positions(name, hands):
    """Positions with a choice, of hands of the rule player (Dou Dizhu) or at random."""
    game, found = rules.game(name), []
    for seed in range(hands):
        state, rng = game.new_state(seed), random.Random(seed)
        while not state.terminal:
            view = state.view(state.to_act[0])
            if len(view.legal()) > 1:
                found.append(view)
            action = doudizhu.rule_choice(view)[0] if name == "doudizhu" else int(rng.choice(view.legal()))
            state.apply(view.seat, action)
    return found


@pytest.fixture(scope="module")
def plugins():
    return Plugins.load()


def player(plugins, name, seed=1, **options):
    made = plugins.resolve(f"styled-{name}", options).make()
    return made.player(Table(lobby="test", table="1", game=rules.game(name), seat=0, seed=seed))


def choices(player, views):
    return np.array([player.decide(view, view.legal(), BUDGET).action for view in views])


@pytest.mark.parametrize("name", ["doudizhu", "othello"])
def test_styles_agree_with_themselves_and_less_with_each_other(plugins, name):
    views = positions(name, 25 if name == "doudizhu" else 8)
    made = {style: choices(player(plugins, name, style=style), views) for style in STYLES[name] if style != "deep"}
    for style, actions in made.items():
        assert (choices(player(plugins, name, style=style), views) == actions).all()  # deterministic
        for view, action in zip(views, actions.tolist(), strict=True):
            assert view.is_legal(action)
    for one, other in itertools.combinations(made, 2):
        assert (made[one] == made[other]).mean() < 0.97, (one, other)


@pytest.mark.parametrize("name", ["doudizhu", "othello"])
def test_a_temperature_makes_moods_that_the_seed_decides(plugins, name):
    views = positions(name, 10 if name == "doudizhu" else 3)
    calm = choices(player(plugins, name), views)
    agreement = []
    for temperature in (0.2, 8.0, 100.0):
        moody = [choices(player(plugins, name, seed, temperature=temperature), views) for seed in (1, 2, 1)]
        assert (moody[0] == moody[2]).all() and (moody[0] != moody[1]).any()
        agreement.append((moody[0] == calm).mean())
    assert agreement[0] > 0.75 and agreement[0] > agreement[1] > agreement[2]


def test_steady_plays_nearly_as_the_rule_player(plugins):
    views = positions("doudizhu", 25)
    rule = [doudizhu.rule_choice(view)[0] for view in views]
    assert (choices(player(plugins, "doudizhu"), views) == rule).mean() > 0.93


def habit_uses(views, **habits):
    """The plays of a style with these habits, as moves."""
    style = doudizhu.Style(**habits)
    return [(view, doudizhu.move(style.choose(view).action)) for view in views]


def test_each_habit_does_what_its_name_says():
    views = positions("doudizhu", 40)
    leads = [view for view in views if 0 not in view.legal()]
    follows = [view for view in views if 0 in view.legal()]

    def mean(score, views, **habits):
        return np.mean([score(move) for _, move in habit_uses(views, **habits)])

    tried = set()
    for habit, score, among in (
        ("aggression", lambda m: m.kind != "pass", follows),
        ("bombs", lambda m: m.kind in ("bomb", "rocket"), views),
        ("length", lambda m: len(m.cards), leads),
        ("ranks", lambda m: m.rank, leads),
        ("pairs", lambda m: m.kind in ("pair", "pair_chain"), leads),
        ("chains", lambda m: m.kind == "solo_chain", leads),
        ("kickers", lambda m: len(m.cards) > len(m.body), views),
        ("control", lambda m: sum(card in "A2BR" for card in m.cards), views),
        ("help", lambda m: m.kind == "pass", follows),
    ):
        less, plain, more = (mean(score, among, **{habit: weight}) for weight in (-15, 0, 15))
        assert less < more and less <= plain <= more, (habit, less, plain, more)
        tried.add(habit)
    assert set(doudizhu.habits()) - tried == {"feed", "block"}


def lead(counts, **habits):
    """What a peasant at seat 1 leads of 4 7 T K 2, the landlord at seat 0, the partner at seat 2."""
    snapshot = {"seat": 1, "hand": "47TK2", "landlord": 0, "turn": 1, "counts": counts}
    return habit_uses([rules.game("doudizhu").view_from_snapshot(snapshot)], **habits)[0][1].cards


def test_a_partner_is_fed_and_an_enemy_blocked_where_they_are_about_to_go_out():
    assert lead([9, 5, 1], feed=80) == "4" and lead([9, 5, 1], feed=-80) != "4"
    assert lead([9, 5, 9], feed=80) == lead([9, 5, 9], feed=-80)
    assert lead([1, 5, 9], block=40) == "2" and lead([1, 5, 9], block=-40) == "4"
    assert lead([9, 5, 9], block=40) == lead([9, 5, 9], block=-40)


def test_a_choice_tells_which_habits_spoke_for_it():
    for view in positions("doudizhu", 5):
        choice = doudizhu.Style(pairs=50, length=1).choose(view)
        kind = doudizhu.move(choice.action).kind
        assert choice.habits.get("pairs", 0) == (50 if kind in ("pair", "pair_chain") and 0 not in view.legal() else 0)
        plain = doudizhu.Style().choose(view)
        assert plain.habits == {} and plain.action == plain.rule == choice.rule


def test_calls_go_by_the_chance_to_win():
    game = rules.game("doudizhu", preset="bidding")
    views = [(state := game.new_state(seed)).view(state.to_act[0]) for seed in range(40)]
    calls = [[doudizhu.Style(bid=bid).choose(view).action for view in views] for bid in (-0.3, 0.0, 0.3)]
    assert calls[1] == [doudizhu.rule_choice(view)[0] for view in views]
    assert sum(calls[0]) < sum(calls[1]) < sum(calls[2])


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"style": "bald"}, "bold"),
        ({"agression": 3}, "aggression"),
        ({"temperature": -1}, "temperature"),
        ({"bombs": 1e9}, "bombs"),
    ],
)
def test_what_is_no_style_is_refused(plugins, options, word):
    with pytest.raises(ConfigError) as caught:
        plugins.resolve("styled-doudizhu", options)
    assert word in str(caught.value) + caught.value.advice
    assert "[" not in caught.value.advice, "of the brackets of a table"


@pytest.mark.parametrize("options", [{"bluff": 1}, {"temperature": -1}, {"bombs_from": 99}, {"bombs": math.nan}])
def test_the_native_style_checks_for_itself(options):
    with pytest.raises(ValueError):
        doudizhu.Style(**options)


def test_othello_is_judged_move_by_move_as_the_search_sees_it():
    for view in positions("othello", 2):
        judged = othello.judge(view, depth=3, solve_from=8, nodes=10**6)
        assert sorted(judged) == view.legal().tolist()
        found = othello.choose(view, depth=3, solve_from=8, nodes=10**6)
        if found.exact or found.depth == 3:
            assert max(judged.values()) == pytest.approx(found.score)
            assert judged[found.action] == pytest.approx(found.score)
        assert othello.judge(view, depth=1, solve_from=0, weights=othello.WEIGHTS) == othello.judge(
            view, depth=1, solve_from=0
        )
    view = positions("othello", 1)[0]
    with pytest.raises(ValueError, match="luck"):
        othello.judge(view, weights={"luck": 3})
    with pytest.raises(TypeError):
        othello.judge(rules.game("doudizhu").new_state(1).view(0))
