"""The ladder: who is better comes out, each hand counts once, and own accounts cannot lift each other."""

import json
import random
from pathlib import Path

import msgspec
import pytest
import sqlalchemy as sa

from bothost import rules
from bothost.arena.journal import Header, Journal
from bothost.arena.lineup import lineups
from bothost.arena.match import DealResult, HandResult
from bothost.cli import main
from bothost.errors import StoreError, UsageError
from bothost.ladder import journals, picture, rating_of, report
from bothost.ladder.logged import LoggedOutcomes
from bothost.ladder.outcome import LANDLORD, Outcome, teams_of
from bothost.ladder.update import Ladder, clear
from bothost.store import Store, ratings
from bothost.store.models import game_ends, games, rated
from bothost.store.ratings import Contestant, key_of
from bothost.store.records import GameEndRecord
from bothost.testing.sample_rows import sample_game

T0 = 1_700_000_000_000_000
ADA, BEN, CAT = (Contestant("player", name, "home") for name in ("ada", "ben", "cat"))


@pytest.fixture
def store(any_settings):
    with Store.open(any_settings) as opened:
        yield opened


def log(store, number, scores, *, ours=(0,), names=("ada", "ben", "cat"), away="[]", ended=True, **fields):
    """A hand at the lobby ``home``: a row for each seat of ours."""
    for seat in ours:
        row = sample_game(random.Random(f"{number} {seat}"), seat=seat, started_us=T0 + number * 300_000_000)
        players = [{"player": name, "seat": at} for at, name in enumerate(names)]
        row.account, row.players = f"own-{seat}", json.dumps(players)
        row.table, row.hand, row.strategy, row.strategy_version, row.model_sha256 = "t", str(number), "bot", "1", None
        for name, value in fields.items():
            setattr(row, name, value)
        with store.begin() as connection:
            connection.execute(games.insert(), msgspec.structs.asdict(row))
            if ended:
                text = None if scores is None else json.dumps(scores)
                end = GameEndRecord(
                    game_id=row.game_id, seat=seat, reason="normal", scores=text, ended_us=row.started_us + 9, away=away
                )
                connection.execute(game_ends.insert(), msgspec.structs.asdict(end))


def count(store, scope="others"):
    logged = LoggedOutcomes(store, scope)
    return Ladder(store, scope).count(logged), dict(logged.left_out)


def known(store, game="doudizhu", scope="others"):
    return {who.label: rating for who, rating in ratings.all_ratings(store, scope=scope).get(game, {}).items()}


def test_a_hand_counts_once_and_new_ones_are_added(store):
    for number in range(6):
        log(store, number, [2, -1, -1], game="mahjong")
    assert count(store) == (6, {})
    first = known(store, "mahjong")
    assert {rating.hands for rating in first.values()} == {6}
    assert first["bot (1)"].mu > 25 > first["ben at home"].mu
    assert first["bot (1)"].sigma < ratings.SIGMA
    assert count(store) == (0, {}) and known(store, "mahjong") == first
    log(store, 6, [2, -1, -1], game="mahjong")
    assert count(store) == (1, {})
    assert known(store, "mahjong")["bot (1)"].hands == 7
    assert rating_of(store, "home", "ben", "mahjong") == known(store, "mahjong")["ben at home"]
    assert rating_of(store, "home", "ada", "mahjong") is None  # the seat is ours: the strategy is rated


def test_counting_in_parts_gives_what_counting_at_once_gives(store):
    rng = random.Random(5)
    results = [rng.choice([[2, -1, -1], [-2, 1, 1], [0, 0, 0]]) for _ in range(60)]
    for number, scores in enumerate(results):
        log(store, number, scores, game="mahjong")
        if number % 25 == 7:
            count(store)
    count(store)
    parts = known(store, "mahjong")
    clear(store, "others")
    assert known(store, "mahjong") == {}
    assert count(store) == (60, {})
    assert known(store, "mahjong") == parts


def test_an_interrupted_count_loses_and_doubles_nothing(store):
    for number in range(8):
        log(store, number, [2, -1, -1], game="mahjong")

    def broken():
        for i, outcome in enumerate(LoggedOutcomes(store, "others")):
            if i == 5:
                raise KeyboardInterrupt
            yield outcome

    with pytest.raises(KeyboardInterrupt):
        Ladder(store, "others").count(broken())
    assert known(store, "mahjong") == {}
    assert count(store) == (8, {})


