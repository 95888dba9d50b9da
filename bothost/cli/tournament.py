"""``bothost tournament``: strategies and programs against each other on duplicate deals."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bothost.cli import options, output

if TYPE_CHECKING:
    from bothost.arena.crew import Crew
    from bothost.arena.spec import MatchSpec
    from bothost.arena.tournament import OnDeal, Progress, TournamentRun


class Format(StrEnum):
    """How a tournament pairs its contestants."""

    round_robin = "round-robin"
    swiss = "swiss"
    knockout = "knockout"
    gauntlet = "gauntlet"


def command(
    game: Annotated[str, typer.Argument(help="Game, as in: doudizhu, pairing, othello, mahjong.")],
    contestants: Annotated[list[str], typer.Argument(help="Strategies, favourites first: NAME[:ALIAS], exec:COMMAND.")],
    deals: Annotated[
        int,
        typer.Option(
            "--deals", "--walls", "-n", min=2, max=options.MOST_DEALS, help="Deals of a match, in every lineup."
        ),
    ],
    format: Annotated[
        Format, typer.Option("--format", "-f", help="gauntlet: the first against all others.")
    ] = Format.round_robin,
    table: Annotated[
        int | None, typer.Option(min=2, help="Contestants of a match: 2, or one a seat as in mahjong's 4. Default: 2.")
    ] = None,
    rounds: Annotated[int | None, typer.Option(min=1, help="Rounds of the Swiss system.")] = None,
    seed: options.Seed = 0,
    ms: options.Ms = None,
    workers: options.Workers = 1,
    ray: options.Ray = None,
    batch: options.Batch = 64,
    rule: options.Rule = None,
    option: options.OfContestant = None,
    out: Annotated[
        Path | None, typer.Option(file_okay=False, help="Folder to write to; default: runs/tournament-….")
    ] = None,
    config: options.Config = None,
    as_json: options.Json = False,
) -> None:
    """Play a tournament on duplicate deals. Run again, it continues. It writes results.json and report.html."""
    from bothost.arena import tournament_report as report
    from bothost.arena.tournament import TournamentRun, TournamentSpec
    from bothost.cli.arena import build, match_spec
    from bothost.export.folder import aside

    how: dict[str, Any] = {"deals": deals, "seed": seed, "ms": ms, "batch": batch, "workers": workers, "forgive": True}
    file = str(config.resolve()) if config is not None else None
    match = match_spec(game, contestants, rule, option, config=file, **how)
    spec = TournamentSpec(match=match, format=format.value, table=table or 2, rounds=rounds)
    with ExitStack() as stack:
        run = TournamentRun(spec, build)
        stack.callback(run.close)
        folder = out or Path("runs") / f"tournament-{run.key}"
        crew = _crew(match, ray)
        if crew is not None:
            stack.enter_context(crew)
        repeat = shlex.join(["bothost", *sys.argv[1:]]) if sys.argv[1:2] == ["tournament"] else "bothost tournament"

        def save() -> None:
            folder.mkdir(parents=True, exist_ok=True)
            figures = json.dumps(report.figures(run), indent=2, ensure_ascii=False) + "\n"
            for name, text in (("results.json", figures), ("report.html", report.page(run, repeat))):
                with aside(folder / name) as file:
                    file.write(text.encode())

        on_deal = stack.enter_context(_watched(run))
        run.play(folder, crew, on_deal, save)
    output.note_earlier(run.earlier, run.deals, folder, "--out")
    figures = report.figures(run) | {"folder": str(folder)}
    output.emit(figures, as_json, _readable(run, folder))


def _crew(spec: MatchSpec, ray: str | None) -> Crew | None:
    from bothost.arena.crew import ProcessCrew, RayCrew
    from bothost.cli.arena import build

    if ray is not None:
        return RayCrew(build, spec, None if ray == "local" else ray)
    return ProcessCrew(build, spec) if spec.workers > 1 else None


def _readable(run: TournamentRun, folder: Path) -> str:
    from bothost.arena import tournament_report as report

    cross_header, cross = report.crosstable_rows(run)
    parts = [
        _standings(run),
        *(["\n".join(lines)] if (lines := report.trouble(run)) else []),
        "Wins of the row over the column in %, with the 95 % interval;\n* significant at 0.05 (Holm):",
        output.table([[output.printable(text) for text, _ in row] for row in cross], cross_header),
        f"report: {folder / 'report.html'}",
    ]
    return "\n\n".join(parts)


def _standings(run: TournamentRun) -> str:
    from bothost.arena.tournament_report import standing_rows

    header, rows = standing_rows(run)
    return output.table([[output.printable(cell) for cell in row] for row in rows], header)


@contextmanager
def _watched(run: TournamentRun) -> Iterator[OnDeal]:
    """Standings and a progress bar on the terminal where a person watches; else ``output.progress``."""
    if not output.is_terminal() or os.environ.get("BOTHOST_PROGRESS") == "json":
        with output.progress(None, f"tournament {run.game.name}") as advance:
            yield lambda now: advance(now.done, f"round {now.round + 1} {now.note}", now.total)
        return
    from rich.console import Console, Group
    from rich.live import Live
    from rich.progress_bar import ProgressBar
    from rich.text import Text

    @lru_cache(maxsize=1)
    def standings(matches: int) -> Text:
        """The standings, computed again after each match."""
        return Text(_standings(run), no_wrap=True)

    def drawn(now: Progress) -> Group:
        table = standings(len(run.tournament.results))
        line = f"round {now.round + 1}: {now.done} of {now.total} deals  {now.note}"
        bar = ProgressBar(now.total or 1, completed=now.done, width=60)
        return Group(table, Text(), Text(line), bar)

    with Live(console=Console(stderr=True), refresh_per_second=4, transient=True) as live:
        yield lambda now: live.update(drawn(now))
