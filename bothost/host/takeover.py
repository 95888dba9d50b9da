"""Connects each account only while this host holds its lease."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

import structlog

from bothost.config import AccountSettings, LobbySettings
from bothost.errors import ANY_FAILURE, StoreUnavailable
from bothost.host.account import Account
from bothost.host.backoff import Backoff
from bothost.host.leases import Keeper
from bothost.host.memory import StoreMemory
from bothost.messages import Json
from bothost.store.leases import AccountKey

_log = structlog.get_logger("bothost.host")


class LeasingHost(Protocol):
    """The host, as the takeover uses it."""

    accounts: list[Account]
    draining: bool
    memory: StoreMemory

    async def make_account(self, lobby: LobbySettings, settings: AccountSettings) -> Account: ...


class Takeover:
    """Starts accounts when we get their leases, and stops them when another host takes these."""

    def __init__(self, leases: Keeper, host: LeasingHost) -> None:
        self.leases = leases
        self._host = host

    async def follow(self, failed: Callable[[BaseException], None]) -> None:
        """Follow the leases for ever. ``failed`` is called with the error that ends it."""
        try:
            await self._follow()
        except ANY_FAILURE as error:
            failed(error)

    async def _follow(self) -> None:
        leases, host = self.leases, self._host
        while True:
            await self._release_finished()
            by_lease = {account.place.lease: account for account in host.accounts}
            wanted = [lease for lease, account in by_lease.items() if account.refused is None and not host.draining]
            contested = [account for account in host.accounts if account.contested]
            lost, gained = await leases.round(wanted, now=bool(contested))
            for lease in lost:
                await self._lost(by_lease[lease])
            for account in contested:
                if account.place.lease in leases.held and not leases.problem:
                    account.give_up()
            for lease in gained:
                await self._gained(by_lease[lease])
            if not self._wait_for_others():
                await asyncio.sleep(leases.round_s)

    async def _gained(self, account: Account) -> None:
        place = account.place
        place.waiting = ""
        memo = await self._memo(place.lease)  # only now: the host that had the account may have replaced it
        if not self._host.draining:
            account.start(memo)

    async def _memo(self, lease: AccountKey) -> Json:
        """The memo of an account. Waits while the database is unreachable: the other accounts play on."""
        backoff = Backoff(0.2, 2.0)
        while True:
            try:
                return await asyncio.to_thread(self._host.memory.store.memo, *lease)
            except StoreUnavailable as error:
                if not backoff.attempts:
                    _log.warning("memo_waits", lobby=lease[0], account=lease[1], error=str(error))
                await asyncio.sleep(backoff.next(0.1))

    def _wait_for_others(self) -> bool:
        """Log which hosts hold the leases of our accounts. Returns whether an account can try another place at once."""
        at_once = False
        for account in self._host.accounts:
            place = account.place
            place.problem = "" if place.lease in self.leases.held else self.leases.problem
            if (holder := self.leases.others.get(place.lease)) is None:
                continue
            if place.next():
                at_once = True
            elif holder != place.waiting:
                place.waiting = holder
                _log.warning("account_waits", lobby=account.lobby.name, account=account.name, holder=holder)
        return at_once

    async def _lost(self, account: Account) -> None:
        """Disconnect at once, because another host took the account. Then wait for the lease."""
        _log.error("lease_lost", lobby=account.lobby.name, account=account.name)
        account.let_go("another host took the account over")
        await account.connection.aclose()
        new = await self._host.make_account(account.lobby, account.seeking.settings)
        new.seeking.paused = account.seeking.paused
        self._host.accounts[self._host.accounts.index(account)] = new

    async def _release_finished(self) -> None:
        """Release accounts whose login was refused for good; while we drain, all accounts without tables."""
        done = [
            account
            for account in self._host.accounts
            if account.place.lease in self.leases.held
            and (account.refused is not None or (self._host.draining and account.finished))
        ]
        for account in done:
            account.close()
        if done:
            await asyncio.sleep(0.05)  # time for the close frames
        for account in done:
            await account.connection.aclose()
        await self.leases.release([account.place.lease for account in done])
