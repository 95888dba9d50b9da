"""``bothost bench host``: the decisions per second and the latency of one host process on one core, logged in SQLite.

There are three processes: this one waits, the host has core 0, the load generator core 1. There are four runs:

1. The host in closed loop: most decisions per second.
2. A bare echo of frames of the same sizes.
3. The host in open loop, at half its closed-loop rate: latency.
4. The echo at that rate, which shows the share of the machine and the generator.

The latency is reported with the host core's stolen time, because a stolen core answers late.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from bothost import rules
from bothost.errors import BothostError

HOST_CORE, LOAD_CORE = 0, 1
STOLEN = 7
"""Index of the stolen time among a core's ticks."""
Process = subprocess.Popen[bytes]
Tables = Annotated[int, typer.Option(min=1, help="Tables, each with one seat of ours.")]
Accounts = Annotated[int, typer.Option(min=1, help="Accounts, each with its connection.")]
Seconds = Annotated[float, typer.Option(min=0.1, help="Length of each measurement.")]
Durability = Annotated[Literal["before_send", "async"], typer.Option(help="Whether a move waits for its row.")]


def command(
    tables: Tables = 1000,
    accounts: Accounts = 20,
    seconds: Seconds = 10.0,
    durability: Durability = "before_send",
    game: Annotated[str, typer.Option(help="What is played.")] = "doudizhu",
) -> dict[str, Any]:
    """Measure decisions per second, their ratio to a bare echo, latency at half load, and whether all rows came."""
    rules.game(game)  # raises UsageError for an unknown game
    closed = measure(tables, accounts, durability, seconds, rate=0.0, game=game)
    frames, rate = closed.pop("frames"), closed["per_s"] / 2
    echo = measure_echo(tables, accounts, frames, min(seconds, 5.0))
    before = core_ticks(HOST_CORE)
    opened = measure(tables, accounts, durability, seconds, rate, game=game)
    stolen = stolen_share(before, core_ticks(HOST_CORE))
    open_echo = measure_echo(tables, accounts, frames, min(seconds, 5.0), rate)
    return {
        "decisions_per_s": round(closed["per_s"]),
        "raw_echo_per_s": round(echo["per_s"]),
        "ratio": round(closed["per_s"] / echo["per_s"], 3),
        "tables": tables,
        "p50_ms": round(opened["p50_ms"], 2),
        "p99_ms": round(opened["p99_ms"], 2),
        "rss_mb": round(max(closed["rss_mb"], opened["rss_mb"]), 1),
        "rows_logged": closed["rows"] + opened["rows"],
        "rows_expected": closed["answers"] + opened["answers"],
        "accounts": accounts,
        "durability": durability,
        "open_loop_per_s": round(opened["per_s"]),
        "generator_lag_p99_ms": round(opened["lag_p99_ms"], 2),
        "echo_p50_ms": round(open_echo["p50_ms"], 2),
        "echo_p99_ms": round(open_echo["p99_ms"], 2),
        "bytes_to_host": round(closed["bytes_to_host"]),
        "bytes_from_host": round(closed["bytes_from_host"]),
        "cpu_us_per_decision": round(closed["cpu_us"], 1),
        "stolen_share": None if stolen is None else round(stolen, 3),
        "fallbacks": closed["fallbacks"] + opened["fallbacks"],
    }


def measure(
    tables: int,
    accounts: int,
    durability: str,
    seconds: float,
    rate: float,
    game: str = "doudizhu",
    beside: Callable[[Path], AbstractContextManager[Any]] = nullcontext,
) -> dict[str, Any]:
    """One run of the host against the generator. ``rate`` 0: closed loop. ``beside`` runs beside it, in its folder."""
    with tempfile.TemporaryDirectory(prefix="bothost-bench-") as folder:
        timing = flags(tables=tables, rate=rate, **lengths(seconds))
        who = flags(tables=tables, folder=folder, accounts=accounts, durability=durability, game=game)
        with beside(Path(folder)), pair(timing, who) as (load, subject):
            figures = answered(read(load), seconds)
            subject.send_signal(signal.SIGTERM)
            figures |= read(subject)
        return {**figures, "rows": rows_of(Path(folder) / "bench.db")}


def rows_of(database: Path) -> int:
    """Number of logged decisions."""
    with closing(sqlite3.connect(database)) as connection:
        return int(connection.execute("SELECT count(*) FROM decisions").fetchone()[0])


def measure_echo(tables: int, accounts: int, frames: list[str], seconds: float, rate: float = 0.0) -> dict[str, Any]:
    """The bare echo of such frames; ``rate`` 0: closed loop, a frame for each table in flight."""
    timing = flags(tables=tables, rate=rate, echo=accounts, **lengths(seconds))
    with pair(timing, ["--echo", *flags(accounts=accounts)], frames=frames) as (load, _):
        return answered(read(load), seconds)


def answered(figures: dict[str, Any], seconds: float) -> dict[str, Any]:
    """The figures of a run. Raises BothostError if there were no answers to measure."""
    if not figures["per_s"]:
        problem = f"nothing was answered within {seconds:g} s: there is nothing to measure"
        raise BothostError(problem, advice="measure for longer (--seconds), or with fewer tables (--tables)")
    return figures


def flags(**options: object) -> list[str]:
    """Options as the words of a command line."""
    return [f"--{name}={value}" for name, value in options.items()]


def lengths(seconds: float) -> dict[str, float]:
    """The generator's options for a measurement of this length."""
    return {"seconds": seconds, "warm": min(2.0, seconds)}


@contextmanager
def pair(
    load_options: list[str],
    host_options: list[str],
    cores: tuple[int, int] = (LOAD_CORE, HOST_CORE),
    frames: Any = None,
) -> Iterator[tuple[Process, Process]]:
    """The load generator, which gets ``frames`` on stdin if there are any, and the host that plays there."""
    load = start("load_generator", cores[0], *load_options)
    try:
        if frames is not None:
            assert load.stdin is not None
            load.stdin.write(json.dumps(frames).encode())
            load.stdin.close()
        subject = start("host_subject", cores[1], f"--port={read(load)['port']}", *host_options)
        try:
            yield load, subject
        finally:
            end(subject)
    finally:
        end(load)


def core_ticks(core: int) -> list[int]:
    """A core's ticks by kind (proc_stat(5)); empty if the system does not report them."""
    try:
        lines = Path("/proc/stat").read_text().splitlines()
    except OSError:
        return []
    return next((list(map(int, line.split()[1:])) for line in lines if line.startswith(f"cpu{core} ")), [])


def stolen_share(before: list[int], after: list[int]) -> float | None:
    """Share of the time in which the hypervisor gave the core to others: 0 to 1."""
    spent = [now - then for then, now in zip(before, after, strict=True)]
    return spent[STOLEN] / sum(spent[: STOLEN + 1]) if len(spent) > STOLEN and any(spent) else None


def start(module: str, core: int, *args: str) -> Process:
    core = core if len(os.sched_getaffinity(0)) > 1 else -1
    line = [sys.executable, "-m", f"bothost.bench.{module}", f"--core={core}", *args]
    return subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def read(process: Process) -> dict[str, Any]:
    """The next line of its output."""
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"{process.args!r} ended with {process.wait()}")
    result: dict[str, Any] = json.loads(line)
    return result


def end(process: Process) -> None:
    """Wait for its end, or terminate it."""
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
    try:
        process.wait(5 if process.poll() is None else 0)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
