"""Seeks matches at Botzone: orders one, or waits until another player starts one."""

from __future__ import annotations

import msgspec

from bothost import messages as m
from bothost.lobbies.botzone import protocol as wire
from bothost.lobbies.botzone.games import of_wish
from bothost.lobbies.botzone.match import Match
from bothost.lobbies.botzone.options import START, BotzoneAttributes, BotzoneOptions
from bothost.lobbies.botzone.polls import Polls
from bothost.lobbies.frames import unknown_attribute


class Orders:
    """Waiting seeks, and orders without an answer."""

    def __init__(self, polls: Polls, options: BotzoneOptions, matches: dict[str, Match]) -> None:
        self._polls = polls
        self._options = options
        self._matches = matches
        self._calls: dict[int, tuple[str, Match]] = {}
        """Orders without an answer, by HTTP request: (seek, match)."""
        self._seeks: dict[str, m.Wish] = {}
        """Seeks that wait until they may be ordered, or until another player starts a match."""
        self._may_order = True
        self._ordered = 0
        """The number of matches ordered so far."""
        self._early: list[tuple[str, str]] = []
        """Requests of unknown matches that came while an order had no answer."""

    def end(self) -> list[m.Output]:
        """End all seeks, because the connection is lost."""
        seeks = [*self._seeks, *(seek for seek, _ in self._calls.values())]
        self._seeks, self._calls, self._early, self._may_order = {}, {}, [], True
        return [m.SeekEnded(seek, "disconnected") for seek in seeks]

    def seek(self, seek: str, wish: m.Wish) -> list[m.Output]:
        kind = of_wish(wish.game, wish.rules, wish.attributes.get("botzone"))
        opponents = wish.attributes.get("opponents")
        if problem := unknown_attribute(wish.attributes, BotzoneAttributes):
            return [m.SeekEnded(seek, problem)]
        if kind is None:
            return [m.SeekEnded(seek, f"Botzone does not play {wish.game}")]
        if opponents is not None and (not isinstance(opponents, list) or len(opponents) != kind.players - 1):
            return [m.SeekEnded(seek, f"{kind.name} needs {kind.players - 1} bot ids in opponents")]
        slot = wish.attributes.get("slot", 0)
        if type(slot) is not int or not 0 <= slot < kind.players:
            return [m.SeekEnded(seek, f"slot must be 0 to {kind.players - 1}, not {slot!r}")]
        self._seeks[seek] = wish
        return self._order_next()

    def cancel(self, seek: str) -> list[m.Output]:
        """Cancel a seek. If its match is already ordered, it comes anyway, without a seek."""
        for match in [*self._matches.values(), *(match for _, match in self._calls.values())]:
            if match.seek == seek and not match.seated:
                match.seek = None
        return [m.SeekEnded(seek, "cancelled")] if self._seeks.pop(seek, None) is not None else []

    def may_order(self) -> list[m.Output]:
        """The next match may be ordered."""
        self._may_order = True
        return self._order_next()

    def _order_next(self) -> list[m.Output]:
        """Order a match for the first seek that names its opponents. Other seeks wait for a match of another player."""
        seek = next((seek for seek, wish in self._seeks.items() if wish.attributes.get("opponents")), None)
        if seek is None or not self._may_order or not self._polls.ready:
            return []
        wish = self._seeks.pop(seek)
        wanted = wish.attributes
        kind = of_wish(wish.game, wish.rules, wanted.get("botzone"))
        assert kind is not None
        players = [str(bot) for bot in wanted["opponents"]]
        players.insert(wanted.get("slot", self._ordered % kind.players), "me")
        limit_s = self._options.time_limit_s
        try:
            headers = wire.run_headers(
                kind.name,
                players,
                simple=kind.game == "mahjong",
                time_limit_s=limit_s,
                initdata=wanted.get("initdata"),
            )
        except ValueError as error:
            return [m.SeekEnded(seek, str(error)), *self._order_next()]
        self._ordered += 1
        match = Match("", limit_s * 1000.0, kind, wish.rules)
        match.seek, match.attributes = seek, {"players": players}
        call = self._polls.call("runmatch", headers, 30.0)
        self._calls[call.request] = (seek, match)
        self._may_order = False
        return [call, m.SetTimer(START, self._options.start_every_s)]

    def answered(self, item: m.HttpResult) -> tuple[Match | None, list[m.Output]]:
        """Handle the answer to an order. Returns its match, if there is one."""
        order = self._calls.pop(item.request, None)
        if order is None:
            return None, []
        seek, match = order
        name = item.body[:200].decode(errors="replace").strip()
        if item.status != 200 or not wire.MATCH_ID.fullmatch(name):
            why = name if item.status else "no answer"
            ended = m.SeekEnded(seek, f"no match: HTTP {item.status} {why}".strip())
            return None, [ended] if match.seek is not None else []
        match.id = name
        return match, []

    def hold(self, name: str, request: str) -> bool:
        """Keep a request of an unknown match if it may belong to an open order. Returns whether it was kept."""
        if self._calls and len(self._early) < wire.MOST and (name, request) not in self._early:
            self._early.append((name, request))
        return bool(self._calls)

    def held(self) -> list[tuple[str, str]]:
        """Take the kept requests, once all orders are answered."""
        early, self._early = ([], self._early) if self._calls else (self._early, [])
        return early

    def claim(self, match: Match, out: list[m.Output]) -> list[m.Output]:
        """Assign a match that another player started to a waiting seek."""
        for at, output in enumerate(out):
            for seek, wish in self._seeks.items():
                if not isinstance(output, m.Seated) or wish.game != output.game or wish.attributes.get("opponents"):
                    continue
                del self._seeks[seek]
                match.seek = seek
                out[at] = msgspec.structs.replace(output, seek=seek)
                return out
        return out
