"""The blocks ``move_types`` and ``passed`` against what the rules and hand-made positions say."""

import numpy as np
import pytest

from bothost import rules
from bothost.rules import doudizhu

GAME = rules.game("doudizhu")
NAMES = doudizhu.abstract_names()
RANKS = doudizhu.RANKS
OWN, BEAT, BY, UNSEEN, COUNTS, ROLE, PASSED = np.cumsum([0, 308, 309, 2, 308, 40, 3])
LET_PASS = 15 + 15 + 13 + 13


def encoded(view):
    out = view.encode("move_types")
    assert set(np.unique(out)) <= {0.0, 1.0}
    return out


def states(seed):
    """A random game, position by position."""
    state = GAME.new_state(seed)
    rng = np.random.default_rng(seed)
    while not state.terminal:
        yield state
        seat = state.to_act[0]
        state.apply(seat, int(rng.choice(state.legal(seat))))


@pytest.mark.parametrize("seed", range(30))
def test_own_moves_are_what_one_could_lead(seed):
    for state in states(seed):
        view = state.view(state.to_act[0])
        if view.to_json()["last"] is not None:
            continue
        held = set((np.flatnonzero(encoded(view)[OWN:BEAT]) + 1).tolist())
        assert held == set(doudizhu.abstract_map()[view.legal()].tolist())


@pytest.mark.parametrize("seed", range(10))
def test_what_others_may_hold_covers_what_they_hold(seed):
    for state in states(seed):
        for seat in range(3):
            unseen = encoded(state.view(seat))[UNSEEN:COUNTS]
            for other in ((seat + 1) % 3, (seat + 2) % 3):
                assert (encoded(state.view(other))[OWN:BEAT] <= unseen).all()


@pytest.mark.parametrize("seed", range(10))
def test_the_move_to_beat_the_counts_and_the_role(seed):
    for state in states(seed):
        seat = state.to_act[0]
        view, out = state.view(seat), encoded(state.view(seat))
        json = view.to_json()
        last = json["last"]
        (beat,) = np.flatnonzero(out[BEAT:BY])
        assert beat == (0 if last is None else doudizhu.abstract_map()[view.parse(last[1])])
        by = np.flatnonzero(out[BY:UNSEEN]).tolist()
        assert by == ([] if last is None else [0 if last[0] == (seat + 1) % 3 else 1])
        left = [np.flatnonzero(out[COUNTS + 20 * n : COUNTS + 20 * (n + 1)])[0] + 1 for n in range(2)]
        assert left == [json["counts"][(seat + 1) % 3], json["counts"][(seat + 2) % 3]]
        assert np.flatnonzero(out[ROLE:PASSED]).tolist() == [(seat - json["landlord"]) % 3]


def let_pass(state, seat, neighbour):
    """(solo, solo with one card, pair with two, trio with three) as ranks, "" for none."""
    start = PASSED + LET_PASS * ((neighbour - seat) % 3 - 1)
    row = encoded(state.view(seat))[start : start + LET_PASS]
    parts = np.split(row, [15, 30, 43])
    return tuple("".join(RANKS[i] for i in np.flatnonzero(part)) for part in parts)


def test_a_solo_let_pass_counts_and_a_pair_only_with_two_cards_left():
    hands = ["33334444555566667", "77788889999TTTTJJ", "JJQQQQKKKKAAAA222"]
    state = GAME.state_from_deal({"hands": hands, "bottom": "2BR", "first": 0})
    for move in ("7", "8", "pass", "pass", "99", "pass", "pass"):
        state.apply(state.to_act[0], GAME.parse(move))
    assert let_pass(state, 0, 2) == ("8", "", "", "")
    assert let_pass(state, 1, 0) == ("8", "", "", "")
    assert let_pass(state, 0, 1) == ("", "", "", "")


def let_enemies_play(state, seat, neighbour):
    """(solo, pair, three) as ranks, "" for none."""
    row = np.split(state.view(seat).encode("passed"), 2)[(neighbour - seat) % 3 - 1]
    return tuple("".join(RANKS[i] for i in np.flatnonzero(part)) for part in np.split(row, [15, 28]))


def test_only_what_an_enemy_played_tells_what_a_seat_lacks():
    hands = ["33334444555566667", "77788889999TTTTJJ", "JJQQQQKKKKAAAA222"]
    state = GAME.state_from_deal({"hands": hands, "bottom": "2BR", "first": 0})
    for move in ("7", "8", "pass", "pass", "99", "pass", "pass"):
        state.apply(state.to_act[0], GAME.parse(move))
    assert let_enemies_play(state, 1, 2) == ("", "", "")  # a peasant let the other one play
    assert let_enemies_play(state, 1, 0) == let_enemies_play(state, 2, 0) == ("8", "9", "")
    assert let_enemies_play(state, 0, 1) == ("", "", "")


