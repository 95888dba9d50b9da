"""Faults of the network between a host, its lobby and PostgreSQL, in rounds; each round's result is one line of a file.

    python -m benchmarks.network_faults --rounds 10 --out runs/network_faults.jsonl

The same command continues. The host reaches the lobby and the database through proxies. At random moments these delay
and split what they forward (``slow``), let nothing pass (``partition``), reset all connections (``reset``), or reset
the server's side alone (``half_open``). Then the host is drained, and every answer that the lobby received (``moves``)
must have exactly one row. The lobby's clock is long: a late move would be the host's fault.
"""

from __future__ import annotations

import asyncio
import json
import random
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import sqlalchemy as sa
import typer

from bothost import __version__, logs
from bothost.bench.chaos import Chaos
from bothost.config import StoreSettings
from bothost.testing.faulty_network import FaultyNetwork
from bothost.testing.postgres import new_database, temporary_postgres

Json = dict[str, Any]

ACCOUNTS, TABLES, PACE_MS = 8, 40, 300.0
GRANT_MS = 180_000
RECOVERY_S = 150.0
"""A half-open connection is noticed after two heartbeats of 20 s."""
FAULTS = ("slow", "partition", "reset", "half_open")
PLACES = ("lobby", "database")
PER_MINUTE = {f"{place} {fault}": 0.75 for place in PLACES for fault in FAULTS}
WRONG = ("rows_lost", "rows_doubled", "illegal_moves", "missed_deadlines")
"""Figures that must be 0."""


class NetworkChaos(Chaos):
    """Chaos of the network alone."""

    def __init__(self, folder: Path, store: StoreSettings, rng: random.Random) -> None:
        super().__init__(folder, store, rng)
        self.lobby_settings = {"grant_ms": GRANT_MS}
        self.networks: dict[str, FaultyNetwork] = {}
        self.times: dict[str, list[float]] = {}
        """Fault → seconds from its end until every account has moved again."""

    async def run(self, seconds: float, per_minute: dict[str, float]) -> Json:
        """See ``Chaos``."""
        url = sa.make_url(self.store.url)
        database_socket = f"{url.query['host']}/.s.PGSQL.5432"
        async with FaultyNetwork(0, self.rng) as lobby, FaultyNetwork(database_socket, self.rng) as database:
            self.networks = {"lobby": lobby, "database": database}
            near = sa.URL.create(url.drivername, url.username, url.password, "127.0.0.1", database.port, url.database)
            self.config = self.config.replace(self.store.url, near.render_as_string(hide_password=False))
            return await super().run(seconds, per_minute)

    def lobby_url(self) -> str:
        """The proxy's address."""
        network = self.networks["lobby"]
        network.target = int(self.lobby.url.split(":")[2].split("/")[0])
        return self.lobby.url.replace(str(network.target), str(network.port))

    def kinds(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """See ``Chaos``."""
        return {f"{place} {fault}": partial(self._fault, place, fault) for place in PLACES for fault in FAULTS}

    async def _fault(self, place: str, fault: str) -> None:
        network = self.networks[place]
        if fault in ("slow", "partition"):
            with network.slow() if fault == "slow" else network.partition():
                await asyncio.sleep(self.rng.uniform(1.0, 10.0))
        else:
            network.reset() if fault == "reset" else network.half_open()
        ended = time.monotonic()
        async with asyncio.timeout(RECOVERY_S):
            while not self.lobby.all_moved_since(ended):  # noqa: ASYNC110 (frames make it true)
                await asyncio.sleep(0.02)
        self.times.setdefault(f"{place} {fault}", []).append(round(time.monotonic() - ended, 2))


def campaign(
    rounds: Annotated[int, typer.Option(help="Rounds in all, with those of earlier calls.")] = 10,
    minutes: Annotated[float, typer.Option(help="Length of a round.")] = 2.0,
    out: Annotated[Path, typer.Option(help="Results, one round a line; new rounds are appended.")] = Path(
        "runs/network_faults.jsonl"
    ),
) -> None:
    """Run rounds. Exit code 1: an invariant was broken."""
    logs.configure(level="error")
    out.parent.mkdir(parents=True, exist_ok=True)
    done = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    with temporary_postgres() as server:
        for number in range(len(done) + 1, rounds + 1):
            done.append(play_round(number, minutes, new_database(server, f"network_{number}")))
            with out.open("a") as file:
                file.write(json.dumps(done[-1]) + "\n")
    print(summary(done))
    if any(each[name] for each in done for name in WRONG):
        raise typer.Exit(1)


def play_round(number: int, minutes: float, url: str) -> Json:
    """Play under faults, drain, and count. ``url``: of an empty PostgreSQL database."""
    with tempfile.TemporaryDirectory(prefix="bothost-network-") as folder:
        chaos = NetworkChaos(Path(folder), StoreSettings(url=url), random.Random(number))
        chaos.write_configuration(ACCOUNTS, TABLES, 0.0, PACE_MS)
        figures = asyncio.run(chaos.run(minutes * 60.0, PER_MINUTE))
    return {
        "round": number,
        "version": __version__,
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        **{name: figures[name] for name in ("moves", *WRONG)},
        "recoveries_s": chaos.times,
    }


def summary(rounds: list[Json]) -> str:
    """A table in Markdown: faults, and the time until every account has moved again."""
    counted = ", ".join(f"{sum(each[name] for each in rounds):,} {name}" for name in ("moves", *WRONG))
    lines = [f"{len(rounds)} rounds: {counted}", "", "| fault | times | s: median | worst |", "|---|---|---|---|"]
    for name in PER_MINUTE:
        times = sorted(seconds for each in rounds for seconds in each["recoveries_s"].get(name, ()))
        if times:
            lines.append(f"| {name.replace('_', '-')} | {len(times)} | {median(times):.1f} | {times[-1]:.1f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    typer.run(campaign)
