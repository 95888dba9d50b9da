"""A campaign of SIGKILLs against a host in play, in rounds; each round's result is one line of a file.

    python -m benchmarks.reliability --kills 1000 --out runs/reliability.jsonl --plot runs/reliability.png

The same command continues. A round is ``bothost bench chaos`` on a new database. PostgreSQL gets three kills in ten,
SQLite the others. Every answer that the lobby received (``moves``) must have exactly one row. ``load`` is the machine's
average over the last minute. Figures of different commits are kept separate.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from statistics import median
from typing import Annotated, Any, Literal

import typer

from bothost import __version__, logs
from bothost.bench.chaos import Chaos
from bothost.config import StoreSettings
from bothost.testing.postgres import new_database, temporary_postgres

Json = dict[str, Any]
Database = Literal["sqlite", "postgresql"]

ACCOUNTS = 8
TABLES = 40
PACE_MS = 300.0
FAULT_CHANCE = 0.01
PER_MINUTE = {"kill": 10.0, "outage": 2.0, "restart": 1.0}
POSTGRESQL_SHARE = 0.3
WRONG = ("rows_lost", "rows_doubled", "illegal_moves", "missed_deadlines")
"""Figures that must be 0."""


def campaign(
    kills: Annotated[int, typer.Option(help="SIGKILLs in all, with those of earlier calls.")] = 1000,
    out: Annotated[Path, typer.Option(help="Results, one round a line; new rounds are appended.")] = Path(
        "runs/reliability.jsonl"
    ),
    minutes: Annotated[float, typer.Option(help="Length of a round.")] = 1.0,
    most_minutes: Annotated[float, typer.Option(help="Start no round after so long.")] = float("inf"),
    plot: Annotated[Path | None, typer.Option(help="Draw the times back at the table into this file.")] = None,
    standby: Annotated[bool, typer.Option(help="Keep a second host that waits: bothost run --standby.")] = False,
    database: Annotated[Database | None, typer.Option(help="Use this database alone.")] = None,
) -> None:
    """Run rounds until there were so many kills. Exit code 1: an invariant was broken."""
    logs.configure(level="error")
    rounds = read(out)
    end = time.monotonic() + most_minutes * 60.0
    with ExitStack() as stack:
        server: str | None = None
        while sum(done["kills"] for done in rounds) < kills and time.monotonic() < end:
            number = len(rounds) + 1
            url: str | None = None
            if (database or next_database(rounds)) == "postgresql":
                server = server or stack.enter_context(temporary_postgres())
                url = new_database(server, f"reliability_{number}")
            done = play_round(number, minutes, url, standby)
            out.parent.mkdir(parents=True, exist_ok=True)
            with out.open("a") as file:
                file.write(json.dumps(done) + "\n")
            rounds.append(done)
            print(f"round {number}: {done['database']}, {done['kills']} kills, {done['moves']:,} moves, {wrong(done)}")
    print(summary(rounds))
    if plot is not None:
        draw(rounds, plot)
    if any(wrong(done) for done in rounds):
        raise typer.Exit(1)


def read(out: Path) -> list[Json]:
    """The rounds so far. A line that was cut off by a crash counts for nothing."""
    if not out.exists():
        return []
    text = out.read_text()
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        out.write_text(whole)
    return [json.loads(line) for line in whole.splitlines()]


def next_database(rounds: Sequence[Json]) -> Database:
    """The database that has had too few kills for its share."""
    kills = sum(done["kills"] for done in rounds if done["database"] == "postgresql")
    return "postgresql" if kills < POSTGRESQL_SHARE * sum(done["kills"] for done in rounds) else "sqlite"


def play_round(number: int, minutes: float, url: str | None, standby: bool = False) -> Json:
    """Play under faults, drain, and count. ``url``: of an empty PostgreSQL database; None: SQLite."""
    with tempfile.TemporaryDirectory(prefix="bothost-reliability-") as folder:
        store = StoreSettings(url=url or f"sqlite:///{folder}/chaos.db")
        chaos = Chaos(Path(folder), store, random.Random(number), hosts=2 if standby else 1)
        chaos.write_configuration(ACCOUNTS, TABLES, FAULT_CHANCE, PACE_MS)
        figures = asyncio.run(chaos.run(minutes * 60.0, PER_MINUTE))
    return {
        "round": number,
        "database": "sqlite" if url is None else "postgresql",
        "version": __version__,
        "commit": commit(),
        "standby": standby,
        "load": os.getloadavg()[0],
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        **figures,
        "recoveries_s": [round(seconds, 3) for seconds in sorted(chaos.recoveries)],
    }


def commit() -> str:
    """The commit of this repository."""
    command = ("git", "rev-parse", "--short", "HEAD")
    return subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True).stdout.strip()


def wrong(done: Json) -> Json:
    """The broken invariants of a round."""
    return {name: done[name] for name in WRONG if done[name]}


def groups(rounds: Sequence[Json]) -> dict[tuple[str, str], list[Json]]:
    """(commit, database) → its rounds. The first rounds did not say their commit."""
    grouped: dict[tuple[str, str], list[Json]] = {}
    for done in rounds:
        name = done.get("commit", "older") + (" with a standby" if done.get("standby") else "")
        grouped.setdefault((name, done["database"]), []).append(done)
    return grouped


def times_back(rounds: Sequence[Json]) -> list[float]:
    """Seconds from each kill or lobby restart until every account had moved again, sorted."""
    return sorted(seconds for done in rounds for seconds in done["recoveries_s"])


def summary(rounds: Sequence[Json]) -> str:
    """One line per commit and database, as a table in Markdown."""
    lines = [
        "| commit | database | kills | outages | lobby restarts | plugin faults | moves | lost | doubled | illegal "
        "| late | back at the table, s: median | 90 % | worst |",
        "|" + "---|" * 14,
    ]
    for group, mine in groups(rounds).items():
        times = times_back(mine)
        counted = ("kills", "db_outages", "lobby_restarts", "plugin_faults", "moves", *WRONG)
        figures = [f"{sum(done[key] for done in mine):,}" for key in counted]
        figures += [f"{median(times):.2f}", f"{times[int(0.9 * (len(times) - 1))]:.2f}", f"{times[-1]:.2f}"]
        lines.append("| " + " | ".join([*group, *figures]) + " |")
    return "\n".join(lines)


def draw(rounds: Sequence[Json], path: Path) -> None:
    """The share of kills after which all accounts had moved again, over time."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.5), layout="constrained")
    axes = figure.subplots()
    for database, standby in product(("sqlite", "postgresql"), (False, True)):
        mine = [done for done in rounds if (done["database"], done.get("standby", False)) == (database, standby)]
        if times := times_back(mine):
            axes.ecdf(times, label=f"{database}{' with a standby' * standby}: {len(times)} faults")
    axes.set_xlabel("seconds until every account has moved again")
    axes.set_ylabel("share of kills and lobby restarts")
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    typer.run(campaign)
