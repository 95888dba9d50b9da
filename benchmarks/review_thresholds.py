"""What reviews say of strong and of weak players: the table of docs/reference/reviews.md.

python benchmarks/review_thresholds.py pairing phase-ppo phase-ppo:level-4 phase-ppo:level-1
python benchmarks/review_thresholds.py mahjong mahjong-ppo mahjong-ppo:level-4 mahjong-ppo:level-1
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

from bothost import rules
from bothost.plugins import Plugins
from bothost.rules.game import Game
from bothost.strategy import Budget, Strategy, Table
from bothost.web.review import DECISION_S, SEVERITIES, limits_of, reviewing, severity, value_lost

Lost = tuple[str, str, float]
"""Player, measure, loss."""


def judged(
    game: Game, seed: int, seats: list[str], strategies: dict[str, Strategy], reviewer: Strategy
) -> Iterator[Lost]:
    """Play one hand; give the loss of each decision that had a choice."""
    state = game.new_state(seed)
    tables = [Table(lobby="calibration", table="1", game=game, seat=seat, seed=seed) for seat in range(game.num_seats)]
    players = [strategies[name].player(table) for name, table in zip(seats, tables, strict=True)]
    judges = [reviewer.player(table) for table in tables]
    while not state.terminal:
        seat = state.to_act[0]
        view, legal = state.view(seat), state.legal(seat)
        action = int(legal[0])
        if len(legal) > 1:
            budget = Budget(time.monotonic() + DECISION_S)
            action = int(players[seat].decide(view.clone(), legal, budget).action)
            opinion = judges[seat].decide(view, legal, Budget(time.monotonic() + DECISION_S))
            measure, lost = value_lost(opinion, legal, action)
            if measure is not None and lost is not None:
                yield seats[seat], measure, lost
        state.apply(seat, action)
    for player in players + judges:
        player.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("game", "reviewer", "strong", "weak"):
        parser.add_argument(name)
    parser.add_argument("--hands", type=int, default=100)
    chosen = parser.parse_args()
    plugins, game = Plugins.load(), rules.game(chosen.game)
    addresses = {chosen.strong, chosen.weak}
    strategies = {address: plugins.resolve(address).make() for address in addresses}
    reviewer = reviewing(plugins, chosen.reviewer).make()
    found: list[Lost] = []
    for seed in range(chosen.hands):
        seats = [(chosen.strong, chosen.weak)[(seat + seed) % 2] for seat in range(game.num_seats)]
        found += judged(game, seed, seats, strategies, reviewer)
    for player in (chosen.strong, chosen.weak):
        own = [severity(lost, limits_of(chosen.game, measure)) for name, measure, lost in found if name == player]
        shares = ", ".join(f"{name} {100 * own.count(name) / len(own):.1f} %" for name in SEVERITIES)
        print(f"{player}: {len(own)} decisions, {shares}")


if __name__ == "__main__":
    main()