def test_of_two_that_count_at_the_same_time_the_later_is_told_to_start_again(store):
    """It loaded the ratings before the other wrote, so it would replace what the other counted."""
    other = Ladder(store, "others")
    log(store, 0, [2, -1, -1], game="mahjong")
    assert count(store) == (1, {})
    deal = Outcome("mahjong", ((ADA,), (BEN,)), (1.0, 0.0), T0, (key_of("deal", 1),))
    with pytest.raises(StoreError, match="another"):
        other.count([deal])
    assert Ladder(store, "others").count([deal]) == 1
    assert known(store, "mahjong")["ada at home"].hands == 1
    assert known(store, "mahjong")["ben at home"].hands == 2


def test_hands_that_say_nothing_are_left_out_by_reason(store):
    log(store, 0, [2, -1, -1], ours=(0, 1, 2))
    log(store, 1, None)
    log(store, 2, [2, -1, -1], away="[1]")
    log(store, 3, [0, 0, 0])
    log(store, 4, [2, -1, -1], host="generated")
    log(store, 5, [2, -1, -1], ended=False)
    reasons = {"among our own accounts": 2, "ended without a score": 1, "a player was away": 1, "nothing to compare": 1}
    assert count(store) == (0, reasons)
    assert count(store) == (0, {})
    done, left = count(store, "all")
    assert done == 1 and left == {k: v for k, v in reasons.items() if k != "among our own accounts"} | {
        "nothing to compare": 2  # seats of one strategy are on both sides
    }
    assert known(store, scope="others") == {}


def test_our_seats_at_a_hand_are_one_hand_whenever_they_come(store):
    log(store, 0, [1, -1, 0], ours=(0, 1), game="mahjong", strategy="bot")
    log(store, 0, [1, -1, 0], ours=(2,), game="mahjong", strategy="other")
    assert count(store, "all")[0] == 1
    assert {name: r.hands for name, r in known(store, "mahjong", "all").items()} == {"bot (1)": 1, "other (1)": 1}
    log(store, 1, [1, -1, 0], ours=(0,), game="mahjong")
    assert count(store, "all")[0] == 1
    before = known(store, "mahjong", "all")
    log(store, 1, [1, -1, 0], ours=(2,), game="mahjong")
    assert count(store, "all")[0] == 0 and known(store, "mahjong", "all") == before


def test_a_person_between_two_of_our_bots_is_rated(store):
    log(store, 0, [2, -1, -1], ours=(0,), strategy="deep")
    log(store, 0, [2, -1, -1], ours=(2,), strategy="rule")
    assert count(store) == (1, {})
    assert known(store)["deep (1)"].mu > 25 > known(store)["ben at home"].mu == known(store)["rule (1)"].mu
    log(store, 1, [9, -3, -6], ours=(0, 2), game="mahjong")  # both seats of one strategy: their mean
    assert count(store) == (1, {})
    assert known(store, "mahjong")["bot (1)"].mu > known(store, "mahjong")["ben at home"].mu
    log(store, 2, [9, -3, -6], ours=(0,), game="mahjong", names=(), strategy="deep")
    log(store, 2, [9, -3, -6], ours=(2,), game="mahjong", names=(), strategy="rule")
    assert count(store) == (0, {"among our own accounts": 1}), "the lobby did not say who else sat there"


def test_versions_and_levels_are_apart(store):
    log(store, 0, [2, -1, -1], model_sha256="ab" * 32)
    log(store, 1, [2, -1, -1], model_sha256="cd" * 32, attributes='{"strategy_level": "level-2"}')
    log(store, 2, [2, -1, -1], attributes="not json")
    assert count(store)[0] == 3
    assert {"bot (abababab)", "bot:level-2 (cdcdcdcd)", "bot (1)"} <= set(known(store))


def test_imported_hands_rate_their_players_and_unnamed_ones_nobody(store):
    about = {"imported": {"named": False}}
    log(store, 0, [2, -1, -1], ours=(0, 1, 2), host="import", attributes=json.dumps(about))
    assert count(store) == (0, {"nothing to compare": 1})
    log(store, 1, [2, -1, -1], ours=(0, 1, 2), host="import", attributes='{"imported": {"named": true}}')
    assert count(store)[0] == 1
    assert set(known(store)) == {"ada at home", "ben at home", "cat at home", LANDLORD.label}


