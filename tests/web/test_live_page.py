"""Live tables in a real browser: many of them, hidden tabs, servers that fall silent, and hands that end."""

import json
import re

import pytest
from browsing import now_us

from bothost.config import Secret, WebSettings
from bothost.store.records import GameEndRecord
from bothost.web.opponents import LOBBY, bots_of


@pytest.mark.parametrize("path", ["tables", "tables/7"])
def test_a_page_says_why_it_may_not_watch(chromium, served, path):
    page = chromium.new_page()
    full = {"error": "too many people are watching: try again later"}
    page.route(f"**/api/{path}", lambda route: route.fulfill(status=429, json=full))
    page.goto(f"{served}/{path.removeprefix('tables').replace('/', 'table/')}")
    page.wait_for_selector(f".notice:has-text('{full['error']}')")
    assert "The connection is lost" not in page.locator("main").inner_text()
    page.close()


@pytest.mark.parametrize("path", ["tables", "tables/7"])
def test_a_page_survives_a_database_that_is_away_and_says_what_cannot_be_read(page, served, path):
    problems = [
        {"error": "the database is away", "advice": "", "passes": True},
        {"error": "it is broken", "advice": ""},
    ]
    bodies = iter([f"retry: 10\ndata: {json.dumps(problem)}\n\n" for problem in problems])
    page.route(
        f"**/api/{path}", lambda route: route.fulfill(status=200, content_type="text/event-stream", body=next(bodies))
    )
    page.goto(f"{served}/{path.removeprefix('tables').replace('/', 'table/')}")
    page.wait_for_selector(".notice.bad:has-text('it is broken')")
    assert "The hand is over." not in page.locator("main").inner_text()


def test_two_hundred_live_tables_do_not_block_the_page(page, served, site, logged, played):
    """While the tables move, the page draws: that takes its thread no longer than a moment, and a click is answered."""
    hands = [played("othello", lambda n, legal: legal[n % len(legal)], seed=k, started_us=now_us()) for k in range(200)]
    logged([row for rows in hands for row in rows[:3]])
    page.goto(f"{served}/")
    page.wait_for_function("() => document.querySelectorAll('tbody tr').length === 200", timeout=60_000)
    browser = page.context.new_cdp_session(page)
    browser.send("Performance.enable", {"timeDomain": "threadTicks"})  # of the processor: others may be busy, too

    def busy_s():
        figures = browser.send("Performance.getMetrics")["metrics"]
        return next(figure["value"] for figure in figures if figure["name"] == "TaskDuration")

    before_s = busy_s()
    for move in range(3, 9):
        before = page.locator("tbody").inner_text()
        logged([rows[move] for rows in hands])
        page.wait_for_function("old => document.querySelector('tbody').innerText !== old", arg=before)
    assert (busy_s() - before_s) / 6 < 0.2
    page.locator("tbody a").nth(150).click()
    page.wait_for_selector(".othello")


def test_our_seats_of_one_table_are_one_line_with_a_link_to_each(page, served, logged, played):
    names = ["ada", "bob"]
    for number, name in enumerate(names):
        rows = played("othello", lambda n, legal: legal[0], seed=number, started_us=now_us())
        rows[0].table, rows[0].account, rows[0].strategy = "t1", name, f"strategy-{name}"
        rows[0].players = json.dumps([{"seat": seat, "player": player} for seat, player in enumerate(names)])
        for row in rows[:6]:
            row.seat = number
        logged(rows[:6])
    page.goto(f"{served}/")
    page.wait_for_selector("tbody a:has-text('bob')")
    assert page.locator("tbody tr").count() == 1
    assert "strategy-ada, strategy-bob" in page.locator("tbody").inner_text()
    assert page.get_by_role("link", name="Othello: ada, bob", exact=True).count() == 1, "not one of many called Othello"
    page.locator("tbody a:has-text('bob')").click()
    page.wait_for_selector(".othello")


SHOWN = """hidden => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
    document.dispatchEvent(new Event("visibilitychange"));
}"""
"""Makes a page believe that its tab is hidden, or shown again."""


def test_a_page_whose_server_falls_silent_connects_again(page, served):
    """A server without power, or a network that is gone, ends no connection: the browser waits on."""
    page.clock.install()
    page.goto(f"{served}/")
    page.wait_for_selector("text=No table is live.")
    with page.expect_request("**/api/tables", timeout=10_000):
        page.clock.fast_forward(60_000)
    page.wait_for_selector("text=No table is live.")


def test_a_server_without_news_says_that_it_is_there(page, served, monkeypatch):
    monkeypatch.setattr("bothost.web.stream.KEEP_ALIVE_S", 0.02)
    page.clock.install()
    page.goto(f"{served}/")
    page.wait_for_selector("text=No table is live.")
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    for _ in range(3):
        page.evaluate("""() => new Promise((heard) => {
            const stream = new EventSource("/api/tables");
            stream.addEventListener("alive", () => { stream.close(); heard(); });
        })""")
        page.clock.fast_forward(30_000)
    assert len(asked) == 3


def test_hidden_tabs_leave_their_connections_to_others(page, served, logged, played):
    """Chromium opens six connections to a server, for all tabs together."""
    tabs = [page, *(page.context.new_page() for _ in range(7))]
    for tab in tabs:
        tab.goto(f"{served}/")
        tab.wait_for_selector("text=No table is live.")
        tab.evaluate(SHOWN, True)
    logged(played("othello", lambda n, legal: legal[0], started_us=now_us())[:6])
    page.evaluate(SHOWN, False)
    page.wait_for_selector("tbody a")
    assert tabs[1].locator("tbody a").count() == 0


