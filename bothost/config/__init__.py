"""config.toml: found, read, checked and typed.

>>> settings = load("config.toml")         # ConfigError says file, key, bad value and fix
>>> settings.lobbies[0].accounts[0].token
Secret($BOTHOST_HOME_ADA_TOKEN)
"""

from bothost.config.check import describe, field_notes, nearest, problems
from bothost.config.lines import find_line, line_numbers
from bothost.config.load import FILE_NAME, Loaded, config_hash, find, load, parse, plain, read, secrets, sqlite_url
from bothost.config.secret import Secret, variable
from bothost.config.settings import (
    AccountSettings,
    HostSettings,
    LimitSettings,
    LobbyServerSettings,
    LobbySettings,
    MannersSettings,
    MetricsSettings,
    RouteSettings,
    Settings,
    StoreSettings,
    WebSettings,
    WishSettings,
)

__all__ = [
    "FILE_NAME",
    "AccountSettings",
    "HostSettings",
    "LimitSettings",
    "Loaded",
    "LobbyServerSettings",
    "LobbySettings",
    "MannersSettings",
    "MetricsSettings",
    "RouteSettings",
    "Secret",
    "Settings",
    "StoreSettings",
    "WebSettings",
    "WishSettings",
    "config_hash",
    "describe",
    "field_notes",
    "find",
    "find_line",
    "line_numbers",
    "load",
    "nearest",
    "parse",
    "plain",
    "problems",
    "read",
    "secrets",
    "sqlite_url",
    "variable",
]
