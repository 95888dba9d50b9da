"""The demo's live view and its scores, from a log."""

import io
import json
import statistics

import pytest
from rich.console import Console

from bothost import rules
from bothost.cli.demo_view import Board, render, score_rows
from bothost.config import RouteSettings
from bothost.plugins import Plugins
from bothost.store import Store
from bothost.store.records import GameEndRecord
from bothost.testing.sample_rows import played_hand, write_rows

STATUS = {
    "tables": 1,
    "decisions": 7,
    "hands": 2,
    "fallbacks": {},
    "draining": False,
    "accounts": [{"lobby": "home", "account": "ada", "connected": False, "problem": "refused\x1b[31m"}],
}
BEGAN_US = 1_700_000_000_000_000


def hand(seed):
    return played_hand(rules.game("pairing"), seed, seat=0, started_us=BEGAN_US + seed * 10**6)


@pytest.fixture
def board(settings, tmp_path):
    """Two hands: one has ended, one goes on."""
    hands = [hand(1), [row for row in hand(2) if not isinstance(row, GameEndRecord)]]
    write_rows(settings, tmp_path, hands)
    with Store.open(settings) as store:
        board = Board(store, (RouteSettings(strategy="random"),), Plugins.load(None), since_us=BEGAN_US)
        board.read(everything=True)
        yield board, hands


def test_hands_that_ended_are_scored_once(board):
    board, hands = board
    board.read(everything=True)
    assert board.finished == 1
    (found,) = board.scores()
    (end,) = [row for row in hands[0] if isinstance(row, GameEndRecord)]
    assert (found["game"], found["hands"], found["ci95"]) == ("pairing", 1, None)
    assert found["mean_score"] == json.loads(end.scores)[0]
    assert score_rows([found])[0][:3] == ("pairing", found["strategy"], "1")


def test_the_interval_of_two_hands_is_as_wide_as_two_hands_make_it(board, settings, tmp_path):
    board, hands = board
    hands.append(hand(3))
    write_rows(settings, tmp_path, hands[2:])
    board.read(everything=True)
    scores = [json.loads(row.scores)[0] for rows in hands for row in rows if isinstance(row, GameEndRecord)]
    (found,) = board.scores()
    assert found["mean_score"] == pytest.approx(statistics.mean(scores)) and len(scores) == 2
    half = 12.7062 * statistics.stdev(scores) / 2**0.5  # Student's t with one degree of freedom
    assert found["ci95"] == pytest.approx([found["mean_score"] - half, found["mean_score"] + half], rel=1e-4)


def test_equal_scores_do_not_say_how_sure_their_mean_is(board, settings, tmp_path):
    board, _ = board
    write_rows(settings, tmp_path, [played_hand(rules.game("pairing"), 1, seat=0, started_us=BEGAN_US + 5 * 10**6)])
    board.read(everything=True)
    (found,) = board.scores()
    assert (found["hands"], found["ci95"], score_rows([found])[0][-1]) == (2, None, "")


def test_the_view_shows_open_tables_with_their_newest_move_first(board):
    board, _hands = board
    (table,) = board.tables.values()
    assert table.names[0] == "ada" and table.moves
    out = io.StringIO()
    Console(file=out, width=200).print(render(board, STATUS, 12.0, "http://127.0.0.1:8770/"))
    text = out.getvalue()
    assert "1 table, 7 decisions (12/s), 1 finished hand" in text and "http://127.0.0.1:8770/" in text
    line = next(line for line in text.splitlines() if ", ".join(table.names) in line)
    assert table.moves[-1] in line
    assert "refused" in text and "\x1b" not in text


def test_a_narrow_terminal_never_cuts_the_game(board):
    board, _hands = board
    (table,) = board.tables.values()
    table.game = "doudizhu"
    table.names = ["a-strategy-with-a-long-name", "another-strategy"]
    out = io.StringIO()
    Console(file=out, width=80).print(render(board, STATUS, 12.0, None))
    (line,) = [line for line in out.getvalue().splitlines() if "a-strat" in line]
    assert line.split()[0] == "doudizhu" and len(line) <= 80
