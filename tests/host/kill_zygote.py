"""Starts hosts that are to be killed: imports everything once, then forks a host for every line on stdin.

Arguments: folder, lobby URL, durability. Prints the process id of each host.
"""

import os
import sys
from pathlib import Path

import sqlalchemy.dialects.sqlite  # noqa: F401 (imported when it is first used)

import bothost.lobbies.embedded
from bothost import config, logs
from bothost.host import launch
from bothost.plugins import Plugins


def settings(folder: Path, url: str, durability: str) -> config.Settings:
    accounts = tuple(
        config.AccountSettings(
            name=name, token=config.Secret(name * 3, "test"), tables=3, wishes=(config.WishSettings(game="doudizhu"),)
        )
        for name in ("ada", "bob", "cyd")
    )
    home = config.LobbySettings(
        name="home", adapter="embedded", url=url, accounts=accounts, allow_same_table=True, min_move_ms=2.0
    )
    return config.Settings(
        host=config.HostSettings(name="killed", data_dir=folder),
        store=config.StoreSettings(url=f"sqlite:///{folder}/log.db", durability=durability),
        lobbies=(home,),
        routes=(config.RouteSettings(strategy="random"),),
    )


async def play(made: config.Settings) -> None:
    async with launch.opened(made, Plugins.load(None)) as host:
        await host.run()


def main() -> None:
    folder, url, durability = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    made = settings(folder, url, durability)
    Plugins.load(None).strategies["random"]
    for _ in sys.stdin:
        child = os.fork()
        if child == 0:
            logs.configure(level="error", file=folder / "host.log")
            launch.run(play(made))
            os._exit(0)
        print(child, flush=True)
        os.waitpid(child, 0)


if __name__ == "__main__":
    assert bothost.lobbies.embedded
    main()
