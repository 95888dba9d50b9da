"""Search on every native game: its laws, and positions whose best move is known."""

import threading
import time
from collections import Counter

import numpy as np
import pytest

from bothost import rules
from bothost.errors import UsageError
from bothost.rules import doudizhu

GAMES = rules.games(plugins=False, testing=True)


def asked_view(game, seed=0, plies=0):
    """A view whose seat has a choice, some random plies into a hand."""
    rng = np.random.default_rng(seed)
    for attempt in range(100):
        state = game.new_state(seed * 100 + attempt)
        for _ in range(plies):
            if state.terminal:
                break
            seat = state.to_act[0]
            state.apply(seat, int(rng.choice(state.legal(seat))))
        if not state.terminal:
            view = state.view(state.to_act[0])
            if len(view.legal()) > 1:
                return view
    raise AssertionError("no position with a choice")


def evaluate_all(search, value=0.0, iterations=200):
    while not search.run(iterations=iterations - search.iterations):
        wanted = sum(len(legal) for _, legal in search.leaves)
        search.feed(np.full(wanted, value, dtype=np.float32))


@pytest.mark.parametrize("name", GAMES)
def test_playouts_visit_only_legal_actions_and_add_up(name):
    view = asked_view(rules.game(name))
    before = view.to_bytes()
    search = rules.search(view, seed=1)
    assert search.run(iterations=300)
    actions, visits, values = zip(*search.root_actions, strict=True)
    assert list(actions) == view.legal().tolist()
    assert sum(visits) == search.iterations == 300
    assert all(-1 <= value <= 1 for value in values)
    assert view.to_bytes() == before


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("threads", [1, 2])
def test_a_seed_and_a_limit_of_iterations_fix_the_result(name, threads):
    view = asked_view(rules.game(name), plies=2)

    def run(seed, steps):
        search = rules.search(view, seed=seed, threads=threads)
        for step in steps:
            search.run(iterations=step)
        return search.root_actions

    assert run(5, [200]) == run(5, [200])
    if threads == 1:
        assert run(5, [200]) == run(5, [50, 150])
    assert run(5, [200]) != run(6, [200])


@pytest.mark.parametrize("name", GAMES)
def test_an_evaluated_search_asks_for_every_legal_action_of_the_seat_to_act(name):
    view = asked_view(rules.game(name))
    search = rules.search(view, seed=1, leaf="evaluator", leaf_batch=4)
    assert not search.run(iterations=50)
    for leaf, legal in search.leaves:
        assert leaf.asked
        assert legal.tolist() == leaf.legal().tolist()
    search.feed(np.zeros(sum(len(legal) for _, legal in search.leaves), dtype=np.float32))
    evaluate_all(search, iterations=50)
    assert sum(visits for _, visits, _ in search.root_actions) <= search.iterations == 50


@pytest.mark.parametrize("name", GAMES)
def test_the_evaluators_favourite_gets_the_visits(name):
    view = asked_view(rules.game(name))
    favourite = int(view.legal()[-1])
    search = rules.search(view, seed=1, leaf="evaluator", leaf_batch=1, exploration=0.3)
    while not search.run(iterations=200 - search.iterations):
        values = [
            0.9 if leaf.seat == view.seat and leaf.seq == view.seq and action == favourite else 0.0
            for leaf, legal in search.leaves
            for action in legal.tolist()
        ]
        search.feed(np.array(values, dtype=np.float32))
    visits = {action: n for action, n, _ in search.root_actions}
    assert max(visits, key=visits.get) == favourite


@pytest.mark.parametrize("name", GAMES)
def test_a_tree_is_kept_when_the_hand_goes_on(name):
    game = rules.game(name)
    view = asked_view(game)
    search = rules.search(view, seed=1)
    search.run(iterations=2000)
    nodes = search.nodes
    state = view.sample_state(3)
    actions = []
    while not actions or (not state.terminal and view.seat not in state.to_act):
        seat = state.to_act[0]
        actions.append(int(state.legal(seat)[0]))
        state.apply(seat, actions[-1])
    if state.terminal:
        return
    search.advance(state.view(view.seat), np.array(actions, dtype=np.int32))
    assert search.nodes < nodes
    search.run(iterations=100)
    assert [action for action, _, _ in search.root_actions] == state.legal(view.seat).tolist()


