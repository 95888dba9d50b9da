"""The list of hands in a real browser: searches, days, long searches, and the way back to it."""

import re

from browsing import opened


def test_hands_are_found_by_game_day_and_fallback(page, served, hands):
    opened(page, f"{served}/hands")
    page.wait_for_function("() => document.querySelectorAll('tbody tr').length === 4")
    page.get_by_label("Game", exact=True).fill("othello")
    page.get_by_role("button", name="search").click()
    page.wait_for_function("() => document.querySelectorAll('tbody tr').length === 1")
    players = page.locator("tbody td[data-label=Players]").inner_text()  # with what each won or lost
    assert re.fullmatch(r"player-0 (\+1|−1), player-1 (\+1|−1)", players), players
    page.get_by_label("Game", exact=True).fill("Dou Dizhu")  # as the page calls it
    page.get_by_role("button", name="search").click()
    page.wait_for_url("**/hands?games=doudizhu")
    page.wait_for_selector("tbody td:has-text('Dou Dizhu')")
    opened(page, f"{served}/hands?since=2001-01-01&until=2023-11-14")
    page.wait_for_function("() => document.querySelectorAll('tbody tr').length === 4")
    opened(page, f"{served}/hands")
    page.get_by_label("result").select_option("won")
    page.get_by_role("button", name="search").click()
    page.wait_for_url("**/hands?results=won")
    page.wait_for_selector("tbody:has(tr):not(:has(tr:not(:has([data-label=Score] .won))))")
    shown = [page.locator("tbody tr").count()]
    for result in ("lost", "drawn"):  # the hand of mahjong is a draw
        opened(page, f"{served}/hands?results={result}")
        page.wait_for_selector("tbody tr")
        shown.append(page.locator("tbody tr").count())
    assert sum(shown) == 4 and shown[2] == 1
    for query in ("until=2001-01-01", "fallbacks=1", "results=drawn&games=othello"):
        opened(page, f"{served}/hands?{query}")
        page.wait_for_selector("text=no hand matches")


def test_a_chinese_word_at_the_head_of_a_column_is_not_broken(page, served, hands):
    page.add_init_script("localStorage.setItem('language', 'zh')")
    opened(page, f"{served}/hands")
    page.set_viewport_size({"width": 780, "height": 700})
    for head in page.locator("thead th").all():
        lines = head.evaluate("""head => {
            const range = document.createRange();
            range.selectNodeContents(head);
            return range.getClientRects().length;
        }""")
        assert lines == 1, head.inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= 780


def test_the_same_search_again_finds_newer_hands(page, served, hands, logged, played):
    opened(page, f"{served}/hands")
    page.wait_for_function("() => document.querySelectorAll('tbody tr').length === 4")
    logged(played("othello", lambda number, legal: legal[0], seed=9))
    page.get_by_role("button", name="search").click()
    page.wait_for_function("() => document.querySelectorAll('tbody tr').length === 5")
    assert page.url == f"{served}/hands"


def test_a_day_is_one_of_the_readers_own_clock(chromium, served, hands):
    """22:13 UTC on the 14th is the morning of the 15th in Shanghai."""
    context = chromium.new_context(timezone_id="Asia/Shanghai", locale="en-GB")
    shown = context.new_page()
    for query, found in (("since=2023-11-15&until=2023-11-15", 4), ("until=2023-11-14", 0)):
        opened(shown, f"{served}/hands?{query}")
        shown.wait_for_selector("tbody tr" if found else "text=no hand matches")
        assert shown.locator("tbody tr").count() == found, query
    assert "'noon' is no day or time" in shown.evaluate(
        "fetch('/api/hands?since=noon').then((answer) => answer.text())"
    )
    context.close()


def test_what_a_person_enters_stays_while_a_search_runs(page, served, hands):
    held = []
    page.route("**/api/hands*", lambda route: held.append(route))
    page.goto(f"{served}/hands")
    page.get_by_label("Player", exact=True).fill("player-1")
    page.get_by_label("result").select_option("lost")
    page.get_by_label("only with fallbacks").check()
    while not held:
        page.wait_for_timeout(10)
    held.pop().continue_()
    page.wait_for_function("() => document.querySelectorAll('tbody tr').length === 4")
    assert page.get_by_label("Player", exact=True).input_value() == "player-1"
    assert page.get_by_label("result").input_value() == "lost"
    assert page.get_by_label("only with fallbacks").is_checked()
    page.unroute_all()
    page.get_by_role("button", name="search").click()
    page.wait_for_selector("text=no hand matches")
    page.go_back()
    page.wait_for_function("() => document.querySelectorAll('tbody tr').length === 4")
    assert page.get_by_label("result").input_value() == ""


def test_a_long_search_says_how_far_it_is_and_goes_on(page, served, logged, played, monkeypatch):
    """What no hand meets is searched for to the beginning of the log, in steps that the page shows."""
    logged(*(played("othello", lambda number, legal: legal[0], seed=seed) for seed in range(12)))
    monkeypatch.setattr("bothost.web.hands.SEARCH_S", 0.0)
    monkeypatch.setattr("bothost.store.reader.STRETCH_HANDS", 2)
    asked = []
    page.on("request", lambda request: asked.append(request.url) if "/api/hands" in request.url else None)
    opened(page, f"{served}/hands?strategies=nobody")
    page.wait_for_selector("text=no hand matches")
    assert len(asked) == 6 and all("before=" in url for url in asked[1:])
    held = []
    page.route("**/api/hands?*before=*", lambda route: held.append(route))
    opened(page, f"{served}/hands?strategies=first-legal")
    page.get_by_role("button", name="stop").click()
    page.wait_for_selector("text=Stopped. Searched back to")
    assert page.locator("tbody tr").count() == 2
    while not held:
        page.wait_for_timeout(10)
    held.pop().continue_()  # its answer comes too late
    page.unroute_all()
    page.get_by_role("button", name="search further").click()
    page.wait_for_function("() => document.querySelectorAll('tbody tr').length === 12")
    page.wait_for_function("() => !document.querySelector('.notice')")


def test_back_from_a_hand_shows_the_list_as_it_was(page, served, logged, played):
    *hands, latest = [played("othello", lambda number, legal: legal[0], seed=seed) for seed in range(121)]
    logged(*hands)
    opened(page, f"{served}/hands")
    page.get_by_role("button", name="more").click()
    page.wait_for_function("() => document.querySelectorAll('tbody tr').length === 100")
    link = page.locator("tbody a").nth(70)
    link.scroll_into_view_if_needed()
    name, place = link.get_attribute("href"), link.bounding_box()["y"]
    link.click()
    page.wait_for_selector(".steps")
    logged(latest)  # a newer hand moves the others down
    page.go_back()
    page.wait_for_function("name => document.activeElement.getAttribute('href') === name", arg=name)
    assert page.locator("tbody a").nth(71).get_attribute("href") == name
    assert abs(page.locator(f"a[href='{name}']").bounding_box()["y"] - place) < 2
    assert page.locator("tbody tr").count() >= 100
