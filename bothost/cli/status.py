"""``bothost status``: what the running host of this configuration does."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from bothost import config
from bothost.cli import options, output

ANSWER_S = 5.0
"""How long the host may take to answer."""


def command(
    config_file: options.Config = None,
    json: options.Json = False,
    check: Annotated[bool, typer.Option("--check", help="End with exit code 1 when something is wrong.")] = False,
) -> None:
    """Ask the host that runs with this configuration's data_dir."""
    status = ask_host(config_file, "status")
    output.emit(status, json, as_text(status))
    if check and not is_well(status):
        raise typer.Exit(1)


def is_well(status: dict[str, Any]) -> bool:
    """Return the response of ``/healthz``; with several workers, whether all are healthy."""
    if "workers" in status:
        return all(worker["status"] is not None and is_well(worker["status"]) for worker in status["workers"])
    return not status["health"]


def ask_host(config_file: Path | None, command: str, **arguments: str) -> dict[str, Any]:
    """The answer of the running host. Raises UsageError if none runs, or if it refuses."""
    from bothost.host.control import ask

    # `bothost demo` needs no configuration.
    host = options.settings(config_file).host if options.is_configured(config_file) else config.HostSettings()
    return ask(host.data_dir, command, ANSWER_S, **arguments)


def as_text(status: dict[str, Any]) -> str:
    """A host's status for people; of several workers one after the other."""
    if "workers" in status:
        return "\n\n".join(_worker(worker) for worker in status["workers"])
    rows = [
        ("host", status["host"] + (" (draining)" if status["draining"] else "")),
        ("up", timedelta(seconds=round(status["uptime_s"]))),
        ("tables", status["tables"]),
        ("decisions", status["decisions"]),
        ("seats played", f"{status['hands']} ({status['aborted']} aborted)"),
        ("fallbacks", ", ".join(f"{n} {reason}" for reason, n in sorted(status["fallbacks"].items())) or "none"),
        ("log", "{rows} rows, {queue} queued, {spool} in the spool".format(**status["log"])),
        *(("problem", output.printable(problem)) for problem in status["health"]),
        ("memory", "unknown" if status["rss_bytes"] is None else f"{status['rss_bytes'] / 2**20:.0f} MiB"),
        ("latency", ", ".join(_latency(name, stage) for name, stage in status["stages"].items())),
        *_beside(status.get("registry") or {}),
    ]
    accounts = [
        (
            f"{a['lobby']}/{a['account']}",
            ("connected" if a["connected"] else f"not connected: {output.printable(a['problem']) or 'connecting'}")
            + (", paused" if a.get("paused") else ""),
            ", ".join(output.counted(a[f"{noun}s"], noun) for noun in ("table", "seek", "slot", "reconnect")),
        )
        for a in status["accounts"]
    ]
    models = [
        (
            *(m["strategy"], m["version"], (m["model_sha256"] or "")[:12], _routes(m)),
            f"at {output.counted(m['hands'], 'seat')}",
        )
        for m in status["models"]
    ]
    results = [
        (
            *(s[key] for key in ("game", "strategy", "version")),
            output.counted(s["hands"], "seat"),
            f"mean score {s['mean_score']:+.3f}",
        )
        for s in status.get("scores", [])
    ]
    bad = [
        (s["address"], _routes(s), _trouble(s)) for s in status["strategies"] if s["quarantined"] or s["hung_threads"]
    ]
    return "\n\n".join(output.table(part) for part in (rows, accounts, models, results, bad) if part)


def _beside(registry: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The canaries and shadows, each with its version."""
    if canaries := registry.get("canaries"):
        yield "canary", ", ".join(f"{name}:{version}" for name, version in canaries.items())
    if shadows := registry.get("shadow", {}).get("models"):
        shown = ", ".join(f"{name}:{version}" for name, version in shadows.items())
        yield "shadow", f"{shown}, {output.counted(registry['shadow']['decided'], 'decision')}"


def _routes(strategy: dict[str, Any]) -> str:
    """The routes of a strategy, as messages about the configuration name them."""
    return ", ".join(f"route[{index}]" for index in strategy.get("routes", ()))


def _trouble(strategy: dict[str, Any]) -> str:
    if not strategy["quarantined"]:
        return output.counted(strategy["hung_threads"], "hung thread")
    return f"quarantined for {strategy['quarantined_s']:.0f} s more: {output.printable(strategy['quarantine_cause'])}"


def _worker(worker: dict[str, Any]) -> str:
    restarts = f", restarted {output.counted(worker['restarts'], 'time')}" if worker["restarts"] else ""
    head = f"worker {worker['worker']} (process {worker['pid'] or 'none'}{restarts})"
    if worker["status"] is None:
        ended = "" if worker.get("code") is None else f"; its last process ended with exit code {worker['code']}"
        return f"{head}: does not answer{ended}"
    return f"{head}\n{as_text(worker['status'])}"


def _latency(name: str, stage: dict[str, float | None]) -> str:
    if stage["p99_ms"] is None:
        return f"{name} unknown"
    return f"{name} ≤ {stage['p50_ms']:g} ms (p99 ≤ {stage['p99_ms']:g} ms)"
