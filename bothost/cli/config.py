"""``bothost config path|show|lint``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from bothost import config
from bothost.cli import options, output

if TYPE_CHECKING:
    from bothost.plugins import Plugins

app = typer.Typer(help="Check, find and show the configuration.", no_args_is_help=True)


@app.command()
def path(config_file: options.Config = None, json: options.Json = False) -> None:
    """Say which configuration file is used."""
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
    from bothost.host.check import check_settings

    warnings = [*loaded.warnings, *check_settings(loaded.settings, plugins, file=str(loaded.path))]
    warnings += missing_secrets(loaded.settings, plugins)
    lines = [*(f"warning: {text}" for text in warnings), f"{loaded.path}: good"]
    output.emit({"path": str(loaded.path), "good": True, "warnings": warnings}, json, "\n".join(lines))


def missing_secrets(settings: config.Settings, plugins: Plugins) -> list[str]:
    """What `bothost run` will ask for and not find."""
    missing = []
    for lobby in settings.lobbies:
        adapter = plugins.lobbies.get(lobby.adapter)
        if adapter is not None and not adapter.capabilities.needs_secret:
            continue
        for account in lobby.accounts:
            if not any(secret is not None and secret.present for secret in (account.token, account.password)):
                problem = account.token.problem if account.token is not None else "no token"
                missing.append(f"{lobby.name}/{account.name} has no token: {problem}")
    return missing


def to_toml(data: dict[str, Any], prefix: str = "") -> str:
    """TOML of nested plain data, tables after values; None is left out, as a comment where the key is known."""
    lines: list[str] = []
    for key, value in data.items():
        if value is None:
            lines.append(f"# {_key(key)} is not set")
        elif not _is_table(value) and not _is_array_of_tables(value):
            lines.append(f"{_key(key)} = {_value(value)}")
    for key, value in data.items():
        name = f"{prefix}{_key(key)}"
        if _is_table(value):
            lines += ["", f"[{name}]", to_toml(value, f"{name}.").rstrip()]
        elif _is_array_of_tables(value):
            for item in value:
                lines += ["", f"[[{name}]]", to_toml(item, f"{name}.").rstrip()]
    return "\n".join(lines).lstrip("\n") + "\n"


def _is_table(value: Any) -> bool:
    return isinstance(value, dict) and bool(value)


def _is_array_of_tables(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and bool(value) and all(isinstance(item, dict) for item in value)


def _key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() and key.isascii() else _text(key)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + " }" if value else "{}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    return repr(value) if isinstance(value, (int, float)) else _text(str(value))


def _text(value: str) -> str:
    import json

    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
