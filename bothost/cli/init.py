"""``bothost init``: a commented config.toml to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bothost import config
from bothost.cli import options, output
from bothost.errors import ConfigError

TEMPLATE = """\
# bothost. Every key has a default; an unknown key is an error. Check with: bothost config lint

[host]
# name = "…"               # written into every logged row; default: this machine's name
data_dir = "var"           # spool, logs and the control socket live here (relative to this file)
plugins_dir = "plugins.d"  # loose plugins: *.py files, packages and projects in this folder

[store]
url = "sqlite:///var/bothost.db"  # or postgresql+psycopg://user@host/name, its password in $BOTHOST_STORE_PASSWORD
durability = "before_send"        # every decision is durable before its move leaves; "async" does not wait

[limits]
tables = 64                # live tables at once, over all accounts

[log]
level = "info"
format = "console"         # or "json"
# file = "var/bothost.log" # rotates at 10 MiB, 5 kept

# One [[lobby]] per server. Secrets never stand in this file: the token is read from $BOTHOST_HOME_BOT_TOKEN
# (lobby and account name), else $BOTHOST_HOME_TOKEN; or name another place: token = { file = "bot.token" }.
[[lobby]]
name = "home"
adapter = "embedded"       # bothost's own lobby, started by: bothost lobby serve; all adapters: bothost lobby list
url = "ws://127.0.0.1:8765/ws"

  [[lobby.account]]
  name = "bot"
  tables = 2               # seats held or asked for at once

    [[lobby.account.wish]]
    game = "doudizhu"

# Routes are tried in order; the first that matches a table names its strategy (bothost plugin list).
[[route]]
strategy = "random"
"""


def command(
    file: Annotated[Path, typer.Argument(help="File to write.")] = Path(config.FILE_NAME),
    json: options.Json = False,
) -> None:
    """Write a commented config.toml to start from; refuses to overwrite one."""
    try:
        with file.open("x", encoding="utf-8") as out:
            out.write(TEMPLATE)
    except FileExistsError:
        advice = "check it with: bothost config lint; or name another file: bothost init FILE"
        raise ConfigError("is there already", file=str(file), advice=advice) from None
    except OSError as error:
        advice = "name a file in a folder that exists and that you may write to"
        raise ConfigError(f"cannot be written: {error.strerror}", file=str(file), advice=advice) from error
    steps = ["bothost doctor", "bothost lobby serve", "bothost run"]
    text = f"wrote {file}\nnext: edit it, then check this machine with: bothost doctor"
    output.emit({"path": str(file.absolute()), "next": steps}, json, text)