def test_peasants_are_a_team_and_the_landlords_advantage_belongs_to_the_role(store):
    teams, scores = teams_of("doudizhu", dict(enumerate((ADA, BEN, CAT))), [2.0, -4.0, 2.0])
    assert teams == ((BEN, LANDLORD), (ADA, CAT)) and scores == (-4.0, 4.0)
    assert teams_of("doudizhu", {0: ADA, 1: ADA, 2: BEN}, [2, -1, -1]) is None
    assert teams_of("mahjong", {0: ADA, 1: ADA, 2: BEN}, [2, -1, -1, 0])[1] == (0.5, -1)
    rng = random.Random(3)
    made = []
    for number in range(600):  # three equals: whoever is the landlord wins 70 %
        seats = rng.sample([ADA, BEN, CAT], 3)
        points = 2.0 if rng.random() < 0.7 else -2.0
        found = teams_of("doudizhu", dict(enumerate(seats)), [points, -points / 2, -points / 2])
        made.append(Outcome("doudizhu", *found, T0, (key_of(number),)))
    Ladder(store, "others").count(made)
    rated_ = ratings.all_ratings(store)["doudizhu"]
    for who in (ADA, BEN, CAT):
        low, high = rated_[who].ci95
        assert low < 25 < high
    assert rated_[LANDLORD].ci95[0] > 25


def test_the_better_player_of_four_comes_out_with_an_interval_that_narrows(store):
    rng = random.Random(1)
    strength = {name: value for value, name in enumerate(("dan", "cat", "ben", "ada"))}
    made = []
    for number in range(400):
        scores = {name: rng.gauss(0.7 * value, 1) for name, value in strength.items()}
        teams = tuple((Contestant("player", name, "home"),) for name in scores)
        made.append(Outcome("mahjong", teams, tuple(scores.values()), T0, (key_of(number),)))
    ladder = Ladder(store, "others")
    ladder.count(made[:40])
    early = ratings.all_ratings(store)["mahjong"]
    ladder.count(made)
    (found,) = report.ladders(store, "others")
    assert [standing.who.name for standing in found.standings] == ["ada", "ben", "cat", "dan"]
    for standing in found.standings:
        assert standing.rating.sigma < early[standing.who].sigma / 1.5
        assert [point.hands for point in standing.history][:10] == list(range(1, 11))
        assert len(standing.history) < 50
        last = standing.history[-1]
        assert (last.hands, last.mu) == (400, standing.rating.mu)
    pair = next(p for p in found.pairs if {p.a, p.b} == {"ada at home", "dan at home"})
    assert pair.hands == 400 and max(pair.wins, 400 - pair.wins) > 300


def journal(path, contestants, results, game="othello"):
    """A journal in which A's returns of each deal, in the two lineups, are ``results``."""
    made = rules.game(game)
    header = Header(game=game, rules=json.dumps(made.rules), contestants=contestants, seed=1, ms=None)
    book = Journal(path, header)
    book.open()
    for number, returns in enumerate(results):
        hands = tuple(
            HandResult(tuple(r if who == 0 else -r for who in lineup), {}, (1, 1), (0.0, 0.0), (0, 0))
            for r, lineup in zip(returns, lineups(made, 2), strict=True)
        )
        book.append(DealResult(number, hands))
    book.close()


