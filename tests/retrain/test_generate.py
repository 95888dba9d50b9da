"""Hands between strategies, logged without a lobby: the rows of a host, once each, whatever interrupts it."""

import json
import math
import os
import signal
from contextlib import nullcontext
from pathlib import Path
from unittest.mock import Mock

import pytest

from bothost import rules
from bothost.cli import main
from bothost.cli.generate import Recordings
from bothost.config import StoreSettings
from bothost.errors import PluginError, StoreUnavailable, UsageError
from bothost.plugins import Plugins, Resolved
from bothost.reproduction import Contestant
from bothost.retrain import generate as module
from bothost.retrain.generate import Population, generate
from bothost.retrain.players import Players
from bothost.store import Store, schema
from bothost.store.hand_report import report
from bothost.store.leases import LeaseHeld
from bothost.store.reader import counts, iter_hands, iter_timelines
from bothost.store.sqlite import SqliteSink
from bothost.strategy import Decision, Player, Strategy
from bothost.testing.nim import Nim, NimState

NAMES = ("ada", "bob", "cyd", "dan")


@pytest.fixture
def settings(tmp_path):
    made = StoreSettings(url=f"sqlite:///{tmp_path}/log.db")
    schema.upgrade(made)
    return made


@pytest.fixture(scope="module")
def plugins():
    return Plugins.load()


def population(plugins, name="doudizhu", players=4, seed=1):
    who = {player: plugins.resolve(f"styled-{name}", {"temperature": 1.0}) for player in NAMES[:players]}
    return Population(rules.game(name), who, seed)


@pytest.mark.parametrize(("name", "players"), [("doudizhu", 4), ("doudizhu", 2), ("othello", 3)])
def test_hands_are_logged_whole_and_are_those_that_were_played(settings, plugins, tmp_path, name, players):
    assert generate(settings, tmp_path / "spool", population(plugins, name, players), 12) == 12
    with Store.open(settings) as store:
        timelines = list(iter_timelines(store, iter_hands(store)))
        assert sorted(int(timeline.hand.game.hand) for timeline in timelines) == list(range(12))
        assert {timeline.hand.game.seat for timeline in timelines} == set(range(rules.game(name).num_seats))
        for timeline in timelines:
            told = report(timeline)
            assert told["problems"] == [] and told["deal"] and told["state"] == "normal"
            assert len(told["scores"]) == rules.game(name).num_seats
            assert told["strategy"] == f"styled-{name}" and not any(d["fallback"] for d in told["decisions"])
        log = Players(store)
        moves = list(log.moves(name))
        assert {move.player for move in moves} == set(NAMES[:players])
        assert log.lineage()["read"][0]["left_out"] == {}


def test_the_same_seed_gives_the_same_hands_however_they_are_cut(settings, plugins, tmp_path, monkeypatch):
    def played(store):
        return [(m.player, m.seat, m.action, m.view.hash()) for m in Players(store).moves("doudizhu")]

    generate(settings, tmp_path / "spool", population(plugins), 10)
    other = StoreSettings(url=f"sqlite:///{tmp_path}/other.db")
    schema.upgrade(other)
    monkeypatch.setattr(module, "BATCH", 1)
    assert generate(other, tmp_path / "spool", population(plugins), 4) == 4
    assert generate(other, tmp_path / "spool", population(plugins), 10) == 6
    assert generate(other, tmp_path / "spool", population(plugins), 10) == 0
    with Store.open(settings) as one, Store.open(other) as two:
        assert sorted(played(one)) == sorted(played(two))
    assert population(plugins, seed=2).table != population(plugins).table != population(plugins, players=3).table


def test_hands_that_were_cut_off_are_played_again(settings, plugins, tmp_path, monkeypatch):
    class Stop(Exception):
        pass

    def stop(done, total):
        if done >= 2:
            raise Stop

    monkeypatch.setattr(module, "BATCH", 5)
    with pytest.raises(Stop), monkeypatch.context() as killed:
        killed.setattr(module, "_without_unfinished", lambda store, table: nullcontext())
        generate(settings, tmp_path / "spool", population(plugins), 8, progress=stop)
    with Store.open(settings) as store:
        ended = [hand.end is not None for hand in iter_hands(store)]
        assert 2 <= sum(ended) < len(ended)
    assert generate(settings, tmp_path / "spool", population(plugins), 8) == 8 - sum(ended)
    with Store.open(settings) as store:
        assert sorted(int(hand.game.hand) for hand in iter_hands(store) if hand.end is not None) == list(range(8))
        assert counts(store)["games"] == counts(store)["game_ends"] == 8


