"""Options that several commands share, and what they lead to: settings, plugins and the registry."""

from __future__ import annotations

import json
import math
import os
import shlex
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bothost import config
from bothost.cli import output
from bothost.errors import BothostError, UsageError
from bothost.locking import lock_if_possible

if TYPE_CHECKING:
    from bothost.plugins import AliasResolver, Plugins
    from bothost.store.registry import Registry
    from bothost.strategy import Model

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Config = Annotated[
    Path | None,
    typer.Option("--config", "-c", help="Configuration file; default: $BOTHOST_CONFIG, else ./config.toml."),
]
Parent = Annotated[int | None, typer.Option(hidden=True, help="End when this process, which started this one, ends.")]


def finite(value: float | None) -> float | None:
    """Callback of options that are numbers. The bounds of an option let NaN through. Raises BadParameter."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is not a finite number")
    return value


Minutes = Annotated[
    float | None,
    typer.Option(
        min=0.01, callback=finite, help="Time to train, earlier runs included; default: the training's own, if any."
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the deals and of the players.")]
Ms = Annotated[float | None, typer.Option(min=0.1, callback=finite, help="Time per decision, ms; default: no clock.")]
Workers = Annotated[int, typer.Option("--workers", "-w", min=1, max=256, help="Processes that play.")]
Batch = Annotated[int, typer.Option(min=1, max=10**6, help="Deals played at once in one process, without --ms.")]
Rule = Annotated[list[str] | None, typer.Option(help="Option of the game's rules, KEY=VALUE.")]
OfContestant = Annotated[list[str] | None, typer.Option(help="Option of a contestant, A.KEY=VALUE.")]
MOST_DEALS = 10**6
"""Most deals of a match, which are all in memory for its figures: about 1.5 kB each."""
MostDeals = Annotated[int, typer.Option(min=1, max=MOST_DEALS, help="Most deals of the match.")]
Alpha = Annotated[float, typer.Option(min=1e-6, max=0.5, callback=finite, help="Error rate of the sequential test.")]
Ray = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Use this Ray cluster: auto, HOST:PORT, or local to start one here."),
]


def in_folder(path: Path | None) -> Path | None:
    """Callback of options that name a file to write. Its folder must exist. Raises BadParameter."""
    if path is not None and not path.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {path.parent}")
    return path


def settings(path: Path | None) -> config.Settings:
    """The settings, with warnings on stderr. Raises ConfigError."""
    loaded = config.read(path)
    for text in warnings(loaded):
        output.warn(text)
    return loaded.settings


def warnings(loaded: config.Loaded) -> list[str]:
    """Warnings of a configuration for which no plugin is needed."""
    from bothost.tables.router import unreached

    return [*loaded.warnings, *unreached(loaded.settings)]


def is_configured(path: Path | None) -> bool:
    """Whether a configuration is named, or lies in this folder."""
    return path is not None or bool(os.environ.get("BOTHOST_CONFIG")) or Path(config.FILE_NAME).exists()


def plugins(path: Path | None = None) -> Plugins:
    """Load all plugins; with a configuration, also those of ``plugins_dir``, and the registry's aliases.

    Raises ConfigError when the configuration is wrong.
    """
    from bothost.plugins import Plugins

    if not is_configured(path):
        if (loose := config.HostSettings().plugins_dir) is not None and loose.is_dir():
            output.warn(f"{loose} is not read, as there is no {config.FILE_NAME} here: bothost init writes one")
        return Plugins.load(None)
    found = config.load(path)
    return Plugins.load(found.host.plugins_dir, aliases=alias_resolver(found))


@contextmanager
def opened_registry(settings: config.Settings) -> Iterator[Registry]:
    """The registry of the configured database. Raises as ``Store.open`` does."""
    from bothost.store import Store
    from bothost.store.registry import Registry

    with Store.open(settings.store) as store:
        yield Registry(store, settings.host.data_dir / "models")


def alias_resolver(settings: config.Settings) -> AliasResolver:
    """Resolves aliases in the database, which is open for as long as that takes.

    Before there is a database there are no aliases in it: nothing is resolved then, and the package's count.
    """

    def resolve(strategy: str, alias: str) -> Model | str | None:
        from bothost.store.engine import sqlite_path

        try:
            path = sqlite_path(settings.store.url)
        except BothostError:  # a wrong URL: what needs the database says so
            return None
        if path is not None and not path.exists():
            return None
        with opened_registry(settings) as registry:
            return registry.resolve(strategy, alias)

    return resolve


def choose_trackers(path: Path | None) -> None:
    """Let trainings report to the trackers of the configuration, if there is one that names any. Raises UsageError."""
    if not is_configured(path) or (names := config.load(path).training.trackers) is None:
        return
    from bothost.training.trackers import choose

    choose(names)


def plugins_dir() -> Path | None:
    """The folder of loose plugins; None without a configuration, or if it is wrong."""
    try:
        return config.load().host.plugins_dir
    except BothostError:
        return None


def plugins_for_help() -> Plugins:
    """Plugins for ``--help`` and unknown nouns: a wrong configuration must not keep them from working."""
    from bothost.plugins import Plugins

    return Plugins.load(plugins_dir())


def nested(texts: list[str], option: str = "--option") -> dict[str, Any]:
    """Options as nested objects: ``ppo.epochs=4`` → ``{"ppo": {"epochs": 4}}``."""
    nested: dict[str, Any] = {}
    for text in texts:
        path, equals, value = text.partition("=")
        if not equals or not path:
            raise UsageError(f"{option} {text!r} is not KEY=VALUE")
        *outer, last = path.split(".")
        place = nested
        for key in outer:
            place = place.setdefault(key, {})
            if not isinstance(place, dict):
                raise UsageError(f"{option} {text!r}: {key} has a value already", advice="give one of the two")
        try:
            place[last] = json.loads(value)
        except (ValueError, RecursionError):
            place[last] = value
    return nested


def nested_by_name(texts: list[str], names: Collection[str]) -> dict[str, dict[str, Any]]:
    """Options of several players or contestants, ``NAME.KEY=VALUE``: name → its options."""
    given = nested(texts)
    for name, found in given.items():
        if name not in names or not isinstance(found, dict):
            advice = f"write NAME.KEY=VALUE; {config.nearest(name, sorted(names))}"
            raise UsageError(f"--option {name} does not name one of the players", advice=advice)
    return {name: given.get(name, {}) for name in names}


def command_line(*words: object, option: Iterable[str]) -> str:
    """The command that made a result, for its record. None and empty words are left out."""
    given = [str(word) for word in words if word not in (None, "")]
    return shlex.join(["bothost", *given, *(word for text in option for word in ("--option", text))])


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Make the folder, and keep other commands out of it until the block ends. Raises UsageError if one writes there.

    Folders that it made and that are empty then are removed.
    """
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        lock_if_possible(handle, folder)
    except BlockingIOError:
        os.close(handle)
        advice = "wait until it ends, or name another folder with --out"
        raise UsageError(f"another bothost writes to {folder} now", advice=advice) from None
    except BaseException:
        os.close(handle)
        raise
    try:
        yield
    finally:
        os.close(handle)
        with suppress(OSError):
            for path in made:
                path.rmdir()
