"""The rule player of Dou Dizhu: legal everywhere, strong against random play, sensible in plain positions."""

import math
import random
import time

import pytest

from bothost import Budget, Table
from bothost.rules import game, presets
from bothost.strategy import NoOptions
from bothost_baselines.doudizhu import RuleDoudizhu

BUDGET = Budget(deadline=math.inf)
PLAIN = game("doudizhu", scoring="win_loss", landlord_double=False)


def player_for(g, seat=0):
    table = Table(lobby="test", table="1", game=g, seat=seat, seed=1)
    return RuleDoudizhu(NoOptions()).player(table)


def play_out(g, deal, rule_seats, rng):
    state = g.state_from_deal(deal)
    players = {seat: player_for(g, seat) for seat in rule_seats}
    while not state.terminal:
        (seat,) = state.to_act
        legal = state.legal(seat)
        if seat in players:
            action = players[seat].decide(state.view(seat), legal, BUDGET).action
            assert action in legal
        else:
            action = int(rng.choice(legal))
        state.apply(seat, action)
    return state.returns


def decide(hand, **position):
    snapshot = {"seat": 0, "hand": hand, "landlord": 0, "turn": 0} | position
    view = PLAIN.view_from_snapshot(snapshot)
    decision = player_for(PLAIN).decide(view, view.legal(), BUDGET)
    assert decision.stats["reason"]
    return view.notation(decision.action)


@pytest.mark.parametrize("preset", presets("doudizhu"))
def test_plays_whole_hands_under_every_preset(preset):
    g = game("doudizhu", preset=preset)
    for seed in range(20):
        play_out(g, g.new_state(seed).deal, (0, 1, 2), random.Random(seed))


@pytest.mark.parametrize(("rule_seats", "least"), [((0,), 0.9), ((1, 2), 0.95)])
def test_beats_random_players(rule_seats, least):
    hands = 150
    won = sum(
        play_out(PLAIN, PLAIN.new_state(seed).deal, rule_seats, random.Random(seed))[rule_seats[0]] > 0
        for seed in range(hands)
    )
    assert won / hands > least


def test_same_position_same_decision():
    state = PLAIN.new_state(3)
    view = state.view(0)
    first = player_for(PLAIN).decide(view, view.legal(), BUDGET)
    assert first == player_for(PLAIN).decide(view.clone(), view.legal(), BUDGET)
    assert player_for(PLAIN).quick(view, view.legal()).action == first.action


def test_goes_out_when_it_can():
    assert decide("34567", counts=[5, 1, 1]) == "34567"
    assert decide("2222", counts=[4, 1, 1], last=[2, "AA"]) == "2222"


def test_holds_the_lead_with_what_cannot_be_beaten():
    """The rocket wins the trick, then the pair goes out; leading the pair first could lose."""
    assert decide("33BR", counts=[4, 2, 2]) == "BR"


def test_leads_no_low_single_to_an_enemy_with_one_card():
    assert decide("3KK", counts=[3, 1, 9]) == "KK"


def test_leaves_the_trick_to_its_partner():
    as_peasant = {"seat": 2, "landlord": 0, "turn": 2}
    assert decide("3456789TJQKA22", counts=[9, 4, 14], last=[1, "A"], **as_peasant) == "pass"


def test_feeds_a_partner_with_one_card():
    as_peasant = {"seat": 1, "landlord": 0, "turn": 1}
    assert decide("3KKAA", counts=[6, 5, 1], **as_peasant) == "3"


def test_stops_a_landlord_with_one_card_by_a_bomb():
    as_peasant = {"seat": 1, "landlord": 0, "turn": 1}
    assert decide("44443578TJ", counts=[1, 10, 9], last=[0, "2"], **as_peasant) == "4444"


def test_keeps_a_bomb_for_later():
    assert decide("3579JK4444", counts=[10, 15, 13], last=[2, "2"]) == "pass"


@pytest.mark.parametrize(("hand", "calls"), [("33345679AABR22227", True), ("3456789TJQK345678", False)])
def test_bids_by_strength(hand, calls):
    g = game("doudizhu", preset="bidding")
    view = g.new_view(0)
    view.observe(f"deal 0 {hand} 0")
    decision = player_for(g).decide(view, view.legal(), BUDGET)
    assert (view.notation(decision.action) != "bid0") == calls


def test_a_decision_takes_well_under_a_millisecond():
    state = PLAIN.new_state(8)
    player = player_for(PLAIN)
    spent = decisions = 0
    while not state.terminal:
        (seat,) = state.to_act
        view, legal = state.view(seat), state.legal(seat)
        begin = time.thread_time()
        action = player.decide(view, legal, BUDGET).action
        spent += time.thread_time() - begin
        decisions += 1
        state.apply(seat, action)
    assert spent / decisions < 3e-3


@pytest.mark.long
def test_beats_the_rule_player_of_rlcard():
    """The same deals from both sides; measured 80 % of each."""
    import warnings

    import numpy as np

    from bothost.rules import doudizhu

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from rlcard.games.doudizhu import Game
        from rlcard.models.doudizhu_rule_models import DouDizhuRuleAgentV1
    theirs = DouDizhuRuleAgentV1()

    def landlord_wins(seed, own_seats):
        table = Game()
        table.np_random = np.random.RandomState(seed)
        shown, seat = table.init_game()
        hands = [p.initial_hand for p in table.players]
        for card in shown["seen_cards"]:
            hands[0] = hands[0].replace(card, "", 1)
        state = PLAIN.state_from_deal({"hands": hands, "bottom": shown["seen_cards"]})
        while not table.is_over():
            if seat in own_seats:
                action = player_for(PLAIN, seat).quick(state.view(seat), state.legal(seat)).action
            else:
                cards = theirs.step({"raw_obs": shown, "raw_legal_actions": shown["actions"]})
                action = PLAIN.parse(cards)
            state.apply(seat, action)
            shown, seat = table.step(doudizhu.move(action).cards or "pass")
        return table.winner_id == 0

    hands = 300
    assert sum(landlord_wins(seed, {0}) for seed in range(hands)) > 0.72 * hands
    assert sum(not landlord_wins(seed, {1, 2}) for seed in range(hands)) > 0.72 * hands
