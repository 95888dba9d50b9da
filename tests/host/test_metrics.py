"""What operators see: metrics that agree with the log, health that turns when it must, no dead panel."""

import asyncio
import json
import re
from pathlib import Path

import httpx
import msgspec
import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from bothost import Player, Strategy
from bothost.cli.status import as_text
from bothost.config import MetricsSettings, RouteSettings
from bothost.errors import ConfigError
from bothost.host import metrics
from bothost.host.health import health
from bothost.host.latency import BOUNDS_S, Latency
from bothost.host.metrics_server import serving
from bothost.host.status import status_of
from bothost.store.engine import sqlite_path
from bothost.tables.router import Router
from bothost.testing.hosting import RandomStrategy

ROOT = Path(__file__).parents[2]
ANY_PORT = MetricsSettings(port=0)


async def pages(port):
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
        shown, health = await client.get("/metrics"), await client.get("/healthz")
    samples = {}
    for family in text_string_to_metric_families(shown.text):
        for sample in family.samples:
            samples[sample.name, *sorted(sample.labels.items())] = sample.value
    return samples, health


async def test_metrics_and_status_tell_what_the_log_holds(kit):
    async with kit.lobby(), kit.running(kit.settings()) as host, serving(host, ANY_PORT) as port:
        await kit.until(lambda: host.runner.counters.hands >= 6)
        samples, health = await pages(port)
        status = status_of(host)
        assert health.status_code == 200 and health.json()["connected"] == 3
    assert 0 < samples[("bothost_decisions_total",)] <= host.runner.counters.decisions == kit.count("decisions")
    assert samples["bothost_hands_total", ("end", "played")] >= 6
    assert samples["bothost_connected", ("account", "ada"), ("lobby", "home")] == 1
    assert samples["bothost_slots_cap", ("account", "ada"), ("lobby", "home")] == 1
    assert samples[("process_resident_memory_bytes",)] > 1e6
    for stage in ("fold", "decide", "durable", "send"):
        assert samples["bothost_stage_seconds_count", ("stage", stage)] > 0
        assert status["stages"][stage]["p50_ms"] <= status["stages"][stage]["p99_ms"]
    assert "latency" in as_text(status) and status["models"][0]["strategy"] == "test-random"
    msgspec.json.encode(status)


async def test_fallbacks_are_told_by_reason(kit):
    class Failing(Player):
        def decide(self, view, legal, budget):
            raise RuntimeError("no idea")

    class FailingStrategy(Strategy):
        name, version, games = "test-failing", "1", ("*",)

        def player(self, table):
            return Failing()

    routes = (RouteSettings(strategy="test-failing", fallback="test-random"),)
    async with kit.lobby(), kit.running(kit.settings(routes=routes), kit.module("bad", FailingStrategy)) as host:
        await kit.until(lambda: host.runner.counters.hands >= 1)
        text = generate_latest(metrics.registry(host)).decode()
    assert re.search(r'^bothost_fallbacks_total\{reason="error"\} [1-9]', text, re.M)
    assert re.search(r'^bothost_strategy_quarantined\{strategy="test-failing",version="1"\} 1', text, re.M)


async def test_status_counts_scores_by_game_address_and_version(kit):
    class Levelled(RandomStrategy):
        name, levels = "test-levelled", ("weak", "strong")

    addresses = ("test-levelled:weak", "test-levelled:strong")
    routes = (RouteSettings(strategy=addresses[0], account="ada"), RouteSettings(strategy=addresses[1]))
    async with kit.lobby(), kit.running(kit.settings(routes=routes), kit.module("levels", Levelled)) as host:
        await kit.until(lambda: host.runner.counters.hands >= 6)
        status = status_of(host)
    assert {(row["strategy"], row["version"]) for row in status["scores"]} == {(each, "1") for each in addresses}
    assert {row["game"] for row in status["scores"]} == {"doudizhu"}
    hands = sum(row["hands"] for row in status["scores"])
    assert status["results"]["test-levelled"]["hands"] == hands > 0
    assert re.search(r"doudizhu +test-levelled:weak +1 +\d+ seats? +mean score", as_text(status))


async def test_status_tells_strategies_with_one_address_apart_by_their_routes(kit):
    class Pooled(RandomStrategy):
        name, levels = "test-pooled", ("level-2",)

        class Options(msgspec.Struct, frozen=True):
            pool: int = 0

    routes = (
        RouteSettings(strategy="test-pooled", account="ada", options={"pool": 2}),
        RouteSettings(strategy="test-pooled", account="bob"),
        RouteSettings(strategy="test-pooled", account="bob", game="othello"),
        RouteSettings(strategy="test-pooled", level=2),
    )
    async with kit.lobby(), kit.running(kit.settings(routes=routes), kit.module("pooled", Pooled)) as host:
        await kit.until(lambda: len(host.runner.open_hands()) == 3)
        status = status_of(host)
        expected = [("test-pooled", [0]), ("test-pooled", [1, 2]), ("test-pooled:level-2", [3])]
        assert sorted((row["strategy"], row["routes"]) for row in status["models"]) == expected
        assert sorted((row["address"], row["routes"]) for row in status["strategies"]) == expected
        shown = as_text(status)
        assert re.search(r"test-pooled +1 +route\[0\] +at 1 seat$", shown, re.M)
        assert re.search(r"test-pooled +1 +route\[1\], route\[2\] +at 1 seat$", shown, re.M)
        host.plans.quarantine(next(iter(host.runner.open_hands())), "a test")
        assert re.search(r"test-pooled\S* +route\[.*\] +quarantined for", as_text(status_of(host)))
        host.plans.reload(Router(routes[3:], lambda name: False), quarantine_after=3, quarantine_s=60.0)
        assert {tuple(row["routes"]) for row in status_of(host)["models"]} == {(), (0,)}


