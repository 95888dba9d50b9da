"""Whole games from outside, move by move: every action legal, the same claims go through, the same fans and scores.

``games.jsonl`` is described in ``README.md`` beside it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bothost import rules
from bothost.rules import mahjong
from bothost.rules.game import State

GAMES = [json.loads(line) for line in (Path(__file__).parent / "games.jsonl").read_text(encoding="utf-8").splitlines()]


def start(record: dict) -> State:
    game = rules.game("mahjong", preset="botzone")
    return game.state_from_deal({"prevalent_wind": record["prevalent_wind"], "wall": record["wall"].split()})


def do(state: State, seat: int, word: str) -> None:
    assert seat in state.to_act, (seat, word, state.events(seat)[-3:])
    state.apply(seat, state.game.parse(word))


def play_round(state: State, text: str) -> None:
    """One decision: of the seat on turn, or of all seats on a discard ("-" where all pass).

    A claim names the discard that follows it if it goes through. Seats that the round does not name pass, and those
    that it names must be asked; where nobody can claim anything, all passed and nobody is asked.
    """
    answers = {int(a[0]): a[2:].split("+") for a in text.split(",")} if text != "-" else {}
    if not claiming(state):
        if answers:
            ((seat, words),) = answers.items()
            do(state, seat, words[0])
        return
    assert set(answers) <= set(state.to_act), text
    for seat in state.to_act:
        do(state, seat, answers.get(seat, ["pass"])[0])
    for seat, (_, *discard) in answers.items():
        if discard and not state.terminal and state.to_act == (seat,) and state.view(seat).phase == "discard":
            do(state, seat, discard[0])


def claiming(state: State) -> bool:
    """Whether seats are asked about a discard or an added kong."""
    return not state.terminal and state.view(state.to_act[0]).phase in ("claims", "robbing")


def test_there_are_all_games() -> None:
    assert [sum(g["source"] == s for g in GAMES) for s in ("judge", "people")] == [28, 16]


@pytest.mark.parametrize("record", GAMES, ids=lambda g: f"{g['source']}-{GAMES.index(g)}")
def test_game_replays_exactly(record: dict) -> None:
    state = start(record)
    for text in record["rounds"].split():
        assert not state.terminal or text == "-"
        play_round(state, text)
    assert state.terminal
    assert list(state.returns) == record["scores"]
    ending = state.events(0)[-2].split()
    if ending[0] == "exhausted":
        assert record["fans"] == {}
        return
    assert ending[4] == mahjong.fan_words(record["fans"])


def test_views_fold_every_game() -> None:
    for record in GAMES[::5]:
        state = start(record)
        for text in record["rounds"].split():
            play_round(state, text)
        for seat in range(4):
            view = state.game.new_view(seat)
            view.observe_all(state.events(seat))
            assert view == state.view(seat)
            deal, actions = view.record() or ({}, [])
            assert state.game.replay(deal, actions).returns == state.returns
