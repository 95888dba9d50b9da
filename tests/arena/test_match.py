"""Matches: duplicate deals, the same result however they are run, figures per game, journal, sequential stop."""

import errno
import fcntl
import gc
import importlib
import json
import math
import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from bothost import rules
from bothost.arena.lineup import lineups
from bothost.arena.match import ContestantError, play_deals
from bothost.arena.run import run_match
from bothost.arena.spec import MatchSpec
from bothost.cli.options import alone_in
from bothost.errors import PluginError, UsageError
from bothost.export.folder import ExportFolder, aside
from bothost.ladder import journals
from bothost.testing.nim import Nim, NimState


def _import_players():
    """Worker processes import the module by its name, so it must have one that they can find."""
    sys.path.insert(0, str(Path(__file__).parent))
    try:
        return importlib.import_module("players")
    finally:
        sys.path.pop(0)


players = _import_players()


def spec(game, *contestants, deals=20, **more):
    return MatchSpec(
        game=game,
        rules=more.pop("rules", {}),
        contestants=contestants,
        options=more.pop("options", tuple({} for _ in contestants)),
        deals=deals,
        **more,
    )


@pytest.mark.parametrize(
    ("game", "options", "expected"),
    [
        ("othello", {}, {(0, 1), (1, 0)}),
        ("doudizhu", {"bidding": "none"}, {(0, 1, 1), (1, 0, 0)}),
        ("doudizhu", {"bidding": "score"}, {(0, 1, 1), (1, 0, 0), (1, 0, 1), (0, 1, 0), (1, 1, 0), (0, 0, 1)}),
        ("doudizhu", {"first": "random"}, {(0, 1, 1), (1, 0, 0), (1, 0, 1), (0, 1, 0), (1, 1, 0), (0, 0, 1)}),
    ],
)
def test_lineups_of_two_contestants(game, options, expected):
    assert set(lineups(rules.game(game, **options), 2)) == expected


def test_every_contestant_has_every_seat_once_when_there_are_as_many_as_seats():
    seats = lineups(rules.game("doudizhu"), 3)
    for seat in range(3):
        assert sorted(lineup[seat] for lineup in seats) == [0, 1, 2]


def test_a_number_of_contestants_without_duplicate_form_is_refused():
    with pytest.raises(UsageError, match="no duplicate form") as refused:
        lineups(rules.game("othello"), 3)
    assert refused.value.advice == "name 2 strategies"
    with pytest.raises(UsageError, match="no duplicate form") as refused:
        lineups(rules.game("mahjong"), 3)
    assert refused.value.advice == "name 2 strategies, or 4"


def test_all_lineups_of_a_deal_play_the_same_cards():
    game = rules.game("doudizhu")
    seen = []

    class Spy(players.First):
        def player(self, table):
            seen.append((table.table.split(".")[0], table.seat, table.game.name))
            return super().player(table)

    strategies = [Spy(Spy.Options()), players.First(players.First.Options())]
    (deal,) = play_deals(game, strategies, lineups(game, 2), [7], seed=3)
    assert deal.deal == 7
    # The same player in every seat makes both lineups one and the same hand.
    assert deal.hands[0].returns == deal.hands[1].returns
    assert [seat for _, seat, _ in seen] == [0, 1, 2]


@pytest.mark.parametrize(
    "game", [name for name in rules.games(plugins=False, testing=True) if rules.game(name).num_seats == 2]
)
def test_a_strategy_against_itself_is_exactly_even(game):
    figures = run_match(spec(game, "test-first", "test-first"), players.build)
    assert figures["wp"] == 0.5
    assert figures["mean_lead"] == pytest.approx(0.0)


def test_the_result_depends_on_the_seed_alone():
    first = run_match(spec("doudizhu", "test-random", "test-first", seed=1), players.build)
    again = run_match(spec("doudizhu", "test-random", "test-first", seed=1, batch=3), players.build)
    other = run_match(spec("doudizhu", "test-random", "test-first", seed=2), players.build)
    for key in ("wp", "ci95", "landlord_wp", "peasant_wp", "adp"):
        assert first[key] == again[key]
    assert first["adp"] != other["adp"]


def test_workers_do_not_change_the_figures(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))  # spawned workers inherit it
    alone = run_match(spec("othello", "test-random", "test-first", deals=12), players.build)
    spread = run_match(spec("othello", "test-random", "test-first", deals=12, workers=2), players.build)
    assert {key: alone[key] for key in ("wp", "ci95", "mean_lead", "deals", "sequential")} == {
        key: spread[key] for key in ("wp", "ci95", "mean_lead", "deals", "sequential")
    }


