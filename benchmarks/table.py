"""Write the benchmark tables of README.md and docs/reference/benchmarks.md from benchmarks/results.json.

python benchmarks/table.py           run the benchmarks, keep the results, write the tables
python benchmarks/table.py --render  write the tables from the kept results
python benchmarks/table.py --check   fail when a table differs from the kept results
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
README = HERE.parent / "README.md"
PAGE = HERE.parent / "docs" / "reference" / "benchmarks.md"
BEGIN, END = "<!-- performance: begin -->", "<!-- performance: end -->"
BENCHES = ("rules", "host", "log")


def run(name: str) -> dict:
    """The figures of one benchmark, in a process of its own."""
    print(f"bothost bench {name} …", file=sys.stderr)
    command = [sys.executable, "-m", "bothost", "bench", name, "--json"]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, cwd=HERE.parent).stdout)


def machine() -> str:
    """Processor and versions, as far as they matter for the figures."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return (
        f"{os.cpu_count()} cores of {models[0] if models else platform.machine()}, Python {platform.python_version()}"
    )


def number(value: float) -> str:
    """A figure as a person reads it: three significant digits, thousands apart."""
    if abs(value) >= 1_000_000:
        return f"{value / 1_000_000:.3g} M"
    if abs(value) >= 1_000:
        return f"{round(value, 2 - len(str(int(abs(value)))) + 1):,.0f}"
    return f"{value:.3g}"


def rules_rows(rules: dict) -> list[tuple[str, str, str, str]]:
    """Lines of ``bench rules``: (what, bothost, peers, command)."""
    peers = {"OpenSpiel": "open_spiel", "RLCard": "rlcard", "PyMahjongGB": "pymahjonggb"}

    lead = "legal_moves_20_per_s"

    def row(what: str, game: str, key: str, peer_key: str = "") -> tuple[str, str, str, str]:
        found = ((name, rules["peers"].get(library, {}).get(peer_key)) for name, library in peers.items())
        theirs = ", ".join(f"{name} {number(value)}" for name, value in found if value is not None)
        return what, number(rules[game][key]), theirs or "-", "`bothost bench rules`"

    return [
        row("Dou Dizhu: random moves through `VecEnv`", "doudizhu", "moves_per_s", "doudizhu_moves_per_s"),
        row("Dou Dizhu: all legal moves of a 20-card lead", "doudizhu", lead, f"doudizhu_{lead}"),
        row("Dou Dizhu: `sample_state`", "doudizhu", "samples_per_s"),
        row("mahjong: shanten over all shapes", "mahjong", "shanten_per_s", "shanten_per_s"),
        row("mahjong: fan of a win", "mahjong", "fan_per_s", "fan_per_s"),
        row("mahjong: random games", "mahjong", "games_per_s"),
        row("pairing: random steps through `VecEnv`", "pairing", "steps_per_s"),
        row("Othello: random moves through `VecEnv`", "othello", "moves_per_s", "othello_moves_per_s"),
    ]  # fmt: skip


def host_rows(host: dict) -> list[tuple[str, str, str, str]]:
    """Lines of ``bench host``."""
    what = f"host: decisions logged and answered, {host['tables']:,} tables"
    by = "`bothost bench host`"
    return [(what, number(host["decisions_per_s"]), f"bare websocket echo {number(host['raw_echo_per_s'])}", by)]


def log_rows(log: dict) -> list[tuple[str, str, str, str]]:
    """Lines of ``bench log``."""
    return [
        (
            f"decision log: rows into {title}",
            number(log[name]["rows_per_s"]),
            f"raw inserts {number(log[name]['raw_rows_per_s'])}",
            "`bothost bench log`",
        )
        for name, title in (("sqlite", "SQLite"), ("postgresql", "PostgreSQL"))
        if isinstance(log.get(name), dict)
    ]


def markdown(rows: list[tuple[str, ...]]) -> str:
    """A table; the first row is its head."""
    head, *body = rows
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ("---",) * len(head), *body))


def where(results: dict) -> str:
    """The machine and the day."""
    return f"One core each, on {results['machine']}, {results['at'][:10]}."


def readme_table(results: dict) -> str:
    """The figures of the README: those that a peer was measured beside."""
    rows = [row[:3] for row in rules_rows(results["rules"]) if row[2] != "-"] + [host_rows(results["host"])[0][:3]]
    return f"{markdown([('per second', 'bothost', 'peer, same run'), *rows])}\n\n{where(results)}"


def page_tables(results: dict) -> str:
    """All figures, for the benchmark page."""
    rows = rules_rows(results["rules"]) + host_rows(results["host"]) + log_rows(results["log"])
    host = results["host"]
    latency = [
        ("latency at half that rate", "p50", "p99"),
        ("bothost", f"{host['p50_ms']:.2g} ms", f"{host['p99_ms']:.2g} ms"),
        ("bare websocket echo", f"{host['echo_p50_ms']:.2g} ms", f"{host['echo_p99_ms']:.2g} ms"),
    ]
    stolen = 100 * host["stolen_share"]
    notes = (
        f"The host used {host['cpu_us_per_decision']:.0f} µs of CPU time per decision and {host['rss_mb']:.0f} MB, "
        f'with `durability = "{host["durability"]}"`. The hypervisor took {stolen:.1f} % of its core.'
    )
    head = ("per second", "bothost", "peer or limit, same run", "command")
    return "\n\n".join((markdown([head, *rows]), markdown(latency), notes, where(results)))


def rendered(path: Path, table: str) -> str:
    """The file with ``table`` between the markers."""
    head, rest = path.read_text().split(BEGIN)
    return f"{head}{BEGIN}\n{table}\n{END}{rest.split(END)[1]}"


def pages(results: dict) -> dict[Path, str]:
    """File → its text with today's tables."""
    return {README: rendered(README, readme_table(results)), PAGE: rendered(PAGE, page_tables(results))}


def main(
    render: Annotated[
        bool, typer.Option("--render", help="Measure nothing: write the tables of results.json.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Measure nothing: compare the tables with results.json.")
    ] = False,
) -> None:
    """Measure, and write the tables."""
    if not (render or check):
        results = {"machine": machine(), "at": datetime.now(UTC).isoformat(), **{name: run(name) for name in BENCHES}}
        RESULTS.write_text(json.dumps(results, indent=2) + "\n")
    stale = {path: text for path, text in pages(json.loads(RESULTS.read_text())).items() if path.read_text() != text}
    for path, text in stale.items():
        if check:
            print(f"{path.name} differs from results.json: run python benchmarks/table.py --render", file=sys.stderr)
        else:
            path.write_text(text)
    if check and stale:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
