"""Boards that plugins bring, served from their folders.

A board runs in the viewer's page, so it can do what the viewer can do there. It cannot load code from elsewhere or send
anything elsewhere: the security headers of ``guard`` hold for it too. docs/guide/write-a-board.md says what is left.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from bothost.web.site import Site

SUFFIXES = frozenset({".js", ".css", ".svg", ".png", ".webp", ".json"})
"""Allowed file types of a board. HTML pages and the plugin's Python files are not served."""


class BoardFiles(StaticFiles):
    """The files of one board. Links out of the folder are not followed."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        parts = PurePosixPath(path)
        if parts.suffix.lower() not in SUFFIXES or any(part.startswith(".") for part in parts.parts):
            raise HTTPException(404, "a board has no such file")
        return await super().get_response(path, scope)


def routes(site: Site) -> list[BaseRoute]:
    """``/api/boards`` lists game → address of its module; ``/boards/GAME/`` has the files."""
    folders = {game: board.folder for game, board in site.plugins.boards.items() if board.folder is not None}
    addresses = {game: f"/boards/{game}/board.js" for game in folders}

    async def listed(request: Request) -> Response:
        return JSONResponse(addresses)

    return [
        Route("/api/boards", listed),
        *(Mount(f"/boards/{game}", BoardFiles(directory=folder)) for game, folder in folders.items()),
        Mount("/boards", _missing),
    ]


async def _missing(scope: Scope, receive: Receive, send: Send) -> None:
    raise HTTPException(404, "there is no board for this game")
