"""Botzone's games as its judges speak them: real games, every trap of the dialects by name, and whole matches."""

import gzip
import json
import os
import random
from pathlib import Path

import msgspec
import pytest

from bothost.lobbies.botzone import dialect as dialects
from bothost.lobbies.botzone.dialect import Mismatch
from bothost.lobbies.botzone.doudizhu import NUMBERING, FightTheLandlord, FightTheLandlord2, bids_that_fit
from bothost.lobbies.botzone.games import GAMES, of_request, of_wish
from bothost.lobbies.botzone.mahjong import Mahjong
from bothost.lobbies.botzone.options import BotzoneAttributes
from bothost.lobbies.botzone.program import Program
from bothost.lobbies.botzone.reversi import Reversi
from bothost.testing.fake_botzone.judges import JUDGES, FlowerJudge, read, written

REAL = Path(__file__).parent / "data" / "mahjong.jsonl"
"""Three games that the public judge of Botzone ran: every request to and answer from each of the four seats."""
MANY = "BOTHOST_BOTZONE_GAMES"
"""Names a file of more such games, as a judge logs them: JSON lines, gzipped."""


def test_a_wish_may_name_every_game():
    assert [msgspec.convert({"botzone": name}, BotzoneAttributes).botzone for name in GAMES] == list(GAMES)


# ------------------------------------------------------------------------------------------------------- real games


def words(dialect, answer):
    """A logged answer as the actions that it stands for."""
    kind, *tiles = answer.split()
    if dialect.view.phase == "turn":
        return ["hu"] if kind == "HU" else [f"{ {'GANG': 'angang'}.get(kind, kind.lower()) }:{tiles[0]}"]
    claim = {"PASS": "pass", "HU": "hu", "CHI": f"chi:{tiles[0] if tiles else ''}"}.get(kind)
    last = dialect.view.to_json()["last_tile"]
    return [claim or f"{kind.lower()}:{last}", *([f"play:{tiles[-1]}"] if kind in ("CHI", "PENG") else [])]


def replay(requests, answers, scores):
    """Each request folds into a view in which the logged answer is legal, and is said as it was logged."""
    seats = [Mahjong({}) for _ in range(4)]
    said = [None] * 4
    decisions = 0
    for asked, answered in zip(requests, answers, strict=True):
        for seat, dialect in enumerate(seats):
            dialect.take(dialects.decode(asked[seat])[0], said[seat])
            said[seat] = answered[seat]
            if not dialect.asked:
                assert answered[seat] == dialect.acknowledgement()
                continue
            decisions += 1
            view = dialect.view.clone()
            actions = words(dialect, answered[seat])
            for action in actions:
                assert view.is_legal(view.parse(action)), (action, answered[seat])
                view.apply(view.parse(action))
            assert dialect.respond(actions) == answered[seat]
    for dialect, answer in zip(seats, said, strict=True):
        dialect.ended(answer, scores)
    winner = scores.index(max(scores))
    drew = sum(score == -min(scores) for score in scores) == 0 and len(set(scores)) == 2
    assert seats[winner].view.terminal
    assert drew or all(dialect.view.terminal for dialect in seats)
    return decisions


def test_real_games_of_the_judge_replay():
    games = [json.loads(line) for line in REAL.read_text().splitlines()]
    assert sum(replay(**game) for game in games) > 200


@pytest.mark.long
def test_many_real_games_of_the_judge_replay():
    if MANY not in os.environ:
        pytest.skip(f"${MANY} names no file of logged games")
    decisions = 0
    with gzip.open(os.environ[MANY], "rt") as lines:
        for game in map(json.loads, lines):
            requests = [step["content"] for step in game["steps"] if step.get("judge") == "request"]
            answers = [step["answers"] for step in game["steps"] if "answers" in step]
            decisions += replay(requests, answers, game["result"].get("score") or [0, 0, 0, 0])
    assert decisions > 1000


# -------------------------------------------------------------------------------------------- against whole matches


def decide(rng, view):
    """Random actions up to the end of what is asked."""
    actions = []
    while view.asked:
        action = int(rng.choice(list(view.legal())))
        actions.append(view.notation(action))
        view = view.clone()
        view.apply(action)
    return actions


