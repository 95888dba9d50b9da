"""The pages in a real browser: every page, narrow and wide, dark, by keyboard, in Chinese, and for assistive tools."""

import json
import re
from pathlib import Path

import pytest
from browsing import opened

from bothost.config import Secret, WebSettings
from bothost.retrain.gate import Verdict
from bothost.store import DecisionRecord

STATIC = Path(__file__).parents[2] / "bothost/web/static"
AXE = Path(__file__).parent / "vendor/axe.min.js"
PAGES = ["/", "/play", "/hands", "/models", "/training", "/health"]


def test_every_label_has_a_chinese_entry():
    entries = (STATIC / "i18n.js").read_text()
    known = set(re.findall(r'[{,\s](?:"((?:[^"\\]|\\.)*)"|(\w+)):\s*"', entries))
    names = {quoted or plain for quoted, plain in known}
    used = {
        label
        for file in STATIC.rglob("*.js")
        if "vendor" not in file.parts
        for label in re.findall(r'\bt\("((?:[^"\\]|\\.)*)"[,)]', file.read_text())
    }
    for file in STATIC.parent.glob("*.py"):  # what the server refuses in fixed words
        used.update(re.findall(r'HTTPException\(\d+, "([^"]+)"\)', file.read_text()))
    assert len(used) > 80
    assert used - names == set()


def test_every_page_fits_the_screen_with_large_text_too_and_axe_has_no_serious_findings(page, served, hands):
    for path in (*PAGES, *(f"/hand/{name}?at=8" for name in hands)):
        page.emulate_media(color_scheme="light")
        opened(page, served + path)
        for width in (390, 1280):
            page.set_viewport_size({"width": width, "height": 844})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (path, width)
        page.evaluate(AXE.read_text())
        assert serious(page, {}) == [], path
        page.emulate_media(color_scheme="dark")
        assert page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
        assert serious(page, {"runOnly": ["color-contrast"]}) == [], (path, "dark")
        page.set_viewport_size({"width": 320, "height": 844})
        page.evaluate("document.documentElement.style.fontSize = '200%'")
        assert page.evaluate("document.documentElement.scrollWidth") <= 320, path
        assert page.evaluate("""[...document.querySelectorAll(".card")].every((card) => {
            const bottom = card.getBoundingClientRect().bottom;
            return [...card.children].every((part) => part.getBoundingClientRect().bottom <= bottom);
        })"""), path
        assert page.evaluate("""[...document.querySelectorAll(".badge")].every((badge) =>
            badge.clientHeight >= 1.2 * parseFloat(getComputedStyle(badge).fontSize))"""), path


def test_a_name_without_a_place_to_break_fits_the_screen(page, served, logged, played):
    made = [
        played(game, lambda number, legal: legal[0], seed=seed) for seed, game in enumerate(("doudizhu", "othello"))
    ]
    for rows in made:
        rows[0].players = json.dumps([{"seat": seat, "player": f"{seat}-{'x' * 80}"} for seat in range(3)])
    logged(*made)
    for path in ("/hands", *(f"/hand/{rows[0].game_id.hex()}-0" for rows in made)):
        opened(page, served + path)
        page.wait_for_selector(".scroll, .steps")
        for width in (390, 1280):
            page.set_viewport_size({"width": width, "height": 844})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (path, width)
            for part in page.locator(".scroll").all():
                assert part.evaluate("(part) => part.scrollWidth <= part.clientWidth"), (path, width)


def test_names_from_right_to_left_stand_in_the_order_of_the_seats(page, served, logged, played):
    made = played("othello", lambda number, legal: legal[0])
    names = ["\u05e9\u05dc\u05d5\u05dd", "\u05de\u05dc\u05da"]
    made[0].players = json.dumps([{"seat": seat, "player": name} for seat, name in enumerate(names)])
    logged(made)
    opened(page, f"{served}/hand/{made[0].game_id.hex()}-0")
    where = page.evaluate(
        """names => names.map((name) => {
        const range = document.createRange(), [text] = [...document.querySelector("h1 .count").childNodes]
            .filter((node) => node.data?.includes(name));
        range.setStart(text, text.data.indexOf(name));
        range.setEnd(text, text.data.indexOf(name) + name.length);
        return range.getBoundingClientRect().left;
    })""",
        names,
    )
    assert where == sorted(where)


