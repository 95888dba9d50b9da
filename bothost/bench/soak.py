"""``bothost bench soak``: whether a host that plays for an hour grows, leaks or slows down.

One host process plays at a fixed rate of decisions, far below its limit. Its tables end after a few hands and are
requested again, as in a lobby. So all objects of a table are created and destroyed all the time. The accounts share the
strategies, in settings that take little time. Resident memory, open files, threads and CPU time are read from ``/proc``
at the end of every window. Latency comes from the load generator and counts from the due time of a request.

Slopes are least-squares fits over the means of ``BLOCKS`` equal blocks after the warm-up. Neighbouring samples are
dependent (caches fill, the WAL restarts); means over minutes hardly are. The interval is Student's, 95 %.
"""

from __future__ import annotations

import json
import math
import os
import signal
import sqlite3
import subprocess
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from bothost.bench.host import Accounts, Durability, Tables, flags, pair, read, rows_of
from bothost.plugins import Plugins, require
from bothost.training.statistics import t975

BLOCKS = 12
ANY_CORE = -1
FIVE = "deep-mc,doudizhu-mcts,mahjong-ppo,phase-ppo,fm-clone"
TRENDS = ("rss_mb", "fds", "threads", "p50_ms", "p99_ms", "machine_load")
Sample = dict[str, Any]


def command(
    out: Annotated[Path, typer.Option(help="Folder for soak.jsonl, soak.json and soak.png.")],
    tables: Tables = 1000,
    minutes: Annotated[float, typer.Option(min=0.1, help="Length of the measurement.")] = 60.0,
    rate: Annotated[float, typer.Option(min=0.1, help="Decisions per second.")] = 100.0,
    accounts: Accounts = 20,
    hands: Annotated[int, typer.Option(min=1, help="Hands after which a table ends.")] = 2,
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between samples.")] = 10.0,
    warm: Annotated[float, typer.Option(min=0, help="Minutes at the beginning that do not count.")] = 15.0,
    durability: Durability = "before_send",
    strategies: Annotated[str, typer.Option(help="Who plays, separated by commas.")] = FIVE,
) -> dict[str, Any]:
    """Run, sample and fit. Write the samples as JSON lines, and a plot."""
    if (minutes - warm) * 60.0 < BLOCKS * every:
        raise typer.BadParameter(f"less than {BLOCKS} samples are left after --warm", param_hint="--minutes")
    plugins = Plugins.load(None)
    for name in strategies.split(","):
        require(plugins, plugins.strategies, "strategy", name)
    who = flags(tables=tables, accounts=accounts, durability=durability, strategies=strategies)
    timing = flags(tables=tables, rate=rate, seconds=minutes * 60.0, report=every, hands=hands)
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="soak-", dir=out) as folder, (out / "soak.jsonl").open("w") as lines:
        samples, figures = play(Path(folder), lines, timing, who)
        figures["strategies"] = deciding_times(Path(folder) / "bench.db", warm * 60.0)
    counted = [sample for sample in samples if sample["at_s"] >= warm * 60.0]
    figures = {"tables": tables, "minutes": minutes, "rate": rate, **figures}
    figures |= {name: trend(counted, name) for name in TRENDS}
    (out / "soak.json").write_text(json.dumps(figures, indent=1) + "\n")
    plot(samples, warm * 60.0, figures, out / "soak.png")
    return figures


def play(folder: Path, lines: Any, timing: list[str], who: list[str]) -> tuple[list[Sample], dict[str, Any]]:
    """One run: the samples, and the counts at its end. Each sample is written to ``lines`` at once.

    ``timing`` and ``who`` are options of the load generator and of the host.
    """
    with pair(timing, [*who, f"--folder={folder}"], cores=(ANY_CORE, ANY_CORE)) as (load, subject):
        samples: list[Sample] = []
        while "at_s" in (window := read(load)):
            samples.append({**window, **observed(subject)})
            print(json.dumps(samples[-1]), file=lines, flush=True)
        subject.send_signal(signal.SIGTERM)
        ended = read(subject)
    first, last = samples[0], samples[-1]
    figures = {
        "answers": window["answers"],
        "rows_logged": rows_of(folder / "bench.db"),
        "tables_played": window["opened"],
        "fallbacks": ended["fallbacks"],
        "cpu_share": round((last["cpu_s"] - first["cpu_s"]) / (last["at_s"] - first["at_s"]), 3),
    }
    return samples, figures


