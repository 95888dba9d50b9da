"""``bothost bench browsers``: what ten browsers that watch the live tables cost the host, and how fast a page opens.

The host plays at a fixed rate, as in ``bothost bench host``. In turn no one watches, and ten watchers read the list of
live tables from a ``bothost web`` on its database. The first page is opened in Chromium, if it is installed.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer

from bothost.bench.host import LOAD_CORE, Accounts, Seconds, Tables, end, measure
from bothost.config import StoreSettings
from bothost.store import schema

WARM_PAGES, PAGES = 1, 5
QUIET_S = 2.0
"""How long a watcher waits for news before it checks whether to stop."""


def command(
    tables: Tables = 200,
    accounts: Accounts = 10,
    rate: Annotated[float, typer.Option(min=0.1, help="Decisions per second of the host.")] = 200.0,
    seconds: Seconds = 15.0,
    pairs: Annotated[int, typer.Option(min=1, help="Measurements without and with watchers, in turn.")] = 3,
    browsers: Annotated[int, typer.Option(min=1, help="How many watch.")] = 10,
) -> dict[str, Any]:
    """Measure the host's p99 with and without watchers, and the time of the first page."""
    pages: list[float] = []
    frames: list[int] = []
    alone, watched = [], []

    @contextlib.contextmanager
    def watching(folder: Path) -> Iterator[None]:
        schema.upgrade(StoreSettings(url=f"sqlite:///{folder}/bench.db"))
        with serving(folder) as url, watchers(url, browsers) as counted:
            yield
            pages.extend(page_ms(url))
        frames.append(sum(counted))

    for _ in range(pairs):
        alone.append(measure(tables, accounts, "before_send", seconds, rate))
        watched.append(measure(tables, accounts, "before_send", seconds, rate, beside=watching))
    ratios = [with_them["p99_ms"] / without["p99_ms"] for without, with_them in zip(alone, watched, strict=True)]
    return {
        "browsers": browsers,
        "tables": tables,
        "decisions_per_s": round(statistics.median(run["per_s"] for run in watched)),
        "p99_alone_ms": [round(run["p99_ms"], 2) for run in alone],
        "p99_watched_ms": [round(run["p99_ms"], 2) for run in watched],
        "p99_ratio": round(statistics.median(ratios), 3),
        "generator_lag_p99_ms": [round(run["lag_p99_ms"], 2) for run in watched],
        "messages_read": frames,
        "first_page_ms": round(statistics.median(pages)) if pages else None,
    }


@contextlib.contextmanager
def serving(folder: Path, store: str = "") -> Iterator[str]:
    """``bothost web`` on the database ``store``, else on that of the host in ``folder``; gives its address."""
    file = folder / "web.toml"
    file.write_text(f'[host]\ndata_dir = "{folder}/web"\n[store]\nurl = "{store or f"sqlite:///{folder}/bench.db"}"\n')
    line = [sys.executable, "-m", "bothost", "web", "--config", str(file), "--port", "0"]
    web = subprocess.Popen(line, stdout=subprocess.PIPE)
    try:
        if len(os.sched_getaffinity(0)) > 1:
            os.sched_setaffinity(web.pid, {LOAD_CORE})
        assert web.stdout is not None
        found = re.search(r"http://\S+", web.stdout.readline().decode())
        if found is None:
            raise RuntimeError("bothost web did not start")
        yield found[0].rstrip("/")
    finally:
        web.terminate()
        end(web)


@contextlib.contextmanager
def watchers(url: str, count: int) -> Iterator[list[int]]:
    """``count`` browsers' streams; gives how many messages each has read."""
    read, stop = [0] * count, threading.Event()
    threads = [threading.Thread(target=_watch, args=(url, number, read, stop)) for number in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield read
    finally:
        stop.set()
        for thread in threads:
            thread.join(20)


def _watch(url: str, number: int, read: list[int], stop: threading.Event) -> None:
    with httpx.Client(base_url=url, timeout=httpx.Timeout(30.0, read=QUIET_S), trust_env=False) as client:
        client.get("/api/session")
        while not stop.is_set():
            with contextlib.suppress(httpx.ReadTimeout), client.stream("GET", "/api/tables") as answer:
                for line in answer.iter_lines():
                    read[number] += line.startswith("data: ")  # a sign of life has no data
                    if stop.is_set():
                        return


def page_ms(url: str) -> list[float]:
    """Time of the first page in Chromium, from an empty cache to its heading; [] without Chromium."""
    program = shutil.which(os.environ.get("CHROMIUM", "chromium"))
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return []
    if program is None:
        return []
    found = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for _ in range(WARM_PAGES + PAGES):
            page = browser.new_context().new_page()
            started = time.perf_counter()
            page.goto(url)
            page.wait_for_selector("h1")
            found.append(1000 * (time.perf_counter() - started))
            page.context.close()
        browser.close()
    return found[WARM_PAGES:]
