"""Whole tournaments: every format plays, continues, survives broken contestants and reports itself."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest

from bothost import rules
from bothost.arena.crew import ProcessCrew
from bothost.arena.lineup import letter
from bothost.arena.match import ContestantError
from bothost.arena.spec import MatchSpec
from bothost.arena.standings import MatchResult
from bothost.arena.tournament import Tournament, TournamentRun, TournamentSpec
from bothost.arena.tournament_report import figures, page
from bothost.errors import UsageError

from .test_match import players


def spec(game, *contestants, format="round-robin", table=2, deals=4, rounds=None, **more):
    match = MatchSpec(
        game=game,
        rules=more.pop("rules", {}),
        contestants=contestants,
        options=more.pop("options", tuple({} for _ in contestants)),
        deals=deals,
        **more,
    )
    return TournamentSpec(match=match, format=format, table=table, rounds=rounds)


def played(asked, folder, crew=None, build=players.build):
    run = TournamentRun(asked, build)
    run.play(folder, crew)
    run.close()
    return run


@pytest.mark.parametrize("format", ["round-robin", "swiss", "knockout", "gauntlet"])
@pytest.mark.parametrize(("game", "table"), [("othello", 2), ("doudizhu", 2), ("doudizhu", 3), ("mahjong", 4)])
def test_every_format_ranks_everybody(game, table, format, tmp_path):
    contestants = ("test-random", "test-first", "test-last", "test-liar")
    run = played(
        spec(game, *contestants, format=format, table=table, deals=2, rounds=2 if format == "swiss" else None), tmp_path
    )
    found = figures(run)
    assert [row["rank"] for row in found["standings"]] == [1, 2, 3, 4]
    assert sorted(row["contestant"] for row in found["standings"]) == ["A", "B", "C", "D"]
    liar = next(row for row in found["standings"] if row["contestant"] == "D")
    assert liar["illegal"] > 0 or not liar["matches"]
    msgspec.json.encode(found)


def test_the_figures_do_not_depend_on_who_plays(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))  # spawned workers inherit it
    asked = spec("othello", "test-random", "test-first", "test-last", deals=5, workers=2)
    alone = figures(played(asked, tmp_path / "a"))
    with ProcessCrew(players.build, asked.match) as crew:
        assert figures(played(asked, tmp_path / "b", crew)) == alone


def test_an_interrupted_tournament_continues_from_its_journals(tmp_path):
    asked = spec("othello", "test-random", "test-first", "test-last", format="swiss", deals=6)
    whole = figures(played(asked, tmp_path / "whole"))

    class Killed(Exception):
        pass

    def stop(progress):
        if (progress.round, progress.done) == (1, 3):
            raise Killed

    run = TournamentRun(asked, players.build)
    with pytest.raises(Killed):
        run.play(tmp_path / "cut", None, stop)
    done = []
    run = TournamentRun(asked, players.build)
    run.play(tmp_path / "cut", None, lambda progress: done.append((progress.round, progress.done)))
    assert figures(run) == whole
    assert done[0] == (0, 6)
    assert (1, 3) in done[:2]


def result(round_, a, b, share):
    return MatchResult(
        round=round_,
        group=(a, b),
        wins={(a, b): (share, share)},
        points={a: (0.0, 0.0), b: (0.0, 0.0)},
        hands=2,
        illegal={},
        failed={},
    )


def test_winners_of_a_knockout_stay_in_and_ranks_follow_the_rounds():
    cup = Tournament(spec("othello", "a", "b", "c", "d", format="knockout"))
    assert cup.next_round().matches == ((0, 3), (1, 2))
    cup.add(result(0, 0, 3, 0.25))
    cup.add(result(0, 1, 2, 1.0))
    assert cup.next_round().matches == ((1, 3),)
    cup.add(result(1, 1, 3, 0.75))
    assert cup.next_round() is None
    assert [row.who for row in cup.standings()] == [1, 3, 0, 2]


def test_an_even_knockout_match_gets_more_deals_and_then_the_favourite_wins(tmp_path):
    run = played(spec("othello", "test-first", "test-liar", format="knockout", deals=2), tmp_path)
    # A liar plays the first legal action: the two are exactly even.
    found = figures(run)
    assert found["rounds"][0]["matches"][0]["deals"] == 8
    assert found["standings"][0]["contestant"] == "A"


def test_swiss_pairs_by_points_and_breaks_ties_by_the_opponents(tmp_path):
    event = Tournament(spec("othello", "a", "b", "c", "d", format="swiss"))
    assert event.next_round().matches == ((0, 1), (2, 3))
    event.add(result(0, 0, 1, 0.0))
    event.add(result(0, 2, 3, 0.5))
    assert event.next_round().matches in (((1, 2), (0, 3)), ((1, 3), (0, 2)))


class BrokenPlayer(players.FirstPlayer):
    def decide(self, view, legal, budget):
        raise RuntimeError("broken")


class Broken(players.First):
    name = "test-broken"

    def player(self, table):
        return BrokenPlayer()


def build_with_broken(asked):
    named = players.STRATEGIES | {"test-broken": Broken}
    return rules.game(asked.game, **asked.rules), [named[one](named[one].Options()) for one in asked.contestants]


def test_a_contestant_that_fails_does_not_end_the_tournament(tmp_path):
    asked = spec("othello", "test-broken", "test-random", deals=2, forgive=True)
    found = figures(played(asked, tmp_path, build=build_with_broken))
    broken = next(row for row in found["standings"] if row["contestant"] == "A")
    assert broken["failed"] > 20
    broken = spec("othello", "test-first", "test-homeless", deals=2, forgive=True)
    with pytest.raises(ContestantError, match=r"B \(test-homeless\)") as failed:
        played(broken, tmp_path / "c")
    assert failed.value.advice == "bothost plugin check test-homeless"  # a tournament does not play on
    with pytest.raises(ContestantError, match=r"A \(test-broken\): RuntimeError: broken"):
        played(spec("othello", "test-broken", "test-random", deals=2), tmp_path / "b", build=build_with_broken)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (spec("othello", "test-first"), "do not fill a table"),
        (spec("othello", "test-first", "test-random", "test-last", table=3), "no matches of 3"),
        (spec("othello", "test-first", "test-first"), "entered twice"),
        (spec("othello", "test-first", "test-random", rounds=3), "is for --format swiss"),
        (spec("othello", "test-first", "test-random", format="swiss", rounds=1025), "are more than 1024"),
    ],
)
def test_what_cannot_be_played_is_refused(wrong, message):
    with pytest.raises(UsageError, match=message):
        TournamentRun(wrong, players.build)


class Elements(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))


def test_the_report_is_one_page_that_escapes_names_and_loads_nothing(tmp_path):
    evil = 'exec:x <script>alert(1)</script> "><img src=http://evil.example/a>'

    class Evil(players.First):
        name = "test-evil"

    def build(asked):
        named = players.STRATEGIES | {evil: Evil}
        return rules.game(asked.game), [named[one](named[one].Options()) for one in asked.contestants]

    text = page(played(spec("othello", evil, "test-random", deals=2), tmp_path, build=build), f"bothost {evil}")
    parser = Elements()
    parser.feed(text)
    tags = {tag for tag, _ in parser.found}
    assert not tags & {"script", "img", "link", "iframe", "a", "object", "base", "form"}
    for _, attributes in parser.found:
        assert not {name for name in attributes if name.startswith("on") or name in ("src", "href")}
    assert "default-src 'none'" in text
    assert not re.search(r"url\(|@import", text)
    assert "&lt;script&gt;" in text


@pytest.mark.parametrize(("format", "pairs"), [("round-robin", 6), ("gauntlet", 3)])
def test_the_report_names_the_number_of_pairs_that_p_values_are_corrected_for(format, pairs, tmp_path):
    contestants = ("test-random", "test-first", "test-last", "test-liar")
    run = played(spec("othello", *contestants, format=format, deals=2), tmp_path)
    assert len(figures(run)["pairs"]) == pairs
    assert f"Holm's correction for {pairs} pairs" in page(run, "bothost tournament")


def test_letters_go_on_after_z():
    assert [letter(who) for who in (0, 25, 26, 27, 701, 702)] == ["A", "Z", "AA", "AB", "ZZ", "AAA"]
