"""``bothost play STRATEGY --stdio --dialect botzone``, and ``bothost lobby`` at a fake of Botzone."""

import asyncio
import io
import json

import pytest

from bothost.cli import lobby as lobby_command
from bothost.cli.play_botzone import serve
from bothost.errors import UsageError
from bothost.lobbies.base import Account
from bothost.lobbies.botzone import Botzone, BotzoneOptions
from bothost.lobbies.botzone.program import KEEP_RUNNING
from bothost.strategy import Player
from bothost.testing.fake_botzone import FakeBotzone
from bothost.testing.hosting import RandomStrategy

BLACK = '{"requests":[{"x":-1,"y":-1}],"responses":[]}\n'


class Failing(RandomStrategy):
    name = "test-failing"

    def player(self, table):
        return FailingPlayer()


class FailingPlayer(Player):
    def decide(self, view, legal, budget):
        raise RuntimeError("no idea")


class Reversi(RandomStrategy):
    games = ("othello",)


def said(text, strategy=RandomStrategy, game=None, keep_running=True):
    out = io.StringIO()
    serve(strategy(None), io.StringIO(text), out, game=game, move_ms=500.0, keep_running=keep_running)
    return out.getvalue().splitlines()


def test_a_program_that_keeps_running_is_told_requests_alone():
    lines = said(BLACK + '{"x":-1,"y":-1}\n')
    assert lines[1] == lines[3] == KEEP_RUNNING
    assert set(json.loads(lines[0])["response"]) == {"x", "y"}


def test_a_one_shot_program_ends_after_its_turn():
    lines = said(BLACK + BLACK, keep_running=False)
    assert len(lines) == 1 and json.loads(lines[0])["response"]["x"] >= 0


def test_simple_io_is_known_by_its_first_line():
    assert said("1\n0 1 2\n", keep_running=False) == ["PASS"]
    (move,) = said("1\n-1 -1\n", keep_running=False)
    assert len(move.split()) == 2


def test_what_is_not_asked_is_passed_without_the_strategy():
    deal = "1 0 0 0 0 W1 W1 W4 W5 T1 T2 T3 B1 B2 B3 F1 F2 J1"
    lines = said(f"1\n0 1 2\n{deal}\n3 0 DRAW\n", Failing)
    assert lines[::2] == ["PASS"] * 3


def test_a_strategy_that_fails_costs_its_move_and_not_the_match(capsys):
    lines = said(BLACK, Failing)
    assert json.loads(lines[0])["response"] == {"x": 3, "y": 2}
    assert "no idea" in capsys.readouterr().err


def test_what_is_not_understood_is_answered_all_the_same(capsys):
    lines = said(BLACK + '{"x":0,"y":0}\n')
    assert json.loads(lines[2])["response"] == {"x": -1, "y": -1}
    assert "not understood" in capsys.readouterr().err


DEAL = json.dumps({"own": [*range(20)], "history": [[], []], "publiccard": [0, 1, 2]})


@pytest.mark.parametrize(
    "hostile",
    ["9" * 5000, "[" * 5000, '{"requests":[1,2],"responses":5}', *(
        f"2\n{DEAL}\n{response}\n{DEAL}" for response in ("[", "[" * 5000, "²", "9" * 5000, "\udcff", "[[]]", '["a"]')
    )],
)  # fmt: skip
def test_what_is_no_input_is_answered_all_the_same(hostile, capsys):
    assert len(said(f"{hostile}\n")) == 2
    assert "not understood" in capsys.readouterr().err


def test_a_strategy_that_does_not_play_the_game_is_an_error():
    with pytest.raises(UsageError, match="does not play mahjong"):
        said("1\n0 0 2\n1 0 0 0 0 W1 W1 W4 W5 T1 T2 T3 B1 B2 B3 F1 F2 J1\n2 J2\n", Reversi)
    with pytest.raises(UsageError, match="Gomoku"):
        said(BLACK, game="Gomoku")


async def test_lobby_check_says_what_works_without_playing():
    async with FakeBotzone() as lobby:
        token = lobby.add("ada")
        match = lobby.begin("ada", "Reversi")
        account = Account(name="ada", url=lobby.url, token=token)
        report = await lobby_command.try_lobby(Botzone(account, BotzoneOptions(hello_s=0.2)), 60.0)
        await asyncio.sleep(0.1)
    assert report == {"connect": True, "log in": True, "player": "ada", "list tables": True, "ping": True}
    assert match.answers == 0 and lobby.answers == []
