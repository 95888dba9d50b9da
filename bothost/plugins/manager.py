"""The plugins of one process, with all failures."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, partial
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import msgspec
import pluggy

from bothost.config.check import problems
from bothost.errors import UsageError
from bothost.hookspecs import Board, LazyClass
from bothost.plugins import discover
from bothost.plugins.address import AliasResolver, Resolved, resolve, why_missing
from bothost.plugins.discover import Failure, PluginSource, failure
from bothost.plugins.validate import (
    ADAPTER_NAME,
    NAME,
    lazy_problems,
    module_problem,
    new_manager,
    options_problems,
    schema_problems,
    strategy_problems,
)
from bothost.rules.game import Game
from bothost.strategy import Strategy

T = TypeVar("T")


class Plugins:
    """Everything that the plugins register. Create it with :meth:`load`. Failures are listed and never raised.

    Modules are imported at once. Hooks are called when first needed: ``--help`` calls no strategy's hook.
    """

    def __init__(self, aliases: AliasResolver | None = None) -> None:
        self.manager: pluggy.PluginManager = new_manager()
        self.sources: dict[str, PluginSource] = {}
        """Plugin name → its place, for loaded plugins."""
        self.origins: dict[str, str] = {}
        """``strategy NAME``, ``lobby NAME``, … → name of its plugin."""
        self.aliases = aliases
        """Resolves (strategy, alias) in the database; None without a database."""
        self.folder: Path | None = None
        """Where the programs of ``exec:`` run: the configuration's folder. None: the current one."""
        self._failures: list[Failure] = []

    @classmethod
    def load(
        cls,
        plugins_dir: Path | str | None = None,
        *,
        entry_points: bool = True,
        modules: Iterable[ModuleType] = (),
        aliases: AliasResolver | None = None,
    ) -> Plugins:
        """Import and register all plugins: entry points, ``plugins_dir``, then ``modules`` (for tests)."""
        plugins = cls(aliases)
        if entry_points:
            for found in discover.entry_points():
                plugins._admit(found)
        for item in discover.loose(Path(plugins_dir)) if plugins_dir is not None else ():
            if isinstance(item, Failure):
                plugins._failures.append(item)
            else:
                plugins._admit(item)
        for module in modules:
            plugins._register(PluginSource(module.__name__, "given", module.__name__), module)
        _ = plugins.games  # registers them with `rules.game`; strategies may use them in their constructors
        return plugins

    @property
    def hook(self) -> Any:
        """Calls hooks: ``plugins.hook.bothost_table_opened(table=…)``. Exceptions propagate; see ``notify``."""
        return self.manager.hook

    def notify(self, name: str, log: Callable[[Failure], None], **arguments: Any) -> None:
        """Call a notifying hook of all plugins. Exceptions go to ``log`` and do not stop other plugins.

        Not for the main thread: it would swallow KeyboardInterrupt.
        """
        for impl in getattr(self.manager.hook, name).get_hookimpls():
            try:
                impl.function(*(arguments[argument] for argument in impl.argnames))
            except BaseException as error:  # also what a panic of a Rust extension raises
                log(failure(self.sources[impl.plugin_name], error, during=name))

    @cached_property
    def games(self) -> dict[str, Callable[..., Game]]:
        """Games of plugins: name → factory with the rules as keywords. ``bothost.rules`` has them as well."""
        return dict(self._named("game", "bothost_games", _game_problems, _game_pair))

    @cached_property
    def strategies(self) -> Mapping[str, type[Strategy]]:
        """Strategy classes by name."""
        return self._classes("strategy", "bothost_strategies", strategy_problems)

    @cached_property
    def lobbies(self) -> Mapping[str, type[Any]]:
        """Lobby adapter classes by name."""
        return self._classes("lobby", "bothost_lobbies", _adapter_problems)

    @cached_property
    def boards(self) -> dict[str, Board]:
        """Boards by game."""
        return dict(self._named("board", "bothost_boards", _board_problems, lambda board: (board.game, board)))

    @cached_property
    def exporters(self) -> Mapping[str, type[Any]]:
        """Exporter classes by name."""
        check = partial(_class_problems, methods=(), base="bothost.export.base.Exporter")
        return self._classes("exporter", "bothost_exporters", check)

    @cached_property
    def commands(self) -> dict[str, Any]:
        """Typer apps by noun."""
        return dict(self._named("command", "bothost_commands", lambda pair: _pair_problems(pair, "a typer.Typer")))

    @property
    def failures(self) -> list[Failure]:
        """All failures, in order. Calls the hooks that were not called yet."""
        for named in (self.games, self.strategies, self.boards, self.lobbies, self.exporters, self.commands):
            len(named)  # calls the hook
        return list(self._failures)

    def resolve(self, address: str, options: Mapping[str, Any] | None = None, where: Path | None = None) -> Resolved:
        """The strategy class, options and model that an address stands for. See :func:`bothost.plugins.resolve`."""
        return resolve(self, address, options, where)

    # ------------------------------------------------------------------------------------------------- registering

    def _admit(self, found: PluginSource) -> None:
        module = discover.load(found)
        if isinstance(module, Failure):
            self._failures.append(module)
        else:
            self._register(found, module)

    def _register(self, found: PluginSource, module: ModuleType) -> None:
        problem = module_problem(module)
        if problem is None and (found.name in self.sources or self.manager.is_registered(module)):
            other = self.sources.get(found.name)
            problem = (f"it is registered already ({other.source if other else 'same module'})", "remove one of them")
        if problem is not None:
            self._failures.append(Failure(found.name, found.source, *problem))
            return
        self.manager.register(module, found.name)
        self.sources[found.name] = found

    def _asked(self, hook: str) -> Iterator[tuple[PluginSource, Any]]:
        """What each plugin returns from a registering hook, in registration order."""
        for impl in getattr(self.manager.hook, hook).get_hookimpls():
            found = self.sources[impl.plugin_name]
            try:
                items = impl.function()
                if not isinstance(items, Iterable) or isinstance(items, type):
                    cause = f"{hook} returned {items!r}"
                    self._failures.append(Failure(found.name, found.source, cause, "return a list, or yield"))
                    continue
                for item in items:
                    yield found, item
            except (Exception, SystemExit) as error:
                self._failures.append(failure(found, error, during=hook))

    def _classes(self, kind: str, hook: str, check: Callable[[Any], Iterable[tuple[str, str]]]) -> Mapping[str, Any]:
        def entry_problems(item: Any) -> Iterable[tuple[str, str]]:
            return lazy_problems(item) if isinstance(item, LazyClass) else check(item)

        found = self._named(kind, hook, entry_problems, lambda item: (item.name, item))
        return AsFound(found, lambda lazy: self._imported(lazy, kind, hook, check))

    def _imported(
        self, lazy: LazyClass, kind: str, hook: str, check: Callable[[Any], Iterable[tuple[str, str]]]
    ) -> Any | None:
        """Import a named class. None, with its problems among the failures, if it cannot be used."""
        found = self.sources[self.origins[f"{kind} {lazy.name}"]]
        try:
            item = lazy.load()
            wrong = list(check(item))
        except (Exception, SystemExit) as error:
            self._failures.append(failure(found, error, during=hook))
            return None
        if not wrong and item.name != lazy.name:
            wrong = [(f"{lazy.place} is named {item.name!r}, not {lazy.name!r}", f"write LazyClass({item.name!r}, …)")]
        self._failures += [Failure(found.name, found.source, cause, advice) for cause, advice in wrong]
        return None if wrong else item

    def _named(
        self,
        kind: str,
        hook: str,
        check: Callable[[Any], Iterable[tuple[str, str]]],
        split: Callable[[Any], tuple[str, Any]] = lambda item: (item[0], item[1]),
    ) -> Iterator[tuple[str, Any]]:
        """Yield (name, item) of valid items; add the problems of others to the failures."""
        for found, item in self._asked(hook):
            try:
                wrong = list(check(item))
            except Exception as error:  # a class whose attributes raise
                self._failures.append(failure(found, error, during=hook))
                continue
            self._failures += [Failure(found.name, found.source, cause, advice) for cause, advice in wrong]
            if wrong:
                continue
            name, value = split(item)
            if f"{kind} {name}" in self.origins:
                cause = f"{kind} {name!r} is registered already, by plugin {self.origins[f'{kind} {name}']}"
                self._failures.append(Failure(found.name, found.source, cause, "rename one of them"))
                continue
            self.origins[f"{kind} {name}"] = found.name
            yield name, value


