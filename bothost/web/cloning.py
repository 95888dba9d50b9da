"""The page "clone me": a person's own hands, the training of a clone of them, and the clones that there are."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bothost.errors import UsageError
from bothost.rules.game import Json
from bothost.store import consent
from bothost.store.query import HandQuery
from bothost.store.reader import iter_hands, together
from bothost.store.registry import Registry
from bothost.web.jobs import AT_ONCE, OF_VISITORS, Jobs
from bothost.web.opponents import LOBBY
from bothost.web.players import Names
from bothost.web.request_body import body
from bothost.web.site import Site
from bothost.web.viewers import Viewer

STRATEGY = "fm-clone"
GAMES = ("doudizhu", "othello", "mahjong")
"""The games that fm-clone plays."""
NEEDED = 20
"""Hands of a person from which a clone is offered."""


class Clone(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The clone that a person asks for."""

    game: str
    consents: bool = False
    tempo: bool = False
    """Whether it shall also take as long for its moves as the person."""


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
            Route("/api/clone/revoke", self.revoke, methods=["POST"]),
        ]

    def _name(self, request: Request) -> str:
        name = self._viewer(request).player
        if name is None:
            raise HTTPException(403, "play a hand first: a clone is made of your own hands")
        return name

    async def show(self, request: Request) -> Response:
        """The viewer's hands by game, whether they consent, their clones, the job that trains one now, and the last."""
        name = self._viewer(request).player
        if name is None:
            return JSONResponse({"player": None})
        found = await asyncio.to_thread(self._about, name)
        jobs = {"job": self._jobs.running(_job(name)), "last": self._jobs.last(_job(name))}
        return JSONResponse({"player": name, "needed": NEEDED, **jobs, **found})

    def _about(self, name: str) -> Json:
        given = consent.recorded(self._site.store).get((LOBBY, name))
        return {
            "hands": hands_of(self._site, name),
            "consents": given is not None and given.granted,
            "clones": clones_of(self._site, name),
        }

    async def train(self, request: Request) -> Response:
        """Train a clone of the viewer. The job's results are the training's figures and the registered version."""
        name, wanted = self._name(request), await body(request, Clone)
        if wanted.game not in GAMES:
            raise UsageError(f"{STRATEGY} does not play {wanted.game[:40]!r}", advice=f"choose {' or '.join(GAMES)}")
        if STRATEGY not in self._site.plugins.strategies:
            raise UsageError(f"{STRATEGY} is not installed here", advice="bothost plugin list shows why")
        hands = (await asyncio.to_thread(hands_of, self._site, name))[wanted.game]
        if hands < NEEDED:
            raise UsageError(f"{name} has played {hands} hands of {wanted.game}", advice=f"play {NEEDED - hands} more")
        if wanted.consents:
            await asyncio.to_thread(Names(self._site.store).agree, name)
        commands = await asyncio.to_thread(self._commands, name, wanted)
        most = AT_ONCE if self._viewer(request).kind == "operator" else OF_VISITORS
        return JSONResponse({"job": self._jobs.start(_job(name), commands, most=most).id})

    async def revoke(self, request: Request) -> Response:
        """The viewer takes back the consent to be imitated. Clones that exist stay."""
        name = self._name(request)
        await asyncio.to_thread(Names(self._site.store).agree, name, granted=False)
        return JSONResponse({})

    def _commands(self, name: str, wanted: Clone) -> list[list[str | Path]]:
        """The commands that train and register a clone."""
        plain = name if name.isascii() else "clone"  # versions are file names and parts of addresses
        version = f"{plain}-{len(clones_of(self._site, name)) + 1}-{secrets.token_hex(4)}"
        folder = Path(version)
        train = ["train", STRATEGY, "--player", name, "--lobby", LOBBY, "--option", f"game={wanted.game}"]
        train += ["--option", "curve=true", *(["--option", "tempo=true"] if wanted.tempo else [])]
        register = ["model", "import", STRATEGY, "--version", version, "--alias", ""]
        return [[*train, "--out", folder], [*register, folder / "weights"]]


def _job(name: str) -> str:
    """The name of the job that trains a clone of this person."""
    return f"clone {name}"


def hands_of(site: Site, name: str) -> dict[str, int]:
    """How many hands of each game a person has played here. Each bot at a table has logged the hand."""
    found = iter_hands(site.store, HandQuery(lobbies=(LOBBY,), players=(name,), closed=True))
    counted = Counter(seats[0].game.game for seats in together(found))
    return {game: counted[game] for game in GAMES}


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
