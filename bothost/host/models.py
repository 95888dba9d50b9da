"""Follows the registry: when an alias moves, the new model plays the tables that open from then on.

Once a second a thread reads the aliases. If one was moved, the thread fetches and verifies the model's files, makes the
strategy and lets it decide once. Only then does the event loop use it. Open hands keep their model. A model that is
incomplete, or with which its strategy cannot play, is refused. The log says why, and the previous model continues.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import math
import random
import time
from collections.abc import Mapping
from typing import Any

import structlog

from bothost.errors import ANY_FAILURE, BothostError, ModelError, StoreUnavailable
from bothost.host.canary import Judge
from bothost.host.shadow import Shadow
from bothost.host.strategy_thread import StrategyHangs, StrategyThread
from bothost.host.supervisor import Host
from bothost.host.tasks import BackgroundTasks
from bothost.host.worker import MAKE_S
from bothost.plugins.address import CHAMPION
from bothost.store.registry import CANARY, SHADOW, AliasMoved, Pointer, Registry, is_alias
from bothost.strategy import Budget, Model, Strategy, Table
from bothost.tables.actor import Loaded
from bothost.tables.hand import Hand, Job

_log = structlog.get_logger("bothost.host")

LOOK_S = 1.0
AGAIN_S = 60.0
"""Seconds until a refused model is tried again."""

Address = tuple[str, str]
"""(strategy, alias or version)"""


class AliasCache:
    """The models of aliases at the last look. An ``AliasResolver`` that never waits for the database."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.pointers: dict[Address, Pointer] = {}
        self._models: dict[Address, Model | str | None] = {}
        self._refused: dict[Address, tuple[int, float]] = {}
        """Alias → (its number, when it was refused)."""
        self._wanted: set[Address] = set()
        """Versions that were requested by name and are not known yet."""

    def resolve(self, strategy: str, name: str) -> Model | str | None:
        key = strategy, name
        if key not in self._models and not is_alias(name) and len(self._wanted) < 1000:
            self._wanted.add(key)
        return self._models.get(key)

    def look(self) -> bool:
        """Read the aliases and fetch their models. Called in a thread. Returns whether anything changed."""
        pointers = self.registry.pointers()
        changed = False
        for key, pointer in pointers.items():
            if self.pointers.get(key) != pointer or self._due(key, pointer):
                changed |= self._take(key, pointer)
        for key in list(self._wanted):
            self._wanted.discard(key)
            if (found := self.registry.resolve(*key)) is not None:
                self._models[key], changed = found, True
        self.pointers = pointers  # only now: if the database went away on the way, the next look begins again
        return changed

    def _due(self, key: Address, pointer: Pointer) -> bool:
        refused = self._refused.get(key)
        return refused is not None and refused[0] == pointer.number and time.monotonic() - refused[1] > AGAIN_S

    def _take(self, key: Address, pointer: Pointer) -> bool:
        try:
            self._models[key] = (
                None if pointer.version is None else self.registry.resolve(pointer.strategy, pointer.alias)
            )
        except ModelError as error:
            self._refused[key] = pointer.number, time.monotonic()
            _log.error("model_refused", model=":".join(key), error=str(error), advice=error.advice)
            return False
        self._refused.pop(key, None)
        return True