@pytest.mark.parametrize("kind", [*JUDGES, "flowers"])
def test_the_view_is_what_the_seat_knows(kind):
    """At every decision the folded view asks what the judge asks, and allows what the judge allows."""
    make = FlowerJudge if kind == "flowers" else JUDGES[kind]
    for seed in range(8 if make.players == 4 else 30):
        rng = random.Random(seed)
        judge = make(seed % make.players, seed, rng)
        dialect, said = of_request(judge.request)({"flowers": True} if kind == "flowers" else {}), None
        while judge.request is not None:
            told = dialect.take(judge.request, said)
            if dialect.asked:
                truth = judge.state.view(judge.me)
                assert list(dialect.view.legal()) == list(truth.legal())
                if not told.anew and dialect.view.to_json().get("complete", kind != "flowers"):
                    assert dialect.view == truth
                said = dialect.respond(decide(rng, dialect.view))
            else:
                said = dialect.acknowledgement()
            judge.answer(said)


# ------------------------------------------------------------------------------------------------- traps, by name


def test_doudizhu_landlord_is_seat_0_with_20_cards():
    dialect = FightTheLandlord({})
    dialect.take({"own": list(range(20)), "history": [[], []], "publiccard": [1, 3, 6]}, None)
    assert (dialect.seat, dialect.asked) == (0, True)
    assert dialect.view.to_json()["bottom"] == "334"
    assert dialect.view.to_json()["counts"] == [20, 17, 17]


def test_doudizhu_first_request_tells_the_plays_before_it():
    own = list(range(20, 37))
    first = FightTheLandlord({})
    told = first.take({"own": own, "history": [[], [0]], "publiccard": [1, 3, 6]}, None)
    assert (first.seat, told.events[-1]) == (1, "play 0 3")
    second = FightTheLandlord({})
    told = second.take({"own": own, "history": [[0], []], "publiccard": [1, 3, 6]}, None)
    assert (second.seat, told.events[-2:]) == (2, ["play 0 3", "pass 1"])


def test_doudizhu_history_is_the_last_two_plays():
    dialect = FightTheLandlord({})
    dialect.take({"own": list(range(20)), "history": [[], []], "publiccard": [1, 3, 6]}, None)
    told = dialect.take({"history": [[20], []]}, dialect.respond(["3"]))
    assert told.events == ["play 0 3", "play 1 8", "pass 2"]


def test_doudizhu_an_empty_list_passes():
    dialect = FightTheLandlord({})
    dialect.take({"own": list(range(17)), "history": [[], [20]], "publiccard": [50, 51, 52]}, None)
    assert dialect.respond(["pass"]) == []


def test_bidding_is_higher_than_earlier_bids():
    dialect = FightTheLandlord2({})
    dialect.take({"own": list(range(17)), "bid": [1]}, None)
    assert [dialect.view.notation(int(a)) for a in dialect.view.legal()] == ["bid0", "bid2", "bid3"]
    assert (dialect.seat, dialect.respond(["bid2"]), dialect.respond(["bid0"])) == (1, 2, 0)


def test_the_landlords_own_lacks_the_public_cards():
    dialect = FightTheLandlord2({})
    dialect.take({"own": list(range(17)), "bid": [0]}, None)
    play = {"history": [[], []], "own": list(range(17)), "publiccard": [50, 51, 52]}
    dialect.take({**play, "landlord": 1, "pos": 1, "finalbid": 3}, 3)
    view = dialect.view.to_json()
    assert (view["hand"], view["counts"], view["stake"]) == ("3333444455556666722B", [17, 20, 17], 3)
    assert set(dialect.respond(["22"])) == {50, 51}


def test_cards_that_are_not_those_of_the_deal_are_a_mismatch():
    dialect = FightTheLandlord2({})
    dialect.take({"own": list(range(17)), "bid": [0]}, None)
    play = {"history": [[], []], "own": list(range(1, 18)), "publiccard": [50, 51, 52]}
    with pytest.raises(Mismatch):
        dialect.take({**play, "landlord": 1, "pos": 1, "finalbid": 3}, 3)


