"""The page "clone me": a person's own hands, the training of a clone of them, and the clones that there are."""

from __future__ import annotations

import asyncio
import secrets
import shutil
from collections.abc import Callable
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bothost.errors import UsageError
from bothost.store import consent
from bothost.store.query import HandQuery
from bothost.store.reader import latest_hands
from bothost.store.registry import Registry
from bothost.web.jobs import Job, Jobs
from bothost.web.opponents import LOBBY
from bothost.web.request_body import body
from bothost.web.site import Site
from bothost.web.viewers import Viewer

Json = dict[str, Any]
STRATEGY = "fm-clone"
GAMES = ("doudizhu", "othello", "mahjong")
"""What fm-clone plays."""
NEEDED = 20
"""Hands of a person from which a clone is offered."""
COUNTED = 1000
"""Hands are counted no further."""


class Clone(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The clone that a person asks for."""

    game: str
    consents: bool = False


class Cloning:
    """The handlers."""

    def __init__(self, site: Site, viewer: Callable[[Request], Viewer], jobs: Jobs) -> None:
        self._site = site
        self._viewer = viewer
        self._jobs = jobs

    def routes(self) -> list[Route]:
        return [
            Route("/api/clone", self.show),
            Route("/api/clone", self.train, methods=["POST"]),
        ]

    async def show(self, request: Request) -> Response:
        """The viewer's hands by game, whether they consent, and their clones."""
        name = self._viewer(request).player
        if name is None:
            return JSONResponse({"player": None})
        found = await asyncio.to_thread(self._about, name)
        return JSONResponse({"player": name, "needed": NEEDED, **found})

    def _about(self, name: str) -> Json:
        given = consent.recorded(self._site.store).get((LOBBY, name))
        return {
            "hands": {game: hands_of(self._site, name, game) for game in GAMES},
            "consents": given is not None and given.granted,
            "clones": clones_of(self._site, name),
        }

    async def train(self, request: Request) -> Response:
        """Train a clone of the viewer. The job's results are the training's figures and the registered version."""
        name, wanted = self._viewer(request).player, await body(request, Clone)
        if name is None:
            raise HTTPException(403, "play a hand first: a clone is made of your own hands")
        if wanted.game not in GAMES:
            raise UsageError(f"{STRATEGY} does not play {wanted.game[:40]!r}", advice=f"choose {' or '.join(GAMES)}")
        if STRATEGY not in self._site.plugins.strategies:
            raise UsageError(f"{STRATEGY} is not installed here", advice="bothost plugin list shows why")
        hands = await asyncio.to_thread(hands_of, self._site, name, wanted.game)
        if hands < NEEDED:
            raise UsageError(f"{name} has played {hands} hands of {wanted.game}", advice=f"play {NEEDED - hands} more")
        if wanted.consents:
            await asyncio.to_thread(
                lambda: consent.record(self._site.store, LOBBY, name, granted=True, reason="agreed in the browser")
            )
        job = await asyncio.to_thread(self._commands, name, wanted.game)
        return JSONResponse({"job": self._jobs.start(f"clone {name}", *job).id})

    def _commands(self, name: str, game: str) -> tuple[list[list[str]], Callable[[Job], None]]:
        """The commands that train and register a clone, and what cleans up after them."""
        version = f"{name}-{len(clones_of(self._site, name)) + 1}-{secrets.token_hex(2)}"
        folder = self._site.settings.host.data_dir.resolve() / "clones" / version
        train = ["train", STRATEGY, "--player", name, "--lobby", LOBBY, "--out", str(folder)]
        train += ["--option", f"game={game}", "--option", "curve=true"]
        register = ["model", "import", STRATEGY, str(folder / "weights"), "--version", version, "--alias", ""]
        return [train, register], lambda job: shutil.rmtree(folder, ignore_errors=True)


def hands_of(site: Site, name: str, game: str) -> int:
    """How many hands of a game a person has played here, up to ``COUNTED``."""
    query = HandQuery(lobbies=(LOBBY,), games=(game,), players=(name,), closed=True)
    return len({hand.game.game_id for hand in latest_hands(site.store, query, 4 * COUNTED)})


def clones_of(site: Site, name: str) -> list[Json]:
    """The clones of a person in the registry, the newest first."""
    found = []
    for made in Registry(site.store, site.settings.host.data_dir / "models").versions(STRATEGY):
        training = made.lineage.get("training")
        if isinstance(training, dict) and training.get("players") == [name]:
            shown = {"version": made.version, "address": f"{STRATEGY}:{made.version}", "created_us": made.created_us}
            found.append({**shown, "game": training.get("game"), "figures": training.get("player")})
            found[-1]["curve"] = training.get("curve")
    return sorted(found, key=lambda clone: -clone["created_us"])
