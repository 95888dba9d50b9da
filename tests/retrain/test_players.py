"""What everybody did at the logged tables: rebuilt, checked, and only of those who agreed."""

import json
import sqlite3
from contextlib import closing

import pytest

from bothost import rules
from bothost.config import StoreSettings
from bothost.errors import UsageError
from bothost.export.options import ExportOptions
from bothost.retrain.players import Players
from bothost.store import DecisionRecord, EventsRecord, OutcomeRecord, Store, consent, schema
from bothost.store.rebuild import moves_of
from bothost.testing.sample_rows import played_hand, write_rows

HANDS = 5


@pytest.fixture
def settings(tmp_path):
    made = StoreSettings(url=f"sqlite:///{tmp_path}/log.db")
    schema.upgrade(made)
    return made


def hands_of(name, *, consents=("ada", "bob"), seats=(0,), hands=HANDS):
    """Hands of a game, each logged from these seats of ours; at seat 0 sits ada, then bob, cyd, dan."""
    game = rules.game(name)
    made = []
    for seed in range(hands):
        for seat in seats:
            rows = played_hand(game, seed, seat=seat, started_us=1_700_000_000_000_000 + 10**8 * seed + seat)
            sitting = list(enumerate(("ada", "bob", "cyd", "dan")[: game.num_seats]))
            rows[0].account = sitting[seat][1]
            rows[0].table = f"table-{seed}"
            told = [{"player": name, "seat": at, "consents": name in consents} for at, name in sitting]
            rows[0].players = json.dumps(told)
            made.append(rows)
    return made


def truth(rows, seats):
    """(seat, view, legal, action) of these seats, by the game itself."""
    game = rules.game(rows[0].game, **json.loads(rows[0].rules))
    events = "\n".join(row.events for row in rows if isinstance(row, EventsRecord)).split("\n")
    moves = moves_of(game, rows[0].seat, events)
    return [(m.seat, m.view.to_bytes(), m.legal.tolist(), m.action) for m in moves if m.seat in seats]


def flat(moves):
    return [(m.seat, m.view.to_bytes(), m.legal.tolist(), m.action) for m in moves]


@pytest.mark.parametrize("name", rules.games(plugins=False))
def test_the_moves_of_all_who_agreed_come_out_as_they_were_made(settings, tmp_path, name):
    hands = hands_of(name)
    write_rows(settings, tmp_path, hands)
    with Store.open(settings) as store:
        log = Players(store)
        assert log.players(name) == {"ada": HANDS, "bob": HANDS}
        found = list(log.moves(name))
        assert flat(found) == [move for rows in hands for move in truth(rows, {0, 1})]
        assert {(m.seat, m.player) for m in found} == {(0, "ada"), (1, "bob")}
        assert [m.game_id for m in found] == sorted(m.game_id for m in found)
        for move in found:
            assert move.split == ExportOptions().split_of("home", f"table-{hands_number(hands, move)}", "1")
            assert len(move.scores) == move.game.num_seats
        assert flat(log.moves(name, ["bob"])) == [move for move in flat(found) if move[0] == 1]
        parts = [flat(log.moves(name, split=split)) for split in ("train", "val", "test")]
        assert sorted(move for part in parts for move in part) == sorted(flat(found))
        told = log.lineage()["read"]
        assert told[0]["hands"] == HANDS and told[0]["moves"] == len(found) and told[0]["to_the_end"]
        assert told[0]["left_out"] == {}
        again = Players(store)
        assert flat(again.moves(name)) == flat(found)
        assert again.lineage()["read"][0]["sha256"] == told[0]["sha256"] != told[1]["sha256"]


def test_moves_of_players_who_were_away_are_left_out_and_counted(settings, tmp_path):
    """Our own seat's moves are checked with what was logged there: what the lobby told of it does not matter."""
    hands = hands_of("doudizhu")
    for rows, away in zip(hands, ("[1]", "[0,2]", "[]", None, "[0,1]"), strict=True):
        rows[-1].away = away
    write_rows(settings, tmp_path, hands)
    with Store.open(settings) as store:
        log = Players(store)
        assert log.players("doudizhu") == {"ada": HANDS, "bob": 3}
        found = [({0} if number in (0, 4) else {0, 1}, rows) for number, rows in enumerate(hands)]
        assert flat(log.moves("doudizhu")) == [move for seats, rows in found for move in truth(rows, seats)]
        theirs = len(truth(hands[0], {1})) + len(truth(hands[4], {1}))
        assert log.lineage()["read"][0]["left_out"] == {"moves of players who were away": theirs}


