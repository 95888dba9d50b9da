"""``bothost play STRATEGY --stdio --dialect botzone``: any strategy as a Botzone program."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from bothost.errors import UsageError

if TYPE_CHECKING:
    from bothost.lobbies.botzone.dialect import Dialect
    from bothost.lobbies.botzone.program import Program
    from bothost.rules import View
    from bothost.strategy import Budget, Player, Strategy


def serve(
    strategy: Strategy, lines: TextIO, out: TextIO, *, game: str | None, move_ms: float, keep_running: bool
) -> None:
    """Play one match: until the input ends, or, where the program does not keep running, one turn of it.

    If a request cannot be understood or decided, the answer is what is most likely to be legal, and the problem goes to
    stderr: a program that ends loses its match.
    """
    from bothost.lobbies.botzone.dialect import Mismatch
    from bothost.lobbies.botzone.program import KEEP_RUNNING, Program

    program = Program(_kind(game))
    seat = _Seat(strategy, move_ms)
    try:
        while True:
            try:
                if not program.read_turn(lines.readline):
                    return
                text = seat.answer(program)
            except Mismatch as error:
                print(f"not understood: {error}", file=sys.stderr)
                text = program.blind()
            out.write(f"{text}\n{KEEP_RUNNING}\n" if keep_running else f"{text}\n")
            out.flush()
            if not keep_running:
                return
    finally:
        seat.close()
        strategy.close()


def _kind(game: str | None) -> type[Dialect] | None:
    from bothost.config import nearest
    from bothost.lobbies.botzone.games import GAMES

    if game is not None and game not in GAMES:
        raise UsageError(f"Botzone's game {game!r} is not played here", advice=nearest(game, list(GAMES)))
    return GAMES[game] if game is not None else None


class _Seat:
    """The strategy's player in the match, made when the game is known."""

    def __init__(self, strategy: Strategy, move_ms: float) -> None:
        self._strategy = strategy
        self._move_s = move_ms / 1000.0
        self._player: Player | None = None

    def answer(self, program: Program) -> str:
        """This turn's output. Raises Mismatch, and UsageError where the strategy does not play the game."""
        from bothost.strategy import Budget

        began = time.monotonic()
        view = program.dialect.view
        if view is None or not view.asked:
            if program.dialect.always_asked:
                return program.blind()
            return program.output(None)
        budget = Budget(began + self._move_s)
        try:
            return program.output(_actions(view, lambda view: self._choose(view, budget)))
        except UsageError:
            raise
        except Exception as error:
            print(f"{self._strategy.name} failed: {type(error).__name__}: {error}", file=sys.stderr)
            return program.output(_actions(view, lambda view: int(view.legal()[0])))

    def _choose(self, view: View, budget: Budget) -> int:
        decision = self._player_for(view).decide(view, view.legal(), budget)
        if not view.is_legal(decision.action):
            raise ValueError(f"action {decision.action} is not legal")
        return decision.action

    def _player_for(self, view: View) -> Player:
        from bothost.strategy import Table

        if self._player is None:
            if not self._strategy.supports(view.game):
                games = ", ".join(self._strategy.games)
                advice = f"it plays {games}: choose another strategy"
                raise UsageError(f"{self._strategy.name} does not play {view.game.name} by these rules", advice=advice)
            table = Table(lobby="botzone", table="stdio", game=view.game, seat=view.seat, seed=time.time_ns() % 2**31)
            self._player = self._strategy.player(table)
        return self._player

    def close(self) -> None:
        if self._player is not None:
            self._player.close()


def _actions(view: View, choose: Callable[[View], int]) -> list[str]:
    """One action, or a claim with the discard that follows it."""
    actions = []
    while view.asked:
        action = choose(view)
        actions.append(view.notation(action))
        view = view.clone()
        view.apply(action)
    return actions
