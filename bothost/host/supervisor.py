"""The host: accounts, their shared runner, and the life cycle from start to drained."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import Iterable
from typing import Protocol

import structlog

from bothost.config import AccountSettings, LobbySettings, Settings
from bothost.errors import AuthError, ConfigError, LobbyUnreachable
from bothost.host.account import Account, Timeouts
from bothost.host.account_tables import AccountTables
from bothost.host.certificates import advice_for
from bothost.host.check import SECRET_ADVICE, Found, check_wishes, missing_secrets, resolve_routes
from bothost.host.hooks import HookThread
from bothost.host.leases import Keeper
from bothost.host.lost_hands import LostHands
from bothost.host.memory import StoreMemory
from bothost.host.memos import MemoWriter
from bothost.host.opponents import Opponents
from bothost.host.plans import Plans
from bothost.host.process import ProcessLimits
from bothost.host.reconnect import ConnectionSettings
from bothost.host.recorder import Recorder
from bothost.host.session_runner import SessionRunner
from bothost.host.spares import Spares
from bothost.host.takeover import Takeover
from bothost.host.tasks import BackgroundTasks
from bothost.host.workers import Workers
from bothost.lobbies.base import Account as Login
from bothost.messages import Json
from bothost.plugins import Plugins, check_options, require
from bothost.store import DecisionLog
from bothost.tables.actor import Loaded
from bothost.tables.games import Games
from bothost.tables.router import Router
from bothost.tables.slots import Capacity

_log = structlog.get_logger("bothost.host")

TICK_S = 1.0


class Models(Protocol):
    """Keeps the strategies' models as the registry has them."""

    def status(self) -> Json: ...
    def retire(self, loaded: Loaded) -> None: ...


