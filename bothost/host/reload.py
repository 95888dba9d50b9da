"""Reloads the configuration of a running host for new tables, on SIGHUP. Open tables keep their settings.

Routes, wishes, numbers of tables, quarantine and the lobbies' margins are reloaded. Other changes need a restart, and
the log names them. An invalid configuration changes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import structlog

from bothost.config import Secret, Settings, config_hash
from bothost.errors import ANY_FAILURE, BothostError, ConfigErrors, StrategyNotFound, described
from bothost.host.check import Found, addresses, check_wishes, resolve_routes
from bothost.host.supervisor import Host
from bothost.tables.router import Router

_log = structlog.get_logger("bothost.host")

FREE: dict[str, frozenset[str]] = {
    "limits": frozenset({"tables", "quarantine_after", "quarantine_s"}),
    "lobby": frozenset({"margin_ms", "min_move_ms", "allow_same_table", "own_accounts"}),
    "account": frozenset({"tables", "consents", "wish", "manners"}),
}
"""Configuration table → keys that are reloaded. Routes are reloaded as a whole."""


async def apply(host: Host, read: Callable[[], Settings]) -> bool:
    """Read and apply the configuration. Returns whether it is valid; if not, the log says why.

    A thread loads the strategies, so that the tables play on meanwhile.
    """
    try:
        new, router, strategies, fallbacks = await asyncio.to_thread(_prepared, host, read)
    except BothostError as error:
        _log.error("config_not_reloaded", error=str(error), advice=_advice(error))
        return False
    except ANY_FAILURE as error:  # a plugin's bug must not end the host
        _log.error("config_not_reloaded", error=described(error), advice="this is a bug in bothost or a plugin")
        return False
    host.load(strategies, fallbacks)
    _retire(host, [(address, options) for address, options, _ in (*strategies, *fallbacks)])
    stays = sorted(needs_restart(host.settings, new))
    host.plans.reload(router, quarantine_after=new.limits.quarantine_after, quarantine_s=new.limits.quarantine_s)
    host.capacity.cap = new.limits.tables
    host.reload(new)
    host.config_hash = config_hash(new)
    host.runner.recorder.config_hash = host.config_hash
    _log.info("config_reloaded", config_hash=host.config_hash)
    if stays:
        _log.warning("config_needs_restart", keys=", ".join(stays), advice="drain and start again for these")
    return True


def _advice(error: BothostError) -> str:
    """The error's advice. The host has the plugins with which it started; ``config lint`` finds newer ones, too."""
    parts = error.errors if isinstance(error, ConfigErrors) else (error,)
    if any(isinstance(part.__cause__, StrategyNotFound) for part in parts):
        return f"{error.advice}; for a plugin that came after the start, restart the host"
    return error.advice


def _retire(host: Host, named: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
    """Let the strategies that only the old routes name end, with their models and programs.

    ``named``: addresses and options of the new routes.
    """
    for _, _, address, options in addresses(host.plans.router.routes):
        if (address, options) not in named:
            loaded = host.plans.drop(address, options)
            if loaded is not None and host.models is not None:
                host.models.retire(loaded)


def _prepared(host: Host, read: Callable[[], Settings]) -> tuple[Settings, Router, list[Found], list[Found]]:
    """The new settings with their router, strategies and fallbacks. Raises for what is missing, so that it changes
    nothing."""
    new = read()
    check_wishes(new, host.plugins)
    strategies, fallbacks = resolve_routes(new.routes, host.plugins, host.file)
    return new, Router(new.routes, host.plugins.strategies.__contains__), strategies, fallbacks


def needs_restart(old: Settings, new: Settings) -> Iterator[str]:
    """Dotted keys of changed settings that need a restart. Values are left out because some are secret."""
    yield from _changed(_plain(old), _plain(new), "", "")


def _plain(settings: Settings) -> Any:
    def encode(value: Any) -> Any:
        if isinstance(value, Secret):
            return value.reveal() if value.present else None
        return str(value)

    made = msgspec.to_builtins(settings, enc_hook=encode)
    del made["route"]
    return made


def _changed(old: Any, new: Any, key: str, table: str) -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict) and table != "options":
        for name in old.keys() | new.keys():
            if name not in FREE.get(table, frozenset()):
                yield from _changed(old.get(name), new.get(name), f"{key}.{name}" if key else name, name)
    elif table in ("lobby", "account") and isinstance(old, (list, tuple)) and isinstance(new, (list, tuple)):
        before, after = ({one["name"]: one for one in many} for many in (old, new))
        for name in before.keys() | after.keys():
            yield from _changed(before.get(name), after.get(name), f"{key} {name}", table)
    elif old != new:
        yield key