def test_a_failure_leaves_no_hand_that_looks_live(settings, plugins, tmp_path):
    def stop(done, total):
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        generate(settings, tmp_path / "spool", population(plugins), 8, progress=stop)
    with Store.open(settings) as store:
        assert [hand.end is not None for hand in iter_hands(store)].count(True) == counts(store)["games"] > 0


def test_sigterm_leaves_no_hand_that_looks_live(settings, plugins, tmp_path):
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        with pytest.raises(SystemExit) as ended:
            generate(
                settings,
                tmp_path / "spool",
                population(plugins),
                8,
                progress=lambda done, total: done and os.kill(os.getpid(), signal.SIGTERM),
            )
    finally:
        signal.signal(signal.SIGTERM, before)
    assert ended.value.code == 128 + signal.SIGTERM
    with Store.open(settings) as store:
        assert [hand.end is not None for hand in iter_hands(store)].count(True) == counts(store)["games"] > 0


class _Scribbler(Player):
    def decide(self, view, legal, budget):
        chosen, legal[:] = int(legal[0]), -1
        return Decision(action=chosen)


class Scribbling(Strategy):
    name, version, games = "scribbling", "1", ("othello",)

    def player(self, table):
        return _Scribbler()


def test_what_is_logged_as_legal_is_what_the_rules_say_whatever_a_player_writes_into_it(settings, tmp_path):
    players = {"ada": Resolved("scribbling", Scribbling, Scribbling.Options())}
    generate(settings, tmp_path / "spool", Population(rules.game("othello"), players, 1), 2)
    with Store.open(settings) as store:
        for timeline in iter_timelines(store, iter_hands(store)):
            made = report(timeline)
            assert made["problems"] == [] and all(
                sum(a["chosen"] for a in d["actions"]) == 1 for d in made["decisions"]
            )


def test_a_game_that_gives_no_scores_leaves_nothing_in_the_log(settings, plugins, tmp_path, monkeypatch):
    monkeypatch.setattr(NimState, "returns", property(lambda state: (math.nan, 0.0)))
    with pytest.raises(PluginError, match="nim: returns is"):
        generate(settings, tmp_path / "spool", Population(Nim(), {"ada": plugins.resolve("random")}, 1), 2)
    with Store.open(settings) as store:
        assert list(iter_hands(store)) == []


def test_a_new_version_of_a_strategy_plays_its_own_hands(plugins, monkeypatch):
    before = population(plugins, "othello", 2).table
    monkeypatch.setattr(plugins.strategies["styled-othello"], "version", "another")
    assert population(plugins, "othello", 2).table != before


def test_two_at_once_do_not_log_the_hands_twice(settings, plugins, tmp_path):
    refused = []

    def second(done, total):
        if not refused:
            with pytest.raises(LeaseHeld) as error:
                generate(settings, tmp_path / "spool", population(plugins), 3)
            refused.append(error.value)

    assert generate(settings, tmp_path / "spool", population(plugins), 3, progress=second) == 3
    assert "is doing this job" in str(refused[0])
    with Store.open(settings) as store:
        assert sorted(int(hand.game.hand) for hand in iter_hands(store)) == [0, 1, 2]