def test_bids_that_nobody_tells():
    """Seat 0 bids; of the others only the winner and its bid are known."""
    assert bids_that_fit({0: 1}, 1, 2) == (1, 2, 0)
    assert bids_that_fit({0: 0}, 2, 3) is None
    assert bids_that_fit({0: 0, 1: 0, 2: 0}, 0, 0) == (0, 0, 0)
    assert bids_that_fit({}, 0, 3, unasked=1) == (3,)


def test_a_position_whose_bidding_is_not_known():
    dialect = FightTheLandlord2({})
    dialect.take({"own": list(range(17)), "bid": []}, None)
    play = {"history": [[], [20]], "own": list(range(17)), "publiccard": [50, 51, 52]}
    told = dialect.take({**play, "landlord": 2, "pos": 0, "finalbid": 3}, 0)
    assert told.anew and dialect.asked
    view = dialect.view.to_json()
    assert (view["complete"], view["history"], view["stake"], view["turn"]) == (False, [[2, "8"]], 3, 0)


def test_mahjong_a_claim_counts_only_when_it_is_broadcast():
    dialect = dealt("W1 W1 W4 W5 T1 T2 T3 B1 B2 B3 F1 F2 J1")
    dialect.take("3 3 DRAW", "PASS")
    dialect.take("3 3 PLAY W6", "PASS")
    said = dialect.respond(["chi:W5", "play:F1"])
    assert said == "CHI W5 F1"
    beaten = dialect.clone()
    told = beaten.take("3 1 PENG B9", said)
    assert told.events == ["answer 0 chi:W5", "peng 1 W6", "play 1 B9"]
    assert beaten.view.to_json()["melds"][0] == [], "another seat's claim goes before ours"
    told = dialect.take("3 0 CHI W5 F1", said)
    assert told.events == ["answer 0 chi:W5", "chi 0 W5", "play 0 F1"]


def dealt(tiles, seat=0):
    """A seat that was dealt these tiles, after seat 0 has drawn and discarded up to the turn of seat 3."""
    dialect = Mahjong({})
    dialect.take(f"0 {seat} 2", None)
    dialect.take(f"1 0 0 0 0 {tiles}", "PASS")
    dialect.take("2 F4", "PASS")
    dialect.take("3 0 PLAY F4", "PLAY F4")
    for other in (1, 2):
        dialect.take(f"3 {other} DRAW", "PASS")
        dialect.take(f"3 {other} PLAY J3", "PASS")
    return dialect


def test_mahjong_gang_means_two_things():
    """After the seat's own draw it is concealed and names no tile; after a discard it claims it."""
    dialect = dealt("W1 W1 W4 W5 T1 T2 T3 B1 B2 B3 F1 F2 J1")
    dialect.take("3 3 DRAW", "PASS")
    assert dialect.clone().take("3 3 GANG", "PASS").events == ["angang 3"]
    dialect.take("3 3 PLAY B9", "PASS")
    assert dialect.take("3 1 GANG", "PASS").events == ["gang 1 B9"]


def test_mahjong_flowers_of_the_deal_and_of_the_wall():
    dialect = Mahjong({})
    dialect.take("0 0 0", None)
    told = dialect.take("1 1 0 2 0 W1 W1 W4 W5 T1 T2 T3 B1 B2 B3 F1 F2 J1 H3 H1 H8", "PASS")
    assert told.events[1:] == ["flower 0 H3", "draw 0 J1", "flower 2 H1", "draw 2", "flower 2 H8", "draw 2"]
    assert dialect.take("3 0 BUHUA H2", "PASS").events == ["draw 0 H2", "flower 0 H2"]
    assert dialect.take("2 W9", "PASS").events == ["draw 0 W9"]
    assert dialect.view.to_json()["flowers"] == [2, 0, 2, 0]


def test_reversi_black_is_asked_with_minus_1_first():
    black, white = Reversi({}), Reversi({})
    black.take({"x": -1, "y": -1}, None)
    white.take({"x": 2, "y": 3}, None)
    assert (black.seat, white.seat) == (0, 1)
    assert white.view.to_json()["board"][3 * 8 + 2] == "X"
    assert black.respond(["c4"]) == {"x": 2, "y": 3}