@pytest.mark.parametrize("where", ["live", "ended"])
def test_bots_of_a_person_have_names_that_people_read(page, served, logged, played, where):
    """In the list, at the table, in the replay. The log keeps the names of their accounts."""
    opponents = ["deep-mc", "deep-mc", "deep-mc:level-2"]
    bots = [bot.name for bot in bots_of(opponents, "0df5f44e")]
    shown = ["deep-mc 1", "deep-mc 2", "deep-mc (level 2)"]
    for lobby, names in ((LOBBY, shown), ("home", bots)):
        rows = played("doudizhu", lambda n, legal: legal[0], started_us=now_us(), seed=len(lobby))
        rows[0].lobby, rows[0].table, rows[0].account, rows[0].strategy = lobby, f"t-{lobby}", bots[0], "deep-mc"
        rows[0].players = json.dumps([{"seat": seat, "player": player} for seat, player in enumerate(bots)])
        logged(rows[:6] if where == "live" else rows)
        page.goto(f"{served}/{'' if where == 'live' else 'hands'}")
        page.wait_for_selector("tbody td" + "".join(f":has-text('{name}')" for name in names))
        page.goto(f"{served}/{'table' if where == 'live' else 'hand'}/{rows[0].game_id.hex()}-0")
        page.wait_for_selector(".seat.own")
        assert set(names) == set(page.locator(".seat strong").all_inner_texts())
        page.wait_for_function("title => document.title === title", arg=f"Dou Dizhu: {', '.join(names)} · bothost")


def test_a_table_without_a_move_for_long_is_silent(page, served):
    table = {"name": "0-0", "game": "othello", "lobby": "home", "account": "a", "strategy": "random", "seat": 0}
    table |= {"players": ["a", "b"], "started_us": 0, "last": None, "ends_us": None}
    tables = [{**table, "table": str(ago), "moved_us": int(1e6 * (10_000 - ago))} for ago in (5, 700)]
    body = f"data: {json.dumps({'at': 10_000.0, 'tables': tables})}\n\n"
    page.route("**/api/tables", lambda route: route.fulfill(content_type="text/event-stream", body=body))
    page.goto(f"{served}/")
    page.wait_for_selector("tbody tr:nth-child(2)")
    silent = page.locator("tbody tr:has(.badge:text-is('silent'))")
    assert silent.count() == 1 and re.search(r"11 min 4\d s ago", silent.inner_text())


def test_a_table_says_when_no_move_is_in_the_log(page, served, logged, played):
    rows = played("othello", lambda n, legal: legal[0], started_us=now_us())
    logged(rows[:1])
    page.goto(f"{served}/table/{rows[0].game_id.hex()}-0")
    page.wait_for_selector("text=No move of this hand is in the log yet.")
    logged(rows[1:2])
    page.wait_for_selector(".othello")


def test_a_table_whose_hand_ended_before_its_first_move_has_no_board(page, served, logged, played):
    """Until the log has answered, and where it cannot: a view without a position cannot be drawn."""
    rows = played("othello", lambda n, legal: legal[0], started_us=now_us())
    logged(rows[:1])
    with page.expect_response("**/othello.js"):
        page.goto(f"{served}/table/{rows[0].game_id.hex()}-0")
    page.wait_for_selector("text=No move of this hand is in the log yet.")
    page.route("**/api/hands/*", lambda route: None)
    logged([GameEndRecord(game_id=rows[0].game_id, seat=0, reason="aborted", scores=None, ended_us=now_us())])
    page.wait_for_selector("text=The hand is over.")
    assert page.locator(".board").count() == 0


@pytest.mark.parametrize("watched", [True, False])
def test_a_table_whose_hand_is_over_shows_its_end(page, served, logged, played, watched):
    rows = played("mahjong", lambda n, legal: legal[-1], started_us=now_us())
    logged(rows[:6] if watched else rows)
    page.goto(f"{served}/table/{rows[0].game_id.hex()}-0")
    if watched:
        page.wait_for_selector(".mahjong .tile.back")
        logged(rows[6:])
    page.wait_for_selector("text=The hand is over.")
    page.wait_for_selector(".mahjong .win")
    assert page.locator(".mahjong .tile.back").count() == page.locator(".seat.turn").count() == 0
    scores = [f"{score:+g}".replace("-", "−").replace("+0", "0") for score in json.loads(rows[-1].scores)]
    assert page.locator(".panel:has-text('Result') td").all_inner_texts() == scores


@pytest.mark.parametrize("web_settings", [WebSettings(port=0, password=Secret("s3cret", "a test"), spectators=True)])
def test_spectators_see_the_backs_of_every_hand_of_mahjong(page, served, logged, played):
    rows = played("mahjong", lambda n, legal: legal[0], started_us=now_us())
    logged(rows[:6])
    page.goto(f"{served}/")
    page.wait_for_selector("tbody tr")
    assert "waits" not in page.locator("tbody").inner_text(), "nor whether it is asked"
    page.goto(f"{served}/table/{rows[0].game_id.hex()}-0")
    page.wait_for_selector(".mahjong")
    for place in ("own", "left", "right", "across"):
        assert page.locator(f".seat.{place} .tile.back").count() >= 13, place
