"""The routes of the pages and their data."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast, get_args

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from bothost.config.settings import is_loopback
from bothost.errors import BothostError, ModelError, StoreUnavailable, StrategyNotFound, UsageError
from bothost.rules.game import Json
from bothost.store.query import HandQuery, Result
from bothost.store.reader import Timeline
from bothost.web import brought, hands
from bothost.web.cloning import Cloning
from bothost.web.guard import LOOPBACK, Guard
from bothost.web.jobs import Job, Jobs
from bothost.web.live import Live, listed, seen
from bothost.web.operation import PAGES as OPERATOR_PAGES
from bothost.web.operation import Operation
from bothost.web.opponents import clear_leftovers
from bothost.web.play import Play
from bothost.web.players import COOKIE_S, Browser, Names
from bothost.web.request_body import address_of, body
from bothost.web.review import Reviews, installed, reviewers
from bothost.web.site import Site
from bothost.web.stream import Places, error_json, stream
from bothost.web.viewers import COOKIE, Viewer, Viewers

STATIC = Path(__file__).parent / "static"
PAGES = ("/", "/play", "/hands")
"""The pages for everybody, in the order of the navigation."""
ADDRESSES = (*PAGES, *OPERATOR_PAGES, "/clone", "/login", "/hand/{name}", "/play/{id}", "/table/{name}")
"""The addresses of all pages."""
WATCHERS = 256
"""Most streams of tables and reviews that are not an operator's. Players and operators find room beside them. Half of
them may come from one address, other than this machine, which may be a proxy."""
READERS, WAITING = 2, 128
"""Visitors whose hands are read from the log at the same time, and most that wait for this: operators do not."""
CROWDED = "too many people are watching: try again later"
MOST_NAMES = 100
"""Most games, strategies and players of one search: databases limit the length of a statement."""


class Web:
    """The application's state and its handlers."""

    def __init__(self, site: Site, viewers: Viewers) -> None:
        self.site = site
        self.viewers = viewers
        self.live = Live(site)
        self.reviews = Reviews(site)
        self.play = Play(site, self.viewer)
        self.jobs = Jobs(site)
        self.cloning = Cloning(site, self.viewer, self.jobs)
        self.operation = Operation(site, self.viewer, self.jobs)
        self._watching = Places(WATCHERS, CROWDED, WATCHERS // 2)
        self._waiting = Places(WAITING, CROWDED, WAITING // 2)
        self._readers = asyncio.Semaphore(READERS)

    def application(self, hosts: Collection[str] = LOOPBACK) -> Starlette:
        """``hosts``: the names by which browsers may reach this server."""
        routes = [
            Route("/api/session", self.session),
            Route("/api/login", self.log_in, methods=["POST"]),
            Route("/api/hands", self.list_hands),
            Route("/api/hands/{name}", self.show_hand),
            Route("/api/hands/{name}/review", self.stream_review),
            *self.play.routes(),
            *self.operation.routes(),
            *self.cloning.routes(),
            Route("/api/jobs/{id}", self.follow_job),
            Route("/api/jobs/{id}/cancel", self.cancel_job, methods=["POST"]),
            Route("/api/tables", self.stream_tables),
            Route("/api/tables/{name}", self.stream_table),
            Mount("/static", StaticFiles(directory=STATIC)),
            *brought.routes(self.site),
            *(Route(address, self.page) for address in ADDRESSES),
            Route("/{page:path}", self.no_page),
        ]
        return Starlette(
            routes=routes,
            middleware=[Middleware(Guard, hosts=hosts), Middleware(GZipMiddleware, compresslevel=5)],
            exception_handlers={HTTPException: _refused, BothostError: _failed},
            lifespan=self._running,
        )

    @contextlib.asynccontextmanager
    async def _running(self, app: Starlette) -> AsyncIterator[None]:
        await asyncio.to_thread(clear_leftovers, self.site.settings.host.data_dir)
        reading = asyncio.create_task(self.live.run(), name="live tables")
        try:
            yield
        finally:
            reading.cancel()
            await self.play.matches.aclose()
            await self.jobs.aclose()
            await asyncio.gather(reading, return_exceptions=True)

    def viewer(self, request: Request) -> Viewer:
        """Return the viewer. Raises HTTPException 401 if a login is required."""
        viewer = self.viewers.of(request.cookies.get(cookie_of(request)))
        if viewer is None:
            raise HTTPException(401, "log in first")
        return viewer

    async def session(self, request: Request) -> Response:
        """Return the viewer; start a session if no password is required."""
        viewer, token = self.viewers.of(request.cookies.get(cookie_of(request))), None
        # Behind a link from elsewhere the browser sends no cookie: a new session would replace the one it has.
        followed = "text/html" in request.headers.get("accept", "")
        if viewer is None and not followed and (begun := self.viewers.visit()) is not None:
            token, viewer = begun
        if viewer is not None and viewer.player is None:
            viewer.player = await asyncio.to_thread(Names(self.site.store).proven, Browser.of(request))
        kind = None if viewer is None else viewer.kind
        pages = (*PAGES, *OPERATOR_PAGES) if kind == "operator" else PAGES
        answer = JSONResponse({"viewer": kind, "pages": pages})
        return _with_cookie(answer, request, token) if token is not None else answer

    async def log_in(self, request: Request) -> Response:
        password = (await body(request, dict[str, str])).get("password", "")
        try:
            begun = self.viewers.log_in(password, request.cookies.get(cookie_of(request)), address_of(request))
        except PermissionError as error:
            raise HTTPException(429, str(error)) from None
        if begun is None:
            raise HTTPException(401, "the password is wrong")
        return _with_cookie(JSONResponse({"viewer": begun[1].kind}), request, begun[0])

    async def page(self, request: Request) -> Response:
        """Every address of a page answers with the one document; the script in it reads the address."""
        return FileResponse(STATIC / "index.html")

    async def no_page(self, request: Request) -> Response:
        """The same document for people who followed a wrong link, with the status of an address that does not exist."""
        if request.path_params["page"].startswith("api/"):
            raise HTTPException(404, "there is no such address")
        return FileResponse(STATIC / "index.html", 404)

    @contextlib.asynccontextmanager
    async def _reading(self, request: Request) -> AsyncIterator[None]:
        """The turn of a request that takes a thread for long. Each visitor has one at a time. Raises HTTPException."""
        viewer = self.viewer(request)
        if viewer.kind == "operator":
            yield
            return
        with self._waiting.one(_distant(request)):
            async with viewer.reading, self._readers:
                if await request.is_disconnected():
                    raise HTTPException(408, "the browser has gone")
                yield

    async def list_hands(self, request: Request) -> Response:
        self.viewer(request)
        asked = request.query_params
        games, strategies, players = (tuple(asked.getlist(name)) for name in ("games", "strategies", "players"))
        if len(games) + len(strategies) + len(players) > MOST_NAMES:
            raise HTTPException(400, f"a search has at most {MOST_NAMES} names")
        try:
            query = HandQuery(
                closed=True,
                games=games,
                strategies=strategies,
                players=players,
                since_us=_time(asked.get("since")),
                until_us=_time(asked.get("until"), 1),
                results=tuple(_result(name) for name in asked.getlist("results") if name),
                fallbacks=bool(asked.get("fallbacks")),
            )
            async with self._reading(request):
                found = await asyncio.to_thread(hands.listed, self.site, query, asked.get("before"))
        except (ValueError, OverflowError) as error:  # the day after the last one
            raise HTTPException(400, str(error)) from None
        return JSONResponse(found)

    async def _closed_hand(self, request: Request) -> Timeline:
        self.viewer(request)
        try:
            timeline = await asyncio.to_thread(hands.timeline_of, self.site, request.path_params["name"])
        except ValueError as error:
            raise HTTPException(404, str(error)) from None
        if timeline is None or timeline.hand.end is None:
            raise HTTPException(404, "there is no such hand, or it has not ended yet")
        return timeline

    async def show_hand(self, request: Request) -> Response:
        async with self._reading(request):
            timeline = await self._closed_hand(request)
            found = await asyncio.to_thread(hands.shown, self.site, timeline)
        record = timeline.hand.game
        game = self.site.game(record.game, record.rules)
        found["reviewers"] = [] if game is None else reviewers(self.site.plugins, game)
        return Response(msgspec.json.encode(found), media_type="application/json")

    async def stream_review(self, request: Request) -> Response:
        """What the strategy ``with`` thinks of the decisions of a hand, one after another; ``seat``: of this one."""
        async with self._reading(request):
            timeline = await self._closed_hand(request)
        record, asked = timeline.hand.game, request.query_params
        game = self.site.game(record.game, record.rules)
        try:
            seat = int(asked["seat"]) if asked.get("seat") else None
        except ValueError:
            raise HTTPException(400, "the seat must be a number") from None
        if game is None:
            raise HTTPException(400, f"the game {record.game} is not installed here")
        address = installed(self.site.plugins, game, asked.get("with", ""))
        return self._watched(request, self.reviews.run(self.viewer(request), timeline, address, seat))

    async def follow_job(self, request: Request) -> Response:
        """A command that this viewer started, again after every step, until it ends."""
        job = self._job(request)
        return stream(job.watch(), job.screens.one())

    async def cancel_job(self, request: Request) -> Response:
        job = self._job(request)
        if self.jobs.cancel(job) and self.viewer(request).kind == "operator":
            self.operation.audit(request, "cancel", job=job.name)
        return JSONResponse({})

    def _job(self, request: Request) -> Job:
        """The job of this address. Only the viewers who may follow and cancel it know its id."""
        self.viewer(request)
        job = self.jobs.of(request.path_params["id"])
        if job is None:
            raise HTTPException(404, "there is no such job")
        return job

    async def stream_tables(self, request: Request) -> Response:
        """The list of live tables, again after every change that this viewer may know."""
        viewer = self.viewer(request)

        async def lists() -> AsyncIterator[Json]:
            last = None
            async for _ in self.live.watch():
                if (tables := listed(self.live, viewer)) != last:
                    last = tables
                    yield {"tables": tables, "at": time.time()}

        return self._watched(request, lists())

    async def stream_table(self, request: Request) -> Response:
        """One live table as its viewer may see it, again after every change of that; ``over`` once it has ended."""
        viewer, name = self.viewer(request), request.path_params["name"]
        if not await asyncio.to_thread(hands.exists, self.site, name):
            raise HTTPException(404, "there is no such table")

        async def positions() -> AsyncIterator[Json]:
            version, last = -1, None
            async for _ in self.live.watch():
                live = self.live.hands.get(name)
                if live is None:
                    yield {"name": name, "over": True}
                    return
                if live.version != version:
                    version, position = live.version, seen(live, viewer)
                    if position != last:  # else the time would show that our seat was asked
                        last = position
                        yield position

        return self._watched(request, positions())

    def _watched(self, request: Request, messages: AsyncIterator[Json]) -> Response:
        """A stream that everybody may open. Operators always may; others where there is a place."""
        is_operator = self.viewer(request).kind == "operator"
        return stream(messages, None if is_operator else self._watching.one(_distant(request)))


def cookie_of(request: Request) -> str:
    """The name of the session's cookie. Browsers send cookies to all servers of a host, so the port is a part of it."""
    _, colon, port = request.headers.get("host", "").rpartition(":")
    return f"{COOKIE}_{port}" if colon and port.isdecimal() and port.isascii() else COOKIE


def _distant(request: Request) -> str:
    """The address of another machine; empty for this one, which may be a proxy for many."""
    address = address_of(request)
    return "" if is_loopback(address) else address


def _with_cookie(answer: Response, request: Request, token: str) -> Response:
    secure = request.url.scheme == "https"
    # It outlives the session, which ends some time after its last request: only the server knows when that is.
    answer.set_cookie(cookie_of(request), token, max_age=COOKIE_S, httponly=True, samesite="strict", secure=secure)
    return answer


def _result(name: str) -> Result:
    """Raises ValueError."""
    if name not in get_args(Result):
        raise ValueError(f"{name[:40]!r} is no result: {', '.join(get_args(Result))}")
    return cast(Result, name)


def _time(text: str | None, later: int = 0) -> int | None:
    """A time such as 2026-01-31T16:00Z, or the beginning of a day in UTC, ``later`` days on, in microseconds.

    Raises ValueError.
    """
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text[:40]!r} is no day or time") from None
    if "T" not in text:
        found += timedelta(days=later)
    return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1e6)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code)


async def _failed(request: Request, error: Exception) -> Response:
    assert isinstance(error, BothostError)
    asked = isinstance(error, UsageError | ModelError | StrategyNotFound)  # for what does not exist, or cannot be done
    status = 503 if isinstance(error, StoreUnavailable) else 400 if asked else 500
    return JSONResponse(error_json(error), status)