class Host:
    """A running host. Make it inside the event loop, then ``run``."""

    def __init__(
        self,
        settings: Settings,
        plugins: Plugins,
        log: DecisionLog,
        memory: StoreMemory,
        *,
        config_hash: str,
        connection: ConnectionSettings | None = None,
        timeouts: Timeouts | None = None,
        leases: Keeper | None = None,
        spares: Spares | None = None,
        file: str | None = None,
    ) -> None:
        """``file``: the configuration's, which messages name."""
        self.settings = settings
        self.file = file
        self._reloaded: Settings | None = None
        """The settings that were reloaded last."""
        self.config_hash = config_hash
        self.log = log
        self.capacity = Capacity(settings.limits.tables)
        self.seated: dict[tuple[str, str], AccountTables] = {}
        """(lobby, table) → which of our accounts sits there."""
        self.accounts: list[Account] = []
        self.draining = False
        self.plugins = plugins
        self.models: Models | None = None
        """The watch on the registry; None: the registry is not followed."""
        self._takeover = Takeover(leases, self) if leases is not None else None
        """None: there are no leases, because no other host connects these accounts."""
        self.memory = memory
        self.games = Games()
        self._connection = connection or ConnectionSettings(
            frame_bytes=settings.limits.frame_bytes,
            quarantine_after=settings.limits.quarantine_after,
            quarantine_s=settings.limits.quarantine_s,
        )
        self._timeouts = timeouts or Timeouts()
        self._memos = MemoWriter(memory.store.remember)
        self.opponents = Opponents(memory)
        self._changed = asyncio.Event()
        self._warming: asyncio.Task[None] | None = None
        """Done when the strategies' processes have started. Until then the host seeks no tables."""
        self._quit = False
        self.interrupted = False
        """Whether a second Ctrl-C ended it."""
        self._error: BaseException | None = None
        limits = settings.limits
        router = Router(settings.routes, plugins.strategies.__contains__)
        self.plans = Plans(router, plugins, quarantine_after=limits.quarantine_after, quarantine_s=limits.quarantine_s)
        before_send = settings.store.durability == "before_send"
        recorder = Recorder(log, host=settings.host.name, config_hash=config_hash, before_send=before_send)
        self.runner = SessionRunner(self.plans, recorder, HookThread(plugins), memory.find)
        self.runner.workers = _workers(settings, self.plans, self.runner, spares)
        self.runner.fatal = self._fatal
        self.lost_hands = LostHands(memory.unfinished_hands, recorder, self.games, self.runner.looks_up)

    # -------------------------------------------------------------------------------------------------- life cycle

    async def run(self, *, fail_fast: bool = False) -> None:
        """Connect all accounts and play until drained. Returns when everything is logged.

        Raises ConfigError, UsageError, PluginError and ModelError (routes, adapters, secrets, wishes), AuthError if
        every account was refused, and with ``fail_fast`` LobbyUnreachable if a lobby cannot be reached at the start.
        """
        try:
            if missing := missing_secrets(self.settings, self.plugins):  # before models are loaded for nothing
                raise ConfigError("; ".join(missing), advice=SECRET_ADVICE)
            check_wishes(self.settings, self.plugins)
            self.load(*resolve_routes(self.settings.routes, self.plugins, self.file))
            self._warming = asyncio.create_task(self.runner.workers.processes_ready(), name="warming")
            self._warming.add_done_callback(lambda _: self._changed.set())
            for lobby in self.settings.lobbies:
                for settings in lobby.accounts:
                    self.accounts.append(await self.make_account(lobby, settings))
            if self._takeover is None:
                for account in self.accounts:
                    memo = await asyncio.to_thread(self.memory.store.memo, *account.place.lease)
                    if not self.draining:
                        account.start(memo)
                await self._play(fail_fast)
            else:
                async with BackgroundTasks() as tasks:
                    tasks.spawn(self._takeover.follow(self._fatal))
                    await self._play(fail_fast)
        finally:
            await self.aclose()
        self._judge()

    async def _play(self, fail_fast: bool) -> None:
        """Tick the accounts until all are finished."""
        drained_at = 0.0
        while not self._quit and not all(account.finished for account in self.accounts):
            now = time.monotonic()
            if self.draining:
                drained_at = drained_at or now
                if now - drained_at >= self.settings.host.drain_timeout_s:
                    _log.warning("drain_timeout", tables=len(self.seated))
                    for account in self.accounts:
                        account.tables.drain(at_once=True)
                    return
            elif fail_fast:
                self._check_reachable()
            for account in self.accounts:
                account.tick(now)
            self._changed.clear()
            try:
                async with asyncio.timeout(TICK_S):
                    await self._changed.wait()
            except TimeoutError:
                continue

    def drain(self) -> None:
        """Take no new tables, finish the open ones, then end."""
        if not self.draining:
            self.draining = True
            _log.info("draining", tables=len(self.seated), at_most_s=self.settings.host.drain_timeout_s)
            for account in self.accounts:
                account.drain()
            self._changed.set()

    def quit(self) -> None:
        """End at once. Tables stay open at the lobby, and the next start resumes them."""
        self._quit = True
        self._changed.set()

    def interrupt(self, number: int = signal.SIGTERM) -> None:
        """Handle a signal: the first drains, the second quits."""
        if self.draining:
            _log.info("quit", tables=len(self.seated), advice="the next start resumes them")
            self.interrupted = number == signal.SIGINT
            self.quit()
        else:
            self.drain()

    async def aclose(self) -> None:
        """Send decided moves, write all rows, and close everything. A failure in one step does not stop the others."""
        async with contextlib.AsyncExitStack() as last:  # runs in reverse order
            last.push_async_callback(asyncio.to_thread, self.runner.hooks.close)
            if self._takeover is not None:  # when all is written that the next holder reads
                last.push_async_callback(self._takeover.leases.aclose)
            last.push_async_callback(self.log.aclose)
            last.callback(self.runner.recorder.batches.close)
            last.push_async_callback(asyncio.to_thread, self._memos.close)
            for account in self.accounts:
                last.push_async_callback(account.connection.aclose)
            last.push_async_callback(self.opponents.aclose)
            await self._settle()
            if self._warming is not None:
                self._warming.cancel()
            for account in self.accounts:
                account.close()
            self.runner.close()
            self.lost_hands.tasks.cancel()
            await self.runner.workers.aclose()
            for account in self.accounts:
                for session in account.tables.sessions.values():
                    if session.hand is not None:
                        self.runner.recorder.flush_events(session.hand)
            self.runner.recorder.batches.flush()
            await asyncio.sleep(0.05)  # time for the close frames

    async def _settle(self, most_s: float = 2.0) -> None:
        """Wait until decided moves are sent."""
        end = time.monotonic() + most_s
        while time.monotonic() < end and self._error is None:
            answers = [
                session.hand.answer
                for account in self.accounts
                if account.connection.connected
                for session in account.tables.sessions.values()
                if session.hand is not None and session.hand.answer is not None
            ]
            if all(answer.state == "logged" for answer in answers):
                return
            await asyncio.sleep(0.01)

    def _judge(self) -> None:
        """Raise the error that explains why the host ended, if there is one."""
        if self._error is not None:
            raise self._error
        refused = [account for account in self.accounts if account.refused is not None]
        lost = [account for account in self.accounts if account.refused is not None or account.superseded]
        all_lost = not self.draining and not self._quit and len(lost) == len(self.accounts)
        if refused and (all_lost or not any(account.ever_connected for account in self.accounts)):
            names = ", ".join(f"{account.lobby.name}/{account.name}" for account in refused)
            raise AuthError(
                f"{names}: {refused[0].last_problem}",
                advice="check the account's token; bothost config lint names the variable that it is read from",
            )
        if lost and all_lost:
            names = ", ".join(f"{account.lobby.name}/{account.name}" for account in lost)
            raise AuthError(
                f"another client logged in: {names}: {lost[0].last_problem}",
                advice="find that client; hosts that share a database never log in twice",
            )

    def _check_reachable(self) -> None:
        for account in self.accounts:
            if (
                not account.ever_connected
                and account.last_problem
                and account.refused is None
                and not account.place.waiting
            ):
                raise LobbyUnreachable(
                    f"lobby {account.lobby.name} at {account.lobby.url}: {account.last_problem}",
                    advice=advice_for(account.last_problem, "check that it runs, and lobby.url"),
                )

    def _fatal(self, error: BaseException) -> None:
        self._error = error
        self.quit()

    def load(self, strategies: Iterable[Found], fallbacks: Iterable[Found]) -> None:
        """Make the strategies of routes, so that no first move waits for a model and missing ones are reported."""
        for fallback in fallbacks:
            self.plans.load(*fallback)
        for strategy in strategies:
            self.runner.workers.pools.warm(self.plans.load(*strategy))

    # --------------------------------------------------------------------------------------------- for the accounts

    async def make_account(self, lobby: LobbySettings, settings: AccountSettings) -> Account:
        """Make an account without connecting it. Raises ConfigError and UsageError."""
        adapter_class = require(self.plugins, self.plugins.lobbies, "adapter", lobby.adapter)
        options = check_options(adapter_class, lobby.options)
        login = login_of(lobby, settings, adapter_class.capabilities.needs_secret)
        manners = await self.opponents.manners(lobby, settings)
        adapter = adapter_class(login, options)
        account = Account(self, lobby, settings, adapter, self._connection, self._timeouts, manners)
        account.seeking.stopped = self.draining  # a signal may arrive before the accounts are made
        self._renew(account)
        return account

    def reload(self, settings: Settings) -> None:
        """Apply settings to the accounts, also to those that are made later."""
        self._reloaded = settings
        for account in self.accounts:
            self._renew(account)

    def _renew(self, account: Account) -> None:
        for lobby in self._reloaded.lobbies if self._reloaded is not None else ():
            for settings in lobby.accounts:
                if (lobby.name, settings.name) == (account.lobby.name, account.name):
                    account.reload(lobby, settings)
                    self.opponents.reload(lobby, settings, account.seeking.manners)

    def remember(self, account: Account, memo: Json) -> None:
        self._memos.remember(account.place.lease, memo)

    def contested(self, account: Account) -> None:
        """Another client took the account's place. If there are leases, they show whether that is another host."""
        if self._takeover is None:
            account.give_up()

    def account_changed(self) -> None:
        """An account connected or lost its connection, or a table of it ended."""
        self._changed.set()

    def account_connected(self, account: Account) -> None:
        """The lobby of this account is reachable for the others as well."""
        self.account_changed()
        for other in self.accounts:
            if other.lobby.name == account.lobby.name:
                other.connection.hurry()

    def busy(self) -> bool:
        """Whether to take no further tables, because the log is far behind or strategies are still starting."""
        return self.log.full or self._warming is None or not self._warming.done()


def _workers(settings: Settings, plans: Plans, runner: SessionRunner, spares: Spares | None) -> Workers:
    """Where the strategies decide."""
    limits = settings.limits
    return Workers(
        plans,
        runner.on_results,
        threads=limits.worker_threads,
        search_threads=limits.search_threads,
        processes=limits.process_workers,
        process_limits=ProcessLimits(limits.process_memory_mb << 20, settings.host.plugins_dir),
        spares=spares,
    )


def login_of(lobby: LobbySettings, settings: AccountSettings, needs_secret: bool) -> Login:
    """The login of an account, with its secrets. Raises ConfigError if it needs one and has none."""
    token, password = settings.token, settings.password
    has_password = password is not None and password.present
    must_have = needs_secret and not has_password
    return Login(
        name=settings.name,
        url=lobby.url,
        token=token.reveal() if token is not None and (token.present or must_have) else "",
        password=password.reveal() if password is not None and has_password else "",
        user_agent=lobby.user_agent,
    )
