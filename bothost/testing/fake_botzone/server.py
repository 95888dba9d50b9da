"""A fake server of Botzone's local AI on loopback, for tests of its adapter.

It follows the protocol (``docs/reference/adapters/botzone.md``). A poll stays open until there is news, and the answers
are headers of the next poll. Nothing is confirmed, and nothing names the game of a match. An illegal answer loses. A
match may be aborted. ``Traps`` adds faults.

::

    async with FakeBotzone(traps=Traps(bad_gateway_every=9)) as lobby:
        ...                              # connect adapters or hosts to lobby.url, with lobby.token(user)
        assert not lobby.illegal
"""

from __future__ import annotations

import asyncio
import collections
import random
import time
from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from bothost.testing.fake_botzone.judges import JUDGES, FlowerJudge, Illegal, Judge, read, written
from bothost.testing.fake_server import FakeServer

STAND_S = 30.0
"""How long a poll may stay open. Then it is answered with 504."""
MOST = 8
"""Most matches of one user at the same time."""


class Traps(msgspec.Struct, frozen=True, kw_only=True):
    """The faults. Counts are of polls over all users; 0: never."""

    bad_gateway_every: int = 0
    """502, and the answers are lost."""
    gateway_timeout_every: int = 0
    """504 at once, but the answers arrive."""
    break_every: int = 0
    """The answers arrive, but the response is lost."""
    noise_every: int = 0
    """The response also has the end of an unknown match, and lines end with CR LF."""
    abort_every: int = 0
    """Abort one match in this many."""
    garble_every: int = 0
    """A page of HTML instead of an answer."""
    asks_once: bool = False
    """Send a request only once, instead of repeating it until it has an answer."""
    think_s: float = 0.0
    """Thinking time of the opponents."""
    flowers: bool = False
    """Play mahjong with flowers."""


@dataclass(eq=False)
class Match:
    """A match of one user's local AI."""

    id: str
    user: str
    game: str
    judge: Judge
    simple: bool
    open: bool = True
    """Whether a request waits for its answer."""
    asked: bool = False
    """Whether a poll brought the open request."""
    over: bool = False
    aborted: bool = False
    answers: int = 0
    abort_after: int = 0