async def test_health_fails_while_nothing_is_connected_and_is_well_while_draining(kit):
    kit.url = "ws://127.0.0.1:9/ws"
    host = kit.host(kit.settings(accounts=1))
    running = asyncio.create_task(host.run())
    async with serving(host, ANY_PORT) as port:
        await kit.until(lambda: host.accounts and host.accounts[0].last_problem)
        _, page = await pages(port)
        assert page.status_code == 503 and "no account is connected" in page.json()["problems"][0]
        async with httpx.AsyncClient(timeout=60) as client:
            assert (await client.get(f"http://127.0.0.1:{port}/livez")).status_code == 200
        host.drain()
        assert health(host)["status"] == "ok"
    await asyncio.wait_for(running, 30)


async def test_health_fails_when_rows_do_not_become_durable(kit, monkeypatch):
    monkeypatch.setattr("bothost.host.health.STUCK_S", 0.05)
    async with kit.lobby(), kit.running(kit.settings()) as host:
        await kit.until(lambda: host.runner.counters.hands >= 1)
        submit, stuck = host.log.submit, []

        def stick(records):
            stuck.append((submit(records), asyncio.get_running_loop().create_future()))
            return stuck[-1][1]

        host.log.submit = stick
        await kit.until(lambda: health(host)["status"] == "failing")
        found = health(host)
        host.log.submit = submit
        for durable, seen in stuck:
            seen.set_result(await durable)
    assert found["status"] == "failing" and "durable" in found["problems"][0]


async def test_health_fails_when_the_database_file_is_gone(kit):
    async with kit.lobby(), kit.running(kit.settings()) as host:
        await kit.until(lambda: host.runner.counters.hands >= 1)
        path = sqlite_path(host.settings.store.url)
        assert health(host)["status"] == "ok"
        path.rename(path.with_name("away.db"))
        found = health(host)
        path.with_name("away.db").rename(path)
        assert (found["status"], found["problems"]) == ("failing", [f"the database {path} was moved or deleted"])
        assert health(host)["status"] == "ok"


async def test_two_hosts_in_one_process_do_not_share_metrics(kit):
    async with kit.lobby(), kit.running(kit.settings()) as host:
        await kit.until(lambda: host.runner.counters.hands >= 1)
        idle = kit.host(kit.settings())
        assert b"bothost_decisions_total 0.0" in generate_latest(metrics.registry(idle))
        assert b"bothost_decisions_total 0.0" not in generate_latest(metrics.registry(host))
        await idle.aclose()


async def test_a_port_that_is_taken_is_a_configuration_error(kit):
    async with kit.lobby() as server:
        host = kit.host(kit.settings())
        with pytest.raises(ConfigError, match=r"metrics\.port"):
            async with serving(host, MetricsSettings(port=server.port)):
                pass
        await host.aclose()


async def test_every_metric_of_the_dashboard_exists(kit):
    async with kit.lobby(), kit.running(kit.settings()) as host:
        await kit.until(lambda: host.runner.counters.hands >= 1)
        text = generate_latest(metrics.registry(host)).decode()
    there = set(re.findall(r"^# TYPE (\S+)", text, re.M)) | set(re.findall(r"^([a-z_]+)", text, re.M))
    dashboard = json.loads((ROOT / "deploy/grafana/bothost.json").read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    asked = {name for query in queries for name in re.findall(r"\b(?:bothost|process)_[a-z_]+", query)}
    assert len(asked) >= 20
    assert asked - there == set()
    assert {name for name in there if name.startswith("bothost_")} - {"bothost_info"} - asked - COUNTED_APART == set()


COUNTED_APART = {
    "bothost_stage_seconds",
    "bothost_stage_seconds_count",
    "bothost_stage_seconds_sum",
    "bothost_uptime_seconds",
    "bothost_log_commits_total",
    "bothost_log_duplicate_rows_total",
    "bothost_dropped_notices_total",
}
"""Of use in a query by hand; no panel shows them."""


def test_latencies_fall_into_buckets():
    latency = Latency()
    assert latency.quantile(0.5) is None
    for seconds in (0.00005, 0.0001, 0.003, 99.0):
        latency.observe(seconds)
    assert latency.cumulative()[0] == 2 and latency.cumulative()[-1] == latency.total == 4
    assert latency.quantile(0.5) == 0.0001 and latency.quantile(0.75) == 0.005
    assert latency.quantile(1.0) == BOUNDS_S[-1], "beyond the last bound"
    assert Latency.merged([latency, latency]).total == 8
