"""Games of people against bots, at an embedded lobby inside this process."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

import msgspec
import structlog
import websockets

from bothost import rules
from bothost.errors import StoreUnavailable, UsageError
from bothost.host.tasks import stop
from bothost.lobby_server import LobbyServer, ServerSettings, serve
from bothost.rules.game import Game, Json
from bothost.store.query import HandQuery
from bothost.store.reader import latest_hands
from bothost.strategy import Table
from bothost.web.cloning import GAMES as CLONABLE
from bothost.web.hands import name_of
from bothost.web.hints import Adviser
from bothost.web.opponents import LOBBY, bots_of, running
from bothost.web.players import Browser, Names, one_form
from bothost.web.review import installed, reviewers
from bothost.web.seat import Seat
from bothost.web.site import Site
from bothost.web.stream import OPEN_ELSEWHERE, SCREENS, Changes, Places
from bothost.web.viewers import Viewer

MAX_MATCHES = 4
"""Games at once: each has a process of its own."""
MATCHES_EACH = 2
"""Games of one visitor at once. A game that its player left counts until the lobby has played the rest."""
AWAY_S = 600.0
"""A player who has not looked for this long gives up the seat when another player finds no room for a game."""
THINKING_S = 86_400.0
"""How long a person without a clock may think, as long as there is room for others."""
START_S = 60.0
"""How long the bots may take to sit down."""
KEPT_S = 600.0
"""How long a finished game can still be looked at."""
REST_S = 180.0
"""How long the rest of a hand may take after its player left."""
NOBODY = "(nobody)"
"""The account that the lobby needs before the first player comes. No person can have this name."""
LOG_S = 10.0
"""How long the log may take to show a finished hand."""

log = structlog.get_logger("bothost.web")


class Wanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The game that a person asks for."""

    name: str
    game: str
    opponents: tuple[str, ...]
    """Addresses of strategies, one a seat."""
    rules: dict[str, Any] = {}
    grant_ms: int = 60_000
    """Time for each action; 0: no clock."""
    bank_ms: int = 0
    consents: bool = False
    """Whether strategies may be trained to imitate this person."""


