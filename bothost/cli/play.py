"""``bothost play STRATEGY --stdio``: any strategy as a program that speaks the exec protocol, or Botzone's."""

from __future__ import annotations

import enum
import io
import math
import sys
import time
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from bothost import exec_protocol as protocol
from bothost.cli import options
from bothost.errors import ProtocolError, UsageError

if TYPE_CHECKING:
    from bothost.rules import Game
    from bothost.strategy import Player, Strategy


class Dialect(enum.StrEnum):
    """The supported protocols."""

    EXEC = "exec"
    BOTZONE = "botzone"


def command(
    strategy: Annotated[str, typer.Argument(help="Address of the strategy: NAME or NAME:ALIAS.")],
    stdio: Annotated[bool, typer.Option("--stdio", help="Speak on stdin and stdout.")] = False,
    dialect: Annotated[Dialect, typer.Option(help="Protocol to speak.")] = Dialect.EXEC,
    game: Annotated[str | None, typer.Option(help="botzone: its name of the game; default: from the match.")] = None,
    move_ms: Annotated[
        float, typer.Option(min=1.0, callback=options.finite, help="botzone: milliseconds for a decision.")
    ] = 800.0,
    one_shot: Annotated[
        bool, typer.Option("--one-shot", help="botzone: end after one turn; default: keep running.")
    ] = False,
    option: Annotated[list[str] | None, typer.Option("--option", "-o", help="KEY=VALUE (JSON); repeatable.")] = None,
    config_file: options.Config = None,
) -> None:
    """Run any strategy as a program that speaks the exec protocol (docs/reference/exec-protocol.md), or Botzone's
    (docs/reference/adapters/botzone.md).
    """
    if not stdio:
        advice = f"bothost play {strategy} --stdio; to watch bots play: bothost demo"
        raise UsageError("say where it should play", advice=advice)
    resolved = options.plugins(config_file).resolve(strategy, options.nested(option or []))
    out = sys.stdout.buffer
    sys.stdout = sys.stderr  # what a strategy prints must not look like an answer
    if dialect is Dialect.BOTZONE:
        from bothost.cli import play_botzone

        lines = io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8", errors="surrogateescape")
        answers = io.TextIOWrapper(out, encoding="ascii", newline="\n")
        play_botzone.serve(resolved.make(), lines, answers, game=game, move_ms=move_ms, keep_running=not one_shot)
        return
    serve(resolved.make(), sys.stdin.buffer, out, name=resolved.address)


def serve(strategy: Strategy, lines: BinaryIO, out: BinaryIO, *, name: str) -> None:
    """Answer what comes on ``lines`` until it ends. Raises ProtocolError when the host says what it must not."""
    tables: dict[str, tuple[Game, Player]] = {}

    def say(line: bytes) -> None:
        out.write(line)
        out.flush()

    try:
        for line in lines:
            try:
                message = protocol.decode_for_program(line)
            except (ValueError, RecursionError) as error:
                text = line[:200].decode(errors="replace")
                raise ProtocolError(f"the host sent an invalid message: {error}", frame=text) from error
            if isinstance(message, protocol.HostHello):
                hello = protocol.ProgramHello(version=protocol.VERSION, name=name, games=strategy.games)
                say(protocol.encode(hello))
            elif isinstance(message, protocol.Open):
                tables[message.table] = _open(strategy, message)
            elif isinstance(message, protocol.Decide):
                say(_answer(tables, message))
            elif isinstance(message, protocol.Close) and message.table in tables:
                tables.pop(message.table)[1].close()
    finally:
        for _, player in tables.values():
            player.close()
        strategy.close()


def _open(strategy: Strategy, message: protocol.Open) -> tuple[Game, Player]:
    from bothost import rules
    from bothost.strategy import Table

    game = rules.game(message.game, **message.rules)
    table = Table(lobby="exec", table=message.table, game=game, seat=message.seat, seed=message.seed)
    return game, strategy.player(table)


def _answer(tables: dict[str, tuple[Game, Player]], message: protocol.Decide) -> bytes:
    """The action's line, or an error that says what went wrong: the host falls back, and the program lives."""
    from bothost.strategy import Budget

    if message.table not in tables:
        return protocol.encode(protocol.Error(id=message.id, message=f"there is no table {message.table!r}"))
    game, player = tables[message.table]
    try:
        view = game.view_from_json(message.view)
        deadline = math.inf if message.ms is None else time.monotonic() + message.ms / 1000.0
        decision = player.decide(view, view.legal(), Budget(deadline))
        action = protocol.Action(
            id=message.id,
            action=view.notation(decision.action),
            policy=None if decision.policy is None else tuple(map(float, decision.policy)),
            value=None if decision.value is None else float(decision.value),
            stats=None if decision.stats is None else dict(decision.stats),
        )
        return protocol.encode(action)
    except Exception as error:
        return protocol.encode(protocol.Error(id=message.id, message=f"{type(error).__name__}: {error}"))