class ModelWatch:
    """Replaces a host's strategies when their addresses resolve to other models. Used on the event loop."""

    def __init__(self, host: Host, registry: Registry, *, look_s: float = LOOK_S) -> None:
        self.shelf = AliasCache(registry)
        self.shadow = Shadow(host.runner.recorder, host.runner.workers.make)
        self.judge = Judge()
        self.refused = 0
        """Number of models that were refused since the start."""
        self._host = host
        self._look_s = look_s
        self._thread = concurrent.futures.ThreadPoolExecutor(1, "models")
        self._making = StrategyThread("making models")
        """Makes the strategies. It lives on, because a strategy's program ends with the thread that started it."""
        self._away = False
        self._seen: set[str] = set()
        self._loaded_at = -math.inf
        self._refused: dict[tuple[str, str, str], float] = {}
        self._canaries: dict[str, Loaded] = {}
        """Strategy → its canary, ready to play."""
        self._retired: list[Loaded] = []
        self._withdrawing: dict[str, tuple[Pointer, str]] = {}
        """Canaries that must be withdrawn in the database, and why."""
        host.plugins.aliases = self.shelf.resolve

    @contextlib.asynccontextmanager
    async def following(self) -> Any:
        """Look once, then repeatedly while the block runs."""
        loop = asyncio.get_running_loop()
        for route in self._host.settings.routes:
            name, _, version = route.strategy.partition(":")
            self.shelf.resolve(name, version or CHAMPION)
        await loop.run_in_executor(self._thread, self.shelf.look)
        plans, runner = self._host.plans, self._host.runner
        plans.fresh_s, plans.canary_selector, runner.observer = math.inf, self.canary_selector, self
        try:
            async with BackgroundTasks() as tasks:
                tasks.spawn(self._follow())
                yield self
        finally:
            await asyncio.to_thread(self._thread.shutdown)
            self._making.close()
            await asyncio.to_thread(self.shadow.close)

    async def _follow(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                changed = await loop.run_in_executor(self._thread, self.shelf.look)
                # Resolving reads whole files to verify them, so do it only after a change and every ``AGAIN_S``.
                addresses = {address for address, _, _ in self._host.plans.known()}
                if changed or addresses != self._seen or time.monotonic() - self._loaded_at > AGAIN_S:
                    await self._load_models()
                    self._seen, self._loaded_at = addresses, time.monotonic()
                await self._roll_back()
                self._tidy()
                self._away = False
            except StoreUnavailable as error:
                if not self._away:
                    _log.warning("models_not_followed", error=str(error))
                self._away = True
            except ANY_FAILURE:  # the host continues with its present models
                _log.exception("models_not_followed")
            await asyncio.sleep(self._look_s)

    # ------------------------------------------------------------------------------------------------ loading models

    async def _load_models(self) -> None:
        plans = self._host.plans
        known = plans.known()
        for address, options, loaded in known:
            fresh = await self._fresh(address, options, loaded)
            if fresh is not None:
                plans.replace(address, options, fresh)
                self.retire(loaded)
                _log.info("model_loaded", strategy=address, version=fresh.version, sha256=fresh.sha256)
        played = {loaded.name: options for _, options, loaded in known}
        for name in dict.fromkeys((*played, *self._canaries, *self.shadow.strategies())):
            if name not in self._withdrawing:
                await self._aside(name, CANARY, played.get(name))
            await self._aside(name, SHADOW, played.get(name))

    async def _aside(self, name: str, alias: str, options: Mapping[str, Any] | None) -> None:
        """Load or drop the canary or the shadow of a strategy. ``options``: None where no address names it."""
        pointer = self.shelf.pointers.get((name, alias))
        now = self._canaries.get(name) if alias == CANARY else self.shadow.of(name)
        fresh = None
        if options is not None and pointer is not None and pointer.version is not None:
            fresh = await self._fresh(f"{name}:{alias}", options, now, warm=alias == CANARY)
            if fresh is None:
                return
        elif now is None:
            return
        if alias == SHADOW:
            self.shadow.use(name, fresh)
        elif fresh is None:
            self._canaries.pop(name, None)
        else:
            self._canaries[name] = fresh
            self.judge.begin(name)
        if now is not None:
            self.retire(now)
        _log.info(f"{alias}_changed", strategy=name, version=fresh.version if fresh else None)

    async def _fresh(
        self, address: str, options: Mapping[str, Any], now: Loaded | None, *, warm: bool = True
    ) -> Loaded | None:
        """The strategy that an address resolves to, ready to play; None if it already plays or is refused."""
        loop = asyncio.get_running_loop()
        workers = self._host.runner.workers
        known = self.shelf.resolve(*_split(address))
        key = address, repr(options), known.sha256 if isinstance(known, Model) else ""
        try:
            resolved = await loop.run_in_executor(self._thread, self._host.plugins.resolve, address, options)
            key = address, repr(options), resolved.model.sha256 if resolved.model is not None else ""
            if now is not None and now.resolved.pinned == resolved.pinned:
                return None
            if time.monotonic() - self._refused.get(key, -AGAIN_S) < AGAIN_S:
                return None
            new = Loaded(resolved)
            loaded = self._host.plans.equal(address, options, new)
            if loaded is not new:  # its last hands are still played, so its instances are there
                self._retired = [kept for kept in self._retired if kept is not loaded]
                return loaded
            if warm and loaded.execution == "process":
                workers.pools.warm(loaded)
                await workers.processes_ready()
            elif warm:
                workers.pools.adopt(loaded, [await self._made(loaded) for _ in workers.pools.of(loaded)])
            return loaded
        except StoreUnavailable:
            raise
        except ANY_FAILURE as error:
            if time.monotonic() - self._refused.get(key, -AGAIN_S) >= AGAIN_S:
                self._refused[key] = math.inf if isinstance(error, StrategyHangs) else time.monotonic()
                self.refused += 1
                advice = error.advice if isinstance(error, BothostError) else "roll the alias back"
                _log.error("model_refused", model=address, error=str(error), advice=advice)
            return None

    async def _made(self, loaded: Loaded) -> Strategy:
        """An instance that has decided once. Raises StrategyHangs, and what the plugin raises."""
        try:
            name = f"{loaded.address} ({loaded.version})"
            return await self._making.call(name, MAKE_S, lambda: _warmed(loaded, list(self._host.games)))
        except StrategyHangs:
            self._making.close()
            self._making = StrategyThread("making models")
            raise

    def retire(self, loaded: Loaded) -> None:
        """Close a strategy as soon as no open hand uses it."""
        self._retired.append(loaded)

    def _tidy(self) -> None:
        """Close the strategies that no open hand uses any more."""
        playing = self._host.runner.playing()
        for loaded in [loaded for loaded in self._retired if loaded not in playing]:
            self._retired.remove(loaded)
            if self._host.plans.forget(loaded):
                self._host.runner.workers.pools.forget(loaded)

    # ---------------------------------------------------------------------------------------------- canary and shadow

    def canary_selector(self, loaded: Loaded, address: str) -> Loaded:
        """Who plays a new table of ``loaded``: the canary plays its share of the champion's tables."""
        canary = self._canaries.get(loaded.name)
        pointer = self.shelf.pointers.get((loaded.name, CANARY))
        if canary is None or pointer is None or pointer.share is None or _split(address)[1] != CHAMPION:
            return loaded
        return canary if random.random() < pointer.share else loaded

    def answered(self, hand: Hand, job: Job) -> None:
        """Handle a decision at a table."""
        self.shadow.offer(hand, job)

    def closed(self, hand: Hand, score: float | None) -> None:
        """Handle the end of a hand."""
        loaded = hand.actor.plan.strategy
        canary = self._canaries.get(loaded.name)
        if canary is not None:
            champion = _split(loaded.address)[1] == CHAMPION
            if loaded is canary or champion:
                self.judge.closed(hand, score, is_canary=loaded is canary)

    async def _roll_back(self) -> None:
        for name, why in self.judge.verdicts():
            pointer, canary = self.shelf.pointers.get((name, CANARY)), self._canaries.pop(name, None)
            if pointer is not None and pointer.version is not None and canary is not None:
                _log.error("canary_rolled_back", strategy=name, version=pointer.version, reason=why)
                self.retire(canary)
                self._withdrawing[name] = pointer, why
        loop = asyncio.get_running_loop()
        for name, (pointer, why) in list(self._withdrawing.items()):  # repeated until the database has it
            with contextlib.suppress(AliasMoved):  # another host was first
                await loop.run_in_executor(self._thread, self._withdraw, name, pointer, why)
            await loop.run_in_executor(self._thread, self.shelf.look)
            del self._withdrawing[name]

    def _withdraw(self, name: str, pointer: Pointer, why: str) -> None:
        strategy = self._host.plugins.strategies[name]
        registry = self.shelf.registry
        registry.point(strategy, CANARY, None, reason=why, kind="rollback", after=pointer.number)

    def status(self) -> dict[str, Any]:
        """The registry's entry in ``bothost status``."""
        return {
            "refused": self.refused,
            "canaries": {name: loaded.version for name, loaded in sorted(self._canaries.items())},
            "shadow": self.shadow.status(),
        }


def _split(address: str) -> tuple[str, str]:
    name, _, alias = address.partition(":")
    return name, alias or CHAMPION


def _warmed(loaded: Loaded, games: list[Any]) -> Strategy:
    """Make the strategy and let it decide once, so that it loads everything that it loads lazily."""
    instance = loaded.resolved.make()
    for game in games:
        if not instance.supports(game):
            continue
        state = game.new_state(0)
        view = state.view(state.to_act[0])
        player = instance.player(Table(lobby="warm-up", table="1", game=game, seat=view.seat, seed=0))
        decision = player.decide(view, view.legal(), Budget(time.monotonic() + 1.0))
        player.close()
        if not view.is_legal(int(decision.action)):
            raise ModelError(
                f"{loaded.address} ({loaded.version}) chose the illegal action {decision.action} in a test"
            )
        break
    return instance
