"""The host of the host benchmark, in its own process; with ``--echo`` a bare client that echoes.

The echo is the upper bound of websockets, uvloop and msgspec with frames of the same sizes: it receives, decodes,
encodes and sends, and does nothing else.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import threading
import time
from pathlib import Path
from typing import Any

from bothost.lobbies.embedded import protocol as wire

OPTIONS: dict[str, dict[str, Any]] = {
    "doudizhu-mcts": {"iterations": 8, "belief": 0},
    "phase-ppo": {"symmetries": 1},
    "fm-clone": {"tempo": False},
}
"""Settings in which one core decides hundreds of times per second."""
GAMES = {"mahjong-ppo": "mahjong", "phase-ppo": "pairing"}
"""What each strategy plays, if it is not what ``--game`` says."""

LATER_S = 10.0
"""How long a parent that ended may leave this process. A parent that waits for its end waits less."""


def end_after_parent() -> None:
    """End this process if its parent ended without waiting for it. The parent holds the other end of stdin."""
    while os.read(0, 4096):  # without the lock of sys.stdin, which the interpreter takes when it ends
        pass
    time.sleep(LATER_S)
    os._exit(1)


async def play(args: argparse.Namespace) -> None:
    """A host as `bothost run` makes it, with the given number of accounts. Their strategies take turns."""
    from bothost import config
    from bothost.host import launch
    from bothost.plugins import Plugins
    from bothost.store import schema

    folder = Path(args.folder)
    shares = tables_of(args.tables, args.accounts)
    strategies = args.strategies.split(",")
    played = {f"a{n}": strategies[n % len(strategies)] for n in range(len(shares))}
    accounts = tuple(
        config.AccountSettings(
            name=name,
            token=config.Secret(f"token-{name}", "bench"),
            tables=share,
            wishes=(config.WishSettings(game=GAMES.get(strategy, args.game)),),
        )
        for (name, strategy), share in zip(played.items(), shares, strict=True)
    )
    url = f"ws://127.0.0.1:{args.port}/ws"
    settings = config.Settings(
        host=config.HostSettings(name="bench", data_dir=folder, drain_timeout_s=0.0),
        store=config.StoreSettings(url=f"sqlite:///{folder}/bench.db", durability=args.durability),
        limits=config.LimitSettings(tables=args.tables),
        lobbies=(config.LobbySettings(name="bench", adapter="embedded", url=url, accounts=accounts),),
        routes=tuple(
            config.RouteSettings(strategy=strategy, account=name, options=OPTIONS.get(strategy, {}))
            for name, strategy in played.items()
        ),
    )
    schema.upgrade(settings.store)
    async with launch.opened(settings, Plugins.load(None)) as host:
        before = time.process_time()
        await host.run()
        cpu_s = time.process_time() - before
        counters = host.runner.counters
    figures = {
        "rss_mb": peak_rss_mb(),
        "fallbacks": sum(counters.fallbacks.values()),
        "cpu_us": cpu_s * 1e6 / max(1, counters.decisions),
    }
    print(json.dumps(figures), flush=True)


def tables_of(tables: int, accounts: int) -> list[int]:
    """The tables of each account: all of them, shared evenly. Accounts without a table are left out."""
    return [share for n in range(accounts) if (share := tables // accounts + (n < tables % accounts))]


def peak_rss_mb() -> float:
    """Peak of this process. ``getrusage`` would include the process that started it."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))


async def echo(args: argparse.Namespace) -> None:
    """The given number of bare connections, each in its own task."""
    from websockets.asyncio.client import connect

    answer = wire.Act("t123", "t123-123", args.answer)
    decode, encode = wire.decode_server, wire.encode

    async def one() -> None:
        url = f"ws://127.0.0.1:{args.port}/ws"
        async with connect(url, compression=None, ping_interval=None, max_size=None) as socket:
            async for message in socket:
                decode(message)
                await socket.send(encode(answer), text=True)

    await asyncio.gather(*(one() for _ in range(args.accounts)), return_exceptions=True)


if __name__ == "__main__":
    import uvloop

    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--folder", default="")
    parser.add_argument("--game", default="doudizhu")
    parser.add_argument("--strategies", default="random", help="separated by commas")
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--accounts", type=int, default=20)
    parser.add_argument("--durability", default="before_send")
    parser.add_argument("--answer", default="333444555")
    parser.add_argument("--echo", action="store_true")
    parser.add_argument("--core", type=int, default=-1)
    arguments = parser.parse_args()
    threading.Thread(target=end_after_parent, daemon=True).start()
    if arguments.core >= 0:
        os.sched_setaffinity(0, {arguments.core})
    if arguments.echo:
        gc.freeze()
        uvloop.run(echo(arguments))
    else:
        from bothost import logs
        from bothost.host import launch

        logs.configure(level="error")
        launch.run(play(arguments))
