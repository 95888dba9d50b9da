"""The rule player of pairing: what it does in clear positions, and that it beats random play."""

from __future__ import annotations

import itertools
import math
import time
from typing import Any

import pytest

from bothost import rules
from bothost.arena.lineup import lineups
from bothost.arena.match import play_deals
from bothost.errors import ConfigError
from bothost.plugins import check_options
from bothost.strategy import Budget, NoOptions, Table
from bothost_baselines.pairing import Options, RulePairing
from bothost_baselines.random import Random

CARDS = [f"{colour}{rank}" for colour in "grwb" for rank in range(1, 14)]
NO_CLOCK = Budget(deadline=math.inf)


def start(hand: list[str], pool: list[str], **changes: Any) -> rules.State:
    """Seat 0 to move with these cards; nobody has collected anything, all other cards are out of the game."""
    deal: dict[str, Any] = {
        "hands": [hand, ["r1", "w1", "b1", "g2"]],
        "pool": pool,
        "deck": ["r3", "w3", "b3"],
        "libraries": [[], []],
        "charges": [[0, 0], [0, 0]],
    }
    deal.update(changes)
    named = {card for part in (*deal["hands"], deal["pool"], deal["deck"], *deal["libraries"]) for card in part}
    deal["aside"] = [card for card in CARDS if card not in named]
    return rules.game("pairing", pool=len(pool)).state_from_deal(deal)


def turn(state: rules.State) -> list[str]:
    """What the rule player does until its turn is over."""
    player = RulePairing(Options()).player(
        Table(lobby="test", table="t", game=state.game, seat=0, seed=0, level=None, attributes={})
    )
    done = []
    while state.to_act == (0,):
        view, legal = state.view(0), state.legal(0)
        action = player.decide(view, legal, NO_CLOCK).action
        assert view.is_legal(action)
        assert view.is_legal(player.quick(view, legal).action)
        state.apply(0, action)
        done.append(state.game.notation(action))
    return done


def test_it_takes_the_richest_card_of_a_colour_that_it_holds() -> None:
    assert turn(start(["g1", "g3", "b2"], ["g12", "g4", "b13", "w13", "r13"]))[-1] == "b13"


def test_it_completes_sets() -> None:
    library = ["r7", "w7", "b7"]
    state = start(["g1", "b2"], ["g7", "g12", "b4"], libraries=[library, []])
    assert turn(state)[-1] == "g7", "8 for four sevens is more than 4 for a twelve"


def test_it_denies_the_opponent_its_set() -> None:
    state = start(["g1", "b2"], ["g7", "g8", "b4"], libraries=[[], ["r7", "w7", "b7"]])
    assert turn(state)[-1] == "g7"


def test_it_discards_what_is_worth_least() -> None:
    state = start(["g13", "b2", "g12"], ["w7", "r5", "w9"], deck=["g4", "r6"])
    assert turn(state)[:2] == ["enter:discard1", "b2"]


def test_it_forces_a_pair_rather_than_lose_a_card() -> None:
    state = start(["g1", "b2"], ["w7", "r5", "w13"], deck=[], charges=[[0, 1], [0, 0]])
    assert turn(state)[:3] == ["enter:B", "g1", "w13"]


def test_it_replaces_a_poor_card_late() -> None:
    state = start(["g1", "g5", "g3"], ["g4"], charges=[[1, 0], [0, 0]], deck=["r13", "w13", "b13"])
    assert turn(state)[0] == "enter:A"


def test_weights_that_the_player_cannot_use_are_refused_before_any_table() -> None:
    with pytest.raises(ConfigError, match=r"<= 1000"):
        check_options(RulePairing, {"deny": 1e308})


@pytest.mark.parametrize("options", [{}, {"preset": "four-phase"}], ids=["seven", "four"])
def test_it_beats_random_play(options: dict[str, Any]) -> None:
    """On duplicate deals, each played from both seats: at least 85 % won in sum."""
    game = rules.game("pairing", **options)
    pair = [RulePairing(Options()), Random(NoOptions())]
    seats = lineups(game, 2)
    won = deals = 0
    for result in play_deals(game, pair, seats, range(60), seed=1):
        lead = sum(hand.returns[seat.index(0)] for hand, seat in zip(result.hands, seats, strict=True))
        won += lead > 0
        deals += 1
        assert all(hand.illegal[0] == 0 for hand in result.hands)
    assert won >= 0.85 * deals


@pytest.mark.parametrize(
    "options",
    [{"hand": 3, "pool": 0}, {"refill": False, "skill_a": 4, "skill_b": 7}, {"deck": 0, "discards": 0, "hand": 20}],
    ids=str,
)
def test_it_plays_under_any_rules(options: dict[str, Any]) -> None:
    game = rules.game("pairing", **options)
    pair = [RulePairing(Options()), RulePairing(Options())]
    for result in play_deals(game, pair, lineups(game, 2), range(5), seed=2):
        assert all(sum(hand.illegal) == 0 for hand in result.hands)


def test_a_decision_takes_well_under_a_millisecond() -> None:
    state = rules.game("pairing").new_state(1)
    player = RulePairing(Options()).player(Table(lobby="test", table="t", game=state.game, seat=0, seed=0))
    view, legal = state.view(0), state.legal(0)
    times = []
    for _ in itertools.repeat(None, 200):
        begin = time.thread_time()
        player.decide(view, legal, NO_CLOCK)
        times.append(time.thread_time() - begin)
    assert sorted(times)[100] < 0.001, "0.05 to 0.1 ms on an idle machine"
