"""``bothost drain``: let the running host of this configuration finish its tables and end."""

from __future__ import annotations

from bothost.cli import options, output
from bothost.cli.status import host_settings


def command(config_file: options.Config = None, json: options.Json = False) -> None:
    """Tell the running host to take no new tables, finish the open ones, and end."""
    settings = host_settings(config_file)
    from bothost.host.control import ask

    answer = ask(settings.data_dir, "drain")
    most = settings.drain_timeout_s
    output.emit(answer, json, f"draining; it ends within {most:g} s (bothost status shows what is left)")
