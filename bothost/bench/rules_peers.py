"""The work of the rules benchmark in other packages, if they are installed (extra ``dev``)."""

from __future__ import annotations

import importlib
import random
import warnings
from collections.abc import Callable
from typing import Any

from bothost.rules.mahjong import TILES, CountArray

Rate = Callable[[Callable[[], int]], float]


def bench_peers(
    rate: Rate, hands: CountArray, wins: tuple[CountArray, CountArray, CountArray]
) -> dict[str, dict[str, float]]:
    """Figures by package; a package that is not installed is left out."""
    report: dict[str, dict[str, float]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if pyspiel := _installed("pyspiel"):
            report["open_spiel"] = _open_spiel(pyspiel, rate)
        if _installed("rlcard"):
            report["rlcard"] = _rlcard(rate)
        if mahjong_gb := _installed("MahjongGB"):
            report["pymahjonggb"] = _mahjong_gb(mahjong_gb, rate, hands, wins)
    return report


def _installed(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        return None


def _open_spiel(pyspiel: Any, rate: Rate) -> dict[str, float]:
    rng = random.Random(1)

    def moves_of(name: str) -> Callable[[], int]:
        game = pyspiel.load_game(name)

        def play() -> int:
            state, moves = game.new_initial_state(), 0
            while not state.is_terminal():
                chance = state.is_chance_node()
                state.apply_action(rng.choice(state.legal_actions()))
                moves += not chance
            return moves

        return play

    # After the deal and the calls the landlord leads with 20 cards.
    leads = []
    game = pyspiel.load_game("dou_dizhu")
    for _ in range(20):
        state = game.new_initial_state()
        while state.is_chance_node():
            state.apply_action(rng.choice(state.legal_actions()))
        state.apply_action(max(state.legal_actions()))  # the highest call settles it
        while state.is_chance_node():
            state.apply_action(rng.choice(state.legal_actions()))
        leads.append(state)

    def lead() -> int:
        for state in leads:
            state.legal_actions()
        return len(leads)

    return {
        "doudizhu_moves_per_s": rate(moves_of("dou_dizhu")),
        "doudizhu_legal_moves_20_per_s": rate(lead),
        "othello_moves_per_s": rate(moves_of("othello")),
    }


def _rlcard(rate: Rate) -> dict[str, float]:
    rng = random.Random(1)
    doudizhu = importlib.import_module("rlcard.games.doudizhu")
    judger = importlib.import_module("rlcard.games.doudizhu.judger").DoudizhuJudger
    deck = "33334444555566667777888899990000JJJJQQQQKKKKAAAA2222BR".replace("0", "T")
    hands = ["".join(sorted(rng.sample(deck, 20), key=deck.index)) for _ in range(10)]

    def play() -> int:
        game, moves = doudizhu.Game(), 0
        state, _ = game.init_game()
        while not game.is_over():
            state, _ = game.step(rng.choice(state["actions"]))
            moves += 1
        return moves

    def lead() -> int:
        for hand in hands:
            judger.playable_cards_from_hand(hand)
        return len(hands)

    return {"doudizhu_moves_per_s": rate(play), "doudizhu_legal_moves_20_per_s": rate(lead)}


def _mahjong_gb(
    mahjong_gb: Any, rate: Rate, hands: CountArray, wins: tuple[CountArray, CountArray, CountArray]
) -> dict[str, float]:
    words = [tuple(TILES[t] for t in range(34) for _ in range(hand[t])) for hand in hands]
    # It takes 13 standing tiles and the winning one apart.
    asked = []
    for standing, win in zip(wins[0], wins[2], strict=True):
        rest = [TILES[t] for t in range(34) for _ in range(standing[t])]
        rest.remove(TILES[win[0]])
        asked.append(((), tuple(rest), TILES[win[0]], 0, bool(win[1]), False, False, False, 0, 0))

    def shanten() -> int:
        for hand in words:
            mahjong_gb.MahjongShanten((), hand[:13])
        return len(words)

    def fans() -> int:
        for arguments in asked:
            mahjong_gb.MahjongFanCalculator(*arguments)
        return len(asked)

    return {"shanten_per_s": rate(shanten), "fan_per_s": rate(fans)}