def test_scores_of_each_deal_are_those_of_the_figures_in_order(tmp_path):
    asked = spec("othello", "test-random", "test-first", deals=6)
    figures = run_match(asked, players.build, journal=tmp_path / "match.jsonl", each_deal=True)
    assert np.mean(figures["scores"]) == pytest.approx(figures["wp"])
    assert len(set(figures["scores"])) > 1
    fewer = run_match(
        spec("othello", "test-random", "test-first", deals=4),
        players.build,
        journal=tmp_path / "match.jsonl",
        each_deal=True,
    )
    assert fewer["scores"] == figures["scores"][:4]


def test_search_beats_random_and_the_sequential_test_says_so_early():
    figures = run_match(spec("othello", "test-search", "test-random", deals=10**9, sequential=True), players.build)
    assert figures["sequential"]["verdict"] == "A"
    assert figures["deals"] < 200
    assert figures["wp"] > 0.6


def test_with_bidding_every_hand_has_a_score():
    figures = run_match(
        spec("doudizhu", "test-random", "test-random", deals=30, rules={"bidding": "score"}), players.build
    )
    assert figures["hands"] == 180
    assert 0.3 < figures["wp"] < 0.7


@pytest.mark.parametrize("name", ["test-liar", "test-scribbler"])
def test_illegal_answers_are_counted_and_replaced(name):
    figures = run_match(spec("othello", name, "test-first", deals=3), players.build)
    assert figures["illegal"]["A"] > 50
    assert figures["illegal"]["B"] == 0
    assert figures["wp"] == 0.5  # a liar plays the first legal action, as its opponent does


def test_a_clock_gives_each_decision_its_own_time():
    figures = run_match(spec("othello", "test-slow", "test-first", deals=1, ms=50), players.build)
    assert 2.0 <= figures["ms_per_move"]["A"] < 50
    assert figures["ms_per_move"]["B"] < 2.0


def test_a_sequential_test_of_more_than_two_is_refused():
    asked = spec("doudizhu", "test-first", "test-random", "test-last", deals=10, sequential=True)
    with pytest.raises(UsageError, match="compares two, not 3"):
        run_match(asked, players.build)


@pytest.mark.parametrize("game", ["othello", "doudizhu"])
def test_an_interrupted_match_goes_on_from_its_journal(tmp_path, game):
    journal = tmp_path / "match.jsonl"
    whole = run_match(spec(game, "test-random", "test-first", deals=10), players.build)
    run_match(spec(game, "test-random", "test-first", deals=6), players.build, journal=journal)
    (hand, *_) = json.loads(journal.read_text().splitlines()[-1])["hands"]
    assert len(hand["final"]) > 5  # for other programs: the figures need little of it
    with journal.open("ab") as file:
        file.write(b'{"deal": "\xe9"}\n')  # damaged
        file.write(b'{"deal": 6, "hands": [{"retu')  # torn by a kill
    played = []
    figures = run_match(
        spec(game, "test-random", "test-first", deals=10),
        players.build,
        journal=journal,
        on_deal=lambda done, mean: played.append(done),
    )
    assert played == [7, 8, 9, 10]
    assert {k: v for k, v in figures.items() if k != "ms_per_move"} == {
        k: v for k, v in whole.items() if k != "ms_per_move"
    }


def test_a_damaged_line_of_a_journal_is_named_and_what_follows_is_kept(tmp_path):
    journal = tmp_path / "match.jsonl"
    asked = spec("othello", "test-random", "test-first", deals=6)
    run_match(asked, players.build, journal=journal)
    lines = journal.read_bytes().splitlines(keepends=True)
    damaged = b"".join([*lines[:2], lines[2].replace(b'"deal"', b'"dael"'), *lines[3:]])
    journal.write_bytes(damaged)
    with pytest.raises(UsageError, match=r"line 3 of .*match\.jsonl is damaged"):
        run_match(asked, players.build, journal=journal)
    with pytest.raises(UsageError, match="line 3"):
        list(journals.outcomes(journal))
    assert journal.read_bytes() == damaged


