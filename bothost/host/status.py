"""The status of a running host, for ``bothost status`` and the live summary."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping

from bothost import children
from bothost.host.account import Account
from bothost.host.health import health, stages
from bothost.host.supervisor import Host
from bothost.messages import Json


def status_of(host: Host) -> Json:
    """The status as plain JSON: accounts, counters, strategies, latency, health."""
    counters = host.runner.counters
    stats = host.log.stats
    now = time.monotonic()
    return {
        "host": host.settings.host.name,
        "draining": host.draining,
        "uptime_s": round(now - counters.started, 1),
        "tables": len(host.seated),
        "decisions": counters.decisions,
        "hands": counters.hands,
        "aborted": counters.aborted,
        "fallbacks": dict(counters.fallbacks),
        "results": _by_name(counters.results),
        "scores": [
            {"game": game, "strategy": address, "version": version, "hands": hands, "mean_score": total / hands}
            for (game, address, version), (hands, total) in sorted(counters.results.items())
        ],
        "strategies": [
            {
                "address": loaded.address,
                "routes": host.plans.routes_of(loaded),
                "version": loaded.version,
                "model_sha256": loaded.sha256,
                "quarantined": loaded.quarantined_until > now,
                "quarantined_s": round(max(0.0, loaded.quarantined_until - now), 1),
                "quarantine_cause": loaded.quarantine_cause if loaded.quarantined_until > now else None,
                "hung_threads": loaded.hung,
            }
            for loaded in host.plans.loaded
        ],
        "registry": host.models.status() if host.models is not None else None,
        "log": {"rows": stats.rows, "queue": stats.queue_depth, "spool": stats.spool_depth},
        "accounts": [account_status(account) for account in host.accounts],
        **_observed(host),
    }


def account_status(account: Account) -> Json:
    """The entry of one account."""
    return {
        "lobby": account.lobby.name,
        "account": account.name,
        "connected": account.connection.connected,
        "problem": account.problem,
        "reconnects": account.connection.reconnects,
        "tables": len(account.tables.sessions),
        "seeks": len(account.slots.reserved),
        "slots": account.slots.cap,
        "draining": account.seeking.stopped,
        "paused": account.seeking.paused,
    }


def _by_name(results: Mapping[tuple[str, str, str], tuple[int, float]]) -> Json:
    """Name of a strategy → number of hands and mean score, of all its games, levels and versions together."""
    found: dict[str, tuple[int, float]] = {}
    for (_, address, _), (hands, total) in sorted(results.items()):
        name = address.partition(":")[0]
        before = found.get(name, (0, 0.0))
        found[name] = before[0] + hands, before[1] + total
    return {name: {"hands": hands, "mean_score": total / hands} for name, (hands, total) in found.items()}


def _observed(host: Host) -> Json:
    """Latency, memory, the log's health, the models in use."""
    stats = host.log.stats
    return {
        "rss_bytes": children.resident_bytes(os.getpid()) or None,  # None: there is no /proc
        "health": health(host)["problems"],
        "outages": stats.outages,
        "rejected_rows": stats.rejected,
        "stages": {
            name: {"p50_ms": _ms(latency.quantile(0.5)), "p99_ms": _ms(latency.quantile(0.99))}
            for name, latency in stages(host).items()
        },
        "models": [
            {
                "strategy": loaded.address,
                "version": loaded.version,
                "model_sha256": loaded.sha256,
                "routes": host.plans.routes_of(loaded),
                "hands": hands,
            }
            for loaded, hands in host.runner.open_hands().most_common()
        ],
    }


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1000.0