@pytest.mark.parametrize("name", GAMES)
def test_it_stops_at_a_deadline(name):
    search = rules.search(asked_view(rules.game(name)), seed=1)
    start = time.perf_counter()
    search.run(ms=30)
    assert 0.025 <= time.perf_counter() - start <= 1.0
    assert search.iterations >= 1


@pytest.mark.parametrize("leaf", ["rollout", "evaluator"])
def test_the_tree_has_at_most_max_nodes_and_the_search_goes_on(leaf):
    search = rules.search(asked_view(rules.game("othello")), seed=1, leaf=leaf, max_nodes=20)
    while not search.run(iterations=300 - search.iterations):
        asked = sum(len(actions) for _, actions in search.leaves)
        search.feed(np.linspace(-1, 1, asked, dtype=np.float32))
    assert search.nodes == 20
    assert search.iterations == 300


@pytest.mark.parametrize("threads", [1, 2])
def test_a_view_that_no_deal_fits_is_refused_by_every_thread(threads):
    kinds = [f"{suit}{rank}" for suit in "WTB" for rank in range(1, 10)] + ["F1", "F2", "F3", "F4", "J1", "J2", "J3"]
    view = rules.game("mahjong").view_from_snapshot(
        {
            "seat": 0,
            "phase": "turn",
            "actor": 0,
            "hand": kinds[:14],
            "drawn": kinds[13],
            "discards": [kinds[seat::4] for seat in range(4)],  # so no kind is left for the hidden kong
            "melds": [[], [{"kind": "angang", "tile": None, "claimed": None}], [], []],
            "wall_left": [5, 5, 5, 5],
        }
    )
    search = rules.search(view, seed=1, threads=threads)
    with pytest.raises(ValueError, match="no deal fits"):
        search.run(iterations=10)


def test_bad_input_is_refused_in_words():
    game = rules.game("claims")
    view = asked_view(game)
    with pytest.raises(ValueError, match='no option "depth"'):
        rules.search(view, depth=3)
    with pytest.raises(ValueError, match='leaf: "oracle" is not one of rollout, evaluator'):
        rules.search(view, leaf="oracle")
    with pytest.raises(ValueError, match="threads"):
        rules.search(view, threads=0)
    for wrong in (0, -1, float("nan")):
        with pytest.raises(ValueError, match="points_scale"):
            rules.search(view, points_scale=wrong)
    for option in ("exploration", "widening", "points_scale", "prior_visits"):
        with pytest.raises(ValueError, match=option):
            rules.search(view, **{option: float("inf")})
    with pytest.raises(ValueError, match="needs iterations"):
        rules.search(view).run()
    with pytest.raises(ValueError, match="threads are for playouts"):
        rules.search(view, threads=2, leaf="evaluator")
    search = rules.search(view, leaf="evaluator")
    search.run(iterations=10)
    with pytest.raises(ValueError, match="needs"):
        search.feed(np.zeros(10_000, dtype=np.float32))
    with pytest.raises(ValueError, match="call feed"):
        search.run(iterations=10)
    with pytest.raises(ValueError, match="seat is asked"):
        rules.search(game.new_view(0))
    with pytest.raises(UsageError, match="cannot be searched"):
        rules.search(type("Foreign", (), {"game": game})())


def test_what_another_thread_searches_cannot_be_read_meanwhile():
    search = rules.search(asked_view(rules.game("othello")))
    names = {"root_actions", "iterations", "nodes", "deals", "tempering_exponent"}
    running, refused = threading.Thread(target=search.run, kwargs={"ms": 400}), set()
    running.start()
    while running.is_alive():
        for name in names:
            try:
                getattr(search, name)
            except ValueError as error:
                assert "another thread" in str(error)
                refused.add(name)
    assert refused == names
    assert sum(visits for _, visits, _ in search.root_actions) == search.iterations > 0


def test_nan_from_an_evaluator_counts_as_nothing():
    search = rules.search(asked_view(rules.game("claims")), leaf="evaluator")
    evaluate_all(search, value=float("nan"), iterations=60)
    assert all(np.isfinite(value) for _, _, value in search.root_actions)


RULE = {"playout": "rule", "others": "policy", "widening": 1.0, "belief": 50}


def hand_of(policy, seed, plies):
    """A hand of such players, some plies on."""
    state = rules.game("doudizhu").new_state(seed)
    for _ in range(plies):
        if not state.terminal:
            state.apply(state.to_act[0], policy(state.view(state.to_act[0]))[0])
    return state


