"""The conformance kit for lobby adapters.

::

    from bothost.testing.check_lobby import LobbyKit, check_lobby

    KIT = LobbyKit(adapter=MyLobby, lobby=MyFake, accounts=lambda fake: [...], wish=Wish("othello"))

    async def test_conformance() -> None:
        (await check_lobby(KIT)).require()

It plays whole hands at a fake of the lobby, over real sockets, and checks these laws:

- Requests are about known positions, and event numbers increase.
- A killed process gets the same request again.
- ``feed`` returns, and does not block: it has no socket and no clock.
- An action that the lobby refuses is reported as ``Rejected``, and asked for again under another id.
- Hostile frames neither raise nor leak memory.
- The lobby behaves as the capabilities declare.
"""

from __future__ import annotations

import contextlib
import importlib
import random
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import msgspec

from bothost import messages as m
from bothost.errors import ANY_FAILURE, BothostError, PluginError, UsageError, described
from bothost.lobbies.base import Account, Capabilities, LobbyAdapter
from bothost.testing import adapter_memory, hostile
from bothost.testing.check_strategy import Finding, Judged
from bothost.testing.feed_thread import FeedThread
from bothost.testing.lobby_player import LobbyPlayer

OBSERVED = frozenset(
    ("games", "acks_moves", "sends_legal_actions", "clock", "resume", "resume_delivers", "heartbeat", "transport")
) | {"needs_secret", "chat"}
"""Capabilities that the kit checks by playing. ``LobbyKit.proven_by`` names the author's tests of the others."""
UNOBSERVED = tuple(name for name in Capabilities.__struct_fields__ if name not in OBSERVED)
Kind = TypeVar("Kind")
PREFIXES = 40
HOSTILE_EACH = 40
CHAT_ATTEMPTS = 5
"""A chat may take a moment to connect."""
NOT_PLAYED = "not checked, because no hand was played"
BLOCKED = "not checked, because feed blocks"
HANGS = "not checked, because feed hangs"
FEED_MS = 20.0
"""An input that takes longer each time blocks. A host feeds all its accounts in one thread. The time is by
the clock, because ``feed`` must not wait either."""
FEED_TRIES = 5
"""A busy machine interrupts a quick ``feed`` now and then, but not each time."""
LEAVES_S = 2.0
"""How long a table may take to end once we leave it. Some never say."""
ILLEGAL_TRIES = 1000


@dataclass(frozen=True)
class LobbyKit:
    """What the kit needs for a lobby: the adapter, a fake of the lobby, and accounts."""

    adapter: type[LobbyAdapter]
    lobby: Callable[[], AbstractAsyncContextManager[Any]]
    """Makes a fake of the lobby, which listens on loopback inside the ``async with``."""
    accounts: Callable[[Any], Sequence[Account]]
    """Makes accounts at a running fake. They fill a table; the lobby's own players take the other seats."""
    wish: m.Wish
    options: Mapping[str, Any] = field(default_factory=dict)
    proven_by: Mapping[str, str] = field(default_factory=dict)
    """Capability → the author's test that proves it, for those that are not in ``OBSERVED``."""
    timeout_s: float = 60.0
    """Limit for each step of the kit, such as a whole hand."""


class LobbyReport(Judged, msgspec.Struct, frozen=True):
    """The result of a check."""

    adapter: str
    findings: tuple[Finding, ...]
    requests: int
    hostile: int
    """Number of hostile inputs."""


def find_kit(adapter: type[LobbyAdapter], name: str | None = None) -> LobbyKit:
    """The kit of an adapter, or the kit ``name`` (``module:name``). Raises UsageError."""
    module, _, attribute = (name or adapter.kit).partition(":")
    if not attribute:
        if name is not None:
            raise UsageError(f"--kit {name!r} is not MODULE:NAME", advice="for example: --kit my_package.fake:KIT")
        advice = 'write kit = "my_package.fake:KIT" in the class, or name it with --kit'
        raise UsageError(f"the adapter {adapter.name} has no LobbyKit", advice=advice)
    try:
        kit = getattr(importlib.import_module(module), attribute)
    except ANY_FAILURE as error:  # also what the module itself raises
        raise UsageError(f"the kit {name or adapter.kit} cannot be imported: {described(error)}") from None
    if not isinstance(kit, LobbyKit):
        raise UsageError(f"{name or adapter.kit} is not a bothost.testing.check_lobby.LobbyKit")
    return kit


