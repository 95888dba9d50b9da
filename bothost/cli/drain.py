"""``bothost drain``: let the running host of this configuration finish its tables and end."""

from __future__ import annotations

from bothost.cli import options, output
from bothost.cli.status import ask_host, host_settings


def command(config_file: options.Config = None, json: options.Json = False) -> None:
    """Tell the running host to take no new tables, finish the open ones, and end."""
    answer, most = ask_host(config_file, "drain"), host_settings(config_file).drain_timeout_s
    output.emit(answer, json, f"draining; it ends within {most:g} s (bothost status shows what is left)")