class Match:
    """One game of one person."""

    def __init__(self, site: Site, viewer: Viewer, seat: Seat) -> None:
        self.id = secrets.token_hex(4)
        self.viewer = viewer
        self.seat = seat
        self.review: str | None = None
        """Name of the logged hand, once there is one."""
        self.ended_at: float | None = None
        self.left = False
        """Whether its player left: the lobby plays the rest of the hand for them, if it has started."""
        self._site = site
        self.started_us = time.time_ns() // 1000
        self._changes = Changes()
        self.screens = Places(SCREENS, OPEN_ELSEWHERE)
        self._seen_at = time.monotonic()
        self._socket: Any = None
        self.advisers: dict[str, Adviser] = {}
        """Address → who gives its hints."""
        self._advising = asyncio.Lock()

    # ------------------------------------------------------------------------------------------------ for the browser

    async def watch(self) -> AsyncIterator[Json]:
        """The game as its player sees it, again after every change, until it is over and logged."""
        try:
            async for _ in self._changes.each():
                ended = self.ended_at is not None
                yield {
                    **self.seat.shown(time.monotonic()),
                    "id": self.id,
                    "review": self.review,
                    "left": self.left,
                    "ended": ended,
                    "clonable": self.seat.game.name in CLONABLE,
                }
                if ended:
                    return
        finally:
            self._seen_at = time.monotonic()

    async def act(self, ask: str, notation: str) -> None:
        """Answer a question. Raises UsageError."""
        try:
            frame = self.seat.act(ask, notation)
        except ValueError as error:
            raise UsageError(str(error)) from None
        await self._send(frame)
        await self._changes.note()

    async def leave(self) -> None:
        """Give up the seat: the lobby plays the rest of the hand. Raises UsageError where the game is over."""
        self.left |= self._socket is not None  # before the lobby answers
        await self._send(self.seat.leave())

    async def leave_if_away(self) -> None:
        """Give up the seat of a player who has not looked for a long time: without a clock the hand would never end."""
        if not self.left and not self.screens.taken and time.monotonic() - self._seen_at >= AWAY_S:
            with contextlib.suppress(UsageError):
                await self.leave()

    async def hint(self, address: str) -> Json:
        """What a strategy would play now, and why. One at a time. Raises UsageError, ModelError, PluginError."""
        if self._advising.locked():
            raise UsageError("another hint is being worked out", advice="wait until it is there")
        async with self._advising:
            seat = self.seat
            address = installed(self._site.plugins, seat.game, address)
            if address not in self.advisers:
                await asyncio.to_thread(self._site.plugins.resolve, address)  # a level that is unknown gets no thread
            view = seat.view
            if view is None or seat.ask is None:
                raise UsageError("there is nothing to decide now")
            if self.ended_at is not None:
                raise UsageError("the game is over")
            if address not in self.advisers:
                table = Table(lobby=LOBBY, table=seat.table, game=seat.game, seat=seat.seat, seed=0)
                self.advisers[address] = Adviser(self._site, address, table)
            return await self.advisers[address].hint(view)

    # -------------------------------------------------------------------------------------------------- for Matches

    async def play(
        self, url: str, opponents: contextlib.AbstractAsyncContextManager[Any], stood_up: Callable[[], None]
    ) -> None:
        """Sit down, let the bots come, play until the table is over. ``stood_up``: called when the seat is free."""
        try:
            async with websockets.connect(url, compression=None, proxy=None) as socket:
                self._socket = socket
                await self._send(self.seat.hello())
                while self.seat.state == "connecting":
                    await self._receive(START_S)
                async with opponents as process:
                    await self._while("waiting", process, within_s=START_S)
                    await self._while("playing", process)
                    stood_up()
                    await self._find_hand()
        except (OSError, TimeoutError, websockets.WebSocketException) as error:
            log.warning("a game in the browser ended early", error=str(error), table=self.seat.table)
            self.seat.notice = self.seat.notice or f"the game ended early: {error}"
        finally:
            self._socket = None
            self.seat.state, self.ended_at = "over", time.monotonic()
            await self._changes.note()
            await asyncio.gather(*(adviser.aclose() for adviser in self.advisers.values()))

    async def _while(self, state: str, process: asyncio.subprocess.Process, within_s: float = math.inf) -> None:
        """Follow the table while the game is in this state. Raises TimeoutError where the bots do not play."""
        ends = time.monotonic() + within_s
        while self.seat.state == state:
            if process.returncode is not None or time.monotonic() > ends:
                problem = "did not come" if state == "waiting" else "have gone"
                raise TimeoutError(f"the opponents {problem}: see their log in the folder `play` of host.data_dir")
            with contextlib.suppress(TimeoutError):
                await self._receive(1.0)

    async def _receive(self, timeout_s: float) -> None:
        async with asyncio.timeout(timeout_s):
            data = await self._socket.recv()
        for frame in self.seat.receive(data, time.monotonic()):
            await self._send(frame)
        if self.seat.table:
            self.viewer.plays_at |= {self.seat.table}
        await self._changes.note()

    async def _find_hand(self) -> None:
        """The hand in the log of the bots, as the review shows it."""
        query = HandQuery(lobbies=(LOBBY,), closed=True, since_us=self.started_us)
        ends = time.monotonic() + (REST_S if self.left else LOG_S)
        while self.seat.table and self.review is None and time.monotonic() < ends:
            with contextlib.suppress(StoreUnavailable):  # it may come back
                found = await asyncio.to_thread(latest_hands, self._site.store, query, 4 * MAX_MATCHES)
                self.review = next((name_of(hand) for hand in found if hand.game.table == self.seat.table), None)
            await asyncio.sleep(0.3)

    async def _send(self, frame: bytes) -> None:
        if self._socket is None:
            raise UsageError("the game is over")
        await self._socket.send(frame.decode())