def test_a_journal_that_another_run_writes_to_is_refused(tmp_path):
    journal = tmp_path / "match.jsonl"
    asked = spec("othello", "test-random", "test-first", deals=3)

    def again(done, mean):
        with pytest.raises(UsageError, match="another match is writing to"):
            run_match(asked, players.build, journal=journal)

    run_match(asked, players.build, journal=journal, on_deal=again)
    assert len(journal.read_bytes().splitlines()) == 4
    assert run_match(asked, players.build, journal=journal)["deals"] == 3


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS])
def test_a_file_system_without_locks_is_enough(tmp_path, monkeypatch, code):
    def no_locks(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", no_locks)
    asked = spec("othello", "test-random", "test-first", deals=2)
    run_match(asked, players.build, journal=tmp_path / "match.jsonl")
    assert run_match(asked, players.build, journal=tmp_path / "match.jsonl")["deals"] == 2
    with ExportFolder.claim(tmp_path / "export"):
        pass


@pytest.mark.parametrize("code", [errno.EIO, errno.EINTR, errno.ESTALE])
def test_a_lock_that_fails_otherwise_is_an_error_with_its_file(tmp_path, monkeypatch, code):
    def fails(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", fails)
    with pytest.raises(OSError, match=r"match\.jsonl"):
        run_match(
            spec("othello", "test-random", "test-first", deals=1), players.build, journal=tmp_path / "match.jsonl"
        )
    with pytest.raises(OSError, match="meta/lock"), ExportFolder.claim(tmp_path / "export"):
        pass
    with pytest.raises(OSError, match=r"table\.json"), aside(tmp_path / "table.json"):
        pass
    with pytest.raises(OSError, match="folder"), alone_in(tmp_path / "folder"):
        pass


def test_a_journal_of_another_match_is_refused(tmp_path):
    journal = tmp_path / "match.jsonl"
    run_match(spec("othello", "test-random", "test-first", deals=1), players.build, journal=journal)
    with pytest.raises(UsageError, match="holds another match"):
        run_match(spec("othello", "test-random", "test-first", deals=1, seed=9), players.build, journal=journal)
    other = spec("othello", "test-random", "test-first", deals=1, options=({}, {"style": "bold"}))
    with pytest.raises(UsageError, match="holds another match"):
        run_match(other, players.build, journal=journal)
    for data in (b"hello\n", b'{"game": "\xe9"}\n'):
        journal.write_bytes(data)
        with pytest.raises(UsageError, match="not a match journal"):
            run_match(spec("othello", "test-random", "test-first", deals=1), players.build, journal=journal)


@pytest.mark.parametrize("ms", [float("inf"), 5_000.0])
@pytest.mark.parametrize("game", ["othello", "doudizhu"])
def test_players_that_want_events_are_told_all_of_them_before_they_decide(game, ms):
    made = rules.game(game)
    strategies = [players.Listening({}), players.First({})]
    results = list(play_deals(made, strategies, lineups(made, 2), range(3), seed=1, ms=ms))
    assert len(results) == 3


def test_an_error_in_observe_counts_as_an_error_of_the_contestant():
    made = rules.game("othello")
    strategies = [players.Deaf({}), players.First({})]
    (result, *_) = play_deals(made, strategies, lineups(made, 2), range(1), seed=1, forgive=True)
    for hand in result.hands:
        assert hand.failed == (hand.decisions[0], 0) and hand.decisions[0] > 1
    with pytest.raises(ContestantError, match=r"test-deaf: RuntimeError: does not listen \(players.py:\d+\)"):
        list(play_deals(made, strategies, lineups(made, 2), range(1), seed=1))


@pytest.mark.parametrize("ms", [None, 1000.0])
@pytest.mark.parametrize(
    ("name", "what", "fix"),
    [
        ("test-number", "decide returned int", "return bothost.Decision(action=int(…)); "),
        ("test-fraction", "Decision.action is float, not int", "return bothost.Decision(action=int(…)); "),
        ("test-quitting", "SystemExit: enough (players.py:", ""),
        ("test-panicking", "PanicException: index out of range (players.py:", ""),
        ("test-silent", "TimeoutError: did not answer in time (players.py:", ""),
        ("test-homeless", "RuntimeError: no player (players.py:", ""),
        ("test-clinging", "RuntimeError: will not go (players.py:", ""),
        ("test-wordless", "Wordless: its message cannot be shown (players.py:", ""),
    ],
)
def test_a_contestant_that_fails_is_named(name, what, fix, ms):
    with pytest.raises(ContestantError) as failed:
        run_match(spec("othello", "test-first", name, deals=1, ms=ms), players.build)
    assert str(failed.value).startswith(f"B ({name}): {what}")
    assert failed.value.advice == f"{fix}bothost plugin check {name}; a tournament counts errors and plays on"


@pytest.mark.parametrize("scores", [(math.nan, 0.0), (math.inf, 0.0), (1.0,)])
def test_a_game_that_gives_no_scores_is_named(scores, monkeypatch):
    monkeypatch.setattr(NimState, "returns", property(lambda state: scores))
    nim = Nim()
    with pytest.raises(PluginError, match=r"plugin nim: returns is \(.*\), not a finite number for each seat"):
        list(play_deals(nim, [players.First({}), players.First({})], lineups(nim, 2), [0], seed=1))


@pytest.mark.parametrize("ms", [None, 1000.0])
def test_an_async_player_is_named_and_python_does_not_warn_of_it(ms):
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        with pytest.raises(ContestantError, match=r"test-awaiting.*: decide is an async function: write it with def"):
            run_match(spec("othello", "test-first", "test-awaiting", deals=3, ms=ms), players.build)
        gc.collect()
    assert warned == []


@pytest.mark.parametrize("ms", [None, 1000.0])
def test_an_async_decide_many_is_named(ms, monkeypatch):
    async def decide_many(self, requests):
        raise AssertionError

    monkeypatch.setattr(players.First, "decide_many", decide_many)
    named = r"test-first.*: decide_many is an async function: write it with def, without async\nfix: bothost"
    with pytest.raises(ContestantError, match=named):
        run_match(spec("othello", "test-last", "test-first", deals=1, ms=ms), players.build)
    gc.collect()


def test_a_panic_counts_where_errors_are_forgiven():
    made = rules.game("othello")
    (result,) = play_deals(
        made, [players.Panicking({}), players.First({})], lineups(made, 2), [0], seed=1, forgive=True
    )
    assert all(hand.failed == (hand.decisions[0], 0) and hand.decisions[0] > 1 for hand in result.hands)


def test_an_error_at_the_end_of_a_hand_counts_where_errors_are_forgiven():
    made = rules.game("othello")
    (result,) = play_deals(made, [players.Clinging({}), players.First({})], lineups(made, 2), [0], seed=1, forgive=True)
    assert [hand.failed for hand in result.hands] == [(1, 0), (1, 0)]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_match_that_fails_ends_its_strategies_once(workers, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))  # spawned workers inherit it
    players.Clinging.closed.clear()
    with pytest.raises(ContestantError):
        run_match(spec("othello", "test-clinging", "test-number", deals=1, workers=workers), players.build)
    assert len(players.Clinging.closed) == 1


def test_a_worker_names_the_contestant_too(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))  # spawned workers inherit it
    with pytest.raises(ContestantError, match=r"B \(test-number\): decide returned int"):
        run_match(spec("othello", "test-first", "test-number", deals=2, workers=2), players.build)


