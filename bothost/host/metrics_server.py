"""Serves ``/metrics``, ``/healthz`` and ``/livez`` of a running host over HTTP."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import structlog
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bothost.config import MetricsSettings
from bothost.host import metrics
from bothost.host.health import health
from bothost.host.supervisor import Host
from bothost.listening import listen, url_host
from bothost.serving import running

_log = structlog.get_logger("bothost.host")


def application(host: Host, registry: CollectorRegistry) -> Starlette:
    """The three pages."""

    async def show_metrics(request: Request) -> Response:
        return Response(generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def show_health(request: Request) -> Response:
        found = health(host)
        return JSONResponse(found, 200 if found["status"] == "ok" else 503)

    async def show_life(request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    pages = {"/metrics": show_metrics, "/healthz": show_health, "/livez": show_life}
    return Starlette(routes=[Route(path, page) for path, page in pages.items()])


@contextlib.asynccontextmanager
async def serving(host: Host, settings: MetricsSettings) -> AsyncIterator[int]:
    """Serve the host's pages in this event loop, and yield the port. Raises ConfigError if it cannot listen."""
    advice = "choose another, or leave metrics.port out"
    listening = listen(settings.host, settings.port or 0, key="metrics.port", advice=advice)
    async with running(application(host, metrics.registry(host)), listening, "metrics") as port:
        _log.info("metrics_served", url=f"http://{url_host(settings.host)}:{port}/metrics")
        yield port