def serious(page, options):
    """What axe says of the page."""
    found = page.evaluate("options => axe.run(document, {...options, resultTypes: ['violations']})", options)
    return [
        (item["id"], item["nodes"][0]["html"][:200], item["nodes"][0]["failureSummary"])
        for item in found["violations"]
        if item["impact"] in ("serious", "critical")
    ]


def test_a_clock_that_runs_out_can_be_read_in_light_and_dark(page, served):
    opened(page, f"{served}/")
    page.evaluate("document.querySelector('main').innerHTML = '<h1>x <span class=\"badge bad\">3 s</span></h1>'")
    page.evaluate(AXE.read_text())
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert serious(page, {"runOnly": ["color-contrast"]}) == [], scheme


def test_the_mistakes_of_a_review_can_be_read_in_light_and_dark(page, served, logged, played):
    places = {6: 1, 14: 2, 20: 3}  # an inaccuracy, a mistake and a blunder
    made = played("othello", lambda number, legal: legal[min(places.get(number, 0), len(legal) - 1)])
    logged(made)
    opened(page, f"{served}/hand/{made[0].game_id.hex()}-0")
    page.get_by_label("review with").select_option("rating")
    page.get_by_role("button", name="Review", exact=True).click()
    page.wait_for_selector("text=same move")
    page.evaluate(AXE.read_text())
    for at in places:
        page.keyboard.press("n")
        page.wait_for_url(f"**?at={at}")
        page.wait_for_selector(f".mistakes a[aria-current][href='?at={at}']")
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            assert serious(page, {"runOnly": ["color-contrast"]}) == [], (at, scheme)


def test_the_language_can_be_changed(page, served):
    opened(page, f"{served}/hands")
    page.get_by_label("language").select_option("zh")
    page.wait_for_selector("h1:has-text('牌局')")
    assert page.evaluate("document.documentElement.lang") == "zh"
    opened(page, f"{served}/health")
    page.wait_for_selector("main:has-text('中没有宿主在运行。')")
    for message, advice, words in (
        ("eve is playing already", "choose another name", ["eve 已在对局中", "请换一个名字"]),
        ("clone eve is running already", "wait until it has ended", ["clone eve 已在运行", "请等它结束"]),
        ("robot-1 is a name for bots", "choose another name", ["robot-1 是留给机器人的名字", "请换一个名字"]),
        ("3 commands are running", "wait until one of them has ended", ["已有 3 个任务在运行", "请等其中一个结束"]),
    ):
        explained = "async (error) => (await import('/static/api.js')).explained(error)"
        assert page.evaluate(explained, {"message": message, "advice": advice}).split("\uff1a") == words


CHINESE_JOB = """async (id) => {
    const [{ render, html }, { Job }, { t, setLanguage }] = await Promise.all(
        ["html", "job", "i18n"].map((name) => import(`/static/${name}.js`)));
    setLanguage("zh");
    const place = document.createElement("main");
    document.body.replaceChildren(place);
    render(html`<${Job} id=${id} t=${t}>${() => "done"}<//>`, place);
}"""


def verdict(better, p_worse=1.0, **figures):
    """As the gate words it."""
    return str(
        Verdict(
            better=better,
            challenger="a:r1",
            champion="a:v1",
            deals=60,
            alpha=0.05,
            p_better=0.4,
            p_worse=p_worse,
            figures=figures,
        )
    )


def test_a_job_that_failed_says_why_in_chinese(page, served):
    failed = [
        ("the command ended with exit code -9", "", []),
        ("eve has not agreed to be imitated", "", ["eve"]),
        ("the database cannot be used now", "create it with: bothost db upgrade", ["bothost", "upgrade"]),
        ("something new", "do that", ["something", "new", "that"]),
        (f"not promoted: {verdict(False, 0.01, gain=-0.5)}", "", []),
        (f"not promoted: {verdict(False, wp=0.45, ci95=(0.4, 0.5))}", "", []),
        (verdict(True, adjusted_lead=0.25, adjusted_lead_ci95=None), "", []),
        (f"not promoted: {verdict(False, agents={'A': {'score': -1.5, 'ci95': (-2, 1)}})}", "", []),
    ]
    opened(page, f"{served}/")
    for number, (message, advice, english) in enumerate(failed):
        job = {"job": "j", "state": "failed", "progress": {}, "results": []}
        job["problems"] = [{"message": message, "advice": advice}]
        answer = {"content_type": "text/event-stream", "body": f"data: {json.dumps(job)}\n\n"}
        page.route(f"**/api/jobs/{number}", lambda route, _, answer=answer: route.fulfill(**answer))
        page.evaluate(CHINESE_JOB, str(number))
        shown = page.get_by_role("alert").inner_text()
        assert shown.startswith("任务失败") and re.findall("[a-z]{3,}", shown) == english


