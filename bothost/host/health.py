"""Whether a host is well: for ``/healthz``, ``bothost status`` and the metrics."""

from __future__ import annotations

import time

from bothost import __version__
from bothost.host.latency import Latency
from bothost.host.supervisor import Host
from bothost.messages import Json

STUCK_S = 10.0
"""If rows wait longer than this to become durable, the log is unhealthy."""


def stages(host: Host) -> dict[str, Latency]:
    """Stage of a decision → its latency so far, by sampling or once per batch.

    - ``fold``: apply a frame's events to the views and find requests (one frame in 16);
    - ``decide``: from a request's arrival to the worker's result on the event loop (one per batch);
    - ``durable``: from submitting rows until they are durable (one batch of the log);
    - ``send``: pass a batch of durable answers to the sockets.
    """
    return {
        "fold": Latency.merged(account.connection.sockets.fold for account in host.accounts),
        "decide": host.runner.decide,
        "durable": host.runner.recorder.batches.durable,
        "send": host.runner.sending,
    }


def health(host: Host) -> Json:
    """``status`` is ``ok`` while rows become durable, and an account is connected or may not be, or the host drains.
    A SQLite file that was moved, deleted or replaced is a problem, although rows in the spool are durable.

    An account may not be connected while another host holds its lease. Such a host is ready to take over.
    """
    problems = []
    connected = sum(account.connection.connected for account in host.accounts)
    waiting = sum(bool(account.place.waiting) for account in host.accounts)
    if not connected and not waiting and not host.draining:
        reasons = {problem for account in host.accounts if (problem := account.problem)}
        problems.append("no account is connected" + (f": {'; '.join(sorted(reasons))}" if reasons else ""))
    waiting_s = host.runner.recorder.batches.waiting_s(time.monotonic())
    if waiting_s > STUCK_S:
        problems.append(f"rows wait for {waiting_s:.0f} s to become durable")
    if displaced := host.log.displaced:  # an idle host writes nothing that would show it
        problems.append(f"the database {displaced}")
    if host.log.full:
        problems.append("the queue of the decision log is full")
    return {
        "status": "failing" if problems else "ok",
        "problems": problems,
        "host": host.settings.host.name,
        "version": __version__,
        "draining": host.draining,
        "accounts": len(host.accounts),
        "connected": connected,
        "waiting": waiting,
        "tables": len(host.seated),
    }
