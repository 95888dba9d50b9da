"""Reading the log: pages, filters, and the law that folded events give the logged views."""

import json
import random

import msgspec
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from bothost import rules
from bothost.errors import StoreError
from bothost.store import DecisionLog, DecisionRecord, EventsRecord, GameRecord, Store
from bothost.store.query import CLOSED_HANDS, HandQuery, first_id, id_range
from bothost.store.reader import (
    counts,
    decode_away,
    iter_hands,
    iter_timelines,
    iter_views,
    join_events,
    latest_hands,
    played,
    search_hands,
    size,
)
from bothost.testing.sample_rows import played_hand, sample_hand, uuid7, write_rows

DAY = 86_400_000_000
START = 1_700_000_000_000_000


@pytest.fixture
async def hands(any_settings, tmp_path):
    """Forty hands, one an hour, of two accounts, every fifth still live."""
    rng = random.Random(11)
    made = [
        sample_hand(
            rng, decisions=3, ended=i % 5 != 0, account="ada" if i % 2 else "bob", started_us=START + i * DAY // 24
        )
        for i in range(40)
    ]
    log = DecisionLog.open(any_settings, "test", tmp_path / "spool")
    for rows in rng.sample(made, 40):
        log.submit(rows)  # all are written together
    await log.aclose()
    return made


@pytest.fixture
def store(any_settings):
    with Store.open(any_settings) as opened:
        yield opened


def ids(found) -> list[bytes]:
    return [hand.game.game_id for hand in found]


def games(made) -> list[GameRecord]:
    return [rows[0] for rows in made]


@pytest.mark.parametrize("page", [1, 7, 40, 1000])
async def test_hands_come_by_id_whatever_the_page(hands, store, page):
    assert ids(iter_hands(store, page=page)) == [g.game_id for g in games(hands)]
    after = (hands[20][0].game_id, 0)
    assert ids(iter_hands(store, after=after, page=page)) == [g.game_id for g in games(hands)[21:]]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (HandQuery(closed=True), lambda i, g: i % 5 != 0),
        (HandQuery(players=("bob",)), lambda i, g: g.account == "bob"),
        (HandQuery(players=("guest-7",)), lambda i, g: '"guest-7"' in g.players),
        (HandQuery(since_us=START + DAY, until_us=START + DAY + DAY // 4), lambda i, g: 24 <= i < 30),
        (HandQuery(lobbies=("away",)), lambda i, g: False),
        (HandQuery(games=("doudizhu", "chess"), strategies=("rule-doudizhu",)), lambda i, g: True),
        (HandQuery(strategies=("other",)), lambda i, g: False),
    ],
)
async def test_filters(hands, store, query, expected):
    wanted = [g.game_id for i, g in enumerate(games(hands)) if expected(i, g)]
    assert ids(iter_hands(store, query)) == wanted
    assert ids(latest_hands(store, query, 5)) == wanted[::-1][:5]


@pytest.mark.parametrize("in_ascii", [True, False])
@pytest.mark.parametrize("name", ["小明", "José", "नेहा", "100%_a", 'a"b', "a/b"])
async def test_a_player_is_found_however_json_writes_the_name(any_settings, tmp_path, store, name, in_ascii):
    log = DecisionLog.open(any_settings, "test", tmp_path / "spool")
    (game, *_) = rows = sample_hand(random.Random(1), decisions=0)
    game.players = json.dumps([{"seat": 1, "player": name}], ensure_ascii=in_ascii)
    await log.submit(rows)
    await log.aclose()
    assert ids(iter_hands(store, HandQuery(players=(name,)))) == [game.game_id]
    assert ids(iter_hands(store, HandQuery(opponents=(name,)))) == [game.game_id]
    assert ids(iter_hands(store, HandQuery(players=(name + "x",)))) == []


def searched(store, query, limit, **given):
    """Hands of all steps of a search, and the number of steps."""
    found, before, steps = [], None, 0
    while True:
        part = search_hands(store, query, limit - len(found), before=before, **given)
        found, before, steps = found + part.hands, part.beyond, steps + 1
        if before is None or len(found) >= limit:
            return found, steps