def test_a_page_is_reached_by_keyboard(page, served):
    opened(page, f"{served}/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the page"
    for _ in range(4):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/hands")


@pytest.fixture
def visitor(chromium):
    """A page in a fresh browser profile that may be refused something."""
    context = chromium.new_context(locale="en-GB")
    yield context.new_page()
    context.close()


def test_a_wrong_address_says_so_and_leads_on(visitor, served):
    for path, words, link in (
        ("/hand/zz", "there is no hand 'zz'", "/hands"),
        (f"/hand/{'0' * 32}-0", "there is no such hand", "/hands"),
        ("/table/zz", "there is no such table", "/"),
        (f"/table/{'0' * 32}-0", "there is no such table", "/"),
        ("/play/zz", "this game is gone: the server restarted, it ended long ago, or it is not yours", "/play"),
        ("/nowhere", "This page does not exist.", "/"),
        ("/clones", "This page does not exist.", "/"),
        ("/hand/a/b", "This page does not exist.", "/"),
    ):
        visitor.goto(f"{served}{path}")
        visitor.wait_for_selector(f"main:has-text({json.dumps(words)})")
        assert visitor.locator(f"main a[href='{link}']").count() == 1 and visitor.locator("h1").count() == 1, path
        assert visitor.title() == f"{visitor.locator('h1').inner_text()} · bothost", path


def test_addresses_of_no_page_answer_that_they_are_not_found(visitor, served, hands):
    pages = [*PAGES, "/clone", "/login", f"/hand/{hands[0]}", "/play/0123abcd", f"/table/{hands[0]}"]
    assert {visitor.request.get(served + path).status for path in pages} == {200}
    for path in ("/nowhere", "/hands/", "/hand/", "/hand/a/b", "/clones", "/api", "/static/nothing.js", "/api/nothing"):
        assert visitor.request.get(served + path).status == 404, path
    opened(visitor, f"{served}/hands")  # which begins a session
    for path in ("/api/hands/zz", "/api/hands/zz/review", "/api/tables/zz", "/api/play/zz", "/api/jobs/zz"):
        assert visitor.evaluate("path => fetch(path).then((answer) => answer.status)", path) == 404, path


def test_what_is_large_is_sent_compressed(visitor, served, hands):
    opened(visitor, f"{served}/hands")
    for path in ("/static/i18n.js", f"/api/hands/{hands[1]}"):
        assert visitor.request.get(served + path).headers["content-encoding"] == "gzip", path


def test_pages_go_on_when_the_server_forgot_their_session(visitor, served, hands):
    opened(visitor, f"{served}/hands")
    visitor.context.clear_cookies()
    visitor.get_by_role("link", name="tables").click()
    visitor.wait_for_selector("text=No table is live.")
    visitor.context.clear_cookies()
    visitor.get_by_role("link", name="hands").click()
    visitor.wait_for_function("() => document.querySelectorAll('tbody tr').length === 4")
    opened(visitor, f"{served}/hand/{hands[0]}")
    visitor.context.clear_cookies()
    visitor.get_by_role("button", name="Review", exact=True).click()
    visitor.wait_for_selector("text=same move")


@pytest.mark.parametrize("web_settings", [WebSettings(port=0, password=Secret("s3cret", "a test"), spectators=True)])
def test_an_operator_logs_in_where_spectators_may_watch(visitor, served):
    opened(visitor, f"{served}/")
    assert visitor.get_by_role("link", name="models").count() == 0
    visitor.get_by_role("link", name="log in").click()
    visitor.get_by_label("password").fill("s3cret")
    visitor.keyboard.press("Enter")
    visitor.wait_for_selector("h1:has-text('live tables')")
    visitor.goto(f"{served}/login")  # nothing is left to do there
    visitor.wait_for_selector("h1:has-text('live tables')")
    visitor.get_by_role("link", name="models").click()
    visitor.wait_for_selector("h2:has-text('deep-mc')")
    visitor.context.clear_cookies()
    visitor.get_by_role("link", name="training").click()
    visitor.get_by_label("password").fill("s3cret")
    visitor.keyboard.press("Enter")
    visitor.wait_for_selector("text=No training is here yet.")


@pytest.mark.parametrize("web_settings", [WebSettings(port=0, password=Secret("s3cret", "a test"), spectators=True)])
@pytest.mark.parametrize("path", ["/", "/hands"])
def test_a_visitor_who_finds_nothing_is_led_to_a_game(visitor, served, path):
    """They cannot type a command."""
    opened(visitor, served + path)
    notice = visitor.locator(".notice:has-text('yet.'), .notice:has-text('live.')")
    assert notice.get_by_role("link").get_attribute("href") == "/play"
    assert notice.locator("code").count() == 0


def test_the_title_names_the_game_and_its_players(page, served, hands):
    opened(page, f"{served}/hand/{hands[0]}")
    page.wait_for_function("() => document.title === 'Dou Dizhu: player-0, player-1, player-2 · bothost'")
    page.get_by_role("link", name="hands").click()
    page.wait_for_function("() => document.title === 'Hands · bothost'")
    assert page.locator("[role=status]").first.inner_text() == "Hands"  # for who hears the page


def test_the_navigation_marks_the_section_of_each_page(visitor, served, hands):
    current = visitor.locator("nav a[aria-current]")
    for path, section, kind in (
        ("/hands", "/hands", "page"),
        (f"/hand/{hands[0]}", "/hands", "true"),
        ("/table/gone", "/", "true"),
        ("/play/gone", "/play", "true"),
        ("/clone", "/play", "true"),
    ):
        opened(visitor, f"{served}{path}")
        assert [current.get_attribute("href"), current.get_attribute("aria-current")] == [section, kind], path


def test_a_server_that_does_not_answer_is_named(visitor, served):
    opened(visitor, f"{served}/health")
    for path in ("**/api/**", "**/pages/models.js"):
        visitor.route(path, lambda route: route.abort())
    visitor.wait_for_selector("[role=alert]:has-text('The server does not answer.')")
    visitor.get_by_role("link", name="training").click()
    visitor.wait_for_selector("h1:has-text('training') + [role=alert]:has-text('The server does not answer.')")
    visitor.get_by_role("link", name="models").click()
    visitor.wait_for_selector("[role=alert]:has-text('This page cannot be loaded.')")
    visitor.unroute_all()
    visitor.get_by_role("link", name="Try again.").click()
    visitor.wait_for_selector("h2:has-text('deep-mc')")


def test_a_board_that_is_lost_on_the_way_is_asked_for_again(visitor, served, logged, played):
    made = played("othello", lambda number, legal: legal[0])
    logged(made)
    name = f"{made[0].game_id.hex()}-0"
    visitor.route("**/boards/othello.js", lambda route: route.abort())
    visitor.goto(f"{served}/hand/{name}")
    problem = visitor.locator("[role=alert]:has-text('The board of this game has failed.')")
    problem.wait_for()
    assert problem.get_by_role("link", name="Try again.").get_attribute("href") == ""
    assert visitor.locator(".board.generic").inner_text().count("player-1") == 1
    visitor.unroute_all()
    visitor.get_by_role("link", name="Hands", exact=True).click()
    visitor.locator(f"a[href='/hand/{name}']").click()
    visitor.wait_for_selector(".board.othello")


def test_a_hand_that_cannot_be_saved_as_a_file_says_why(visitor, served, hands):
    opened(visitor, f"{served}/hand/{hands[0]}")
    visitor.route("**/style.css", lambda route: route.abort())
    visitor.get_by_role("button", name="save as file").click()
    visitor.wait_for_selector("[role=alert]:has-text('The server does not answer.')")
    visitor.unroute_all()
    with visitor.expect_download():
        visitor.get_by_role("button", name="save as file").click()
    visitor.wait_for_selector("[role=alert]", state="detached")


@pytest.mark.parametrize("page_and_data", ["play", "clone", "models", "training"])
def test_a_page_whose_data_did_not_come_can_be_tried_again(visitor, served, page_and_data):
    visitor.route(f"**/api/{page_and_data}", lambda route: route.abort())
    visitor.goto(f"{served}/{page_and_data}")
    visitor.wait_for_selector("h1 ~ [role=alert]:has-text('The server does not answer.')")
    visitor.unroute_all()
    visitor.get_by_role("link", name="Try again.").click()
    visitor.wait_for_selector("form, .notice:not([role=alert])")


def test_try_again_leads_to_no_other_server(visitor, served):
    visitor.route("**/api/session", lambda route: route.abort())
    visitor.goto(f"{served}//elsewhere.example/x")
    again = visitor.get_by_role("link", name="Try again.")
    assert again.evaluate("link => link.href") == f"{served}//elsewhere.example/x"
    with visitor.expect_navigation():
        again.click()


def test_hands_of_mahjong_take_few_lines_on_a_tablet(page, served, hands):
    opened(page, f"{served}/hand/{hands[1]}?at=8")
    for width in (768, 1010):
        page.set_viewport_size({"width": width, "height": 844})
        for place in ("left", "right", "across", "own"):
            tiles = page.locator(f".seat.{place} .tiles .tile")
            lines = tiles.evaluate_all("tiles => tiles.map((tile) => tile.offsetTop)")
            assert lines and len(set(lines)) <= 3, (place, width)


def test_the_cells_of_othello_are_even_and_hold_their_discs(page, served, hands):
    opened(page, f"{served}/hand/{hands[2]}?at=20")
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 844})
        cells = page.evaluate("""() => [...document.querySelectorAll(".cell")].map((cell) => {
            const box = (element) => {
                const { left, top, right, bottom } = element.getBoundingClientRect();
                return [left, top, right, bottom];
            };
            const disc = cell.querySelector(".disc");
            return [box(cell), disc && box(disc)];
        })""")
        assert len(cells) == 64
        sides = [side for (left, top, right, bottom), _ in cells for side in (right - left, bottom - top)]
        assert max(sides) - min(sides) < 1.5
        discs = [(cell, disc) for cell, disc in cells if disc is not None]
        assert len(discs) > 20
        for cell, disc in discs:
            assert cell[0] < disc[0] and cell[1] < disc[1] and disc[2] < cell[2] and disc[3] < cell[3]