class Matches:
    """All games of this server, and the lobby at which they are played."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._open = contextlib.AsyncExitStack()
        self._lobby: LobbyServer | None = None
        self._starting = asyncio.Lock()
        self._matches: dict[str, Match] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._names: dict[str, str] = {}
        """Match → name of its player."""
        self._people = Names(site.store)

    async def aclose(self) -> None:
        await stop(self._tasks.values())
        await self._open.aclose()

    def of(self, viewer: Viewer, number: str) -> Match | None:
        """A game of this viewer; None where there is none: no viewer sees the seat of another."""
        match = self._matches.get(number)
        return match if match is not None and match.viewer is viewer else None

    def running(self, viewer: Viewer) -> dict[str, Json]:
        """The unfinished games of a viewer: match → name of the game, and when it started. Two may be of one game."""
        ours = (m for m in self._matches.values() if m.viewer is viewer and m.id in self._names)
        return {m.id: {"game": m.seat.game.name, "started_us": m.started_us} for m in ours}

    async def begin(self, viewer: Viewer, browser: Browser, wanted: Wanted) -> tuple[Match, Browser]:
        """Start a game; returns it, and the browser with the name. Raises UsageError where something about it is wrong,
        the name is another browser's, or too many games are played, here or by this visitor.
        """
        game, trusted = self._checked(wanted), viewer.kind == "operator"
        name = one_form(wanted.name)
        async with self._starting:
            self._forget_old()
            if sum(self._matches[number].viewer is viewer for number in self._tasks) >= MATCHES_EACH:
                problem = f"{MATCHES_EACH} of your games are being played here"
                raise UsageError(problem, advice="wait until one of them is over")
            if len(self._tasks) >= MAX_MATCHES:
                await asyncio.gather(*(self._matches[number].leave_if_away() for number in self._tasks))
                raise UsageError(f"{MAX_MATCHES} games are being played here", advice="wait until one of them is over")
            lobby = await self._opened()
            # Last of what may be refused: only the answer to a game that began gives the browser the key of its name.
            browser = await asyncio.to_thread(self._people.claim, browser, name, trusted=trusted)
            if name in self._names.values():
                raise UsageError(f"{name} is playing already", advice="finish that game, or choose another name")
            token = secrets.token_urlsafe(32)
            attributes: dict[str, Any] = {"room": secrets.token_hex(8)}
            clock = {"grant_ms": wanted.grant_ms, "bank_ms": wanted.bank_ms if wanted.grant_ms else 0, "hands": 1}
            match = Match(self._site, viewer, Seat(game, token, {**attributes, **clock}))
            bots = bots_of(wanted.opponents, match.id)
            lobby.lobby.accounts.add(name, token)
            for bot in bots:
                lobby.lobby.accounts.add(bot.name, bot.token)
            self._matches[match.id], self._names[match.id] = match, name
            if viewer.kind == "spectator":
                viewer.kind = "player"
            viewer.player = name
            opponents = running(self._site.settings, match.id, lobby.url, game, bots, attributes)
            names = [bot.name for bot in bots]
            self._tasks[match.id] = asyncio.create_task(self._play(match, lobby, opponents, names), name="match")
        if wanted.consents:
            await asyncio.to_thread(self._people.agree, name)
        return match, browser

    def _checked(self, wanted: Wanted) -> Game:
        try:
            game = rules.game(wanted.game, **wanted.rules)
        except Exception as error:  # whatever a plugin's game says about rules
            raise UsageError(f"{wanted.game[:40]}: {error}"[:300]) from None
        if len(wanted.opponents) != game.num_seats - 1:
            raise UsageError(f"{wanted.game} takes {game.num_seats - 1} opponents, not {len(wanted.opponents)}")
        for address in wanted.opponents:
            self._site.plugins.resolve(installed(self._site.plugins, game, address))
        if not 0 <= wanted.grant_ms <= 3_600_000 or not 0 <= wanted.bank_ms <= 3_600_000:
            raise UsageError("the clock is within 0 and an hour")
        return game

    async def _opened(self) -> LobbyServer:
        """The lobby; it starts with the first game, and only the players of these games have an account."""
        if self._lobby is None:
            nobody = {NOBODY: secrets.token_urlsafe(32)}
            settings = ServerSettings(tokens=nobody, port=0, wait_s=START_S, idle_s=THINKING_S)
            self._lobby = await self._open.enter_async_context(serve(settings))
        return self._lobby

    async def _play(self, match: Match, lobby: LobbyServer, opponents: Any, bots: Sequence[str]) -> None:
        def stood_up() -> None:
            if (name := self._names.pop(match.id, None)) is not None:
                lobby.lobby.dismiss(name)

        try:
            await match.play(lobby.url, opponents, stood_up)
        except Exception:
            log.exception("a game in the browser failed", table=match.seat.table)
        finally:
            match.viewer.plays_at -= {match.seat.table}
            del self._tasks[match.id]
            stood_up()
            for name in bots:
                lobby.lobby.dismiss(name)

    def _forget_old(self) -> None:
        now = time.monotonic()
        for number, match in list(self._matches.items()):
            if match.ended_at is not None and now - match.ended_at > KEPT_S:
                del self._matches[number]


def offers(site: Site, games: Mapping[str, Game]) -> list[Json]:
    """Return the games that can be played, with seats, rules of each preset, the default first, and strategies."""
    return [
        {
            "game": name,
            "seats": game.num_seats,
            "presets": _presets(site, name) or {"default": game.rules},
            "strategies": reviewers(site.plugins, game),
        }
        for name, game in games.items()
    ]


def _presets(site: Site, name: str) -> Json:
    made = {preset: site.game(name, json.dumps({"preset": preset})) for preset in rules.presets(name)}
    return {preset: game.rules for preset, game in made.items() if game is not None}