@pytest.mark.parametrize("stretch", [1, 7, 40, 1000])
@pytest.mark.parametrize(
    "query",
    [
        HandQuery(),
        HandQuery(closed=True, results=("won",)),
        HandQuery(results=("lost",)),
        HandQuery(players=("bob",), closed=True),
        HandQuery(players=("\N{SNOWMAN}",)),
        HandQuery(players=('"quoted"',)),
        HandQuery(since_us=START + DAY // 2, until_us=START + DAY),
        HandQuery(strategies=("other",)),
    ],
)
async def test_a_search_in_steps_finds_what_a_search_at_once_finds(hands, store, query, stretch, monkeypatch):
    monkeypatch.setattr("bothost.store.reader.STRETCH_HANDS", stretch)
    wanted = ids(latest_hands(store, query, 10**30))
    for within_s in (0.0, 1000.0):
        found, steps = searched(store, query, 1000, within_s=within_s)
        assert ids(found) == wanted
        assert steps == 1 or within_s == 0.0
        assert ids(searched(store, query, 5, within_s=within_s)[0]) == wanted[:5]


async def test_a_search_reads_one_stretch_at_least_and_then_looks_at_the_clock(hands, store, monkeypatch):
    monkeypatch.setattr("bothost.store.reader.STRETCH_HANDS", 10)
    seconds = iter(range(100))
    part = search_hands(store, HandQuery(strategies=("other",)), 5, within_s=2.0, clock=lambda: float(next(seconds)))
    assert part.hands == [] and part.beyond == (hands[20][0].game_id, 0)


async def test_the_score_of_the_own_seat_decides_the_result(any_settings, tmp_path, store):
    """Results are looked for in the database: lists that are too short or damaged belong to no result."""
    logged = {"[3,-3]": 0, "[2.5,-3]": 1, "[0.0,1]": 0, "[1]": 1, "[]": 0, "[0,oops": 0, "[null,1]": 1, "[NaN,-1.0]": 1}
    log = DecisionLog.open(any_settings, "test", tmp_path / "spool")
    for text, seat in logged.items():
        (game, *_, end) = sample_hand(random.Random(text), decisions=0)
        game.seat, end.seat, end.scores = seat, seat, text
        await log.submit([game, end])
    await log.aclose()
    found = {
        result: [hand.end.scores for hand in iter_hands(store, HandQuery(results=(result,)))]
        for result in ("won", "lost", "drawn")
    }
    assert found == {"won": ["[3,-3]"], "lost": ["[2.5,-3]"], "drawn": ["[0.0,1]"]}
    scored = [hand.end.scores for hand in iter_hands(store, HandQuery(scored=True))]
    assert sorted(scored) == sorted(set(logged) - {"[null,1]", "[NaN,-1.0]"})


async def test_a_hand_is_found_by_the_prefix_of_its_id(hands, store):
    wanted = hands[17][0].game_id
    assert ids(iter_hands(store, HandQuery(game_id=wanted.hex()[:16]))) == [wanted]
    for bad in ("", "xyz", "0" * 33):
        with pytest.raises(ValueError, match="is not an id, which has at most 32 hexadecimal digits"):
            id_range(bad)


async def test_a_hand_that_starts_with_a_day_is_of_that_day_though_its_id_is_of_the_day_before(settings, tmp_path):
    """The host reads the clock for the id first."""
    rows = sample_hand(random.Random(3), decisions=1, started_us=START - 1)
    rows[0].started_us = START
    log = DecisionLog.open(settings, "test", tmp_path / "spool")
    await log.submit(rows)
    await log.aclose()
    with Store.open(settings) as store:
        assert len(ids(iter_hands(store, HandQuery(since_us=START)))) == 1
        assert ids(iter_hands(store, HandQuery(until_us=START))) == []


async def test_every_decision_of_closed_hands_comes_once(hands, store):
    wanted = [r for rows in hands if len(rows) == 11 for r in rows if isinstance(r, DecisionRecord)]
    assert [
        decision
        for timeline in iter_timelines(store, iter_hands(store, CLOSED_HANDS))
        for decision in timeline.decisions
    ] == wanted


async def test_who_was_away_is_read_back(any_settings, store, tmp_path):
    log = DecisionLog.open(any_settings, "test", tmp_path / "spool")
    told = {None: set(), "[]": set(), "[0,2]": {0, 2}}
    for at, text in enumerate(told):
        rows = sample_hand(random.Random(at), decisions=1, started_us=START + at * DAY)
        rows[-1].away = text
        await log.submit(rows)
    await log.aclose()
    found = list(iter_hands(store))
    assert [hand.end.away for hand in found] == list(told)
    assert [hand.away for hand in found] == list(told.values())


@pytest.mark.parametrize("text", ["[", "[true]", "[-1]", "[128]", '{"0": 1}'])
def test_who_was_away_is_checked(text):
    with pytest.raises(StoreError, match=r"game_ends\.away"):
        decode_away(text)


@hypothesis_settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**40))
def test_first_id_is_a_lower_bound_of_its_time(us):
    assert first_id(us) <= (us // 1000).to_bytes(6, "big") + b"\x70" + bytes(9)
    assert us < 1000 or first_id(us) > (us // 1000 - 1).to_bytes(6, "big") + b"\xff" * 10


@hypothesis_settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.lists(st.sampled_from(["play 0 3", "pass 1"]), min_size=1, max_size=3), max_size=6))
def test_stretches_join_to_the_stream(stretches):
    flat = [line for stretch in stretches for line in stretch]
    starts = [sum(map(len, stretches[:i])) for i in range(len(stretches))]
    rows = [(start, "\n".join(lines)) for start, lines in zip(starts, stretches, strict=True)]
    assert join_events(rows) == flat
    if len(rows) > 1:
        with pytest.raises(StoreError):
            join_events(rows[:1] + rows[2:] if len(rows) > 2 else rows[1:])


