"""The operator's pages: models, trainings, health. Everybody else is refused.

What changes something is confirmed in the page and leaves a line in ``audit.log`` of ``host.data_dir``.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bothost.errors import ModelError, UsageError
from bothost.host.control import ask
from bothost.plugins import require, weights
from bothost.rules.game import Json
from bothost.store.registry import Registry
from bothost.strategy import Strategy
from bothost.training import metrics
from bothost.web.jobs import Jobs
from bothost.web.request_body import address_of, body
from bothost.web.site import Site
from bothost.web.viewers import Viewer

PAGES = ("/models", "/training", "/health")
RUNS = Path("runs")
"""Default output folder of ``bothost train``."""
ANSWER_S = 5.0
"""How long the host may take to answer."""
MAX_POINTS = 400
"""Points of a curve that a page gets."""


class Alias(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An alias that is to be moved: to ``version``, or back where there is none."""

    strategy: str
    alias: str
    version: str | None = None


class AccountName(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """LOBBY/ACCOUNT."""

    account: str


class StrategyAddress(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A strategy in quarantine."""

    strategy: str


class Challenge(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A version that is to become champion, if it wins against the one that is."""

    strategy: str
    version: str
    deals: int = 200
    game: str | None = None
    """None: the strategy's only game."""


class Operation:
    """The handlers."""

    def __init__(self, site: Site, viewer: Callable[[Request], Viewer], jobs: Jobs, runs: Path = RUNS) -> None:
        self._site = site
        self._viewer = viewer
        self._runs = runs
        self._jobs = jobs
        self._registry = Registry(site.store, site.settings.host.data_dir / "models")

    def routes(self) -> list[Route]:
        return [
            Route("/api/models", self.models),
            Route("/api/models/promote", self.promote, methods=["POST"]),
            Route("/api/models/rollback", self.rollback, methods=["POST"]),
            Route("/api/training", self.trainings),
            Route("/api/training/curves", self.curves),
            Route("/api/health", self.health),
            Route("/api/drain", self.drain, methods=["POST"]),
            Route("/api/accounts/{change}", self.change_account, methods=["POST"]),
            Route("/api/release", self.release, methods=["POST"]),
            Route("/api/models/gate", self.gate, methods=["POST"]),
        ]

    def _operator(self, request: Request) -> None:
        if self._viewer(request).kind != "operator":
            raise HTTPException(403, "this page is for operators")

    def audit(self, request: Request, action: str, **about: Any) -> None:
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        line = {"at": at, "from": address_of(request), "action": action, **about}
        folder = self._site.settings.host.data_dir
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "audit.log").open("a") as file:
            file.write(json.dumps(line) + "\n")

    async def models(self, request: Request) -> Response:
        self._operator(request)
        found = await asyncio.to_thread(self._models)
        for of in found:
            job = _gate(of["strategy"])
            of |= {"job": self._jobs.running(job), "last": self._jobs.last(job)}
        return JSONResponse({"strategies": found})

    def _models(self) -> list[Json]:
        found = []
        for name, strategy in sorted(self._site.plugins.strategies.items()):
            problem = ""
            try:
                packaged = weights.manifest(strategy)
            except ModelError as error:
                packaged, problem = None, str(error)
            versions: list[Json] = []
            for version, entry in (packaged.versions if packaged is not None else {}).items():
                sha256 = weights.model_sha256(entry.files)
                versions.append({"version": version, "sha256": sha256, "created_us": None, "lineage": None})
            for made in self._registry.versions(name):
                shown = {"version": made.version, "sha256": made.sha256, "created_us": made.created_us}
                versions.append({**shown, "lineage": made.lineage})
            if versions or problem:
                aliases = dict(packaged.aliases) if packaged is not None else {}
                moved = self._registry.pointers(name)
                aliases |= {alias: p.version for (_, alias), p in moved.items() if p.version is not None}
                history = [msgspec.to_builtins(p) for alias in aliases for p in self._registry.history(name, alias)]
                about = {"strategy": name, "games": strategy.games, "aliases": aliases, "history": history}
                found.append({**about, "versions": versions, "problem": problem})
        return found

    def _strategy(self, name: str) -> type[Strategy]:
        found: type[Strategy] = require(self._site.plugins, self._site.plugins.strategies, "strategy", name)
        return found

    async def promote(self, request: Request) -> Response:
        """Point an alias at a version, without a match: the history says so."""
        self._operator(request)
        wanted = await body(request, Alias)
        if wanted.version is None:
            raise UsageError("name the version to promote")
        strategy, reason = self._strategy(wanted.strategy), "by hand in the browser, without a match"
        pointer = await asyncio.to_thread(self._registry.promote, strategy, wanted.alias, wanted.version, reason=reason)
        self.audit(request, "promote", **msgspec.to_builtins(wanted))
        return JSONResponse(msgspec.to_builtins(pointer))

    async def rollback(self, request: Request) -> Response:
        self._operator(request)
        wanted = await body(request, Alias)
        strategy = self._strategy(wanted.strategy)
        pointer = await asyncio.to_thread(self._registry.back, strategy, wanted.alias, reason="by hand in the browser")
        self.audit(request, "rollback", strategy=wanted.strategy, alias=wanted.alias)
        return JSONResponse(msgspec.to_builtins(pointer))

    async def gate(self, request: Request) -> Response:
        """Let a version play for the championship, in a job. Its result is the promotion, or why there was none."""
        self._operator(request)
        wanted = await body(request, Challenge)
        games = self._strategy(wanted.strategy).games
        if not 1 <= wanted.deals <= 100_000:
            raise UsageError("a match has 1 to 100,000 deals")
        if wanted.game is not None and wanted.game not in games:
            raise UsageError(f"{wanted.strategy} plays {', '.join(games)}")
        self.audit(request, "gate", **msgspec.to_builtins(wanted))
        words = ["model", "promote", f"{wanted.strategy}:{wanted.version}", "--deals", str(wanted.deals)]
        if wanted.game is not None:
            words += ["--game", wanted.game]
        job = self._jobs.start(_gate(wanted.strategy), [words])
        return JSONResponse({"job": job.id})

    def _folders(self) -> dict[str, Path]:
        """Trainings by name, the latest first."""
        files = sorted(self._runs.glob("**/" + metrics.FILE), key=lambda file: -file.stat().st_mtime)
        return {str(file.parent.relative_to(self._runs)): file for file in files[:100]}

    async def trainings(self, request: Request) -> Response:
        self._operator(request)
        folders = await asyncio.to_thread(self._folders)
        found = [{"name": name, "written_us": int(file.stat().st_mtime * 1e6)} for name, file in folders.items()]
        return JSONResponse({"trainings": found, "folder": str(self._runs)})

    async def curves(self, request: Request) -> Response:
        """The numbers of one training, thinned out: name of the number → its values."""
        self._operator(request)
        file = (await asyncio.to_thread(self._folders)).get(request.query_params.get("name", ""))
        if file is None:
            raise HTTPException(404, "there is no such training")
        records = await asyncio.to_thread(metrics.read, file)
        records = records[:: max(1, -(-len(records) // MAX_POINTS))]
        names = list(dict.fromkeys(name for record in records for name in record))
        return JSONResponse({name: [_number(record.get(name)) for record in records] for name in names})

    async def health(self, request: Request) -> Response:
        """The status of the running host; ``problem`` where none answers."""
        self._operator(request)
        try:
            status = await asyncio.to_thread(ask, self._site.settings.host.data_dir, "status")
        except UsageError as error:
            return JSONResponse({"problem": str(error), "advice": error.advice})
        return JSONResponse({"status": status})

    async def drain(self, request: Request) -> Response:
        """Let the host finish its tables and end."""
        self._operator(request)
        return await self._control(request, "drain")

    async def change_account(self, request: Request) -> Response:
        """Pause an account, or resume it."""
        self._operator(request)
        if (change := request.path_params["change"]) not in ("pause", "resume"):
            raise HTTPException(404, "an account can be paused and resumed")
        wanted = await body(request, AccountName)
        return await self._control(request, change, account=wanted.account)

    async def release(self, request: Request) -> Response:
        """End the quarantine of a strategy."""
        self._operator(request)
        wanted = await body(request, StrategyAddress)
        return await self._control(request, "release", strategy=wanted.strategy)

    async def _control(self, request: Request, command: str, **arguments: str) -> Response:
        """Ask the running host, and note it. What the host refuses is not noted."""
        folder = self._site.settings.host.data_dir
        answer = await asyncio.to_thread(ask, folder, command, ANSWER_S, **arguments)
        self.audit(request, command, **arguments)
        return JSONResponse(answer)


def _gate(strategy: str) -> str:
    """The name of the job in which a version of this strategy plays for the championship."""
    return f"gate {strategy}"


def _number(value: Any) -> float | None:
    """JSON knows no infinity."""
    return value if isinstance(value, int | float) and abs(value) < 1e300 else None
