"""``bothost init``: a commented config.toml to start from."""

from __future__ import annotations

import contextlib
import errno
from pathlib import Path
from typing import Annotated

import typer

from bothost import config
from bothost.cli import options, output
from bothost.errors import ConfigError

EXAMPLE = Path(__file__).with_name("example.toml")
"""The example file, the same as config.toml in a checkout."""


def command(
    file: Annotated[Path, typer.Argument(help="File to write.")] = Path(config.FILE_NAME),
    json: options.Json = False,
) -> None:
    """Write a commented config.toml to start from; refuses to overwrite one."""
    write(file)
    steps = ["bothost demo", "bothost config lint", "bothost doctor"]
    text = (
        f"wrote {file}\nnext: watch its bots play with: bothost demo\nthen edit it, and check it with: bothost doctor"
    )
    output.emit({"path": str(file.absolute()), "next": steps}, json, text)


def write(file: Path) -> None:
    """Write the example. Raises ConfigError if the file exists or cannot be written."""
    try:
        file.touch(exist_ok=False)
        file.write_text(EXAMPLE.read_text(encoding="utf-8"), encoding="utf-8")
    except FileExistsError:
        advice = "check it with: bothost config lint; or name another file: bothost init FILE"
        raise ConfigError("exists already", file=str(file), advice=advice) from None
    except OSError as error:
        with contextlib.suppress(OSError):  # a full disk leaves an empty one
            file.unlink()
        usual = "name a file in a folder that exists and that you may write to"
        advice = "make room on the disk" if error.errno == errno.ENOSPC else usual
        raise ConfigError(f"cannot be written: {error.strerror}", file=str(file), advice=advice) from error
