"""Hands are deleted with everything that is logged of them, and those of others stay."""

import asyncio
import random

import pytest

from bothost.errors import UsageError
from bothost.store import DecisionLog, Store
from bothost.store.forget import check_ended, delete_hands, hands_of
from bothost.store.reader import counts, iter_hands, iter_timelines
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
        found = list(hands_of(store, "bob"))
        assert {hand.game.game_id for hand in found} == {rows[0].game_id for rows in hands[::3]}
        check_ended(found)
        assert delete_hands(store, (hand.game.game_id for hand in found)) == {rows[0].game_id for rows in hands[::3]}
        assert not list(hands_of(store, "bob"))
        left = [rows for i, rows in enumerate(hands) if i % 3]
        assert counts(store)["decisions"] == counts(store)["outcomes"] == 4 * len(left)
        kept = list(iter_timelines(store, iter_hands(store)))
        assert [len(t.decisions) for t in kept] == [4] * len(left) and all(t.hand.end is not None for t in kept)


def test_a_hand_that_is_being_played_is_not_deleted(settings, tmp_path):
    rng = random.Random(1)
    old = 1_700_000_000_000_000
    fill(settings, tmp_path, [sample_hand(rng, ended=False), sample_hand(rng, ended=False, started_us=old)])
    with Store.open(settings) as store:
        dead, live = list(iter_hands(store))
        check_ended([dead])
        with pytest.raises(UsageError, match="has not ended"):
            check_ended([dead, live])