def positions(policy, hands, plies):
    """(seed, state) of those hands that go on for longer."""
    states = ((seed, hand_of(policy, seed, plies)) for seed in range(hands))
    return [(seed, state) for seed, state in states if not state.terminal]


def rule_hand(seed, plies):
    return hand_of(doudizhu.rule_choice, seed, plies)


EVALUATED = {**RULE, "leaf": "evaluator"}


def fed(search, iterations, value=lambda view, action: 0.0, ms=None):
    """Run the search, in bits of ``ms`` where it is given; returns the views that it asked about."""
    asked, end = [], search.iterations + iterations
    while search.iterations < end:
        if not search.run(iterations=end - search.iterations, ms=ms):
            asked += [view for view, _ in search.leaves]
            values = [value(view, action) for view, legal in search.leaves for action in legal.tolist()]
            search.feed(np.array(values, dtype=np.float32))
    return asked


def test_where_others_play_by_policy_an_evaluator_is_asked_about_own_choices_alone():
    view = rule_hand(4, 9).view(0)
    search = rules.search(view, seed=3, **EVALUATED)
    asked = fed(search, 300)
    assert {leaf.seat for leaf in asked} == {0}
    assert all(len(leaf.legal()) > 1 for leaf in asked)
    assert asked[0].to_bytes() == view.to_bytes()
    assert len({leaf.to_bytes() for leaf in asked}) == len(asked) > 20  # each once: it sees the same in any deal
    assert sum(visits for _, visits, _ in search.root_actions) == 299 == search.iterations - 1


def test_what_an_evaluated_search_does_hangs_on_iterations_and_not_on_time():
    view = rule_hand(4, 9).view(0)
    whole, pieces = (rules.search(view, seed=3, **EVALUATED) for _ in range(2))
    pieces.resample_determinizations(50)  # weighing deals has a time of its own
    fed(whole, 200)
    fed(pieces, 200, ms=0.05)
    assert whole.root_actions == pieces.root_actions


def test_an_evaluator_that_sees_a_win_later_leads_the_search_there():
    view = rule_hand(4, 9).view(0)
    wanted = int(view.legal()[1])

    def value(leaf, action):
        history = leaf.to_json()["history"][len(view.to_json()["history"]) :]
        return 0.9 if history and view.parse(history[0][1]) == wanted else -0.2

    search = rules.search(view, seed=3, **{**EVALUATED, "widening": 0.0})
    fed(search, 500, value)
    visits = {action: n for action, n, _ in search.root_actions}
    assert max(visits, key=visits.get) == wanted


def test_playouts_are_mixed_into_an_evaluators_values_as_far_as_asked():
    view = rule_hand(4, 0).view(0)  # no hand ends within the tree

    def root(mixing):
        search = rules.search(view, seed=3, prior_visits=0.0, mixing=mixing, **EVALUATED)
        fed(search, 300, lambda leaf, action: 0.5)
        return np.array([value for _, n, value in search.root_actions if n > 5])

    assert root(0.0) == pytest.approx(0.5)
    assert abs(root(1.0) - 0.5).max() > abs(root(0.5) - 0.5).max() > 0.05
    with pytest.raises(ValueError, match=r"mixing: .* is not within 0 \.\. 1"):
        rules.search(view, mixing=1.5)


def test_a_search_by_the_games_own_policy_is_fixed_by_its_seed_too():
    view = rule_hand(4, 9).view(0)

    def run(seed):
        search = rules.search(view, seed=seed, **RULE)
        search.run(iterations=300)
        return search.root_actions, search.deals

    assert run(1) == run(1)
    assert run(1)[1] == 50
    assert run(1) != run(2)


def test_only_games_with_a_policy_are_searched_by_it():
    view = asked_view(rules.game("othello"))
    for option in ({"playout": "rule"}, {"others": "policy"}):
        with pytest.raises(ValueError, match="no policy of its own"):
            rules.search(view, **option)
    search = rules.search(view, widening=1.0, belief=10)  # of no use here, and harmless
    search.run(iterations=50)
    assert search.iterations == 50


def test_widening_looks_first_at_what_the_policy_likes():
    state = rule_hand(1, 0)
    view = state.view(0)
    search = rules.search(view, seed=1, **RULE)
    search.run(iterations=15)
    tried = [action for action, visits, _ in search.root_actions if visits]
    assert len(tried) <= 4
    assert doudizhu.rule_choice(view)[0] in tried


