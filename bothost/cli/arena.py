"""``bothost arena``: a match between strategies on duplicate deals, without sockets."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bothost.cli import options, output
from bothost.errors import UsageError

if TYPE_CHECKING:
    from bothost.arena.run import MatchSpec
    from bothost.rules.game import Game
    from bothost.strategy import Strategy


def command(
    game: Annotated[str, typer.Argument(help="Game, as in: doudizhu, pairing, othello, mahjong.")],
    contestants: Annotated[list[str], typer.Argument(help="Strategies: NAME, NAME:ALIAS or exec:COMMAND.")],
    deals: Annotated[int, typer.Option("--deals", "--walls", "-n", min=1, help="Deals, each played in every lineup.")],
    seed: Annotated[int, typer.Option(help="Seed of the deals and of the players.")] = 0,
    ms: Annotated[float | None, typer.Option(min=0.1, help="Time per decision, ms; default: no clock.")] = None,
    workers: Annotated[int, typer.Option("--workers", "-w", min=1, help="Processes that play.")] = 1,
    batch: Annotated[int, typer.Option(min=1, help="Deals played at once in one process.")] = 64,
    rule: Annotated[list[str] | None, typer.Option(help="Option of the game's rules, KEY=VALUE.")] = None,
    option: Annotated[list[str] | None, typer.Option(help="Option of a contestant, A.KEY=VALUE.")] = None,
    journal: Annotated[
        Path | None, typer.Option(help="Keep finished deals in this file, and continue from it.")
    ] = None,
    sequential: Annotated[bool, typer.Option(help="Stop as soon as one of two is clearly better.")] = False,
    alpha: Annotated[float, typer.Option(min=1e-6, max=0.5, help="Error rate of --sequential.")] = 0.05,
    config: options.Config = None,
    as_json: options.Json = False,
) -> None:
    """Play a match on duplicate deals: every deal once per lineup, so that luck of the deal cancels."""
    from bothost.arena.run import MatchSpec, run_match

    spec = MatchSpec(
        game=game,
        rules=dict(_pair(text, "--rule") for text in rule or []),
        contestants=tuple(contestants),
        options=_options(option or [], len(contestants)),
        deals=deals,
        seed=seed,
        ms=ms,
        batch=batch,
        workers=workers,
        sequential=sequential,
        alpha=alpha,
        config=str(config) if config is not None else None,
    )
    with output.progress(deals, f"{game}: {' against '.join(contestants)}") as advance:
        figures = run_match(spec, build, journal=journal, on_deal=lambda done, mean: advance(done, f"A {mean:.3f}"))
    output.emit(figures, as_json, _readable(figures))


def build(spec: MatchSpec) -> tuple[Game, list[Strategy]]:
    """The game and the contestants of a match; also called in worker processes."""
    from bothost import rules

    plugins = options.plugins(Path(spec.config) if spec.config else None)
    try:
        game = rules.game(spec.game, **spec.rules)
    except ValueError as error:
        raise UsageError(f"{spec.game}: {error}", advice="see --rule KEY=VALUE") from error
    strategies = []
    folders = spec.weights or (None,) * len(spec.contestants)
    for address, given, folder in zip(spec.contestants, spec.options, folders, strict=True):
        resolved = plugins.resolve(address, given, Path(folder) if folder is not None else None)
        if not resolved.strategy.supports(game):
            raise UsageError(f"{address} does not play {game.name} under these rules", advice="see bothost plugin list")
        strategies.append(resolved.make())
    return game, strategies


def _pair(text: str, what: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise UsageError(f"{what} {text!r} is not KEY=VALUE")
    try:
        return key, json.loads(value)
    except json.JSONDecodeError:
        return key, value


def _options(texts: Sequence[str], contestants: int) -> tuple[dict[str, Any], ...]:
    out: tuple[dict[str, Any], ...] = tuple({} for _ in range(contestants))
    for text in texts:
        who, dot, rest = text.partition(".")
        index = ord(who) - ord("A") if len(who) == 1 else -1
        if not dot or not 0 <= index < contestants:
            raise UsageError(
                f"--option {text!r} names no contestant", advice="write A.KEY=VALUE for the first, B.KEY=VALUE …"
            )
        key, value = _pair(rest, "--option")
        out[index][key] = value
    return out


def _readable(figures: dict[str, Any]) -> str:
    names = [f"{chr(ord('A') + i)} = {address}" for i, address in enumerate(figures["contestants"])]
    rows = [("game", figures["game"]), ("contestants", ", ".join(names)), ("deals", figures["deals"])]
    if "wp" in figures:
        rows.append(("A wins", _interval(figures["wp"], figures["ci95"])))
    if figures.get("landlord_wp") is not None:
        rows.append(("A wins as landlord", f"{figures['landlord_wp']:.3f}"))
    if figures.get("peasant_wp") is not None:
        rows.append(("A wins as peasants", f"{figures['peasant_wp']:.3f}"))
    if figures.get("adp") is not None:
        rows.append(("A's points a hand", _interval(figures["adp"], figures["adp_ci95"])))
    if "mean_lead" in figures:
        rows.append(("A's mean lead", _interval(figures["mean_lead"], figures["mean_lead_ci95"])))
    for name, agent in figures.get("agents", {}).items():
        rows.append((f"{name}'s score a hand", _interval(agent["score"], agent["ci95"])))
        rows.append((f"{name}'s win rate", f"{agent['win_rate']:.3f}"))
        if agent.get("fan_per_win") is not None:
            rows.append((f"{name}'s deal-in rate", f"{agent['deal_in_rate']:.3f}"))
            rows.append((f"{name}'s fan a win", f"{agent['fan_per_win']:.1f}"))
    for name, value in figures["ms_per_move"].items():
        rows.append((f"{name}'s ms a move", f"{value:.3f}" if value is not None else "-"))
    if any(figures["illegal"].values()):
        rows.append(("illegal answers", ", ".join(f"{k} {v}" for k, v in figures["illegal"].items())))
    verdict = figures.get("sequential", {}).get("verdict")
    if verdict:
        rows.append(("verdict", f"{verdict} is better, at error rate {figures['sequential']['alpha']}"))
    return output.table(rows)


def _interval(mean: float, ci95: Sequence[float] | None) -> str:
    if ci95 is None:
        return f"{mean:.3f}"
    return f"{mean:.3f}  (95 % {ci95[0]:.3f} … {ci95[1]:.3f})"
