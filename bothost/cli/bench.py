"""``bothost bench NAME``: the figures of the README, measured on this machine.

A benchmark is one module of ``bothost.bench`` with a function ``command``, whose parameters are its options
and whose result is a JSON object.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import typer
from typer.core import TyperGroup

from bothost.cli import options, output

BENCHES: dict[str, str] = {
    "ppo": "Samples per second of PPO on one core, against MaskablePPO; steps per second of its rollouts.",
    "rules": "Moves, legal-move lists, fans and samples per second of the native rules, against other packages.",
    "envs": "Steps per second of the Gymnasium and PettingZoo environments, against RLCard and OpenSpiel.",
    "fm": "Scoring all pairs of features of a factorization machine, and training it.",
    "deepmc": "Hands and samples per second of deep Monte-Carlo on one core.",
    "host": "Logged decisions per second of one host process, against a bare echo; its latency.",
    "browsers": "The effect of ten browsers that watch live tables on the host's p99; the time of the first page.",
    "hands": "Response times of the browser's list of hands with 10 million decisions, by filter.",
    "mahjong": "Steps, look-ahead, encodings and training samples of mahjong per second on one core.",
    "search": "Playouts and nodes per second of the native search, how late it stops, and the time of its network.",
    "log": "Rows per second of the decision log, against the raw database.",
    "export": "Decisions per second from SQLite to Parquet on one core, against sqlite3; peak memory.",
    "chaos": "Losses of a host under SIGKILLs, outages and bad plugins; its recovery time.",
    "soak": "Memory, file descriptors and latency of a host over an hour, with their slopes.",
}
"""Name → one line of help. The module is bothost.bench.NAME."""


class LazyBenches(TyperGroup):
    """Modules are imported when their benchmark is run."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(BENCHES)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A stub that has the help line, and nothing else."""
        return typer.core.TyperCommand(cmd_name, short_help=BENCHES[cmd_name]) if cmd_name in BENCHES else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The benchmark itself."""
        if args[0] not in BENCHES:
            return super().resolve_command(ctx, args)
        return args[0], _command(args[0]), args[1:]


def _command(name: str) -> Any:
    module = importlib.import_module(f"bothost.bench.{name}")
    bench = typer.Typer(add_completion=False, rich_markup_mode=None)
    bench.command(name, help=BENCHES[name])(_printing(module.command))
    return typer.main.get_command(bench)


def _printing(function: Callable[..., dict[str, Any]]) -> Callable[..., None]:
    """Add an option ``--json`` to ``function``, and print its result."""

    @functools.wraps(function)
    def printed(*args: Any, json: bool = False, **kwargs: Any) -> None:
        for value in kwargs.values():
            if isinstance(value, float):
                options.finite(value)
        figures = function(*args, **kwargs)
        output.emit(figures, json, output.table([(key, _shown(value)) for key, value in _flat(figures)]))

    signature = inspect.signature(function, eval_str=True)
    option = inspect.Parameter("json", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=options.Json)
    signature = signature.replace(parameters=[*signature.parameters.values(), option], return_annotation=None)
    printed.__signature__ = signature  # type: ignore[attr-defined]
    printed.__annotations__ = {p.name: p.annotation for p in signature.parameters.values()}
    return printed


def _flat(figures: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in figures.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _shown(value: Any) -> str:
    if not isinstance(value, int | float):
        return str(value)
    return f"{value:,.3f}" if isinstance(value, float) and abs(value) < 100 else f"{value:,.0f}"


app = typer.Typer(cls=LazyBenches, help="Measure this machine.", no_args_is_help=True)
