"""The pictures of README and guide: each page of a demo in Chromium, at both widths. Run it with ``make images``."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Page, ViewportSize, sync_playwright

IMAGES = Path(__file__).parent / "images"
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
HANDS = "() => fetch('/api/hands?strategies=doudizhu-mcts').then(answer => answer.json())"
BOTHOST = [sys.executable, "-m", "bothost"]
SIZES: dict[str, ViewportSize] = {
    "": {"width": 1100, "height": 680},
    "-phone": {"width": 390, "height": 844},
}
COLOURS = 128
WAIT_S = 90.0


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        train = [*BOTHOST, "train", "phase-ppo", "--minutes", "1.5", "--out", "runs/phase-ppo"]
        subprocess.run(train, cwd=folder, check=True)
        demo = subprocess.Popen(
            [*BOTHOST, "demo"], cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
        )
        try:
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
                page = browser.new_page(base_url=_address(demo), viewport=SIZES[""], color_scheme="light")
                _live_table(page)
                _ended_hand(page)
                for name in ("hands", "models", "training", "health"):
                    page.goto(f"/{name}")
                    page.wait_for_load_state("networkidle")
                    _shoot(page, name)
                _game(page)
                browser.close()
        finally:
            demo.terminate()
            demo.wait(60)


def _shoot(page: Page, name: str) -> None:
    """Save the page at each size, in few colours: a picture is read, not printed."""
    for suffix, size in SIZES.items():
        page.set_viewport_size(size)
        path = IMAGES / f"{name}{suffix}.png"
        page.screenshot(path=path, animations="disabled")
        Image.open(path).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    page.set_viewport_size(SIZES[""])


def _address(demo: subprocess.Popen[str]) -> str:
    assert demo.stderr is not None
    for line in demo.stderr:
        if (found := re.search(r"Open (http://\S+)", line)) is not None:
            return found[1]
    raise SystemExit("the demo ended before it served its pages")


def _live_table(page: Page) -> None:
    """The list of tables, and a table of Dou Dizhu some moves into its hand."""
    page.goto("/")
    row = page.locator("table.list tr", has_text="Dou Dizhu").locator("a")
    row.first.wait_for()
    time.sleep(5)  # until most tables have seen a move
    _shoot(page, "tables")
    row.last.click()
    end = time.monotonic() + WAIT_S
    while len(re.findall(r"1[0-6] cards", page.inner_text("body"))) < 2:
        if time.monotonic() > end:
            raise SystemExit(f"no live table shows cards after {WAIT_S:.0f} s")
        if page.locator(".notice a[href^='/hand/']").count():  # it is over already: watch another
            page.goto("/")
            row.last.click()
        time.sleep(0.5)
    _shoot(page, "live-table")


def _ended_hand(page: Page) -> None:
    """A hand that ended, at a decision of doudizhu-mcts."""
    hand = _ended(page)
    page.goto(f"/hand/{hand['name']}")
    page.wait_for_selector("ol.candidates, .actions")
    for _ in range(30):
        if page.locator("ol.candidates li").count() >= 6:
            break
        page.get_by_role("button", name=re.compile("next", re.IGNORECASE)).click()
        time.sleep(0.1)
    _shoot(page, "hand-review")


def _ended(page: Page) -> dict[str, Any]:
    end = time.monotonic() + 3 * WAIT_S  # it takes seconds for a move
    while time.monotonic() < end:
        found: list[dict[str, Any]] = page.evaluate(HANDS)["hands"]
        for hand in found:
            if hand["score"] is not None:
                return hand
        time.sleep(1)
    raise SystemExit(f"no hand of doudizhu-mcts ended within {3 * WAIT_S:.0f} s")


def _game(page: Page) -> None:
    """A person's game of Othello with a hint, then the page that makes a clone of the person."""
    page.goto("/play")
    page.get_by_label("your name").fill("maria")
    page.locator("select[name=game]").select_option("othello")
    _shoot(page, "play")
    page.get_by_role("button", name="start").click()
    hint = page.get_by_role("button", name="hint")
    hint.and_(page.locator(":enabled")).click(timeout=WAIT_S * 1000)
    page.locator(".hint [role=status]").wait_for(timeout=WAIT_S * 1000)
    _shoot(page, "game")
    page.goto("/clone")
    page.wait_for_load_state("networkidle")
    _shoot(page, "clone")


if __name__ == "__main__":
    main()
