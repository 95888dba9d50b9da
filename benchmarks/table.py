"""Make the README's performance table: run ``bothost bench`` and write its figures between the table's markers.

python benchmarks/table.py           run everything, keep the results in benchmarks/results.json, rewrite README.md
python benchmarks/table.py --render  rewrite README.md from the kept results
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
README = HERE.parent / "README.md"
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
    latency = f"{host['p50_ms']:.2g} ms, {host['p99_ms']:.2g} ms"
    echo = f"bare echo {host['echo_p50_ms']:.2g} ms, {host['echo_p99_ms']:.2g} ms" if "echo_p99_ms" in host else "-"
    by = "`bothost bench host`"
    return [
        (what, number(host["decisions_per_s"]), f"bare websocket echo {number(host['raw_echo_per_s'])}", by),
        ("host: latency at half that rate, p50 and p99 (not per second)", latency, echo, by),
    ]


def log_rows(log: dict) -> list[tuple[str, str, str, str]]:
    """Lines of ``bench log``."""
    return [
        (
            f"decision log: rows into {title}",
            number(log[name]["rows_per_s"]),
            f"raw {number(log[name]['raw_rows_per_s'])}",
            "`bothost bench log`",
        )
        for name, title in (("sqlite", "SQLite"), ("postgresql", "PostgreSQL"))
        if isinstance(log.get(name), dict)
    ]


def table(results: dict) -> str:
    """The Markdown between the markers."""
    rows = rules_rows(results["rules"]) + host_rows(results["host"]) + log_rows(results["log"])
    lines = ["| per second | bothost | peer or limit, same run | measured by |", "|---|---|---|---|"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([*lines, "", f"One core each, on {results['machine']}; {results['at'][:10]}."])


def render(results: dict) -> None:
    """Rewrite the README between the markers."""
    head, rest = README.read_text().split(BEGIN)
    README.write_text(f"{head}{BEGIN}\n{table(results)}\n{END}{rest.split(END)[1]}")


def main() -> None:
    """Measure unless told not to, then render."""
    if "--render" not in sys.argv:
        results = {"machine": machine(), "at": datetime.now(UTC).isoformat(), **{name: run(name) for name in BENCHES}}
        RESULTS.write_text(json.dumps(results, indent=2) + "\n")
    render(json.loads(RESULTS.read_text()))


if __name__ == "__main__":
    main()