def test_reversi_a_pass_is_minus_1_and_never_said_with_a_legal_move():
    dialect = Reversi({})
    dialect.take({"x": -1, "y": -1}, None)
    assert "pass" not in [dialect.view.notation(int(a)) for a in dialect.view.legal()]
    assert dialect.respond(["pass"]) == {"x": -1, "y": -1}
    with pytest.raises(Mismatch):
        dialect.take({"x": -1, "y": -1}, {"x": 2, "y": 3})  # the opponent could move


def test_the_response_has_the_form_of_its_request():
    assert dialects.decode('"0 1 2"') == ("0 1 2", "quoted")
    assert dialects.encode("PASS", "quoted") == '"PASS"'
    assert dialects.decode("-1 -1") == ("-1 -1", "plain")
    assert dialects.encode({"x": 2, "y": 3}, "plain") == "2 3"
    assert dialects.encode([1, 2], "json") == "[1,2]"
    assert dialects.decode('{"x":-1,"y":-1}') == ({"x": -1, "y": -1}, "json")


def test_the_first_request_says_which_game_it_is():
    assert of_request({"x": -1, "y": -1}) is of_request("-1 -1") is Reversi
    assert of_request("0 3 1") is Mahjong
    assert of_request({"own": [], "bid": []}) is FightTheLandlord2
    assert of_request({"own": [], "history": [[], []]}) is FightTheLandlord
    with pytest.raises(Mismatch):
        of_request("2 W3")
    assert of_wish("doudizhu", {"preset": "botzone-bid"}) is FightTheLandlord2
    assert of_wish("doudizhu", {}, "Reversi") is None


@pytest.mark.parametrize(
    "request_",
    [None, [], "", "9 9 9", "3 1 PLAY", "3 7 DRAW", "2 X9", {"x": 99, "y": 0}, {"x": "a"}, {"own": [99]},
     {"history": 3}, {"own": [0] * 20, "history": [[], []], "publiccard": [0, 1, 2]}, {"bid": [9], "own": []}],
)  # fmt: skip
def test_hostile_requests_are_mismatches(request_):
    for kind in (Reversi, Mahjong, FightTheLandlord, FightTheLandlord2):
        dialect = kind({})
        with pytest.raises(Mismatch):
            dialect.take(request_, None)
        dialect.blind(request_)


def test_cards_are_four_suits_of_each_rank():
    assert NUMBERING.text([0, 3, 4, 48, 51, 52, 53]) == "33422BR"


# ------------------------------------------------------------------------------------------------------- programs


class Pipe:
    """Lines for a program to read."""

    def __init__(self):
        self.lines = []

    def readline(self):
        return self.lines.pop(0) + "\n" if self.lines else ""


@pytest.mark.parametrize("keep_running", [True, False])
@pytest.mark.parametrize("simple", [True, False])
@pytest.mark.parametrize("kind", [*JUDGES, "flowers"])
def test_a_program_plays_a_match(kind, simple, keep_running):
    """JSON and simple IO, kept running or started anew for every turn with the whole match so far."""
    make = FlowerJudge if kind == "flowers" else JUDGES[kind]
    rng = random.Random(3)
    judge = make(1, 5, rng)
    pipe, program = Pipe(), Program()
    requests, responses, turns = [], [], 0
    while judge.request is not None:
        turns += 1
        request = written(judge.request, simple)
        requests.append(request)
        if keep_running and turns > 1:
            pipe.lines = [request]
        elif simple:
            history = [line for pair in zip(requests, [*responses, ""], strict=True) for line in pair][:-1]
            pipe.lines = [str(len(requests)), *history, "", ""]
        else:
            said = ", ".join(responses)
            pipe.lines = [f'{{"requests": [{", ".join(requests)}], "responses": [{said}], "data": ""}}']
        program = program if keep_running else Program()
        assert program.read_turn(pipe.readline)
        view = program.dialect.view
        output = program.output(decide(rng, view) if program.dialect.asked else None, "why")
        if simple:
            text = output
        else:
            told = json.loads(output)
            assert told["debug"] == "why"
            text = json.dumps(told["response"])
        responses.append(text)
        judge.answer(read(text, judge.request, simple))
    assert turns > 3 and len(judge.scores) == judge.players


def test_a_program_whose_input_ends_is_done():
    assert not Program().read_turn(Pipe().readline)
    with pytest.raises(Mismatch):
        pipe = Pipe()
        pipe.lines = ["what?"]
        Program().read_turn(pipe.readline)
