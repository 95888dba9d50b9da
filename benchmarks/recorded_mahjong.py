"""How often strategies play as recorded players of mahjong did.

``python benchmarks/recorded_mahjong.py tests/rules/mahjong/games.jsonl mahjong-ppo rule-mahjong``

The file is described in ``tests/rules/mahjong/README.md``; its games of bots count. Prints JSON: of every strategy the
share of equal choices, with half of its 95 % interval over games, among discards and among answers to a discard. Also
how often it claims where the recorded player passed. Decisions with one legal action, and wins, do not count.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bothost import Budget, Table
from bothost.plugins import Plugins
from bothost.rules import State, View, game

PASS, WIN = 0, 1
FOREVER = Budget(deadline=float("inf"))


class Recorded(NamedTuple):
    """A decision, and what the player did."""

    game: int
    view: View
    action: int


def rounds(state: State, text: str) -> Iterator[tuple[int, int]]:
    """The decisions of one round: seats and actions, in the order of their application."""
    answers = {int(part[0]): part[2:].split("+") for part in text.split(",")} if text != "-" else {}
    asked = () if state.terminal else state.to_act
    if len(asked) == 1 and state.view(asked[0]).phase not in ("claims", "robbing"):
        if answers:
            yield asked[0], state.game.parse(answers[asked[0]][0])
        return
    for seat in asked:
        yield seat, state.game.parse(answers.get(seat, ["pass"])[0])
    for seat, (_, *discard) in answers.items():
        if discard and not state.terminal and state.to_act == (seat,) and state.view(seat).phase == "discard":
            yield seat, state.game.parse(discard[0])


def decisions(path: Path) -> Iterator[Recorded]:
    """All choices of the bots' games."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
        record = json.loads(line)
        if record["source"] != "judge":
            continue
        rules = game("mahjong", preset="botzone")
        state = rules.state_from_deal({"prevalent_wind": record["prevalent_wind"], "wall": record["wall"].split()})
        for text in record["rounds"].split():
            for seat, action in rounds(state, text):
                legal = state.legal(seat)
                if len(legal) > 1 and WIN not in legal:
                    yield Recorded(number, state.view(seat), action)
                state.apply(seat, action)


def share(hits: Sequence[bool], games: Sequence[int]) -> list[float]:
    """Percentage of hits, half of its 95 % interval over games, and their number."""
    values = np.array(hits, np.float64)
    sums = np.bincount(games, values - values.mean())
    half = 1.96 * float(np.sqrt(np.square(sums).sum())) / len(values)
    return [round(100 * float(values.mean()), 1), round(100 * half, 1), len(values)]


def main(path: Path, addresses: Sequence[str]) -> dict[str, object]:
    """Figures by strategy."""
    said = list(decisions(path))
    plugins, figures = Plugins.load(), {}
    for address in addresses:
        strategy = plugins.resolve(address).make()
        chosen = []
        for one in said:
            table = Table(lobby="recorded", table="t", game=one.view.game, seat=one.view.seat, seed=1)
            chosen.append(strategy.player(table).decide(one.view, one.view.legal(), FOREVER).action)
        pairs = list(zip(said, chosen, strict=True))
        own = [(one, action) for one, action in pairs if PASS not in one.view.legal()]
        answers = [(one, action) for one, action in pairs if PASS in one.view.legal()]
        passed = [(one, action) for one, action in answers if one.action == PASS]
        figures[address] = {
            "all": share([a == one.action for one, a in pairs], [one.game for one, _ in pairs]),
            "discards": share([a == one.action for one, a in own], [one.game for one, _ in own]),
            "answers": share([a == one.action for one, a in answers], [one.game for one, _ in answers]),
            "claims_where_it_passed": share([a != PASS for _, a in passed], [one.game for one, _ in passed]),
        }
        strategy.close()
    return figures


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("strategies", nargs="+")
    given = parser.parse_args()
    print(json.dumps(main(given.file, given.strategies), indent=1))
