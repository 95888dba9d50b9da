"""Addresses of strategies, as config.toml and the command line write them.

``NAME``             the strategy, with its champion if it has models
``NAME:ALIAS``       a version or alias of its model, or one of its levels
``exec:COMMAND``     an external program (shell-like quoting, no shell)
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol, cast

import msgspec

from bothost.config import nearest, problems
from bothost.errors import BothostError, ConfigError, ConfigErrors, ModelError, StrategyNotFound, VersionNotFound
from bothost.plugins import weights
from bothost.plugins.discover import Failure
from bothost.strategy import Evaluator, Model, Strategy, Trainer

AliasResolver = Callable[[str, str], Model | str | None]
"""(strategy, alias or version) → model of the registry, or the name of a version that comes with the strategy's
package; None: the registry knows no such alias."""

EXEC = "exec"
CHAMPION = "champion"


class Installed(Protocol):
    """What addresses stand for here: ``Plugins``."""

    @property
    def strategies(self) -> Mapping[str, type[Strategy]]: ...
    @property
    def failures(self) -> Iterable[Failure]: ...
    @property
    def folder(self) -> Path | None:
        """Where programs of ``exec:`` start, if their options do not say."""

    @property
    def aliases(self) -> AliasResolver | None: ...


class Resolved(msgspec.Struct, frozen=True):
    """The strategy, options and model of an address. A table keeps it, because an alias may be moved later."""

    address: str
    strategy: type[Strategy]
    options: Any
    """Instance of ``strategy.Options``."""
    model: Model | None = None
    level: str | None = None
    """The level that the address names, if any."""
    evaluators: Mapping[str, Resolved] = {}
    """Option → resolved evaluator, for the strategy's ``evaluators``."""

    @property
    def pinned(self) -> tuple[str | None, ...]:
        """The sha256 of the model and of the evaluators' models. Equal tuples play alike."""
        return tuple(
            each.model.sha256 if each.model is not None else None for each in (self, *self.evaluators.values())
        )

    def make(self) -> Strategy:
        """Make an instance of the strategy. Exceptions of its constructor propagate."""
        return made(self.strategy(self.options, self.model), {key: to.make() for key, to in self.evaluators.items()})


def resolve(
    plugins: Installed, address: str, options: Mapping[str, Any] | None = None, where: Path | None = None
) -> Resolved:
    """Resolve an address and check the options against the strategy's schema.

    Options that are not given come from the model version. With the folder ``where``, the alias is looked up in that
    folder's manifest only.

    Raises StrategyNotFound; ModelError if the alias is unknown, its files are changed or missing, or the strategy does
    not know its options; ConfigError for wrong options.
    """
    name, _, alias = address.partition(":")
    given = dict(options or {})
    if name == EXEC:
        given["command"] = _command(address, alias)
        if plugins.folder is not None and isinstance(given.setdefault("cwd", ""), str):
            given["cwd"] = str(plugins.folder / given["cwd"])
        alias = ""
    strategy = plugins.strategies.get(name)
    if strategy is None:
        advice = why_missing(plugins.failures, name, plugins.strategies)
        raise StrategyNotFound(name, advice=advice)
    model, level = _version(plugins, strategy, alias, where)
    settled = settle(strategy, model, given)
    return Resolved(address, strategy, settled, model, level, evaluators_of(plugins, strategy, settled))


def evaluators_of(plugins: Installed, strategy: type[Strategy] | type[Trainer], options: Any) -> dict[str, Resolved]:
    """Resolve the options that hold addresses of evaluators. Raises ConfigError with the option as its key."""
    out = {}
    for option in strategy.evaluators:
        address = getattr(options, option)
        if not address:
            continue
        found = _of_option(plugins, strategy, option, address)
        if found.evaluators or not issubclass(found.strategy, Evaluator):
            able = sorted(name for name, each in plugins.strategies.items() if issubclass(each, Evaluator))
            raise ConfigError(
                f"{strategy.name}: {found.strategy.name} is not an evaluator",
                key=f"options.{option}",
                value=address,
                advice=f'evaluators: {", ".join(able) or "none is installed"}; or "" for none',
            )
        out[option] = found
    return out


def trainer_evaluators(plugins: Installed, trainer: type[Trainer], options: Any) -> dict[str, Evaluator]:
    """Make the evaluators that the trainer's options name: option → evaluator. Raises ConfigError."""
    found = {option: resolved.make() for option, resolved in evaluators_of(plugins, trainer, options).items()}
    return cast(dict[str, Evaluator], found)


def start_of(plugins: Installed, trainer: type[Trainer], options: Any) -> Model | None:
    """Resolve the version that a training begins with. Raises ConfigError with the option as its key."""
    if not trainer.starts_with_version or not options.start:
        return None
    name = trainer.name
    address = options.start if options.start.partition(":")[0] == name else f"{name}:{options.start}"
    return _of_option(plugins, trainer, "start", address).model


