"""Checks of plugin modules and of the classes that they register. Each check returns (cause, advice)."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any, get_args

import msgspec
import pluggy

from bothost import hookspecs
from bothost.config import nearest
from bothost.strategy import Execution, Strategy, Trainer

NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
ADAPTER_NAME = re.compile(r"[a-z0-9]+([-_][a-z0-9]+)*")
"""Names of adapters may have underscores, as the names of their lobbies do."""


def new_manager() -> pluggy.PluginManager:
    """Make a pluggy manager with the hooks of ``bothost.hookspecs``."""
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    return manager


def module_problem(module: ModuleType) -> tuple[str, str] | None:
    """Return (cause, advice) if a module's hooks do not match the specification, else None."""
    wanted = getattr(module, "API_VERSION", hookspecs.API_VERSION)
    if wanted != hookspecs.API_VERSION:
        return _api_version("it", wanted)
    scratch = new_manager()
    try:
        scratch.register(module, "it")
        scratch.check_pending()
    except pluggy.PluginValidationError as error:
        text = re.sub(r"\s*\n\s*", " ", str(error).replace("Plugin 'it'", "it").replace("plugin 'it'", "it"))
        known = hookspecs.specs()
        unknown = [name for name in vars(module) if name not in known and f"'{name}'" in text]
        advice = nearest(unknown[0], known) if unknown else "see the signatures in bothost/hookspecs.py"
        return text, advice
    if not scratch.get_hookcallers(module):
        return "it implements no hook", f"mark functions with @bothost.hookimpl; hooks: {', '.join(hookspecs.specs())}"
    return None


def _api_version(what: str, wanted: Any) -> tuple[str, str]:
    cause = f"{what} is written for plugin API {wanted!r}, this bothost has {hookspecs.API_VERSION}"
    newer = isinstance(wanted, int) and wanted > hookspecs.API_VERSION
    return cause, "upgrade bothost" if newer else "upgrade the plugin"


def lazy_problems(lazy: hookspecs.LazyClass) -> Iterator[tuple[str, str]]:
    """Yield (cause, advice) if a lazy class has no usable name or place. The class is checked when it is imported."""
    if not isinstance(lazy.name, str) or not isinstance(lazy.place, str) or ":" not in lazy.place:
        yield f"{lazy!r} names no class", 'LazyClass("my-strategy", "my_package.module:MyStrategy")'


def strategy_problems(strategy: Any) -> Iterator[tuple[str, str]]:
    """Yield (cause, advice) for every reason why this object is not a valid strategy class."""
    if not (isinstance(strategy, type) and issubclass(strategy, Strategy)):
        advice = "yield classes, not instances, derived from bothost.Strategy"
        yield f"{strategy!r} is not a subclass of bothost.Strategy", advice
        return
    what = strategy.__qualname__
    if inspect.isabstract(strategy):
        missing = ", ".join(sorted(strategy.__abstractmethods__))
        yield f"{what} does not implement {missing}", f"define {missing}"
    api = getattr(strategy, "api_version", None)
    if api != hookspecs.API_VERSION:
        yield _api_version(what, api)
    name = getattr(strategy, "name", None)
    if not isinstance(name, str) or not NAME.fullmatch(name):
        yield f"{what}.name is {name!r}", "lower-case words joined by hyphens, for example: my-strategy"
    elif name == "exec" and strategy.__module__.partition(".")[0] != "bothost_exec":
        yield f"{what}.name is {name!r}, which is reserved for addresses", "choose another name"
    if not isinstance(getattr(strategy, "version", None), str) or not strategy.version:
        yield f"{what}.version is {getattr(strategy, 'version', None)!r}", 'a text, for example: "1.0"'
    if not _words(getattr(strategy, "games", None)) or not strategy.games:
        advice = 'a tuple of names, for example: ("doudizhu",), or ("*",) for any game'
        yield f"{what}.games is {getattr(strategy, 'games', None)!r}", advice
    if not _words(strategy.levels):
        yield f"{what}.levels is {strategy.levels!r}", 'a tuple of names, weakest first, for example: ("easy", "hard")'
    if strategy.execution not in get_args(Execution):
        yield f"{what}.execution is {strategy.execution!r}", f"one of {', '.join(get_args(Execution))}"
    for flag in ("deterministic", "needs_search_thread", "wants_events"):
        if not isinstance(getattr(strategy, flag), bool):
            yield f"{what}.{flag} is {getattr(strategy, flag)!r}", "True or False"
    yield from declared_options_problems(strategy)


def declared_options_problems(cls: type[Strategy] | type[Trainer]) -> Iterator[tuple[str, str]]:
    """Yield (cause, advice) for every problem of what strategies and trainers declare in the same way."""
    what, named = cls.__qualname__, cls.evaluators
    if not _words(named):
        yield f"{what}.evaluators is {named!r}", 'a tuple of names of options, for example: ("evaluator",)'
        named = ()
    if getattr(cls, "starts_with_version", False):
        named = (*named, "start")
    yield from options_problems(what, cls.Options, named)


def schema_problems(what: str, field: str, schema: Any) -> Iterator[tuple[str, str]]:
    """Yield (cause, advice) for every problem of a schema such as ``Options``."""
    advice = f"class {field}(msgspec.Struct, frozen=True, forbid_unknown_fields=True): …"
    if not (isinstance(schema, type) and issubclass(schema, msgspec.Struct)):
        yield f"{what}.{field} is {schema!r}, not a msgspec Struct", advice
        return
    try:
        msgspec.inspect.type_info(schema)
    except Exception as error:  # annotations may raise anything
        yield f"{what}.{field} cannot be read: {type(error).__name__}: {error}", advice


def options_problems(what: str, options: Any, named: Iterable[str] = ()) -> Iterator[tuple[str, str]]:
    """Yield (cause, advice) for every problem of an ``Options`` schema. ``named``: options that it must have."""
    yield from schema_problems(what, "Options", options)
    if not (isinstance(options, type) and issubclass(options, msgspec.Struct)):
        return
    for name in named:
        if name not in options.__struct_fields__:
            yield f"{what}.Options has no option {name!r}, which holds an address", f'add the field {name}: str = ""'


def _words(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(word, str) and word for word in value)
