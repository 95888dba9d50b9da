"""Self-play of deep-mc: rounds against a slow oracle, their encodings and returns, and branches."""

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bothost import ModelError, rules
from bothost.rules import doudizhu
from bothost.training.action_values import NativeActionValues
from bothost_deep_mc import branches, engine
from bothost_deep_mc.encode import CHOICE, FEATURES, INPUTS, NOW, ROLES, Seen, encode, encode_rows, roles
from bothost_deep_mc.model import Sizes, seeded
from bothost_deep_mc.selfplay import Kept, PlayOptions, Round, SelfPlayTable, best_of, first_of, utility

GAME = rules.game("doudizhu")
BIDDING = rules.game("doudizhu", preset="bidding")
SEEN = Seen(NOW, FEATURES)
SIZES = Sizes(trunk=(32, 16), head=(16, 16), bidder_trunk=(16,), bidder_head=(16,))
QUIET = PlayOptions(epsilon=0.0)


@pytest.fixture(scope="module")
def nets():
    model = seeded(SIZES, 3)
    return {role: NativeActionValues(model.of(role)) for role in ROLES}


def play(nets, game=GAME, options=QUIET, hands=24, seed=5, **given_):
    return branches.play_round(game, nets, options, hands=hands, seed=seed, seen=SEEN, **given_)


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=5), min_size=1, max_size=6))
def test_best_of_and_first_of_each_segment(segments):
    offsets = np.cumsum([0, *map(len, segments)])
    values = np.concatenate(segments).astype(np.float32)
    found = best_of(values, offsets)
    assert found.tolist() == [int(o) + int(np.argmax(s)) for o, s in zip(offsets, segments, strict=False)]
    assert np.array_equal(first_of(values == np.repeat(values[found], np.diff(offsets)), offsets), found)


def test_values_that_are_no_numbers_are_no_choice():
    with pytest.raises(ModelError, match="no longer numbers"):
        best_of(np.array([0.1, np.nan, 0.2], np.float32), np.array([0, 2, 3]))


@pytest.mark.parametrize("inputs", [NOW, INPUTS])
@pytest.mark.parametrize("game", [GAME, BIDDING])
def test_rows_of_the_batch_are_encoded_as_views_are(game, inputs):
    env = rules.vec_env(game, 5, 2)
    states, rows = [game.state_from_deal(env.deal(i)) for i in range(5)], np.array([3, 0])
    for which in (-1, *[0] * 11):  # some history, after the highest bid
        actions = np.array([int(state.legal(state.to_act[0])[which]) for state in states], np.int32)
        for state, action in zip(states, actions, strict=True):
            state.apply(state.to_act[0], int(action))
        env.step(actions)
    assert not env.done.any() and not any(state.terminal for state in states)
    views = [states[i].view(states[i].to_act[0]) for i in rows]
    mine = encode_rows(env, rows, analysis=True, inputs=inputs)
    theirs = encode(views, [view.legal() for view in views], inputs)
    for a, b in zip(mine, theirs, strict=True):
        np.testing.assert_array_equal(a, b)
    assert mine.positions.shape == (2, inputs) and mine.moves.shape[1] == FEATURES
    assert mine.positions[:, NOW:].any() == (inputs > NOW)
    few = encode_rows(env, rows, analysis=False)
    np.testing.assert_array_equal(few.moves, mine.moves[:, : few.moves.shape[1]])


@pytest.mark.parametrize("game", [GAME, BIDDING])
def test_whoever_is_asked_first_is_the_landlord_or_calls(game):
    env = rules.vec_env(game, 2, 2)
    first = encode_rows(env, np.arange(2), analysis=True)
    assert {ROLES[r] for r in roles(first.positions)} == {"landlord" if game is GAME else "bidder"}


def by_the_rule_player(env):
    """Returns of each environment's hand, and how many real decisions each role made in it."""
    out = []
    for i in range(env.n):
        state, counts = GAME.state_from_deal(env.deal(i)), np.zeros(3, int)
        while not state.terminal:
            (seat,) = state.to_act
            counts[seat] += len(state.legal(seat)) > 1
            state.apply(seat, doudizhu.rule_choice(state.view(seat))[0])
        out.append((state.returns, counts))
    return out


