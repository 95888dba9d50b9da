"""Hands are deleted with everything that is logged of them, and those of others stay."""

import asyncio
import gc
import json
import random

import pytest

from bothost.errors import UsageError
from bothost.store import DecisionLog, Store
from bothost.store.forget import delete_hands, traces_of
from bothost.store.reader import LoggedHand, counts, iter_hands, iter_timelines
from bothost.testing.sample_rows import sample_hand


def fill(settings, folder, hands):
    async def write():
        log = DecisionLog.open(settings, "test", folder / "spool")
        for rows in hands:
            await log.submit(rows)
        await log.aclose()

    asyncio.run(write())


def test_the_hands_of_a_player_go_and_the_others_stay(any_settings, tmp_path):
    rng = random.Random(1)
    hands = [sample_hand(rng, account="ada" if i % 3 else "bob", decisions=4) for i in range(12)]
    fill(any_settings, tmp_path, hands)
    with Store.open(any_settings) as store:
        found = traces_of(store, "bob", ended=True).ids
        assert found == {rows[0].game_id for rows in hands[::3]}
        assert delete_hands(store, found) == found
        assert not traces_of(store, "bob").ids
        left = [rows for i, rows in enumerate(hands) if i % 3]
        assert counts(store)["decisions"] == counts(store)["outcomes"] == 4 * len(left)
        kept = list(iter_timelines(store, iter_hands(store)))
        assert [len(t.decisions) for t in kept] == [4] * len(left) and all(t.hand.end is not None for t in kept)


def test_a_hand_that_is_being_played_is_not_deleted(settings, tmp_path):
    rng = random.Random(1)
    old = 1_700_000_000_000_000
    dead = sample_hand(rng, account="ada", ended=False, started_us=old)
    fill(settings, tmp_path, [dead, sample_hand(rng, account="bob", ended=False)])
    with Store.open(settings) as store:
        assert traces_of(store, "ada", ended=True).ids == {dead[0].game_id}
        assert traces_of(store, "bob").hands == 1
        with pytest.raises(UsageError, match="has not ended"):
            traces_of(store, "bob", ended=True)


def test_a_player_is_forgotten_under_every_name(settings, tmp_path):
    rng = random.Random(1)
    hands = [sample_hand(rng, account="ada"), sample_hand(rng, account="bea")]
    sat = [{"player": "lobby-id-7", "seat": 0}, {"player": "4711", "name": "Bob", "seat": 1}]
    hands[0][0].seat, hands[0][0].players = 0, json.dumps(sat)
    hands[1][0].seat, hands[1][0].players = 0, json.dumps([{"player": "4712", "name": "Bob", "seat": 2}])
    fill(settings, tmp_path, [rows[:1] for rows in hands])
    with Store.open(settings) as store:
        bob, ada = traces_of(store, "Bob"), traces_of(store, "ada")
        assert bob.names == bob.shown == {"Bob", "4711", "4712"} and bob.hands == 2
        assert ada.names == traces_of(store, "lobby-id-7").names == {"ada", "lobby-id-7"}
        assert (traces_of(store, "4711").names, traces_of(store, "4711").shown) == ({"4711"}, {"4711", "Bob"})


def test_a_long_log_is_searched_in_constant_memory(settings, tmp_path, monkeypatch):
    rng = random.Random(1)
    hours = [1_700_000_000_000_000 + hour * 3_600_000_000 for hour in range(40)]
    fill(settings, tmp_path, [sample_hand(rng, account="ada", decisions=0, started_us=at) for at in hours])
    alive = []

    def count():
        alive.append(sum(type(each) is LoggedHand for each in gc.get_objects()))  # isinstance() asks lazy objects, too

    def watched(*args):
        count()
        yield from iter_hands(*args, page=5)
        count()

    monkeypatch.setattr("bothost.store.forget.iter_hands", watched)
    with Store.open(settings) as store:
        assert traces_of(store, "ada").hands == 40 and alive[1] - alive[0] <= 10
