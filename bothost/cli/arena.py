"""``bothost arena``: a match between strategies on duplicate deals, without sockets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bothost.cli import options, output
from bothost.errors import UsageError

if TYPE_CHECKING:
    from bothost.arena.spec import MatchSpec
    from bothost.plugins import Plugins
    from bothost.rules.game import Game
    from bothost.strategy import Strategy


def command(
    game: Annotated[str, typer.Argument(help="Game, as in: doudizhu, pairing, othello, mahjong.")],
    contestants: Annotated[list[str], typer.Argument(help="Strategies: NAME, NAME:ALIAS or exec:COMMAND.")],
    deals: Annotated[
        int,
        typer.Option(
            "--deals", "--walls", "-n", min=1, max=options.MOST_DEALS, help="Deals, each played in every lineup."
        ),
    ],
    seed: options.Seed = 0,
    ms: options.Ms = None,
    workers: options.Workers = 1,
    batch: options.Batch = 64,
    rule: options.Rule = None,
    option: options.OfContestant = None,
    journal: Annotated[
        Path | None, typer.Option(help="Keep finished deals in this file, and continue from it.")
    ] = None,
    sequential: Annotated[bool, typer.Option(help="Stop as soon as one of two is clearly better.")] = False,
    luck_adjusted: Annotated[
        bool, typer.Option("--luck-adjusted", help="Also report scores less what luck gave (mahjong).")
    ] = False,
    alpha: options.Alpha = 0.05,
    config: options.Config = None,
    as_json: options.Json = False,
) -> None:
    """Play a match on duplicate deals: every deal once per lineup, so that luck of the deal cancels."""
    from bothost.arena.run import run_match

    how: dict[str, Any] = {"deals": deals, "seed": seed, "ms": ms, "batch": batch, "workers": workers}
    how["luck_adjusted"] = luck_adjusted
    file = str(config) if config is not None else None
    spec = match_spec(game, contestants, rule, option, sequential=sequential, alpha=alpha, config=file, **how)
    earlier: list[int] = []
    with output.progress(deals, f"{game}: {' against '.join(contestants)}") as advance:
        figures = run_match(
            spec,
            build,
            journal=journal,
            on_deal=lambda done, mean: advance(done, f"A {mean:.3f}"),
            on_resume=earlier.append,
        )
    if journal is not None:
        output.note_earlier(sum(earlier), deals, journal, "--journal")
    output.emit(figures, as_json, _readable(figures))


def match_spec(
    game: str, contestants: Sequence[str], rule: list[str] | None, option: list[str] | None, **how: Any
) -> MatchSpec:
    """The match that options describe; ``how``: the other fields of the specification. Raises UsageError."""
    from bothost.arena.lineup import letter
    from bothost.arena.spec import MatchSpec

    rules = options.nested(rule or [], "--rule")
    given = options.nested_by_name(option or [], [letter(who) for who in range(len(contestants))])
    return MatchSpec(game=game, rules=rules, contestants=tuple(contestants), options=tuple(given.values()), **how)


def build(spec: MatchSpec) -> tuple[Game, list[Strategy]]:
    """The game and the contestants of a match; also called in worker processes."""
    from bothost.host.check import check_program

    plugins = options.plugins(Path(spec.config) if spec.config else None)
    game = game_with(spec.game, spec.rules, plugins)
    strategies = []
    folders = spec.weights or (None,) * len(spec.contestants)
    for address, given, folder in zip(spec.contestants, spec.options, folders, strict=True):
        resolved = plugins.resolve(address, given, Path(folder) if folder is not None else None)
        if not resolved.strategy.supports(game):
            raise UsageError(f"{address} does not play {game.name} under these rules", advice="see bothost plugin list")
        check_program(resolved)
        strategies.append(resolved.make())
    return game, strategies


def game_with(name: str, rules: Mapping[str, Any], plugins: Plugins) -> Game:
    """A game with these options of its rules. Raises UsageError."""
    from bothost.plugins.address import why_failed
    from bothost.rules import game

    try:
        return game(name, **rules)
    except UsageError as error:
        raise UsageError(str(error), advice=why_failed(plugins.failures, name) or error.advice) from None
    except ValueError as error:
        raise UsageError(f"{name}: {error}", advice="see --rule KEY=VALUE") from error


_OF_A = ("wp", "landlord_wp", "peasant_wp", "adp")
"""Figures of contestant A that are not printed where each contestant has its own."""


def _readable(figures: dict[str, Any]) -> str:
    from bothost.arena.lineup import letter

    names = [f"{letter(who)} = {address}" for who, address in enumerate(figures["contestants"])]
    rows = [("game", figures["game"]), ("contestants", ", ".join(names)), ("deals", figures["deals"])]
    shown = (
        ("A wins", "wp", "ci95"),
        ("A wins as landlord", "landlord_wp", ""),
        ("A wins as peasants", "peasant_wp", ""),
        ("A's points a hand", "adp", "adp_ci95"),
        ("A's mean lead", "mean_lead", "mean_lead_ci95"),
        ("A's lead less luck", "adjusted_lead", "adjusted_lead_ci95"),
    )
    agents = figures.get("agents", {})
    rows += [
        (text, _interval(figures[key], figures.get(ci)))
        for text, key, ci in shown
        if figures.get(key) is not None and not (agents and key in _OF_A)
    ]
    for name, agent in agents.items():
        rows.append((f"{name}'s score a hand", _interval(agent["score"], agent["ci95"])))
        if "luck_adjusted" in agent:
            adjusted = agent["luck_adjusted"]
            rows.append((f"{name}'s score less its luck", _interval(adjusted["score"], adjusted["ci95"])))
        rows.append((f"{name}'s win rate", f"{agent['win_rate']:.3f}"))
        for key, text in (("landlord_wp", "wins as landlord"), ("peasant_wp", "wins as peasant")):
            if agent.get(key) is not None:
                rows.append((f"{name} {text}", f"{agent[key]:.3f}"))
        if "deal_in_rate" in agent:
            rows.append((f"{name}'s deal-in rate", f"{agent['deal_in_rate']:.3f}"))
        if agent.get("fan_per_win") is not None:
            rows.append((f"{name}'s fan a win", f"{agent['fan_per_win']:.1f}"))
    for name, value in figures["ms_per_move"].items():
        rows.append((f"{name}'s ms a move", f"{value:.3f}" if value is not None else "-"))
    for key in ("illegal", "late"):
        if counts := ", ".join(f"{name} {count}" for name, count in figures[key].items() if count):
            rows.append((f"{key} answers", counts))
    verdict = figures.get("sequential", {}).get("verdict")
    if verdict:
        rows.append(("verdict", f"{verdict} is better, at error rate {figures['sequential']['alpha']}"))
    return output.table(rows)


def _interval(mean: float, ci95: Sequence[float] | None) -> str:
    if ci95 is None:
        return f"{mean:.3f}"
    return f"{mean:.3f}  (95 % {ci95[0]:.3f} … {ci95[1]:.3f})"
