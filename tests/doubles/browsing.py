"""How a page is opened, and when hands start that it shows as live."""

import time


def opened(page, address):
    page.goto(address)
    page.wait_for_selector("h1")
    page.wait_for_function("() => [...document.querySelectorAll('main p.dim')].every((p) => p.textContent !== '…')")


def now_us():
    """Older hands are not shown as live."""
    return time.time_ns() // 1000 - 1_000_000