class FakeBotzone(FakeServer):
    """The platform. Use it in an ``async with``."""

    def __init__(self, *, traps: Traps | None = None, seed: int = 0) -> None:
        super().__init__(
            [
                Route("/api/{user}/{secret}/localai", self._localai),
                Route("/api/{user}/{secret}/runmatch", self._runmatch),
                Route("/api/{user}/{secret}/abortmatch", self._abortmatch),
            ],
            seed,
        )
        self.traps = traps or Traps()
        self.secrets: dict[str, str] = {}
        self.matches: dict[str, Match] = {}
        self.ended: list[Match] = []
        """All matches that are over, also those whose end was not sent yet."""
        self.illegal: list[tuple[str, str, str]] = []
        """(game, answer, why) of every answer that lost its match."""
        self.unasked: list[tuple[str, str]] = []
        """(match, answer) of every answer without a request."""
        self.answers: list[tuple[str, str]] = []
        self.orders: list[dict[str, str]] = []
        self.ordered_at: list[float] = []
        self.aborts: list[str] = []
        self.polls = 0
        self.at_once = 0
        """Most polls of one user that were open at the same time."""
        self._standing: collections.Counter[str] = collections.Counter()
        self._news: dict[str, asyncio.Event] = collections.defaultdict(asyncio.Event)
        self._finished: dict[str, list[Match]] = collections.defaultdict(list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def add(self, user: str) -> str:
        """Add an account. Returns its secret address."""
        self.secrets[user] = f"{self.rng.getrandbits(64):016x}"
        return self.token(user)

    def token(self, user: str) -> str:
        return f"{self.url}/api/{user}/{self.secrets[user]}/localai"

    def begin(self, user: str, game: str, slot: int = 0, *, simple: bool = False, seed: int | None = None) -> Match:
        """Start a match of a user's local AI against others."""
        kind = FlowerJudge if self.traps.flowers and game == "Chinese-Standard-Mahjong" else JUDGES[game]
        seed = self.rng.getrandbits(31) if seed is None else seed
        name = f"{self.rng.getrandbits(96):024x}"
        match = self.matches[name] = Match(name, user, game, kind(slot, seed, random.Random(seed)), simple)
        if self.traps.abort_every and len(self.matches) % self.traps.abort_every == 0:
            match.abort_after = 5
        self._after(match)
        return match

    # ------------------------------------------------------------------------------------------------------ matches

    def _after(self, match: Match) -> None:
        """Notify the user of a request, or of the end of the match."""
        match.open = match.asked = False
        if match.judge.request is None or match.aborted:
            match.over = True
            self.ended.append(match)
            self._finished[match.user].append(match)
        else:
            match.open = True
        self._news[match.user].set()

    def _heard(self, match: Match, text: str) -> None:
        if not match.open:
            self.unasked.append((match.id, text))
            return
        match.open = False
        match.answers += 1
        self.answers.append((match.id, text))
        try:
            match.judge.answer(read(text, match.judge.request, match.simple))
        except Illegal as error:
            match.judge.request = None
            self.illegal.append((match.game, text, str(error)))
        if match.abort_after and match.answers >= match.abort_after and match.judge.request is not None:
            self.struck.append("abort")
            match.aborted = True
        if self.traps.think_s:
            self.later(self.traps.think_s, self._after, match)
        else:
            self._after(match)

    # --------------------------------------------------------------------------------------------------------- HTTP

    def _user(self, request: Request) -> str | None:
        user = request.path_params["user"]
        return user if self.secrets.get(user) == request.path_params["secret"] else None

    async def _localai(self, request: Request) -> Response:
        user = self._user(request)
        if user is None:
            return PlainTextResponse("no such user", 404)
        self.polls += 1
        number = self.polls  # other polls come while this one is open
        if self.every(self.traps.bad_gateway_every, number, "bad gateway"):
            return PlainTextResponse("<html>502</html>", 502)
        for name, text in request.headers.items():
            match = self.matches.get(name.removeprefix("x-match-"))
            if name.startswith("x-match-") and match is not None and match.user == user:
                self._heard(match, text)
        if self.every(self.traps.gateway_timeout_every, number, "gateway timeout"):
            return PlainTextResponse("<html>504</html>", 504)
        self._standing[user] += 1
        self.at_once = max(self.at_once, self._standing[user])
        try:
            async with asyncio.timeout(STAND_S):
                while not (self._open(user) or self._finished[user]):
                    self._news[user].clear()
                    await self._news[user].wait()
        except TimeoutError:
            return PlainTextResponse("<html>504</html>", 504)
        finally:
            self._standing[user] -= 1
        if self.every(self.traps.break_every, number, "break"):
            return PlainTextResponse("0 0", headers={"Content-Length": "1000"})  # the connection breaks
        if self.every(self.traps.garble_every, number, "garble"):
            return PlainTextResponse("<html>Botzone is being maintained</html>")
        return PlainTextResponse(self._body(user, number))

    def _open(self, user: str) -> list[Match]:
        mine = [match for match in self.matches.values() if match.user == user and match.open]
        return [match for match in mine if not (self.traps.asks_once and match.asked)]

    def _body(self, user: str, number: int) -> str:
        asking, finished = self._open(user), self._finished.pop(user, [])
        lines = []
        for match in asking:
            match.asked = True
            lines += [match.id, written(match.judge.request, match.simple)]
        for match in finished:
            scores = () if match.aborted else match.judge.scores
            lines.append(" ".join([match.id, str(match.judge.me), str(len(scores)), *(f"{s:g}" for s in scores)]))
        noise = self.every(self.traps.noise_every, number, "noise")
        if noise:
            lines.append("feedfacefeedfacefeedface 1 2 2 0")
        return ("\r\n" if noise else "\n").join([f"{len(asking)} {len(finished) + noise}", *lines])

    async def _runmatch(self, request: Request) -> Response:
        user = self._user(request)
        if user is None:
            return PlainTextResponse("no such user", 404)
        headers = {name: value for name, value in request.headers.items() if name.startswith("x-")}
        self.orders.append(headers)
        self.ordered_at.append(time.monotonic())
        game = headers.get("x-game", "")
        if game not in JUDGES:
            return PlainTextResponse("no such game", 400)
        players: list[Any] = [headers.get(f"x-player-{slot}") for slot in range(JUDGES[game].players)]
        if players.count("me") != 1 or None in players or headers.get("x-usesimpleio") not in ("true", "false"):
            return PlainTextResponse("who plays?", 400)
        if sum(match.user == user and not match.over for match in self.matches.values()) >= MOST:
            return PlainTextResponse("too many matches", 403)
        simple = headers["x-usesimpleio"] == "true"
        return PlainTextResponse(self.begin(user, game, players.index("me"), simple=simple).id)

    async def _abortmatch(self, request: Request) -> Response:
        match = self.matches.get(request.headers.get("x-matchid", ""))
        if self._user(request) is None or match is None or match.over:
            return PlainTextResponse("no such match", 404)
        self.aborts.append(match.id)
        match.aborted = True
        self._after(match)
        return PlainTextResponse("")