def test_a_journals_deals_count_once_each(store, tmp_path):
    sha = "ab" * 32
    names = (f"deep:level-3@{sha}", 'exec:./bot@2@1.0 {"depth": 3}')
    journal(tmp_path / "a.jsonl", names, [(1, 1), (1, 1), (1, -1)])
    with (tmp_path / "a.jsonl").open("a") as file:
        file.write('{"deal": 3, "torn')
    (path,) = journals.files([tmp_path])
    outcomes = list(journals.outcomes(path))
    assert [outcome.ranks for outcome in outcomes] == [[1, 2], [1, 2], [1, 1]]
    ladder = Ladder(store, "others")
    assert ladder.count(outcomes) == 3 and ladder.count(outcomes) == 0
    found = known(store, "othello")
    assert list(found) == ["deep:level-3 (abababab)", 'exec:./bot@2 (1.0 {"depth": 3})']
    assert {rating.hands for rating in found.values()} == {3}
    (tmp_path / "b.jsonl").write_text("{}\n")
    with pytest.raises(UsageError, match="not a readable match journal"):
        list(journals.outcomes(tmp_path / "b.jsonl"))
    with pytest.raises(UsageError, match="no file or folder"):
        journals.files([tmp_path / "none"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="empty has no journal"):
        journals.files([tmp_path / "empty"])


def test_the_command_shows_writes_and_draws(tmp_path, monkeypatch, capsys):
    (tmp_path / "config.toml").write_text('[store]\nurl = "sqlite:///log.db"\n')
    monkeypatch.chdir(tmp_path)
    assert main(["db", "upgrade"]) == 0
    capsys.readouterr()
    assert main(["ladder"]) == 0
    assert "no one is rated yet" in capsys.readouterr().out
    assert main(["ladder", "--game", "mahjong"]) == 0
    assert "no one is rated in mahjong" in capsys.readouterr().out
    assert main(["ladder", "--game", "mahjog"]) == 2
    assert "did you mean 'mahjong'?" in capsys.readouterr().err
    journal(tmp_path / "a.jsonl", ("strong@1", "we|ak$@1"), [(1, 1)] * 4)
    files = ["--markdown", "ladder.md", "--picture", "ladder.png"]
    assert main(["ladder", "--journal", "a.jsonl", "--matrix", *files]) == 0
    said = capsys.readouterr().out
    assert "0 new hands and 4 new deals counted" in said and "100 % of 4" in said
    assert said.index("strong (1)") < said.index("we|ak$ (1)")
    assert "| 2 | we\\|ak$ (1) |" in (tmp_path / "ladder.md").read_text()
    assert (tmp_path / "ladder.png").read_bytes()[:4] == b"\x89PNG"
    assert main(["ladder", "--json", "--min-hands", "4"]) == 0
    data = json.loads(capsys.readouterr().out)
    best = data["games"]["othello"]["contestants"][0]
    assert (best["name"], best["hands"], len(best["history"])) == ("strong", 4, 4)
    assert best["ci95"][0] < best["mu"] < best["ci95"][1]
    assert data["games"]["othello"]["head_to_head"][0]["hands"] == 4
    assert main(["ladder", "--rebuild", "--journal", "a.jsonl"]) == 0
    assert capsys.readouterr().err == ""
    assert main(["ladder", "--rebuild", "--json", "--min-hands", "5"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["games"] == {}
    assert "8 of 8 results of contestants no longer count" in err and "--journal" in err


def test_the_command_says_why_it_shows_and_draws_nothing(tmp_path, monkeypatch, capsys):
    (tmp_path / "config.toml").write_text('[store]\nurl = "sqlite:///log.db"\n')
    monkeypatch.chdir(tmp_path)
    assert main(["db", "upgrade"]) == 0
    assert main(["ladder", "--picture", "ladder.png"]) == 0
    assert "ladder.png is not drawn: no one is rated yet" in capsys.readouterr().err
    journal(tmp_path / "a.jsonl", ("strong@1", "weak@1"), [(1, 1)] * 4)
    files = ["--markdown", "ladder.md", "--picture", "ladder.png"]
    assert main(["ladder", "--journal", "a.jsonl", "--min-hands", "5", "--matrix", *files]) == 0
    out, err = capsys.readouterr()
    assert "othello\n  no one has 5 hands yet\n" in out and "CONTESTANT" not in out
    assert "ladder.png is not drawn: no one has 5 hands yet" in err and not Path("ladder.png").exists()
    assert "No one has enough hands." in Path("ladder.md").read_text()


@pytest.mark.parametrize(
    ("option", "why"),
    [
        (["--markdown", "none/ladder.md"], "there is no folder none"),
        (["--picture", "none/ladder.png"], "there is no folder none"),
        (["--markdown", "."], "is a directory"),
        (["--picture", "ladder.xyz"], "format of no picture"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused_before_anything_is_counted(
    option, why, tmp_path, monkeypatch, capsys
):
    (tmp_path / "config.toml").write_text('[store]\nurl = "sqlite:///log.db"\n')
    monkeypatch.chdir(tmp_path)
    assert main(["db", "upgrade"]) == 0
    journal(tmp_path / "a.jsonl", ("strong@1", "weak@1"), [(1, 1)] * 4)
    assert main(["ladder", "--journal", "a.jsonl", *option]) == 2
    assert why in capsys.readouterr().err
    assert main(["ladder", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["games"] == {}


def test_names_are_no_markup_and_show_what_is_hidden_in_them():
    eve = Contestant("player", "小<b>*[x](y)\u202e", "home")
    standing = report.Standing(eve.label, eve, ratings.Rating(), ())
    page = report.markdown([report.GameLadder("doudizhu", (standing,), (), ())])
    assert r"| 小\<b\>\*\[x\](y)\\u202e at home |" in page


def test_chinese_names_are_drawn_where_a_font_has_them(tmp_path):
    """A character without a picture would be a warning, and so an error."""
    fonts = pytest.importorskip("matplotlib.font_manager")
    if not set(fonts.get_font_names()) & set(picture.CHINESE_FONTS):
        pytest.skip("no font with Chinese characters is installed")
    ming = Contestant("player", "小明", "home")
    standing = report.Standing(ming.label, ming, ratings.Rating(), ())
    picture.draw([report.GameLadder("doudizhu", (standing,), (), ())], tmp_path / "ladder.png")
    assert (tmp_path / "ladder.png").stat().st_size > 0


def test_scopes_mark_their_hands_apart(store):
    log(store, 0, [2, -1, -1])
    count(store)
    with store.begin() as connection:
        assert set(connection.execute(sa.select(rated.c.scope)).scalars()) == {"others"}
    assert count(store, "all")[0] == 1