def observed(process: subprocess.Popen[bytes]) -> Sample:
    """A process's resident MiB, open files, threads and CPU seconds, and the machine's load, which affects latency."""
    folder = Path(f"/proc/{process.pid}")
    status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
    times = (folder / "stat").read_text().rpartition(")")[2].split()
    ticks = int(times[11]) + int(times[12])
    return {
        "rss_mb": int(status["VmRSS"].split()[0]) / 1024.0,
        "fds": len(os.listdir(folder / "fd")),
        "threads": int(status["Threads"]),
        "cpu_s": ticks / os.sysconf("SC_CLK_TCK"),
        "machine_load": os.getloadavg()[0],
    }


def deciding_times(database: Path, warm_s: float) -> dict[str, dict[str, float]]:
    """By strategy: how long it decided, in ms, after the first ``warm_s`` seconds; its trend and its decisions."""
    query = "SELECT strategy, at_us, elapsed_ms FROM decisions ORDER BY at_us"
    found: dict[str, list[Sample]] = {}
    with closing(sqlite3.connect(database)) as connection:
        (first,) = connection.execute("SELECT min(at_us) FROM decisions").fetchone()
        for strategy, at_us, elapsed_ms in connection.execute(query):
            if (at_s := (at_us - first) / 1e6) >= warm_s:
                found.setdefault(strategy, []).append({"at_s": at_s, "ms": elapsed_ms})
    figures = {}
    for strategy, samples in found.items():
        p50, p99 = np.percentile([sample["ms"] for sample in samples], (50, 99)).round(3).tolist()
        figures[strategy] = {"decisions": len(samples), "p50": p50, "p99": p99, **trend(samples, "ms")}
    return figures


def trend(samples: list[Sample], name: str) -> dict[str, float]:
    """Mean, extremes, and the slope per hour with its 95 % interval, of the samples of ``name``."""
    kept = [s for s in samples if s[name] is not None]
    blocks = np.array_split(np.array([(s["at_s"] / 3600.0, s[name]) for s in kept]), BLOCKS)
    hours, means = np.array([block.mean(axis=0) for block in blocks]).T
    (slope, _), covariance = np.polyfit(hours, means, 1, cov=True)
    error = t975(BLOCKS - 2) * math.sqrt(covariance[0, 0])
    values = [s[name] for s in kept]
    return {
        "mean": round(float(np.mean(values)), 3),
        "min": round(min(values), 3),
        "max": round(max(values), 3),
        "slope_per_h": round(float(slope), 3),
        "slope_low": round(float(slope - error), 3),
        "slope_high": round(float(slope + error), 3),
    }


def plot(samples: list[Sample], warm_s: float, figures: dict[str, Any], path: Path) -> None:
    """Memory, open files and latency over time, one above the other."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 7), layout="constrained")
    axes = figure.subplots(3, 1, sharex=True)
    minutes = [s["at_s"] / 60.0 for s in samples]
    shown = (("rss_mb", "resident memory, MiB"), ("fds", "open files"), ("p99_ms", "latency p99, ms"))
    for axis, (name, label) in zip(axes, shown, strict=True):
        axis.plot(minutes, [s[name] for s in samples], linewidth=0.8)
        axis.axvspan(0, warm_s / 60.0, alpha=0.1)
        fit = figures[name]
        low, high = fit["slope_low"], fit["slope_high"]
        axis.set_title(f"{fit['slope_per_h']:+.2f} per hour (95 %: {low:+.2f} … {high:+.2f})", fontsize=9, loc="right")
        axis.set_ylabel(label)
        axis.set_ylim(bottom=0)
    axes[2].plot(minutes, [s["p50_ms"] for s in samples], linewidth=0.8, label="p50")
    axes[2].set_ylabel("latency, ms: p99, p50")
    axes[2].set_xlabel("minutes")
    tables, rate, share = figures["tables"], figures["rate"], figures["cpu_share"]
    figure.suptitle(f"{tables} tables, {rate:g} decisions per second, {share:.0%} of a core")
    figure.savefig(path, dpi=110)