def test_an_action_may_be_a_number_of_numpy():
    assert run_match(spec("othello", "test-array", "test-first", deals=1), players.build)["wp"] == 0.5


def test_late_decisions_are_counted_and_replaced_where_errors_are_forgiven():
    made = rules.game("othello")
    how = {"seed": 1, "ms": 1.0}
    sides = [players.Late({}), players.First({})]
    (kept,) = play_deals(made, sides, lineups(made, 2), [0], **how)
    assert all(hand.late[0] == hand.decisions[0] for hand in kept.hands)
    assert all(hand.returns == other.returns for hand, other in zip(kept.hands, _unclocked(made), strict=True))
    (replaced,) = play_deals(made, sides, lineups(made, 2), [0], forgive=True, **how)
    assert all(hand.late[0] == hand.decisions[0] and hand.failed == (0, 0) for hand in replaced.hands)
    assert replaced.hands[0].returns == replaced.hands[1].returns  # both play the first legal action
    (silent,) = play_deals(made, [players.Silent({}), sides[1]], lineups(made, 2), [0], forgive=True, **how)
    assert all(hand.late[0] == hand.decisions[0] and hand.failed == (0, 0) for hand in silent.hands)
    (patient,) = play_deals(made, sides, lineups(made, 2), [0], seed=1, ms=1000.0, forgive=True)
    assert all(hand.late[0] == 0 for hand in patient.hands)


def _unclocked(game):
    (deal,) = play_deals(game, [players.Last({}), players.First({})], lineups(game, 2), [0], seed=1)
    return deal.hands
