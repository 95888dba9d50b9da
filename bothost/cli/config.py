"""``bothost config path|show|lint``."""

from __future__ import annotations

import re
import uuid
from typing import Any

import typer

from bothost import config
from bothost.cli import options, output

app = typer.Typer(help="Check, find and show the configuration.", no_args_is_help=True)


@app.command()
def path(config_file: options.Config = None, json: options.Json = False) -> None:
    """Show the path of the configuration file in use."""
    file = config.find(config_file)
    output.emit({"path": str(file)}, json, str(file))


@app.command()
def show(config_file: options.Config = None, json: options.Json = False) -> None:
    """Show the effective settings: the file's, and the defaults of all others. Secrets are redacted."""
    loaded = config.read(config_file)
    plain = config.plain(loaded.settings)
    digest = config.config_hash(loaded.settings)
    text = f"# {loaded.path}\n# config hash {digest} (secrets left out)\n\n" + to_toml(plain).rstrip()
    output.emit({"path": str(loaded.path), "config_hash": digest, "settings": plain}, json, text)


@app.command()
def lint(config_file: options.Config = None, json: options.Json = False) -> None:
    """Check the file: keys, values, secrets, strategies, options, adapters, games. Exit code 78 when it is wrong."""
    loaded = config.read(config_file)
    plugins = options.plugins(config_file)
    plugins.folder = loaded.path.parent
    from bothost.host.check import check_settings, missing_secrets

    warnings = [*options.warnings(loaded), *check_settings(loaded.settings, plugins, file=str(loaded.path))]
    warnings += missing_secrets(loaded.settings, plugins)
    lines = [*(f"warning: {text}" for text in warnings), f"{loaded.path}: good"]
    output.emit({"path": str(loaded.path), "good": True, "warnings": warnings}, json, "\n".join(lines))


def to_toml(data: dict[str, Any]) -> str:
    """Format nested plain data as TOML. A None becomes a comment."""
    import tomli_w

    unset = uuid.uuid4().hex  # TOML has no null
    return re.sub(f'^(.+) = "{unset}"$', r"# \1 is not set", tomli_w.dumps(_without_none(data, unset)), flags=re.M)


def _without_none(value: Any, unset: str) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(item, unset) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_none(item, unset) for item in value]
    return unset if value is None else value