def imported(*modules):
    """All modules that these import before they run."""
    found, left = set(), [STATIC / module for module in modules]
    while left:
        module = left.pop()
        names = re.findall(r"""^(?:import|export) [^;]*?from "([^"]+)";""", module.read_text(), re.M)
        new = {(module.parent / name).resolve() for name in names} - found
        found |= new
        left += new
    return {f"/static/{module.relative_to(STATIC)}" for module in found}


def test_a_slow_network_is_asked_early_for_what_every_page_needs():
    preloaded = re.findall(r'rel="modulepreload" href="([^"]+)"', (STATIC / "index.html").read_text())
    assert set(preloaded) == imported("app.js") and len(preloaded) == len(set(preloaded))
    assert not any("uplot" in module for module in imported("pages/hand.js", "pages/training.js"))  # it is large


def test_a_page_is_shown_before_its_curves_come(page, served, logged, played):
    rows = played("othello", lambda number, legal: legal[0])
    for row in rows:
        if isinstance(row, DecisionRecord):
            row.value = 0.5
    logged(rows)
    held = []
    page.route("**/uplot.mjs", lambda route: held.append(route))
    page.goto(f"{served}/hand/{rows[0].game_id.hex()}-0")
    page.wait_for_selector(".steps")
    page.wait_for_selector(".curve")
    while not held:
        page.wait_for_timeout(10)
    assert page.locator("canvas").count() == 0
    held[0].continue_()
    page.wait_for_selector(".curve canvas")


def luminance(colour):
    """Of a colour such as rgb(255, 255, 255): WCAG 2.2."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_the_cell_of_othello_that_has_the_focus_can_be_seen(page, served, hands):
    """No part of its outline lies below the next cell."""
    opened(page, f"{served}/hand/{hands[2]}?at=20")
    page.locator("[data-cell]").first.focus()
    page.keyboard.press("ArrowRight")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        ground, colour, width, offset = page.evaluate("""() => {
            const style = getComputedStyle(document.activeElement);
            return [style.backgroundColor, style.outlineColor, style.outlineWidth, style.outlineOffset];
        }""")
        darker, lighter = sorted([luminance(ground), luminance(colour)])
        assert (lighter + 0.05) / (darker + 0.05) >= 3, scheme
        assert float(width.removesuffix("px")) + float(offset.removesuffix("px")) <= 0


def test_boards_keep_their_colours_where_the_system_forces_its_own(page, served, hands):
    page.emulate_media(forced_colors="active")
    opened(page, f"{served}/hand/{hands[2]}?at=20")
    colour = "element => getComputedStyle(element).backgroundColor"
    assert page.locator(".cell .black").first.evaluate(colour) != page.locator(".cell .white").first.evaluate(colour)
