"""Who agreed to be imitated: the last word counts, at its lobby, and is forgotten with the player."""

import json
import random

import pytest

from bothost.errors import UsageError
from bothost.store import Store, consent
from bothost.testing.sample_rows import sample_game


def game(account="ada", seat=0, players=()):
    made = sample_game(random.Random(1), seat=seat, account=account)
    made.players = json.dumps(list(players))
    return made


def agreed(made, words):
    return [(sitter.seat, sitter.names, sitter.consents) for sitter in consent.sitters(made, words)]


def test_the_last_word_on_a_player_counts_and_nothing_is_overwritten(any_settings):
    with Store.open(any_settings) as store:
        assert consent.recorded(store) == {}
        first = consent.record(store, "home", "guest-1", granted=True, reason="a letter")
        assert (first.number, first.granted, first.reason) == (1, True, "a letter")
        consent.record(store, "home", "guest-2", granted=True)
        second = consent.record(store, "home", "guest-1", granted=False)
        assert second.number == 2 and second.at_us >= first.at_us
        words = consent.recorded(store)
        assert {key: word.kind for key, word in words.items()} == {
            ("home", "guest-1"): "revoked",
            ("home", "guest-2"): "granted",
        }
        assert consent.forget(store, ["guest-1"]) == 2
        assert list(consent.recorded(store)) == [("home", "guest-2")]
        assert consent.forget(store, ["guest-1"]) == 0


@pytest.mark.parametrize(("lobby", "player"), [("", "ada"), ("home", ""), ("home", "a\nb")])
def test_what_names_nobody_is_refused(settings, lobby, player):
    with Store.open(settings) as store, pytest.raises(UsageError, match="is not a valid"):
        consent.record(store, lobby, player, granted=True)


def test_a_mark_counts_for_its_hand_and_a_word_for_all(settings):
    made = game(
        players=[
            {"player": "lobby-id-7", "seat": 0},
            {"player": "bob", "seat": 1, "consents": True},
            {"player": "cyd", "seat": 2, "consents": "yes"},
        ]
    )
    assert agreed(made, {}) == [(0, ("ada", "lobby-id-7"), False), (1, ("bob",), True), (2, ("cyd",), False)]
    with Store.open(settings) as store:
        consent.record(store, "home", "ada", granted=True)
        consent.record(store, "home", "bob", granted=False)
        consent.record(store, "away", "cyd", granted=True)
        assert [sitter[2] for sitter in agreed(made, consent.recorded(store))] == [True, False, False]
        consent.record(store, "home", "lobby-id-7", granted=False)  # the same player by the other name
        assert [sitter[2] for sitter in agreed(made, consent.recorded(store))] == [False, False, False]


@pytest.mark.parametrize("players", [[], ["nonsense"], [{"seat": "0", "player": 3}], [{"player": "bob"}]])
def test_of_an_odd_list_of_players_our_own_seat_is_left(players):
    assert agreed(game(seat=2, players=players), {}) == [(2, ("ada",), False)]