def test_who_was_away_is_known_when_one_of_our_accounts_was_told(settings, tmp_path):
    hands = hands_of("doudizhu", consents=("ada", "bob", "cyd"), seats=(0, 1), hands=2)
    hands[1][-1].away, hands[2][-1].away = "[2]", "[2]"  # told to bob of the first hand, to ada of the second
    write_rows(settings, tmp_path, hands)
    with Store.open(settings) as store:
        log = Players(store)
        assert log.players("doudizhu") == {"ada": 2, "bob": 2}
        assert {move.player for move in log.moves("doudizhu")} == {"ada", "bob"}
        assert list(log.moves("doudizhu", ["cyd"])) == []
        left_out = log.lineage()["read"][-1]["left_out"]
        assert left_out["moves of players who were away"] == sum(len(truth(hands[at], {2})) for at in (0, 2))


def test_a_hand_that_the_lobby_played_for_us_from_beginning_to_end_is_not_ours(settings, tmp_path):
    """As when our account had gone before its first question; a log of another host's may lack decisions, too."""
    hands = [[row for row in rows if not isinstance(row, DecisionRecord)] for rows in hands_of("doudizhu", hands=2)]
    hands[0][-1].away = "[0]"
    write_rows(settings, tmp_path, hands)
    with Store.open(settings) as store:
        log = Players(store)
        assert flat(log.moves("doudizhu", ["ada"])) == truth(hands[1], {0})
        left_out = log.lineage()["read"][0]["left_out"]
        assert left_out == {"moves that the player did not choose": len(truth(hands[0], {0}))}


def hands_number(hands, move):
    return next(int(rows[0].table.removeprefix("table-")) for rows in hands if rows[0].game_id.hex() == move.game_id)


def test_nobody_comes_out_who_did_not_agree(settings, tmp_path):
    write_rows(settings, tmp_path, hands_of("doudizhu", consents=("ada",)))
    with Store.open(settings) as store:
        log = Players(store)
        assert {move.player for move in log.moves("doudizhu")} == {"ada"}
        with pytest.raises(UsageError, match="bob has not agreed") as caught:
            list(log.moves("doudizhu", ["ada", "bob"]))
        assert "bothost games consent bob --lobby home" in caught.value.advice
        with pytest.raises(UsageError, match="no closed hand of doudizhu has a player 'adaa'") as caught:
            list(log.moves("doudizhu", ["adaa"]))
        assert "ada" in caught.value.advice
        consent.record(store, "home", "bob", granted=True, reason="asked on Monday")
        consent.record(store, "elsewhere", "cyd", granted=True)
        assert {move.player for move in log.moves("doudizhu")} == {"ada", "bob"}
        consent.record(store, "home", "ada", granted=False, reason="changed her mind")
        assert log.players("doudizhu") == {"bob": HANDS}  # the hands' own marks count no more
        with pytest.raises(UsageError, match="no closed hand of othello in the log") as caught:
            list(log.moves("othello", ["bob"]))
        assert "--since" in caught.value.advice
        with pytest.raises(UsageError, match="ada has not agreed"):
            list(log.moves("doudizhu", ["ada"]))


def test_a_name_that_the_lobby_shows_is_told_by_its_id(settings, tmp_path):
    hands = hands_of("othello", hands=1)
    players = json.loads(hands[0][0].players)
    players[1] |= {"player": "4711", "name": "Bob the Great"}
    hands[0][0].players = json.dumps(players)
    write_rows(settings, tmp_path, hands)
    with Store.open(settings) as store, pytest.raises(UsageError) as caught:
        list(Players(store).moves("othello", ["Bob the Great"]))
    assert "4711" in caught.value.advice


@pytest.mark.parametrize("name", ["doudizhu", "mahjong"])
def test_what_several_of_our_accounts_saw_comes_out_once(settings, tmp_path, name):
    consents = ("ada", "bob", "cyd", "dan")
    hands = hands_of(name, consents=consents, seats=(1, 0))
    write_rows(settings, tmp_path, hands)
    with Store.open(settings) as store:
        log = Players(store)
        found = list(log.moves(name))
        everybody = range(rules.game(name).num_seats)
        assert log.players(name) == {consents[seat]: HANDS for seat in everybody}
        assert sorted(flat(found)) == sorted(move for rows in hands[::2] for move in truth(rows, set(everybody)))