def _of_option(plugins: Installed, owner: type[Strategy] | type[Trainer], option: str, address: str) -> Resolved:
    try:
        return resolve(plugins, address)
    except BothostError as error:
        message = f"{owner.name}: {error}"
        raise ConfigError(message, key=f"options.{option}", value=address, advice=error.advice) from error


def made(strategy: Strategy, evaluators: Mapping[str, Strategy]) -> Strategy:
    """Set the strategy's evaluators, and return it."""
    for option, evaluator in evaluators.items():
        assert isinstance(evaluator, Evaluator)  # checked by evaluators_of
        strategy.use_evaluator(option, evaluator)
    return strategy


def settle(strategy: type[Strategy], model: Model | None, given: Mapping[str, Any]) -> Any:
    """Make ``strategy.Options`` from the ``play.json`` of a model version, overridden by the given options.

    Raises ModelError for the version's options, ConfigError for the given ones.
    """
    packaged = weights.play_options(model)
    if not packaged or model is None:
        return check_options(strategy, given)
    try:
        check_options(strategy, packaged)
    except ConfigError as error:
        raise ModelError(
            f"{strategy.name}:{model.version} has invalid options in play.json: {error}",
            advice="use the release of the strategy that the model was made for",
        ) from error
    return check_options(strategy, _overridden(packaged, given))


def check_options(strategy: type[Any], options: Mapping[str, Any]) -> Any:
    """Make ``strategy.Options`` from plain data. Raises ConfigError with the wrong key and the nearest known one.

    Options inside a group, such as ``ppo.epochs``, leave the others of that group as ``strategy.Options`` has them.
    """
    groups = {
        field.encode_name: msgspec.to_builtins(field.default)
        for field in msgspec.structs.fields(strategy.Options)
        if isinstance(field.default, msgspec.Struct) and field.encode_name in options
    }
    options = _overridden(groups, options)
    found = problems(options, strategy.Options)
    if found:
        none = "" if strategy.Options.__struct_fields__ else f"{strategy.name} takes no options"
        known = [
            ConfigError(
                f"{strategy.name}: {p.message}",
                key=f"options.{p.key}".rstrip("."),
                value=p.value,
                advice=none or p.advice,
            )
            for p in found
        ]
        raise known[0] if len(known) == 1 else ConfigErrors(known)
    return msgspec.convert(options, strategy.Options)


def _overridden(settled: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """``settled`` with what is given, group by group."""
    parts = {
        name: _overridden(settled[name], value)
        for name, value in given.items()
        if isinstance(value, Mapping) and isinstance(settled.get(name), Mapping)
    }
    return {**settled, **given, **parts}


def why_missing(failures: Iterable[Failure], name: str, known: Iterable[str]) -> str:
    """Advice for an unknown name: the likely failed plugin, else the nearest name and all failed plugins."""
    failures = list(failures)
    failed = ", ".join(dict.fromkeys(failure.plugin for failure in failures))
    seen = f"bothost plugin list: {failed} failed to load" if failed else "bothost plugin list"
    return why_failed(failures, name) or f"{nearest(name, known)} (see {seen})"


def why_failed(failures: Iterable[Failure], name: str) -> str:
    """Advice for an unknown name whose plugin has likely failed; empty where none has."""
    for failure in failures:
        if name.replace("-", "_") in (failure.plugin.replace("-", "_"), failure.plugin.removeprefix("bothost_")):
            return f"plugin {failure.plugin} failed to load: {failure.cause}; see bothost plugin list"
    return ""


def _command(address: str, text: str) -> list[str]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ConfigError(f"{address!r}: {error}", advice="check the quotes") from error
    if not words:
        raise ConfigError(f"{address!r} names no command", advice='for example "exec:python3 my_bot.py"')
    return words


def _version(
    plugins: Installed, strategy: type[Strategy], alias: str, where: Path | None
) -> tuple[Model | None, str | None]:
    wanted = alias or CHAMPION
    level = alias if alias in strategy.levels else None
    if where is not None:
        if (model := weights.find(strategy, wanted, where)) is None:
            raise ModelError(f"there is no version {wanted!r} of {strategy.name} in {where}", advice="see its manifest")
        return model, level
    found = plugins.aliases(strategy.name, wanted) if plugins.aliases is not None else None
    model = weights.find(strategy, wanted if found is None else found) if not isinstance(found, Model) else found
    if model is None and alias and level is None:
        known = list(dict.fromkeys([*strategy.levels, *weights.aliases(strategy)]))
        packaged = nearest(alias, known) if known else f"its package has no models and no levels: write {strategy.name}"
        advice = f"{packaged} (bothost model list {strategy.name} shows all)"
        raise VersionNotFound(f"{strategy.name} has no version or level {alias!r}", advice=advice)
    return model, level
