"""The numbers that a host reports to Prometheus. A scrape reads counters that the host keeps anyway."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from bothost import __version__
from bothost.host.health import health, stages
from bothost.host.latency import BOUNDS_S
from bothost.host.supervisor import Host


def registry(host: Host) -> CollectorRegistry:
    """A registry with the host's numbers and those of its process (memory, CPU, open files)."""
    made = CollectorRegistry()
    ProcessCollector(registry=made)
    made.register(HostCollector(host))
    return made


class HostCollector(Collector):
    """Reads a host's numbers during a scrape. It runs on the event loop, like all code that changes them."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def describe(self) -> list[Metric]:
        """Return no metrics, because none are known before the first scrape."""
        return []

    def collect(self) -> Iterator[Metric]:
        yield from self._life()
        yield from self._decisions()
        yield from self._accounts()
        yield from self._log()
        yield from self._strategies()

    def _life(self) -> Iterator[Metric]:
        host = self._host
        info = GaugeMetricFamily("bothost_info", "This host; always 1.", labels=["host", "version", "config_hash"])
        info.add_metric([host.settings.host.name, __version__, host.config_hash], 1)
        yield info
        yield _gauge("bothost_healthy", "1 while /healthz answers 200.", health(host)["status"] == "ok")
        yield _gauge("bothost_draining", "1 while the host takes no new tables, to end.", host.draining)
        yield _gauge("bothost_uptime_seconds", "Since the start.", time.monotonic() - host.runner.counters.started)
        yield _gauge("bothost_tables", "Tables that we sit at.", len(host.seated))
        yield _gauge("bothost_tables_cap", "limits.tables.", host.capacity.cap)

    def _decisions(self) -> Iterator[Metric]:
        counters = self._host.runner.counters
        yield _counter("bothost_decisions", "Decisions made, fallbacks included.", counters.decisions)
        hands = CounterMetricFamily(
            "bothost_hands", "Hands that ended, one for each seat of ours: played or aborted.", labels=["end"]
        )
        hands.add_metric(["played"], counters.hands - counters.aborted)
        hands.add_metric(["aborted"], counters.aborted)
        yield hands
        fallbacks = CounterMetricFamily(
            "bothost_fallbacks", "Decisions that the strategy did not make, by reason.", labels=["reason"]
        )
        for reason, count in sorted(counters.fallbacks.items()):
            fallbacks.add_metric([reason], count)
        yield fallbacks
        took = HistogramMetricFamily(
            "bothost_stage_seconds",
            "Latency of the stages of a decision: fold (a frame's events into views), decide (from the request to the "
            "strategy's answer), durable (its rows), send (the move).",
            labels=["stage"],
        )
        for name, latency in stages(self._host).items():
            bounds = [*map(str, BOUNDS_S), "+Inf"]
            took.add_metric([name], list(zip(bounds, latency.cumulative(), strict=True)), latency.sum_s)
        yield took

    def _accounts(self) -> Iterator[Metric]:
        labels = ["lobby", "account"]
        connected = GaugeMetricFamily("bothost_connected", "1 while the lobby has logged us in.", labels=labels)
        waiting = GaugeMetricFamily("bothost_waiting", "1 while another host holds the lease.", labels=labels)
        reconnects = CounterMetricFamily("bothost_reconnects", "Attempts to connect again.", labels=labels)
        frames = CounterMetricFamily("bothost_frames", "Frames received.", labels=labels)
        used = GaugeMetricFamily("bothost_slots_used", "Seats held or asked for.", labels=labels)
        cap = GaugeMetricFamily("bothost_slots_cap", "Seats that may be held.", labels=labels)
        dropped = CounterMetricFamily("bothost_dropped_events", "Events about tables that are not ours.", labels=labels)
        for account in self._host.accounts:
            values = [account.lobby.name, account.name]
            connected.add_metric(values, account.connection.connected)
            waiting.add_metric(values, bool(account.place.waiting))
            reconnects.add_metric(values, account.connection.reconnects)
            frames.add_metric(values, account.connection.sockets.frames)
            used.add_metric(values, account.slots.used)
            cap.add_metric(values, account.slots.cap)
            dropped.add_metric(values, account.tables.dropped)
        yield from (connected, waiting, reconnects, frames, used, cap, dropped)

    def _log(self) -> Iterator[Metric]:
        stats = self._host.log.stats
        yield _counter("bothost_log_rows", "Rows committed to the database.", stats.rows)
        yield _counter("bothost_log_commits", "Commits.", stats.commits)
        yield _counter("bothost_log_duplicate_rows", "Replayed rows that were there already.", stats.duplicates)
        yield _counter("bothost_log_rejected_rows", "Rows that no database takes: a bug.", stats.rejected)
        yield _counter("bothost_log_outages", "Times that the database went away.", stats.outages)
        yield _gauge("bothost_log_queue_rows", "Rows submitted and not durable yet.", stats.queue_depth)
        yield _gauge("bothost_log_spool_rows", "Rows in the spool, not in the database yet.", stats.spool_depth)
        waiting_s = self._host.runner.recorder.batches.waiting_s(time.monotonic())
        yield _gauge("bothost_log_waiting_seconds", "How long rows wait to become durable.", waiting_s)

    def _strategies(self) -> Iterator[Metric]:
        host = self._host
        now = time.monotonic()
        playing = host.runner.open_hands()
        hands = GaugeMetricFamily(
            "bothost_strategy_hands",
            "Open hands, one for each seat of ours, by who plays them.",
            labels=["strategy", "version", "model"],
        )
        quarantined = GaugeMetricFamily(
            "bothost_strategy_quarantined", "1 while the strategy gets no new tables.", labels=["strategy", "version"]
        )
        hung = GaugeMetricFamily(
            "bothost_strategy_hung_threads", "Threads that the strategy holds for good.", labels=["strategy", "version"]
        )
        kept: dict[tuple[str, str], tuple[bool, int]] = {}
        models: Counter[tuple[str, str, str]] = Counter()
        for loaded in host.plans.loaded:  # the same address with other options is the same series
            key = (loaded.address, loaded.version)
            before = kept.get(key, (False, 0))
            kept[key] = (before[0] or loaded.quarantined_until > now, before[1] + loaded.hung)
            models[(*key, (loaded.sha256 or "")[:12])] += playing[loaded]
        for labels, count in sorted(models.items()):
            hands.add_metric(labels, count)
        for names, (is_quarantined, threads) in sorted(kept.items()):
            quarantined.add_metric(names, is_quarantined)
            hung.add_metric(names, threads)
        yield from (hands, quarantined, hung)
        yield _counter("bothost_dropped_notices", "Notices to plugins that were too slow.", host.runner.hooks.dropped)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(name, text, value=value)
