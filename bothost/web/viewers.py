"""The viewers of pages, and what they may see.

A *player* sees one seat, a *spectator* what is public until the hands are revealed, an *operator* what the accounts of
this host see, but not at a table where the same person plays. A browser never receives more than its viewer may see.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec

from bothost.hookspecs import Board
from bothost.rules.game import Json
from bothost.web.drawn import recent_moves

MOST_CHAT = 50
"""Lines of chat that a page shows, the last ones."""
SECRET_QUESTIONS = frozenset({"mahjong"})
"""Games in which whom the lobby asks, and when, may show what that seat holds."""
Kind = Literal["operator", "spectator", "player"]

COOKIE = "bothost_session"
SESSION_S = 12 * 3600.0
"""Lifetime of a session after its last request. It lasts at least as long as the game of its viewer."""
MAX_SESSIONS = 1000
"""More end that of the spectator who has been away for the longest time."""
LOGIN_TRIES, ALL_LOGIN_TRIES, LOGIN_WINDOW_S = 5, 100, 60.0
"""Wrong passwords from one address, and from all, that are answered in this time; more are refused unread."""


class Viewer(msgspec.Struct, kw_only=True):
    """A browser session."""

    kind: Kind
    player: str | None = None
    """The name under which this person plays, once they do: their browser has proven that it is its own."""
    plays_at: frozenset[str] = frozenset()
    """Tables of the embedded lobby at which this person sits now."""
    seen_at: float = 0.0
    reading: asyncio.Lock = msgspec.field(default_factory=asyncio.Lock)
    """Held by the one request of this viewer for logged hands that is being answered."""
    reviewing: asyncio.Lock = msgspec.field(default_factory=asyncio.Lock)
    """Held by the one review of this viewer that runs; others of theirs wait for it."""


class Viewers:
    """The sessions of this server, in memory. A restart ends them."""

    def __init__(self, password: str | None, *, spectators: bool, clock: Callable[[], float] = time.monotonic) -> None:
        """``password``: makes an operator; None: every visitor is one, which only suits a loopback address.
        ``spectators``: visitors without the password may watch and play."""
        self._password = password
        self._spectators = spectators
        self._clock = clock
        self._sessions: OrderedDict[str, Viewer] = OrderedDict()
        self._failures: deque[tuple[float, str]] = deque()
        """Time and address of the last wrong passwords."""

    def of(self, token: str | None) -> Viewer | None:
        """Return the viewer of a session cookie; None if the session does not exist."""
        viewer = self._sessions.get(token or "")
        now = self._clock()
        if viewer is None or (now - viewer.seen_at > SESSION_S and not viewer.plays_at):
            self._sessions.pop(token or "", None)
            return None
        viewer.seen_at = now
        self._sessions.move_to_end(token or "")
        return viewer

    def visit(self) -> tuple[str, Viewer] | None:
        """A session for a visitor without one; None where they must log in."""
        if self._password is None:
            return self._begin("operator")
        return self._begin("spectator") if self._spectators else None

    def log_in(self, password: str, token: str | None = None, address: str = "") -> tuple[str, Viewer] | None:
        """An operator's session; None for a wrong password. Raises PermissionError after too many wrong ones.

        ``token``: of the session until now. Its viewer becomes the operator, and the game of this viewer continues.
        ``address``: where the password comes from. One visitor's guesses do not lock the operator out.
        """
        now = self._clock()
        while self._failures and now - self._failures[0][0] > LOGIN_WINDOW_S:
            self._failures.popleft()
        tries = sum(tried == address for _, tried in self._failures)
        if tries >= LOGIN_TRIES or len(self._failures) >= ALL_LOGIN_TRIES:
            raise PermissionError(f"too many wrong passwords: wait {LOGIN_WINDOW_S:.0f} seconds")
        if self._password is None or not hmac.compare_digest(password.encode(), self._password.encode()):
            self._failures.append((now, address))
            return None
        viewer = self.of(token)
        self._sessions.pop(token or "", None)
        return self._begin("operator", viewer)

    def _begin(self, kind: Kind, viewer: Viewer | None = None) -> tuple[str, Viewer]:
        token, viewer = secrets.token_urlsafe(32), viewer or Viewer(kind=kind)
        viewer.kind, viewer.seen_at = kind, self._clock()
        self._sessions[token] = viewer
        if len(self._sessions) > MAX_SESSIONS:
            spectators = (of for of, known in self._sessions.items() if known.kind == "spectator" and of != token)
            del self._sessions[next(spectators, next(iter(self._sessions)))]
        return token, viewer


def _hide_mahjong(view: Json) -> Json:
    melds = [
        [{**meld, "tile": None} if meld["kind"] == "angang" else meld for meld in of_seat] for of_seat in view["melds"]
    ]
    recent = recent_moves(view["events"], view["seat"])
    return {**_without(view, "events"), "hand": [], "drawn": None, "melds": melds, "recent": recent}


def _hide_pairing(view: Json) -> Json:
    # The phase, too: which skill a player is about to use shows only when the skill takes effect.
    shown = _without(view, "start", "history", "drawn", "owed", "open", "phase")
    hands, deck = [["?"] * len(hand) for hand in view["hands"]], ["?"] * len(view["deck"])
    return {**shown, "hands": hands, "selected": [], "deck": deck}


def _without(view: Json, *keys: str) -> Json:
    return {key: value for key, value in view.items() if key not in keys}


_PUBLIC: dict[str, Callable[[Json], Json]] = {
    "doudizhu": lambda view: {**view, "hand": ""},
    "mahjong": _hide_mahjong,
    "othello": dict,
    "pairing": _hide_pairing,
}


def is_asked_in_secret(game: str, view: Json) -> bool:
    """Whether it shows what a seat holds that it is asked in this position: only who can claim a discard is."""
    return game in SECRET_QUESTIONS and view["phase"] == "claims"


def last_move(game: str, public: Json | None) -> Json | None:
    """The last move in what is public of a position: ``seat`` and ``notation``."""
    moves: Sequence[tuple[int, str]] = []
    if public is None:
        return None
    if game == "doudizhu":
        moves = public["history"]
    elif game == "mahjong":
        moves = public["recent"]
    elif game == "othello" and public["moves"]:  # in turn: who cannot move passes
        moves = [((public["start"]["turn"] + len(public["moves"]) - 1) % 2, public["moves"][-1])]
    return {"seat": moves[-1][0], "notation": moves[-1][1]} if moves else None


def public_view(game: str, view: Json, boards: Mapping[str, Board]) -> Json | None:
    """What everybody at the table knows of a seat's view; None where the game does not say what is public.

    ``boards``: those of plugins. What is public of a game of bothost itself, no plugin decides.
    """
    board = boards.get(game) or boards.get(f"{game.partition(':')[0]}:*")
    hide = _PUBLIC.get(game) or (None if board is None else board.public)
    # Events that only this seat receives count in ``seq``.
    try:
        return None if hide is None else _without(hide(view), "seq")
    except Exception:  # a plugin's function: nothing is shown rather than too much
        return None