class Passes:
    """What every seat let pass, kept move by move."""

    def __init__(self):
        self.held = [20, 17, 17]
        self.last = self.by = None
        self.lowest = {}
        self.of_enemies = {}

    def apply(self, seat, action):
        if action:
            self.held[seat] -= len(doudizhu.move(action).cards)
            self.last, self.by = doudizhu.move(action), seat
            return
        if 0 in (seat, self.by):  # the landlord is seat 0
            for column, kinds in enumerate(THREE_KINDS):
                if self.last.kind in kinds:
                    key = seat, column
                    self.of_enemies[key] = min(self.of_enemies.get(key, 99), self.last.rank)
        for column, (kind, cards) in enumerate(COLUMNS):
            if self.last.kind == kind and cards in (None, self.held[seat]):
                self.lowest[seat, column] = min(self.lowest.get((seat, column), 99), self.last.rank)

    def of(self, seat):
        return tuple(RANKS[self.lowest[seat, n]] if (seat, n) in self.lowest else "" for n in range(4))

    def of_enemies_by(self, seat):
        return tuple(RANKS[self.of_enemies[seat, n]] if (seat, n) in self.of_enemies else "" for n in range(3))


COLUMNS = (("solo", None), ("solo", 1), ("pair", 2), ("trio", 3))
THREE_KINDS = (("solo",), ("pair",), ("trio", "trio_solo", "trio_pair"))


def test_all_that_neighbours_let_pass_is_remembered():
    rng, some = np.random.default_rng(0), np.random.default_rng(1)
    seen, enemies = set(), set()
    for seed in range(150):
        state, passes = GAME.new_state(seed), Passes()
        while True:
            seat = state.to_act[0]
            action = int(rng.choice(state.legal(seat)))
            passes.apply(seat, action)
            state.apply(seat, action)
            if state.terminal:
                break
            seen |= {column for _, column in passes.lowest}
            enemies |= {*passes.of_enemies}
            rare = any(column == 3 for _, column in passes.lowest)
            for watcher in range(3) if rare else [int(some.integers(3))]:
                for other in ((watcher + 1) % 3, (watcher + 2) % 3):
                    assert let_pass(state, watcher, other) == passes.of(other)
                    assert let_enemies_play(state, watcher, other) == passes.of_enemies_by(other)
    assert seen == {0, 1, 2, 3}
    assert enemies == {(seat, column) for seat in range(3) for column in range(3)}


def one_row(items):
    return np.array([0, len(items)], np.int64), np.array(items, np.int32)


def gone(known, counts):
    """All other cards, as the piles of seats that hold so many."""
    rest = "".join(rank * ((4 if rank not in "BR" else 1) - known.count(rank)) for rank in RANKS)
    first, second = 20 - counts[0], 37 - counts[0] - counts[1]
    return [rest[:first], rest[first:second], rest[second:]]


def judged(hand, counts, unseen=None, **more):
    """Points of each abstract move of seat 0, by its notation."""
    piles = ["333", "44B", "R"] if unseen is None else gone(unseen + hand, counts)
    told = {"seat": 0, "hand": hand, "landlord": 0, "counts": counts, "turn": 0, "played": piles}
    view = GAME.view_from_snapshot(told | more)
    features = np.flatnonzero(view.encode("move_types"))
    classes = np.unique(doudizhu.abstract_map()[view.legal()])
    points = doudizhu.judgements(one_row(features), one_row(classes))
    return dict(zip(np.array(doudizhu.abstract_names())[classes].tolist(), points.tolist(), strict=True))


@pytest.mark.parametrize(
    ("hand", "counts", "more", "points"),
    [
        # The value of the rest, and half a point for each card of the landlord's lead.
        ("5522", [4, 10, 8], {}, {"5": -13.5, "2": -13.5, "55": -1.0, "22": -11.0}),
        # Two points for the landlord to answer, five for an enemy with ten cards, four for a rest of one play.
        ("5522", [4, 10, 8], {"last": [1, "44"]}, {"pass": -16.0, "55": 7.0, "22": -3.0}),
        # Leaving a trick to the partner is worth 30. Taking it with a 2 is out of the question.
        ("522", [3, 10, 8], {"landlord": 2, "last": [1, "4"]}, {"pass": 16.0, "5": -2.0, "2": -500.0}),
        # Nobody can beat a pair, and then the other one ends the hand.
        ("5522", [4, 3, 3], {"unseen": "346789"}, {"5": -13.5, "2": -13.5, "55": 499.0, "22": 489.0}),
        ("55", [2, 3, 3], {"unseen": "346789"}, {"5": -11.5, "55": 1000.0}),
    ],
)
def test_the_rule_player_likes_moves_by_points_that_a_person_can_add_up(hand, counts, more, points):
    assert judged(hand, counts, **more) == points


@pytest.mark.parametrize("features", [[], [0, 308], [0, 310, 967], [2000]])
def test_what_is_no_position_of_a_seat_is_not_judged(features):
    with pytest.raises(ValueError, match=r"hand|landlord|too large"):
        doudizhu.judgements(one_row(features), one_row([0]))