def test_an_imitated_round_is_the_rule_players_hands(nets):
    found = play(nets, imitate=True)
    expected = by_the_rule_player(rules.vec_env(GAME, 24, 5))
    for seat, role in enumerate(("landlord", "next", "previous")):
        decisions = found.decisions[role]
        assert len(decisions.returns) == sum(counts[seat] for _, counts in expected)
        won = sum(counts[seat] for returns, counts in expected if returns[seat] > 0)
        assert (decisions.returns > 0).sum() == won
        assert decisions.moves[:, 0, CHOICE].all()
        assert np.unique(decisions.returns).tolist() == [-1.0, 1.0]
    assert found.hands == 24 and found.asked == sum(counts.sum() for _, counts in expected)


def test_a_round_is_a_function_of_networks_and_seed(nets):
    options = PlayOptions(epsilon=0.2)
    given_ = {"options": options, "branches": 1, "keep_expert": True, "expert_share": 0.5}
    one, same, other = play(nets, **given_), play(nets, **given_), play(nets, seed=6, **given_)
    for role in one.decisions:
        for a, b in zip(one.decisions[role], same.decisions[role], strict=True):
            np.testing.assert_array_equal(a, b)
        for a, b in zip(one.pairs[role], same.pairs[role], strict=True):
            np.testing.assert_array_equal(a, b)
    assert any(len(one.decisions[r].returns) != len(other.decisions[r].returns) for r in one.decisions)


def test_what_is_kept_for_the_regularizer(nets):
    found = play(nets, keep_expert=True)
    for decisions in found.decisions.values():
        n, k, width = decisions.moves.shape
        assert (k, width) == (2 + PlayOptions().others, FEATURES) and n == len(decisions.positions)
        assert decisions.moves[:, 1, CHOICE].all()  # the second is the expert's
        assert set(np.unique(decisions.moves)) <= {0, 1}


def test_only_the_networks_decisions_are_learnt_from(nets):
    whole, half = play(nets), play(nets, expert_share=1.0)
    assert half.decisions["landlord"].moves.shape[1] == 1
    assert sum(len(d.returns) for d in half.decisions.values()) < 0.8 * half.asked
    assert sum(len(d.returns) for d in whole.decisions.values()) == whole.asked


def test_traced_returns_are_those_of_sarsa_lambda():
    """Against the definition, G_t = (1 - λ) Q_{t+1} + λ G_{t+1}, seat by seat and hand by hand."""
    rng, trace = np.random.default_rng(3), 0.6
    ends = rng.normal(size=(7, 3)).astype(np.float32)
    parts = []
    for _ in range(9):
        rows = np.flatnonzero(rng.random(7) < 0.6)
        seats = rng.integers(3, size=len(rows)).astype(np.int8)
        empty = np.zeros((len(rows), 1), np.uint8)
        parts.append(Kept(rows, seats, empty, empty, rng.normal(size=len(rows)).astype(np.float32)))
    order = [(int(r), int(s), float(q)) for part in parts for r, s, q in zip(*part[:2], part.values, strict=True)]
    expected = []
    for n, (row, seat, _) in enumerate(order):
        later = [q for r, s, q in order[n + 1 :] if (r, s) == (row, seat)]
        goal = float(ends[row, seat])
        for q in reversed(later):
            goal = (1 - trace) * q + trace * goal
        expected.append(goal)
    np.testing.assert_allclose(np.concatenate(branches.traced(parts, ends, trace)), expected, rtol=1e-5, atol=1e-6)
    whole = np.concatenate(branches.traced(parts, ends, 1.0))
    np.testing.assert_array_equal(whole, [ends[row, seat] for row, seat, _ in order])