def test_a_committed_search_goes_on_below_its_action_alone():
    view = rule_hand(1, 0).view(0)
    legal = view.legal().tolist()
    search = rules.search(view, seed=1, **RULE)
    search.run(iterations=100)
    before = {action: visits for action, visits, _ in search.root_actions}
    search.commit(legal[2])
    search.run(iterations=50)
    after = {action: visits for action, visits, _ in search.root_actions}
    assert after == {**before, legal[2]: before[legal[2]] + 50}
    for wrong in (0, 2**32 + legal[2], -(2**40)):  # the second is a legal action in its lowest 32 bits
        with pytest.raises(ValueError, match="not legal"):
            search.commit(wrong)


@pytest.mark.parametrize("policy", [doudizhu.rule_choice, doudizhu.rhcp_choice])
def test_the_true_hands_explain_the_play_better_than_others(policy):
    """Of either kind of player: the true deal is more likely than nearly all that the cards would allow."""
    shares, ahead = [], []
    for _, state in positions(policy, 20, 16):
        view = state.view(state.to_act[0])
        true = doudizhu.log_likelihood(view, state)
        samples = np.array([doudizhu.log_likelihood(view, view.sample_state(i)) for i in range(100)])
        shares.append(np.mean(true > samples))
        ahead.append(true - np.log(np.exp(samples).mean()))
    assert np.mean(shares) > 0.9
    assert np.mean(ahead) > 2.5
    with pytest.raises(ValueError, match="exponent"):
        doudizhu.log_likelihood(view, state, exponent=0.0)
    snapshot = {**view.to_json(), "complete": False, "history": []}
    unknown = view.game.view_from_snapshot(snapshot)
    assert doudizhu.log_likelihood(unknown, unknown.sample_state(1)) == 0.0


@pytest.mark.parametrize("policy", [doudizhu.rule_choice, doudizhu.rhcp_choice])
def test_the_more_deals_are_weighed_the_more_the_play_of_others_tells(policy):
    few, many = [], []
    for seed, state in positions(policy, 8, 14):
        search = rules.search(state.view(state.to_act[0]), seed=seed, **{**RULE, "belief": 1000})
        assert search.tempering_exponent == 0.0
        search.resample_determinizations(20)
        few.append(search.tempering_exponent)
        search = rules.search(state.view(state.to_act[0]), seed=seed, **{**RULE, "belief": 1000})
        search.resample_determinizations(1000)
        many.append(search.tempering_exponent)
        search.run(iterations=1)
        assert (search.deals, search.tempering_exponent) == (1000, many[-1])
    assert min(few) > 0.0
    assert max(many) <= 1.0
    assert np.mean(many) > np.mean(few)


def endgame(hands, turn):
    """The view of the seat to act; seat 0 is the landlord. All cards that nobody holds were played."""
    rest = Counter("3456789TJQKA2" * 4 + "BR") - Counter("".join(hands))
    cards, played = sorted(rest.elements(), key=doudizhu.RANKS.index), []
    for seat, hand in enumerate(hands):
        count = (20 if seat == 0 else 17) - len(hand)
        played.append("".join(cards[:count]))
        cards = cards[count:]
    snapshot = {
        "format": 1,
        "seat": turn,
        "phase": "play",
        "landlord": 0,
        "turn": turn,
        "hand": hands[turn],
        "counts": [len(hand) for hand in hands],
        "played": played,
        "last": None,
    }
    return rules.game("doudizhu").view_from_snapshot(snapshot)


@pytest.mark.parametrize("options", [{}, RULE, {**RULE, "others": "tree"}], ids=["random", "policy", "tree"])
@pytest.mark.parametrize(
    ("hands", "turn", "best"),
    [
        (["344", "A", "K"], 0, {"44"}),  # the pair stands; a solo lets a peasant out
        (["34444", "2", "AA"], 0, {"4444", "4443"}),  # either stands, and one more play is the last
        (["Q", "35K", "4"], 1, {"3", "K"}),  # the partner goes out on the three, or the king stands; on the five Q does
        (["569", "J", "4Q"], 0, None),  # every lead lets a peasant out
    ],
)
def test_endgames_with_a_known_best_move(hands, turn, best, options):
    view = endgame(hands, turn)
    search = rules.search(view, seed=1, **options)
    search.run(iterations=1000)
    action, _, value = max(search.root_actions, key=lambda found: found[1])
    if best is None:
        assert value < -0.9
    else:
        assert view.notation(action) in best
        assert value > 0.9