def test_hands_that_are_not_as_they_were_logged_are_left_out_and_counted(settings, tmp_path):
    hands = hands_of("doudizhu")
    ids = [rows[0].game_id for rows in hands]
    write_rows(settings, tmp_path, hands)
    with closing(sqlite3.connect(tmp_path / "log.db")) as db:
        last = "(SELECT max(seq) FROM events WHERE game_id = ?1)"
        db.execute("UPDATE decisions SET view = x'00' WHERE game_id = ? AND seq > 3", (ids[0],))
        db.execute(f"DELETE FROM events WHERE game_id = ?1 AND seq = {last}", (ids[1],))
        db.execute("DELETE FROM events WHERE game_id = ? AND seq = 0", (ids[2],))
        db.execute(f"UPDATE events SET events = 'play 0 nonsense' WHERE game_id = ?1 AND seq = {last}", (ids[3],))
        db.commit()
    with Store.open(settings) as store:
        log = Players(store)
        assert {move.game_id for move in log.moves("doudizhu")} == {ids[4].hex()}
        assert log.lineage()["read"][0]["left_out"] == {
            "hands that their game does not understand": 1,
            "hands that were not revealed": 1,
            "hands whose views are not those that were logged": 1,
            "hands with a gap in their events": 1,
        }


def test_what_our_player_did_not_choose_is_left_out(settings, tmp_path):
    hands = hands_of("doudizhu", consents=("ada",), hands=1)
    decisions = [row for row in hands[0] if isinstance(row, DecisionRecord)]
    assert len(decisions) > 3
    decisions[1].fallback = "late"
    decisions[2].action = decisions[2].action + 1  # the lobby acted, not we
    hands[0] = [row for row in hands[0] if row is not decisions[3]]
    write_rows(settings, tmp_path, hands)
    with Store.open(settings) as store:
        log = Players(store)
        found = flat(log.moves("doudizhu"))
        everything = truth(hands[0], {0})
        assert found == [everything[0], *everything[4:]]
        assert log.lineage()["read"][0]["left_out"] == {"moves that the player did not choose": 3}


def timed(hands, turns_ms):
    """Sets when the decisions of these hands, in this order, were asked and sent, milliseconds."""
    decisions = [row for rows in hands for row in rows if isinstance(row, DecisionRecord)]
    outcomes = {row.decision_id: row for rows in hands for row in rows if isinstance(row, OutcomeRecord)}
    for decision, (asked, sent) in zip(decisions, turns_ms, strict=False):
        decision.elapsed_ms = 5.0
        decision.at_us = START_US + int(1000 * (asked + 5.0))
        outcomes[decision.id].at_us = START_US + 1000 * sent
    for decision in decisions[len(turns_ms) :]:
        del outcomes[decision.id]
        for rows in hands:
            rows[:] = [row for row in rows if getattr(row, "decision_id", None) != decision.id]
    return hands


START_US = 1_700_000_000_000_000


def test_the_times_of_a_person_are_the_pauses_of_the_bots(settings, tmp_path):
    """Bob sits against a bot of ours at Othello, and against two at Dou Dizhu, who are asked one after the other."""
    othello = timed(hands_of("othello", hands=1), [(0, 700), (1700, 2400), (2450, 3000), (5500, 6000)])
    two = hands_of("doudizhu", seats=(0, 2), hands=2)[2:]
    doudizhu = timed([two[0]], [(0, 100), (3100, 3200)]) + timed([two[1]], [(1600, 1700), (1705, 1800)])
    write_rows(settings, tmp_path, [*othello, *doudizhu])
    with Store.open(settings) as store:
        players = Players(store)
        assert list(players.thinking_ms("othello", ["bob"])) == [1000.0, 2500.0]  # 50 ms are the network's
        assert list(players.thinking_ms("doudizhu", ["bob"])) == [1500.0, 1300.0]
        with pytest.raises(UsageError, match="has not agreed"):
            players.thinking_ms("doudizhu", ["cyd"])


def test_the_times_of_a_person_count_if_hands_of_other_days_have_the_same_name(settings, tmp_path):
    hands = [*hands_of("othello", hands=2)]
    for rows in hands:
        rows[0].table = "table-0"
    write_rows(settings, tmp_path, [*timed(hands[:1], [(0, 700), (1700, 2400)]), *timed(hands[1:], [(0, 1)])])
    with Store.open(settings) as store:
        assert list(Players(store).thinking_ms("othello", ["bob"])) == [1000.0]


def test_a_bot_that_thinks_longer_than_one_asked_after_it_adds_nothing_to_the_times_of_a_person(settings, tmp_path):
    """Several bots are asked at once whether they claim a discard of mahjong."""
    hands = hands_of("mahjong", seats=(0, 2, 3), hands=1)
    write_rows(settings, tmp_path, timed(hands, [(0, 100), (120, 2120), (121, 170), (3500, 3600)]))
    with Store.open(settings) as store:
        assert list(Players(store).thinking_ms("mahjong", ["bob"])) == [1380.0]


def test_where_others_sit_too_nobody_knows_who_took_the_time(settings, tmp_path):
    write_rows(settings, tmp_path, timed(hands_of("doudizhu", hands=1), [(0, 100), (1600, 1700)]))
    with Store.open(settings) as store:
        assert list(Players(store).thinking_ms("doudizhu", ["bob"])) == []