def test_hands_in_the_spool_are_not_played_again(settings, plugins, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(SqliteSink, "write", Mock(side_effect=StoreUnavailable("away")))
        assert generate(settings, tmp_path / "spool", population(plugins), 3) == 3
    assert [*(tmp_path / "spool").rglob("*.spool")]
    assert generate(settings, tmp_path / "spool", population(plugins), 3) == 0
    with Store.open(settings) as store:
        assert sorted(int(hand.game.hand) for hand in iter_hands(store)) == [0, 1, 2]


def test_everybody_sits_equally_often_and_nobody_against_themselves(plugins):
    many = population(plugins)
    seats = [many.lineup(number) for number in range(600)]
    assert all(len(set(lineup)) == 3 for lineup in seats)
    sat = [sum(lineup.count(who) for lineup in seats) for who in range(4)]
    assert sum(sat) == 1800 and all(abs(count - 450) < 60 for count in sat)
    few = population(plugins, players=2)
    seats = [few.lineup(number) for number in range(20)]
    assert all(set(lineup) == {0, 1} for lineup in seats)
    assert [sum(lineup.count(who) for lineup in seats) for who in range(2)] == [30, 30]


def test_a_strategy_must_play_the_game(plugins):
    with pytest.raises(UsageError, match="ada: styled-othello does not play doudizhu"):
        Population(rules.game("doudizhu"), {"ada": plugins.resolve("styled-othello")}, 1)
    with pytest.raises(UsageError, match="no players"):
        Population(rules.game("doudizhu"), {}, 1)


def test_a_reproduction_gets_a_log_of_its_own(plugins, tmp_path):
    record = Recordings(plugins, tmp_path / "games")
    who = {
        name: Contestant("styled-othello", {"style": style}) for name, style in (("ada", "greedy"), ("bob", "mobile"))
    }
    log = record("othello", who, hands=6, seed=3)
    assert set(log.players("othello")) == {"ada", "bob"} and sum(log.players("othello").values()) == 12
    more = record("othello", who, hands=8, seed=3)
    assert sum(more.players("othello").values()) == 16
    other = record("othello", who, hands=2, seed=4)
    assert sum(other.players("othello").values()) == 4
    record.close()


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BOTHOST_CONFIG", raising=False)
    Path("config.toml").write_text('[store]\nurl = "sqlite:///log.db"\n')
    assert main(["db", "upgrade"]) == 0


def test_the_command_line_generates_and_says_what(config, capsys):
    capsys.readouterr()
    words = ["games", "generate", "doudizhu", "--player", "ada=styled-doudizhu", "--player", "bob=random"]
    words += ["--option", "ada.style=bold", "--rule", "preset=bidding", "--seed", "7", "--json", "--hands"]
    assert main([*words, "4"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["played"] == 4 and made["lobby"] == "generated"
    assert main([*words, "6", "--no-consent"]) == 0
    assert json.loads(capsys.readouterr().out)["played"] == 2
    assert main(["games", "list", "--lobby", "generated", "--seats", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert len(listed) == 6 and {hand["strategy"] for hand in listed} <= {"styled-doudizhu", "random"}
    with Store.open(StoreSettings(url="sqlite:///log.db")) as store:
        log = Players(store)
        assert len({move.game_id for move in log.moves("doudizhu", ["ada"])}) == 4
    assert main(["games", "generate", "othello", "--player", "ada=random", "--hands", "1"]) == 0
    assert capsys.readouterr().out.startswith("1 hand played and logged: ")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["doudizhu", "--player", "ada"], "NAME=ADDRESS"),
        (["doudizhu", "--player", " =random"], "NAME=ADDRESS"),
        (["doudizhu", "--player", f"{'a' * 201}=random"], "at most 200 characters"),
        (["doudizhu", "--player", "ada=styled-dodizhu"], "styled-doudizhu"),
        (["doudizhu", "--player", "ada=random", "--player", "ada=random"], "two players"),
        (["doudizhu", "--player", "ada=random", "--option", "bob.x=1"], "ada"),
        (["doudizhu", "--player", "ada=styled-doudizhu", "--option", "ada.styl=bold"], "style"),
        (["dodizhu", "--player", "ada=random"], "doudizhu"),
        (["doudizhu", "--player", "ada=random", "--rule", "preset=none"], "preset"),
        (["doudizhu", "--player", "ada=styled-othello"], "does not play"),
        (["doudizhu", "--player", "ada=exec:no-such-bot"], "there is no program 'no-such-bot'"),
    ],
)
def test_what_cannot_be_generated_is_refused_with_the_fix(config, capsys, words, told):
    assert main(["games", "generate", *words, "--hands", "1"]) in (2, 78)
    err = capsys.readouterr().err
    assert told in err and "is a bug" not in err


def test_a_number_of_hands_with_digits_too_many_is_refused(config, capsys):
    words = ["games", "generate", "doudizhu", "--player", "ada=random", "--hands", "1000000000000"]
    assert main(words) == 2
    assert "1<=x<=1000000" in capsys.readouterr().err
