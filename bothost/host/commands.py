"""The commands of a running host's control socket."""

from __future__ import annotations

import time
from collections.abc import Callable

import structlog

from bothost.config import nearest
from bothost.errors import UsageError
from bothost.host.account import Account
from bothost.host.status import account_status, status_of
from bothost.host.supervisor import Host
from bothost.messages import Json

_log = structlog.get_logger("bothost.host")


def of(host: Callable[[], Host | None]) -> dict[str, Callable[..., Json]]:
    """The commands by name. ``host`` returns None while the host starts."""

    def started() -> Host:
        found = host()
        if found is None:
            raise UsageError("the host is still starting", advice="try again in a few seconds")
        return found

    return {
        "status": lambda: status_of(started()),
        "tables": lambda: tables(started()),
        "drain": lambda: drain(started()),
        "pause": lambda account: pause(started(), account),
        "resume": lambda account: resume(started(), account),
        "release": lambda strategy: release(started(), strategy),
    }


def tables(host: Host) -> Json:
    """The tables with an open decision of ours, and the milliseconds that are left for it."""
    now = time.monotonic()
    open_jobs = (
        (account, table, session.hand.job)
        for account in host.accounts
        for table, session in account.tables.sessions.items()
        if session.hand is not None and session.hand.job is not None
    )
    return {
        "tables": [
            [account.lobby.name, account.name, table, max(0, round(1000 * (job.window.answer - now)))]
            for account, table, job in open_jobs
        ]
    }


def drain(host: Host) -> Json:
    """Finish the open tables, then end."""
    host.drain()
    return {"draining": True, "at_most_s": host.settings.host.drain_timeout_s}


def pause(host: Host, name: str) -> Json:
    """Take no new tables with an account, named LOBBY/ACCOUNT. Raises UsageError."""
    account = _account(host, name)
    account.seeking.pause()
    _log.warning("account_paused", lobby=account.lobby.name, account=account.name, tables=len(account.tables.sessions))
    return account_status(account)


def resume(host: Host, name: str) -> Json:
    """Take new tables again. Raises UsageError."""
    account = _account(host, name)
    account.seeking.resume(time.monotonic())
    _log.info("account_resumed", lobby=account.lobby.name, account=account.name)
    return account_status(account)


def release(host: Host, address: str) -> Json:
    """End the quarantine of a strategy. Raises UsageError."""
    count = host.plans.release(address)
    if not count:
        raise UsageError(f"no strategy {address!r} is in quarantine", advice="see bothost status")
    return {"strategy": address, "released": count}


def _account(host: Host, name: str) -> Account:
    accounts = {f"{account.lobby.name}/{account.name}": account for account in host.accounts}
    if name not in accounts:
        raise UsageError(f"there is no account {name!r}", advice=nearest(name, list(accounts)))
    return accounts[name]