@pytest.mark.parametrize("seat", [0, 1, 2])
async def test_folding_the_events_gives_the_logged_views(any_settings, store, tmp_path, seat):
    game = rules.game("doudizhu")
    log = DecisionLog.open(any_settings, "test", tmp_path / "spool")
    hands = [played_hand(game, seed, seat=seat) for seed in range(5)]
    for rows in hands:
        await log.submit(rows)
    await log.aclose()
    checked = 0
    for timeline in iter_timelines(store, iter_hands(store)):
        for decision, view in iter_views(game, timeline):
            assert view.to_bytes() == decision.view
            checked += 1
    assert checked == sum(isinstance(r, DecisionRecord) for rows in hands for r in rows)
    first = next(t for t in iter_timelines(store, iter_hands(store)) if t.hand.game.game_id == hands[0][0].game_id)
    lines = join_events([(stretch.seq, stretch.events) for stretch in first.events])
    assert lines == [line for r in hands[0] if isinstance(r, EventsRecord) for line in r.events.split("\n")]
    view = game.new_view(seat)
    view.observe_all(lines)
    assert view.terminal


def test_steps_of_a_move_follow_one_another_beside_other_attempts_and_roles(any_settings, tmp_path):
    game = rules.game("pairing")
    rows = played_hand(game, 3)
    asked = next(row for row in rows if isinstance(row, DecisionRecord))
    steps = []
    for attempt, role in ((0, "live"), (1, "live"), (1, "shadow")):
        view = game.view_from_bytes(asked.view)
        for substep in range(2):
            action = int(view.legal()[attempt % len(view.legal())])
            step = {"substep": substep, "attempt": attempt, "role": role, "view": view.to_bytes(), "action": action}
            steps.append(msgspec.structs.replace(asked, id=uuid7(len(steps), random.Random(len(steps))), **step))
            view.apply(action)
    upto = rows.index(asked)
    write_rows(any_settings, tmp_path, [[*rows[:upto], *steps]])
    with Store.open(any_settings) as store:
        (timeline,) = iter_timelines(store, iter_hands(store))
        found = [
            (row.attempt, row.role, row.substep, view.to_bytes() == row.view)
            for row, view in iter_views(game, timeline)
        ]
    assert found == [(row.attempt, row.role, row.substep, True) for row in steps]


@pytest.mark.parametrize(
    ("attempts", "expected"),
    [
        ([], []),
        ([(3, 0, False), (5, 0, False), (5, 0, False)], [True, True, True]),  # a composite move has several steps
        ([(3, 0, True), (3, 1, False)], [False, True]),
        ([(3, 0, False), (3, 0, False), (3, 1, False), (9, 0, False)], [False, False, True, True]),
        ([(3, 0, False), (3, 1, True)], [False, False]),
    ],
)
def test_the_last_attempt_at_a_position_was_played_unless_it_was_rejected(attempts, expected):
    assert played(attempts) == expected


def test_the_rows_and_bytes_of_a_database_are_counted(store, hands):
    assert counts(store)["games"] == 40 and counts(store)["decisions"] == 120
    assert 100_000 < size(store) < 100_000_000
