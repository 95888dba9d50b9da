"""Serves ``/metrics`` and ``/healthz`` of a running host over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import structlog
import uvicorn
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bothost.config import MetricsSettings
from bothost.errors import ConfigError
from bothost.host import metrics
from bothost.host.supervisor import Host
from bothost.serving import WebServer

_log = structlog.get_logger("bothost.host")


def application(host: Host, registry: CollectorRegistry) -> Starlette:
    """The two pages."""

    async def show_metrics(request: Request) -> Response:
        return Response(generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def show_health(request: Request) -> Response:
        health = metrics.health(host)
        return JSONResponse(health, 200 if health["status"] == "ok" else 503)

    return Starlette(routes=[Route("/metrics", show_metrics), Route("/healthz", show_health)])


@contextlib.asynccontextmanager
async def serving(host: Host, settings: MetricsSettings) -> AsyncIterator[int]:
    """Serve the host's pages in this event loop, and yield the port. Raises ConfigError if it cannot listen."""
    listening = _listen(settings.host, settings.port or 0)
    port: int = listening.getsockname()[1]
    config = uvicorn.Config(
        application(host, metrics.registry(host)),
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=1,
    )
    server = WebServer(config)
    running = asyncio.create_task(server.serve(sockets=[listening]), name="metrics")
    _log.info("metrics_served", url=f"http://{settings.host}:{port}/metrics")
    try:
        yield port
    finally:
        server.should_exit = True
        await asyncio.gather(running, return_exceptions=True)
        listening.close()


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(64)
    except OSError as error:
        listening.close()
        advice = f"another program may use port {port}: choose another, or leave metrics.port out"
        message = f"cannot listen on {host}:{port}: {error}"
        raise ConfigError(message, key="metrics.port", value=port, advice=advice) from None
    listening.setblocking(False)
    return listening
