"""The routes of the page "play": start a game, follow it, act, ask for a hint, leave."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bothost import rules
from bothost.web.cloning import clones_of
from bothost.web.matches import Match, Matches, Wanted, offers
from bothost.web.players import Browser
from bothost.web.request_body import body
from bothost.web.site import Site
from bothost.web.stream import stream
from bothost.web.viewers import Viewer


class Move(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    ask: str
    action: str


class Hint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    strategy: str


class Play:
    """The handlers. ``viewer``: who asks, or HTTPException 401."""

    def __init__(self, site: Site, viewer: Callable[[Request], Viewer]) -> None:
        self.matches = Matches(site)
        self._site = site
        self._viewer = viewer

    def routes(self) -> list[Route]:
        return [
            Route("/api/play", self.offers),
            Route("/api/play", self.begin, methods=["POST"]),
            Route("/api/play/{id}", self.follow),
            Route("/api/play/{id}/turn", self.turn),
            Route("/api/play/{id}/act", self.act, methods=["POST"]),
            Route("/api/play/{id}/hint", self.hint, methods=["POST"]),
            Route("/api/play/{id}/leave", self.leave, methods=["POST"]),
        ]

    async def offers(self, request: Request) -> Response:
        viewer = self._viewer(request)
        ours_first = sorted(rules.games(), key=lambda name: name not in rules.games(plugins=False))
        games = {name: game for name in ours_first if (game := self._site.game(name, "{}")) is not None}
        found = await asyncio.to_thread(offers, self._site, games)
        clones = await asyncio.to_thread(clones_of, self._site, viewer.player) if viewer.player else []
        for offer in found:
            own = [clone["address"] for clone in clones if clone["game"] == offer["game"]]
            offer["strategies"] = [{"name": name, "levels": []} for name in own] + offer["strategies"]
        return JSONResponse({"games": found, "running": self.matches.running(viewer), "name": viewer.player})

    async def begin(self, request: Request) -> Response:
        viewer = self._viewer(request)
        match, browser = await self.matches.begin(viewer, Browser.of(request), await body(request, Wanted))
        answer = JSONResponse({"id": match.id})
        browser.remember(request, answer)
        return answer

    def _match(self, request: Request) -> Match:
        match = self.matches.of(self._viewer(request), request.path_params["id"])
        if match is None:
            raise HTTPException(404, "this game is gone: the server restarted, it ended long ago, or it is not yours")
        return match

    async def follow(self, request: Request) -> Response:
        match = self._match(request)
        return stream(match.watch(), match.screens.one())

    async def turn(self, request: Request) -> Response:
        """Whether the player is asked for a move, for pages that hold no stream. It does not count as looking."""
        match = self._match(request)
        return JSONResponse({"asked": match.ended_at is None and match.seat.ask is not None})

    async def act(self, request: Request) -> Response:
        move = await body(request, Move)
        await self._match(request).act(move.ask, move.action)
        return JSONResponse({})

    async def hint(self, request: Request) -> Response:
        asked = await body(request, Hint)
        return JSONResponse(await self._match(request).hint(asked.strategy))

    async def leave(self, request: Request) -> Response:
        await self._match(request).leave()
        return JSONResponse({})