class AsFound(Mapping[str, T]):
    """A mapping that reads its items on demand, up to the requested name, and imports lazy ones. Thread-safe.

    So a host imports only the strategies that it plays, which shortens its restart.
    """

    def __init__(self, items: Iterator[tuple[str, T | LazyClass]], load: Callable[[LazyClass], T | None]) -> None:
        """``load`` imports a lazy item; None: it cannot be used."""
        self._rest = items
        self._load = load
        self._known: dict[str, T | LazyClass] = {}
        self._lock = threading.Lock()

    def __getitem__(self, name: str) -> T:
        with self._lock:
            while name not in self._known:
                try:
                    found, value = next(self._rest)
                except StopIteration:
                    raise KeyError(name) from None
                self._known[found] = value
            return self._loaded(name)

    def _loaded(self, name: str) -> T:
        value = self._known[name]
        if not isinstance(value, LazyClass):
            return value
        if (loaded := self._load(value)) is None:
            del self._known[name]
            raise KeyError(name)
        self._known[name] = loaded
        return loaded

    def __iter__(self) -> Iterator[str]:
        with self._lock:
            self._known.update(self._rest)
            for name in list(self._known):
                with contextlib.suppress(KeyError):
                    self._loaded(name)
        return iter(self._known)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _pair_problems(pair: Any, what: str) -> Iterator[tuple[str, str]]:
    if not (isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str)):
        yield f"{pair!r} is not a pair of a name and {what}", f'yield ("name", {what})'
    elif not NAME.fullmatch(pair[0]):
        yield f"{what} is named {pair[0]!r}", "lower-case words joined by hyphens, for example: my-game"
    elif not callable(pair[1]):
        yield f"{pair[0]}: {pair[1]!r} is not {what}", ""


