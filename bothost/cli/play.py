"""``bothost play STRATEGY --stdio``: any strategy as a program that speaks the exec protocol, or Botzone's."""

from __future__ import annotations

import enum
import io
import math
import sys
import time
from dataclasses import dataclass, field
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


@dataclass
class _OpenTable:
    """A hand that is being played."""

    game: Game
    player: Player
    news: list[str] = field(default_factory=list)
    """Events since the last decision, if the strategy wants them."""


def serve(strategy: Strategy, lines: BinaryIO, out: BinaryIO, *, name: str) -> None:
    """Answer what comes on ``lines`` until it ends. Raises ProtocolError when the host says what it must not."""
    tables: dict[str, _OpenTable | str] = {}
    """Table, or why it cannot be played."""

    def say(line: protocol.Line) -> None:
        out.write(protocol.encode(line))
        out.flush()

    try:
        for line in lines:
            try:
                message = protocol.decode_for_program(line)
            except (ValueError, RecursionError) as error:
                text = line[:200].decode(errors="replace")
                raise ProtocolError(f"the host sent an invalid message: {error}", frame=text) from error
            if isinstance(message, protocol.HostHello):
                say(protocol.ProgramHello(version=protocol.VERSION, name=name, games=strategy.games))
                continue
            table = tables.get(message.table, f"there is no table {message.table!r}")
            if isinstance(message, protocol.Open):
                tables[message.table] = _open(strategy, message)
            elif isinstance(message, protocol.Decide):
                try:
                    say(_answer(table, message))
                except Exception as error:  # the host falls back, and the program lives
                    say(protocol.Error(id=message.id, message=f"{type(error).__name__}: {error}"))
            elif isinstance(message, protocol.Close):
                tables.pop(message.table, None)
                if isinstance(table, _OpenTable):
                    table.player.close()
            elif isinstance(table, _OpenTable) and strategy.wants_events:
                table.news.append(message.event)
    finally:
        for table in tables.values():
            if isinstance(table, _OpenTable):
                table.player.close()
        strategy.close()


def _open(strategy: Strategy, message: protocol.Open) -> _OpenTable | str:
    from bothost import rules
    from bothost.strategy import Table

    try:
        game = rules.game(message.game, **message.rules)
        table = Table(lobby="exec", table=message.table, game=game, seat=message.seat, seed=message.seed)
        return _OpenTable(game, strategy.player(table))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _answer(table: _OpenTable | str, message: protocol.Decide) -> protocol.Action | protocol.Error:
    from bothost.strategy import Budget

    if isinstance(table, str):
        return protocol.Error(id=message.id, message=table)
    if table.news:
        news, table.news = table.news, []
        table.player.observe(news)
    view = table.game.view_from_json(message.view)
    offered, legal = {view.parse(word) for word in message.legal}, view.legal()
    legal = legal[[int(action) in offered for action in legal]]  # without those that the lobby has refused
    deadline = math.inf if message.ms is None else time.monotonic() + message.ms / 1000.0
    decision = table.player.decide(view, legal, Budget(deadline))
    return protocol.Action(
        id=message.id,
        action=view.notation(decision.action),
        policy=None if decision.policy is None else tuple(map(float, decision.policy)),
        value=None if decision.value is None else float(decision.value),
        stats=None if decision.stats is None else dict(decision.stats),
    )
