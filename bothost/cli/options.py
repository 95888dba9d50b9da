"""Options that several commands share, and what they lead to: settings and plugins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bothost import config
from bothost.cli import output
from bothost.errors import BothostError, ConfigError, UsageError

if TYPE_CHECKING:
    from bothost.plugins import Plugins

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Config = Annotated[
    Path | None,
    typer.Option("--config", "-c", help="Configuration file; default: $BOTHOST_CONFIG, else ./config.toml."),
]


def settings(path: Path | None) -> config.Settings:
    """The settings, with warnings on stderr. Raises ConfigError."""
    loaded = config.read(path)
    for text in loaded.warnings:
        output.warn(text)
    return loaded.settings


def plugins(path: Path | None = None) -> Plugins:
    """All plugins; where there is a configuration, with those of ``plugins_dir`` and with the registry's aliases.

    Raises ConfigError when the configuration is wrong.
    """
    from bothost.cli.registry import resolver
    from bothost.plugins import Plugins

    found = _settings(path)
    if found is None:
        return Plugins.load(None)
    return Plugins.load(found.host.plugins_dir, aliases=resolver(found))


def plugins_for_help() -> Plugins:
    """Plugins for ``--help`` and unknown nouns: a wrong configuration must not keep them from working."""
    from bothost.plugins import Plugins

    try:
        found = _settings(None)
    except BothostError:
        found = None
    return Plugins.load(found.host.plugins_dir if found is not None else None)


def _settings(path: Path | None) -> config.Settings | None:
    """The configuration; None where no path is given and there is none."""
    if path is None:
        try:
            config.find()
        except ConfigError:
            return None
    return config.load(path)


def nested(texts: list[str]) -> dict[str, Any]:
    """Options as nested objects: ``ppo.epochs=4`` → ``{"ppo": {"epochs": 4}}``."""
    nested: dict[str, Any] = {}
    for text in texts:
        path, equals, value = text.partition("=")
        if not equals or not path:
            raise UsageError(f"--option {text!r} is not KEY=VALUE")
        *outer, last = path.split(".")
        place = nested
        for key in outer:
            place = place.setdefault(key, {})
            if not isinstance(place, dict):
                raise UsageError(f"--option {text!r}: {key} has a value already", advice="give one of the two")
        try:
            place[last] = json.loads(value)
        except json.JSONDecodeError:
            place[last] = value
    return nested