def _game_pair(item: Any) -> tuple[str, Any]:
    return item if isinstance(item, tuple) else (item.name, item.make)


def _game_problems(item: Any) -> Iterator[tuple[str, str]]:
    from bothost import rules  # imports the native core, which not every command needs

    pair = (item.name.removesuffix(":"), item.make) if isinstance(item, rules.GameFactory) else item
    wrong = list(_pair_problems(pair, "a factory of games"))
    if not wrong:
        try:
            rules.register_game(item if isinstance(item, rules.GameFactory) else rules.GameFactory(*pair))
        except UsageError as error:
            wrong.append((str(error), error.advice))
    yield from wrong


def _board_problems(board: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(board, Board):
        yield f"{board!r} is not a board", "yield bothost.Board(game, folder)"
    elif not isinstance(board.game, str) or not NAME.fullmatch(board.game.removesuffix(":*")):
        yield f"the game of a board is {board.game!r}", "lower-case words joined by hyphens, or FAMILY:*"
    elif board.folder is not None and not (Path(board.folder) / "board.js").is_file():
        yield f"the board of {board.game} has no file {board.folder}/board.js", "see docs/guide/write-a-board.md"


def _adapter_problems(adapter: Any) -> Iterator[tuple[str, str]]:
    yield from _class_problems(adapter, ("feed",), "bothost.lobbies.base.LobbyAdapter", ADAPTER_NAME)
    if isinstance(adapter, type):
        yield from options_problems(adapter.__qualname__, getattr(adapter, "Options", None))
        if (attributes := getattr(adapter, "Attributes", None)) is not None:
            yield from schema_problems(adapter.__qualname__, "Attributes", attributes)
        declared, advice = getattr(adapter, "capabilities", None), "see bothost.lobbies.base.Capabilities"
        if not isinstance(declared, msgspec.Struct):
            yield f"{adapter.__qualname__} declares no capabilities", advice
            return
        for wrong in problems(msgspec.to_builtins(declared), type(declared)):
            yield f"{adapter.__qualname__}.capabilities.{wrong.key}: {wrong.message}", wrong.advice or advice


def _class_problems(
    cls: Any, methods: tuple[str, ...], base: str, names: re.Pattern[str] = NAME
) -> Iterator[tuple[str, str]]:
    if not isinstance(cls, type):
        yield f"{cls!r} is not a class", f"yield subclasses of {base}"
        return
    name = getattr(cls, "name", None)
    if not isinstance(name, str) or not names.fullmatch(name):
        yield f"{cls.__qualname__}.name is {name!r}", "lower-case words joined by hyphens"
    missing = [method for method in methods if not callable(getattr(cls, method, None))]
    missing += sorted(getattr(cls, "__abstractmethods__", ()))
    if missing:
        yield f"{cls.__qualname__} does not implement {', '.join(missing)}", f"derive it from {base}"


def require(plugins: Plugins, what: Mapping[str, Any], kind: str, name: str) -> Any:
    """Return ``what[name]``. Raises UsageError with the nearest name, or the failure of its plugin."""
    if name in what:
        return what[name]
    raise UsageError(f"there is no {kind} {name!r}", advice=why_missing(plugins.failures, name, what))
