"""The pictures of the README: the pages of a demo in Chromium. Run it with ``make images``."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

IMAGES = Path(__file__).parent / "images"
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
HANDS = "() => fetch('/api/hands').then(answer => answer.json())"
WAIT_S = 90.0


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        line = [sys.executable, "-m", "bothost", "demo", "--game", "doudizhu"]
        demo = subprocess.Popen(line, cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        try:
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
                url = _address(demo)
                page = browser.new_page(base_url=url, viewport={"width": 1100, "height": 680}, color_scheme="light")
                page.goto("/")
                _live_table(page)
                _hand(page)
                browser.close()
        finally:
            demo.terminate()
            demo.wait(30)


def _address(demo: subprocess.Popen[str]) -> str:
    assert demo.stderr is not None
    for line in demo.stderr:
        if (found := re.search(r"Open (http://\S+)", line)) is not None:
            return found[1]
    raise SystemExit("the demo ended before it served its pages")


def _live_table(page: Page) -> None:
    """A table some moves into its hand."""
    page.locator("table.list a").last.click()
    end = time.monotonic() + WAIT_S
    while not re.search(r"1[0-6] cards", page.inner_text("body")):
        if time.monotonic() > end:
            raise SystemExit(f"no live table shows cards after {WAIT_S:.0f} s")
        if page.locator(".notice a[href^='/hand/']").count():  # it is over already: watch another
            page.goto("/")
            page.locator("table.list a").last.click()
        time.sleep(0.5)
    page.screenshot(path=IMAGES / "live-table.png")


def _hand(page: Page) -> None:
    """A hand that ended, at a decision of doudizhu-mcts."""
    hand = _ended(page)
    page.goto(f"/hand/{hand['name']}")
    page.wait_for_selector("ol.candidates, .actions")
    for _ in range(30):
        if page.locator("ol.candidates li").count() >= 6:
            break
        page.get_by_role("button", name=re.compile("next", re.IGNORECASE)).click()
        time.sleep(0.1)
    page.screenshot(path=IMAGES / "hand-review.png")


def _ended(page: Page) -> dict[str, Any]:
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        found: list[dict[str, Any]] = page.evaluate(HANDS)["hands"]
        for hand in found:
            if hand["score"] is not None and hand["strategy"] in ("doudizhu-mcts", "deep-mc"):
                return hand
        time.sleep(1)
    raise SystemExit(f"no hand ended within {WAIT_S:.0f} s")


if __name__ == "__main__":
    main()