def test_imitated_rounds_keep_monte_carlo_returns(nets):
    options = msgspec.structs.replace(QUIET, trace=0.5)
    for decisions in play(nets, options=options, imitate=True).decisions.values():
        assert np.unique(decisions.returns).tolist() == [-1.0, 1.0]
    own = play(nets, options=options).decisions["landlord"].returns
    assert len(np.unique(own)) > 10


def test_a_branch_that_changes_nothing_ends_as_the_hand_did(nets):
    """The same action at the changed decision: the hand that is played again is the hand."""
    hands, given_ = 24, {"experts": np.zeros((24, 2), np.bool_), "seen": SEEN}
    table = SelfPlayTable(rules.vec_env(GAME, hands, 5), nets, QUIET, np.random.default_rng(1), **given_)
    turn, script = branches.BranchPoints(hands, SEEN), []
    while table.going.any():
        actions = np.full(hands, -1, np.int32)
        for role, chosen in table.choose(table.going, actions):
            turn.consider(table, role, chosen, len(script))
        table.step(actions)
        script.append(actions)
    changed = turn.action.copy()
    turn.action = np.array([script[step][i] for i, step in enumerate(turn.step)], np.int32)
    assert (changed != turn.action).all() and (turn.step >= 0).all()
    again = SelfPlayTable(rules.vec_env(GAME, hands, 5), nets, QUIET, np.random.default_rng(2), **given_)
    branches.play_branch(again, turn, script)
    np.testing.assert_array_equal(again.returns, table.returns)


def test_pairs_are_two_moves_of_one_position(nets):
    pairs = play(nets, branches=2, hands=40).pairs
    assert sum(len(p.returns) for p in pairs.values()) == 80
    assert (np.concatenate([p.moves[:, 0] != p.moves[:, 1] for p in pairs.values()]).any(axis=1)).all()
    returns = np.concatenate([p.returns for p in pairs.values()])
    assert set(np.unique(returns)) == {-1.0, 1.0}
    assert 0.05 < (returns[:, 0] != returns[:, 1]).mean() < 0.95


def test_networks_are_asked_for_their_own_decisions_alone(nets):
    class Counting:
        def __init__(self, net):
            self.net, self.positions = net, 0

        def evaluate(self, positions, moves, offsets):
            self.positions += len(positions)
            return self.net.evaluate(positions, moves, offsets)

    counting = {role: Counting(net) for role, net in nets.items()}
    found = play(counting, game=BIDDING, expert_share=0.5)
    learnt = sum(len(part.returns) for part in found.decisions.values())
    assert sum(net.positions for net in counting.values()) == learnt < found.asked


def test_bidders_learn_points_and_the_others_wins(nets):
    found = play(nets, game=BIDDING, hands=60, options=PlayOptions(epsilon=1.0))
    assert set(found.decisions) == set(ROLES)
    bids = found.decisions["bidder"].returns
    assert np.abs(bids).max() <= 1.0 and len(np.unique(bids)) > 3
    assert utility(np.array([12.0, -3.0], np.float32), "bidder").tolist() == [1.0, -0.5]
    assert utility(np.array([12.0, -3.0, 0.0], np.float32), "next").tolist() == [1.0, -1.0, 0.0]


def test_win_rates_of_the_rule_players_choices_are_even(monkeypatch, nets):
    class Choosing:
        def evaluate(self, positions, moves, offsets):
            return moves[:, CHOICE].copy()

    rule = {role: Choosing() for role in ROLES}
    landlord, peasants = branches.win_rates(GAME, rule, deals=200, seed=1, seen=SEEN)
    assert landlord + peasants == pytest.approx(1.0)  # the same hands twice
    assert sum(branches.win_rates(GAME, nets, deals=100, seed=1, seen=SEEN)) < 0.6


def test_parts_of_a_round_are_put_together(nets):
    parts = [play(nets, hands=10, seed=seed, branches=1) for seed in (1, 2)]
    both = engine.merged(parts)
    assert isinstance(both, Round) and both.hands == 40 and both.asked == sum(part.asked for part in parts)
    for role, decisions in both.decisions.items():
        assert len(decisions.returns) == sum(len(part.decisions[role].returns) for part in parts)
