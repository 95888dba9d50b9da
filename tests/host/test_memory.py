"""What a restarted host finds in its database of the hands that go on."""

import asyncio
import random

import pytest

from bothost.config import StoreSettings
from bothost.errors import StoreUnavailable
from bothost.host import memory
from bothost.host.lookup import HandKey
from bothost.host.memory import StoreMemory
from bothost.store import DecisionLog, Store, schema
from bothost.store.records import DecisionRecord, OutcomeRecord
from bothost.tables.conduct import TableKey
from bothost.testing.sample_rows import sample_hand

RNG = random.Random(8)


@pytest.fixture
def remembered(tmp_path):
    """(memory, its store, what writes records into its database)."""
    settings = StoreSettings(url=f"sqlite:///{tmp_path}/log.db")
    schema.upgrade(settings)

    async def write(records):
        log = DecisionLog.open(settings, "test", tmp_path / "spool")
        await log.submit(records)
        await log.aclose()

    with Store.open(settings) as store:
        yield StoreMemory(store), store, lambda records: asyncio.run(write(records))


def keys(game, **of_game):
    hand, seat = of_game.pop("hand", game.hand), of_game.pop("seat", game.seat)
    return HandKey(TableKey("home", game.account, game.table)._replace(**of_game), hand, seat)


def test_nothing_is_read_before_the_spool_of_the_last_run_is_replayed(remembered):
    _, store, write = remembered
    rows = sample_hand(RNG, ended=False)
    write(rows)
    recovered = False
    late = StoreMemory(store, lambda: recovered)
    for read in (lambda: late.find([keys(rows[0])]), lambda: late.unfinished_hands("home", rows[0].account, 2**60)):
        with pytest.raises(StoreUnavailable, match="replayed"):
            read()
    recovered = True
    assert late.find([keys(rows[0])])[0].game_id == rows[0].game_id
    assert [game.game_id for game in late.unfinished_hands("home", rows[0].account, 2**60)] == [rows[0].game_id]


def test_many_hands_are_found_together_each_with_its_own_moves(remembered, monkeypatch):
    monkeypatch.setattr(memory, "HANDS_PER_QUERY", 3)
    found_by, _, write = remembered
    hands = [sample_hand(RNG, decisions=n, ended=False, account=("ada", "bob")[n % 2]) for n in range(8)]
    over = sample_hand(RNG)
    write([row for hand in [*hands, over] for row in hand])
    games = [hand[0] for hand in hands]
    strangers = [keys(over[0]), keys(games[0], table="x"), keys(games[0], seat=2), keys(games[0], hand="2")]
    asked = [*map(keys, games), *strangers]
    RNG.shuffle(asked)
    answers = dict(zip(asked, found_by.find(asked), strict=True))
    assert all(answers[stranger] is None for stranger in strangers)
    for hand, game in zip(hands, games, strict=True):
        found = answers[keys(game)]
        assert (found.game_id, found.seed) == (game.game_id, game.seed)
        decisions = [row for row in hand if isinstance(row, DecisionRecord)]
        assert [move.decision_ids for move in found.moves] == [(row.id,) for row in decisions]


def test_of_a_move_in_steps_all_are_told_and_a_refusal_is_the_whole_moves(remembered):
    found_by, _, write = remembered
    game, *rows = sample_hand(RNG, decisions=3, ended=False)
    first, second, third = (row for row in rows if isinstance(row, DecisionRecord))
    second.seq, second.substep = first.seq, 1
    third.seq, third.attempt = first.seq, 1
    write([game, *rows, OutcomeRecord(second.id, "rejected", None, 1)])
    (found,) = found_by.find([keys(game)])
    refused, again = found.moves
    assert (refused.decision_ids, refused.rejected) == ((first.id, second.id), True)
    assert (again.decision_ids, again.attempt, again.rejected) == ((third.id,), 1, False)


def test_a_thousand_hands_cost_a_few_queries(remembered, monkeypatch):
    found_by, store, write = remembered
    hands = [sample_hand(RNG, decisions=1, ended=False) for _ in range(1000)]
    write([row for hand in hands for row in hand])
    begun = []
    begin = store.begin
    monkeypatch.setattr(store, "begin", lambda: begun.append(1) or begin())
    assert None not in found_by.find([keys(hand[0]) for hand in hands])
    assert len(begun) == 6