async def check_lobby(kit: LobbyKit, *, seed: int = 0) -> LobbyReport:
    """Check an adapter against a fake of its lobby. The report contains the adapter's errors."""
    run = _Run(kit, seed)
    for check, ask in (
        ("plays a hand", run.plays),
        ("feed does not block", run.does_not_block),
        ("comes back", run.comes_back),
        ("refused action", run.reports_refusals),
        ("hostile input", run.survives_hostile_input),
        ("bounded memory", run.keeps_memory_bounded),
        ("needs_secret", run.asks_for_secrets),
        ("chat", run.chats),
    ):
        try:
            detail = HANGS if run.thread.hung else await ask()
        except Exception as error:
            # A feed that hangs is the cause, also where another player's end of the hand did not come.
            error = run.thread.hung or error
            detail = str(error) if isinstance(error, BothostError) else described(error)
        run.conclude(check, detail)
    run.thread.close()
    run.findings += list(run.capabilities())
    return LobbyReport(kit.adapter.name, tuple(run.findings), len(run.requests), run.fed)


class _Run(msgspec.Struct):
    """One run of the kit, and what it recorded."""

    kit: LobbyKit
    seed: int
    thread: FeedThread = msgspec.field(default_factory=FeedThread)
    findings: list[Finding] = []
    begun: list[m.Input] = []
    """Inputs of the first player's adapter, also if no hand ends."""
    inputs: list[m.Input] = []
    """Inputs of the first player's adapter during a hand."""
    outputs: list[m.Output] = []
    resumed: list[m.Output] = []
    """Outputs of the adapter after a resume."""
    memo: m.Json = {}
    account: Account | None = None
    visit: tuple[list[m.Input], str] | None = None
    """All inputs until a table had ended, and its name."""
    blocked: bool = False
    fed: int = 0
    breaches: list[str] = []

    @property
    def requests(self) -> list[m.ActionRequest]:
        return [output for output in self.outputs if isinstance(output, m.ActionRequest)]

    def conclude(self, check: str, detail: str | None) -> None:
        """Add the finding of a check, with the laws that were broken meanwhile."""
        broken, self.breaches = self.breaches, []
        problems = ([detail] if detail else []) + list(dict.fromkeys(broken))[:5]
        self.findings.append(Finding(check, self.kit.wish.game, not problems, "; ".join(problems)))

    def adapter(self, account: Account) -> LobbyAdapter:
        kind = self.kit.adapter
        return kind(account, msgspec.convert(dict(self.kit.options), kind.Options))

    def player(self, account: Account, number: int, memo: m.Json | None = None) -> LobbyPlayer:
        breach = lambda law, detail: self.breaches.append(f"{law}: {detail}")  # noqa: E731
        return LobbyPlayer(
            self.adapter(account), self.kit.wish, breach, seed=self.seed + number, memo=memo, fed=self.thread.fed
        )

    @asynccontextmanager
    async def table(self) -> AsyncIterator[tuple[Sequence[Account], list[LobbyPlayer]]]:
        """A new lobby with players who log in."""
        async with self.kit.lobby() as lobby:
            accounts = self.kit.accounts(lobby)
            players = [self.player(account, number) for number, account in enumerate(accounts)]
            try:
                for player in players:
                    player.start()
                yield accounts, players
            finally:
                for player in players:
                    await player.close()

    # --------------------------------------------------------------------------------------------------------- checks

    async def plays(self) -> str | None:
        """Play a whole hand, from login to score."""
        async with self.table() as (accounts, players):
            first = players[0]
            self.account, self.begun = accounts[0], first.driver.inputs
            await first.until(lambda: first.hands, self.kit.timeout_s, "the end of a hand")
            first.driver.do(m.Ping())
            if self.kit.adapter.capabilities.heartbeat == "app":
                with contextlib.suppress(TimeoutError):
                    await first.until(partial(_events_of, first, m.Alive), self.kit.timeout_s, "Alive")
            self.inputs, self.outputs = list(first.driver.inputs), list(first.driver.outputs)
            self.memo = first.driver.memo
            await self._leave(first)
        if not self.requests:
            return "a whole hand had no ActionRequest"
        return None

    async def _leave(self, player: LobbyPlayer) -> None:
        """Leave the table, unless it has ended, and record the whole visit."""
        table = player.hands[0].table

        def over() -> bool:
            return any(event.table == table for event in _events_of(player, m.TableEnded))

        if not over():
            player.driver.do(m.Leave(table))
        with contextlib.suppress(TimeoutError):
            await player.until(over, min(LEAVES_S, self.kit.timeout_s), "TableEnded")
            self.visit = list(player.driver.inputs), table

    async def does_not_block(self) -> str | None:
        """No recorded input takes long each time it is fed."""
        if self.account is None:
            return NOT_PLAYED
        adapter = self.adapter(self.account)
        for number, item in enumerate(self.begun):
            took = self._fed_in_ms(adapter, item)
            for _ in range(FEED_TRIES - 1):
                if took > FEED_MS:
                    again = self.adapter(self.account)
                    for before in self.begun[:number]:
                        self.thread.fed(again, before)
                    took = min(took, self._fed_in_ms(again, item))
            if took > FEED_MS:
                self.blocked = True
                return f"feed({type(item).__name__}) takes {took:.0f} ms: leave waiting to SetTimer"
        return None

    def _fed_in_ms(self, adapter: LobbyAdapter, item: m.Input) -> float:
        self.thread.fed(adapter, item)
        return self.thread.took_ms

    async def comes_back(self) -> str | None:
        """The same request comes again after a lost connection, and in a new process."""
        if self.kit.adapter.capabilities.resume == "none":
            return None
        if not self.inputs:
            return NOT_PLAYED
        async with self.table() as (accounts, players):
            first = players[0]
            await first.until(lambda: first.answered >= 2, self.kit.timeout_s, "a second request")
            first.holding = True
            await first.until(lambda: first.pending, self.kit.timeout_s, "a request")
            held = first.pending
            assert held is not None
            websocket = self.kit.adapter.capabilities.transport == "websocket"
            if websocket and (problem := await self._after_a_drop(first, held)):
                return problem
            memo = first.driver.memo
            await first.close()
            fresh = players[0] = self.player(accounts[0], 0, memo)
            fresh.holding = True
            fresh.start()
            await fresh.until(lambda: fresh.pending, self.kit.timeout_s, "the same request in a new process")
            if problem := self._not_same(held, fresh.pending, "a restart of the process"):
                return problem
            self.resumed += fresh.driver.outputs
            fresh.holding = False
            fresh.answer()
            if websocket:  # the others move while we are offline
                fresh.driver.drop()
                await fresh.until(lambda: _last(fresh, m.Disconnected), self.kit.timeout_s, "Disconnected")
                fresh.resume()
            await fresh.until(lambda: fresh.hands, self.kit.timeout_s, "the end of the hand after coming back")
        return None

    async def _after_a_drop(self, player: LobbyPlayer, held: m.ActionRequest) -> str | None:
        player.driver.drop()
        await player.until(lambda: _last(player, m.Disconnected), self.kit.timeout_s, "Disconnected")
        since = len(player.driver.outputs)
        player.resume()
        await player.until(lambda: player.pending, self.kit.timeout_s, "the same request after a resume")
        self.resumed += player.driver.outputs[since:]
        return self._not_same(held, player.pending, "a resume")

    def _not_same(self, held: m.ActionRequest, now: m.ActionRequest | None, after: str) -> str | None:
        """Why the request that came again is wrong. If the lobby plays for us, the hand may have continued."""
        if now is None or now.request_id == held.request_id:
            return None
        if self.kit.adapter.capabilities.plays_for_us and now.seq != held.seq:
            return None
        return f"after {after}, request {held.request_id} came back as {now.request_id}"

    async def reports_refusals(self) -> str | None:
        """Where the lobby reports an illegal action, so does the adapter, and the host is asked again."""
        if self.kit.adapter.capabilities.rejects_illegal != "error":
            return None
        if not self.inputs:
            return NOT_PLAYED
        async with self.table() as (_, players):
            first = players[0]
            first.holding = True
            await first.until(lambda: first.pending, self.kit.timeout_s, "a request")
            refused, action = first.answer_illegally(ILLEGAL_TRIES)
            if not action:
                return None

            def rejected() -> list[m.Rejected]:
                return [event for event in _events_of(first, m.Rejected) if event.request_id == refused.request_id]

            await first.until(rejected, self.kit.timeout_s, f"Rejected for {action}, which is not legal,")
            if rejected()[0].resync:
                first.driver.do(m.Resync(refused.table))
            await first.until(lambda: first.pending, self.kit.timeout_s, "another request after Rejected")
            same = first.pending is not None and first.pending.request_id == refused.request_id
            return f"the request after Rejected has the id of the refused one, {refused.request_id}" if same else None

    async def survives_hostile_input(self) -> str | None:
        """``feed`` does not raise for hostile inputs, at many moments of a hand."""
        if self.blocked:
            return BLOCKED
        rng = random.Random(self.seed)
        for _ in range(PREFIXES):
            adapter = self._replayed(rng.randrange(1, max(len(self.inputs), 2)))
            source = hostile.inputs(self.inputs, rng)
            for _ in range(HOSTILE_EACH):
                item = next(source)
                self.fed += 1
                try:
                    self.thread.fed(adapter, item)
                except PluginError as error:
                    return f"{repr(item)[:300]}: {error}"
        return None

    async def keeps_memory_bounded(self) -> str | None:
        """Repeated and unknown frames, and tables that have ended, do not use more and more memory."""
        if self.blocked:
            return BLOCKED
        rng, adapter = random.Random(self.seed), self._replayed(len(self.inputs) // 2)
        if problem := adapter_memory.kept_by_frames(partial(self.thread.fed, adapter), self.inputs, rng):
            return problem
        if self.visit is None:
            return None
        return adapter_memory.kept_by_tables(partial(self.thread.fed, self._replayed(0)), *self.visit)

    async def asks_for_secrets(self) -> str | None:
        """If the lobby needs a secret, a login without one fails."""
        declared = self.kit.adapter.capabilities.needs_secret
        if self.account is None or not declared:
            return None
        bare = msgspec.structs.replace(self.account, token="", password="")
        async with self.kit.lobby() as lobby:
            url = next(iter(self.kit.accounts(lobby))).url
            player = self.player(msgspec.structs.replace(bare, url=url), 0)
            player.start()
            try:
                await player.until(lambda: _last(player, m.AuthFailed), self.kit.timeout_s, "AuthFailed")
            finally:
                await player.close()
        return None

    async def chats(self) -> str | None:
        """What one player says, the others at the table hear, and not the player. Without chat, nothing is sent."""
        if not self.kit.adapter.capabilities.chat:
            table = self.requests[0].table if self.requests else "t"
            said = self.thread.fed(self._replayed(len(self.inputs) // 2), m.Say(table, "hello"))
            return f"Say made {said[0]!r}, and chat is not declared"[:300] if said else None
        async with self.table() as (_, players):
            for player in players:
                player.holding = True
            for player in players:
                await player.until(partial(_events_of, player, m.HandStarted), self.kit.timeout_s, "HandStarted")
            first, *others = players
            table = _events_of(first, m.HandStarted)[-1].table
            for attempt in range(CHAT_ATTEMPTS):
                first.driver.do(m.Say(table, f"hello {attempt}"))
                for other in others:
                    with contextlib.suppress(TimeoutError):
                        await other.until(partial(_events_of, other, m.Chat), 1.0, "Chat")
                if all(_events_of(other, m.Chat) for other in others):
                    break
            heard = [event for other in others for event in _events_of(other, m.Chat)]
            if not others or not all(_events_of(other, m.Chat) for other in others):
                return "another player at the table hears nothing"
            if wrong := [e for e in heard if e.table != table or not e.player or not e.text.startswith("hello ")]:
                return f"{wrong[0]!r} came of what was said at {table}"[:300]
            return "we hear ourselves" if _events_of(first, m.Chat) else None

    def _replayed(self, count: int) -> LobbyAdapter:
        """A new adapter after the first inputs of the recorded hand."""
        if self.account is None or not self.inputs:
            raise BothostError(NOT_PLAYED)
        adapter = self.adapter(self.account)
        for item in self.inputs[:count]:
            self.thread.fed(adapter, item)
        return adapter

    # --------------------------------------------------------------------------------------------------- capabilities

    def capabilities(self) -> Iterator[Finding]:
        """Compare the declared capabilities with what was observed."""
        declared = self.kit.adapter.capabilities
        wrong = self._contradictions(declared)
        for name in Capabilities.__struct_fields__:
            value = getattr(declared, name)
            if name in wrong:
                detail = wrong[name] if self.outputs or name == "games" else NOT_PLAYED
                yield Finding(name, self.kit.wish.game, not detail, detail)
            elif name not in OBSERVED:
                test = self.kit.proven_by.get(name, "")
                advice = f"write a test for {name} = {value!r}, and name it in LobbyKit.proven_by"
                yield Finding(name, self.kit.wish.game, bool(test), f"proven by {test}" if test else "unproven", advice)

    def _contradictions(self, declared: Capabilities) -> dict[str, str]:
        """Observed capability → what contradicts it, or empty."""
        requests, kinds = self.requests, {type(output) for output in self.outputs}
        acks, chatted, alive = (kind in kinds for kind in (m.MoveAcknowledged, m.Chat, m.Alive))
        lists = any(request.legal is not None for request in requests)
        clock = "none" if all(request.grant_ms is None for request in requests) else "per_move"
        if any(request.bank_ms for request in requests):
            clock = "bank_and_step"
        remembered = any(isinstance(output, m.Remember) and output.memo for output in self.outputs)
        forgetful = declared.resume in ("token", "game_id") and not remembered
        delivered = {type(output) for output in self.resumed} & {m.Snapshot, m.HandStarted}
        transport = "websocket" if m.OpenSocket in kinds else "long_poll"
        unlisted = self.kit.wish.game not in declared.games and "*" not in declared.games
        found = (
            ("games", unlisted, "the wish's game is not listed"),
            ("acks_moves", acks != declared.acks_moves, f"MoveAcknowledged was sent: {acks}"),
            ("sends_legal_actions", lists != declared.sends_legal_actions, f"requests list them: {lists}"),
            ("clock", clock != declared.clock, f"requests show {clock}"),
            ("resume", forgetful, "the adapter sent no Remember, which a new process needs"),
            (
                "resume_delivers",
                declared.resume != "none" and not delivered,
                "neither Snapshot nor HandStarted came after a resume",
            ),
            ("heartbeat", declared.heartbeat == "app" and not alive, "Ping was not answered by Alive"),
            ("chat", chatted and not declared.chat, "Chat came, and chat is not declared"),
            ("transport", transport != declared.transport, f"it uses {transport}"),
        )
        return {name: detail if contradicted else "" for name, contradicted, detail in found}


def _events_of(player: LobbyPlayer, kind: type[Kind]) -> list[Kind]:
    return [event for event in player.driver.events if isinstance(event, kind)]


def _last(player: LobbyPlayer, kind: type[m.Event]) -> bool:
    """Whether the session's last state is of this kind."""
    ends = [e for e in player.driver.events if isinstance(e, m.Connected | m.Disconnected | m.AuthFailed)]
    return bool(ends) and isinstance(ends[-1], kind)
