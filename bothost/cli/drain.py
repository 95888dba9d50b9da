"""``bothost drain``: let the running host of this configuration finish its tables and end."""

from __future__ import annotations

from bothost.cli import options, output
from bothost.cli.status import ask_host


def command(config_file: options.Config = None, json: options.Json = False) -> None:
    """Tell the running host to take no new tables, finish the open ones, and end."""
    answer = ask_host(config_file, "drain")
    ends = f"; it ends within {answer['at_most_s']:g} s" if "at_most_s" in answer else ""  # older hosts do not say
    output.emit(answer, json, f"draining{ends} (bothost status shows what is left)")
