"""config.toml: found, read, checked and typed.

>>> settings = load("config.toml")         # ConfigError says file, key, bad value and fix
>>> settings.lobbies[0].accounts[0].token
Secret($BOTHOST_HOME_ADA_TOKEN)
"""

from bothost.config.check import Problem, describe, nearest, problems
from bothost.config.lines import find_line, line_numbers
from bothost.config.load import FILE_NAME, Loaded, config_hash, find, load, parse, plain, read, secrets
from bothost.config.secret import REDACTED, Secret, variable
from bothost.config.settings import (
    AccountSettings,
    HostSettings,
    LimitSettings,
    LobbyServerSettings,
    LobbySettings,
    LogSettings,
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
    "REDACTED",
    "AccountSettings",
    "HostSettings",
    "LimitSettings",
    "Loaded",
    "LobbyServerSettings",
    "LobbySettings",
    "LogSettings",
    "MannersSettings",
    "MetricsSettings",
    "Problem",
    "RouteSettings",
    "Secret",
    "Settings",
    "StoreSettings",
    "WebSettings",
    "WishSettings",
    "config_hash",
    "describe",
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
    "variable",
]
