"""Options that several commands share, and what they lead to: settings and plugins."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bothost import config
from bothost.cli import output
from bothost.errors import BothostError, ConfigError

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
    """All plugins; those of ``plugins_dir`` where there is a configuration. Raises ConfigError when that is wrong."""
    from bothost.plugins import Plugins

    return Plugins.load(_plugins_dir(path))


def plugins_for_help() -> Plugins:
    """Plugins for ``--help`` and unknown nouns: a wrong configuration must not keep them from working."""
    from bothost.plugins import Plugins

    try:
        folder = _plugins_dir(None)
    except BothostError:
        folder = None
    return Plugins.load(folder)


def _plugins_dir(path: Path | None) -> Path | None:
    if path is None:
        try:
            config.find()
        except ConfigError:
            return None
    return config.load(path).host.plugins_dir
