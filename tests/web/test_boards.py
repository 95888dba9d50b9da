"""Boards that plugins bring: the guide's example in Chromium, its files and nothing else, and boards that fail."""

import random
import re
import sys
from pathlib import Path

import pytest

from bothost import rules
from bothost.plugins import Plugins
from bothost.web.application import STATIC
from bothost.web.drawn import drawn
from bothost.web.site import Site

DRAW = """async ({ module, view, views, legal = [] }) => {
    const [{ render, html }, { Board }, { t }] = await Promise.all(
        ["html", `boards/${module}`, "i18n"].map((name) => import(`/static/${name}.js`)));
    const place = document.createElement("div");
    const position = { seat: 0, players: ["a", "b", "c", "d"], view, views };
    const moves = legal.map((notation, action) => ({ action, notation }));
    window.chosen = [];
    const onAct = ({ notation }) => window.chosen.push(notation);
    const board = () => html`<${Board} position=${position} legal=${moves} onAct=${onAct} t=${t} />`;
    document.body.replaceChildren(place);
    render(board(), place);
    render(board(), place); // runs the effects of the first: a board listens to keys
}"""
"""Draws a board alone; what is chosen of its legal moves is in ``window.chosen``."""
TILES = STATIC / "tiles.svg"
GUIDE = Path(__file__).parents[2] / "docs/guide/write-a-board.md"
FILES = {"python": "__init__.py", "js": "board/board.js", "css": "board/board.css"}


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """The folder of the guide's plugin, as a reader would write it."""
    folder = tmp_path / "plugins.d/nim_table"
    (folder / "board").mkdir(parents=True)
    for language, text in re.findall(r"^```(\w+)\n(.*?)^```$", GUIDE.read_text(), re.M | re.S):
        if language in FILES:
            (folder / FILES[language]).write_text(text)
    yield folder
    sys.modules.pop("nim_table", None)


@pytest.fixture
def site(site, plugin):
    plugins = Plugins.load(plugin.parent)
    assert "nim" in plugins.boards, plugins.failures
    return Site(site.settings, site.store, plugins)


def test_the_files_of_a_board_are_served_and_no_others(client, plugin):
    assert client.get("/api/boards").json() == {"nim": "/boards/nim/board.js"}
    module = client.get("/boards/nim/board.js")
    assert module.headers["content-type"].startswith("text/javascript") and "export function Board" in module.text
    assert "script-src 'self'" in module.headers["content-security-policy"]
    assert client.get("/boards/nim/board.css").status_code == 200
    (plugin / "board/page.html").write_text("<script>1</script>")
    (plugin / "board/.secret.json").write_text("{}")
    (plugin / "board/leads.json").symlink_to("/etc/passwd")
    (plugin / "board/out").symlink_to(plugin)
    (plugin / "beside.js").touch()
    for path in (
        "page.html",
        ".secret.json",
        "leads.json",
        "out/beside.js",
        "..%2fbeside.js",
        "%2e%2e/beside.js",
        "",
        ".",
    ):
        assert client.get(f"/boards/nim/{path}").status_code == 404, path
    for path in ("/boards/doudizhu/board.js", "/boards/", "/boards/nim2/board.js"):
        assert client.get(path).status_code == 404, path


@pytest.fixture
def hand(logged, played):
    """The name of a hand of Nim."""
    rows = played("nim", lambda number, legal: legal[-1])
    logged(rows)
    return f"{rows[0].game_id.hex()}-0"


def test_the_example_of_the_guide_in_the_browser(page, served, hand):
    page.goto(f"{served}/hand/{hand}?at=2")
    stones = page.locator(".nim .stones")
    assert stones.get_attribute("aria-label") == "4 stones"
    page.wait_for_function("() => getComputedStyle(document.querySelector('.nim .stones')).letterSpacing === '8px'")
    assert "takes 3" in page.locator(".steps").inner_text()
    chosen = page.evaluate("""async () => {
        const { render, html } = await import("/static/html.js");
        const { Board } = await import("/boards/nim/board.js");
        const place = document.createElement("div"), chosen = [];
        const position = { seat: 0, players: ["a", "b"], view: { moves: [3] } };
        const legal = [{ action: 0, notation: "take1" }, { action: 1, notation: "take2" }];
        const onAct = (action) => chosen.push(action.notation);
        render(html`<${Board} position=${position} legal=${legal} onAct=${onAct} />`, place);
        place.querySelectorAll("button")[1].click();
        return chosen;
    }""")
    assert chosen == ["take2"]


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("export function Board() { throw new Error('no stones'); }", "no stones"),
        ("export function Board() { eval('1'); }", "unsafe-eval"),
        ("export const nothing = 1;", "failed"),
        ("this is no module", "failed"),
    ],
)
def test_where_a_board_fails_the_generic_one_is_shown(chromium, served, plugin, hand, module, words):
    (plugin / "board/board.js").write_text(module)
    context = chromium.new_context(locale="en-GB")
    page = context.new_page()
    page.goto(f"{served}/hand/{hand}?at=2")
    page.wait_for_selector("[role=alert]:has-text('The board of this game has failed.')")
    assert words in page.locator("[role=alert]").inner_text()
    assert page.locator(".board.generic").inner_text().count("moves") == 1
    context.close()


@pytest.mark.parametrize(
    ("recent", "moves"),
    [("return [[1, `take${view.moves.at(-1)}`]];", [[1, "take3"]]), ("throw new Error('no');", []), (None, [])],
)
def test_a_board_may_name_the_last_moves(page, served, plugin, recent, moves):
    (plugin / "board/board.js").write_text(
        f"export const Board = () => null; {f'export function recent(view) {{ {recent} }}' if recent else ''}"
    )
    page.goto(f"{served}/")
    assert moves == page.evaluate("""async () => {
        const { boardOf } = await import("/static/boards/index.js");
        return (await boardOf("nim")).recent({ moves: [2, 3] });
    }""")


def test_a_board_reaches_no_other_server(chromium, served, plugin, hand):
    """What a hostile board tries with the policy of the pages: a request, an image, a script, a frame, a form."""
    (plugin / "board/board.js").write_text("""
        const away = "http://203.0.113.1/";
        fetch(away).catch(() => {});
        new Image().src = away;
        const add = (name, values) => document.body.append(Object.assign(document.createElement(name), values));
        window.inline = 0;
        add("script", { src: away });
        add("iframe", { src: away });
        add("form", { action: away });
        add("script", { textContent: "window.inline = 1" });
        export const Board = () => document.cookie || "no cookie";
    """)
    context = chromium.new_context()
    page = context.new_page()
    page.add_init_script("""window.refused = [];
        addEventListener("securitypolicyviolation", (event) => refused.push(event.effectiveDirective));""")
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("requestfailed", lambda request: asked.remove(request.url))
    page.goto(f"{served}/hand/{hand}")
    page.wait_for_selector("text=no cookie")
    page.evaluate("document.forms[document.forms.length - 1].submit()")
    page.wait_for_function("() => refused.length === 6")
    tried = ["connect-src", "form-action", "frame-src", "img-src", "script-src-elem", "script-src-elem"]
    assert sorted(page.evaluate("refused")) == tried
    assert page.evaluate("window.inline") == 0
    assert [url for url in asked if not url.startswith(served)] == []
    assert page.url.startswith(served)
    context.close()


def test_the_board_of_dou_dizhu_shows_bids_until_the_first_play(page, served):
    page.goto(f"{served}/")
    for history, words, cards in (([], ["no bid", "call"], 0), ([[0, "3"]], [], 1)):
        bids = [[0, "call"], [1, "bid0"]]
        view = {"bids": bids, "history": history, "counts": [2, 2, 2], "hand": "34", "bottom": "", "turn": 2}
        page.evaluate(DRAW, {"module": "doudizhu", "view": view})
        assert page.locator(".played.pass").all_inner_texts() == words
        assert page.locator(".played .card").count() == cards


def test_jokers_have_chinese_names(page, served):
    page.goto(f"{served}/")
    assert page.evaluate("""async () => {
        const [{ cardsOf }, { t, setLanguage }] = await Promise.all(
            ["boards/doudizhu", "i18n"].map((name) => import(`/static/${name}.js`)));
        setLanguage("zh");
        return cardsOf("BTR", t).map((card) => card.label);
    }""") == ["大王", "小王", "10"]


def test_enter_plays_the_chosen_cards_and_presses_the_button_that_has_the_focus(page, served):
    page.goto(f"{served}/")
    view = {"history": [], "counts": [2, 2, 2], "hand": "34", "bottom": "", "turn": 0}
    page.evaluate(DRAW, {"module": "doudizhu", "view": view, "legal": ["pass", "3"]})
    page.keyboard.press("3")
    page.wait_for_selector("[aria-label='3'][aria-pressed=true]")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="pass").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("window.chosen") == ["3", "pass"]


def test_cards_that_make_several_plays_are_played_as_the_player_says(page, served):
    """Their notation says which of them are kickers."""
    page.goto(f"{served}/")
    plays = ["444555666+333", "333444555+666"]
    view = {"history": [[2, plays[0]]], "counts": [12, 2, 2], "hand": "666555444333", "bottom": "", "turn": 0}
    page.evaluate(DRAW, {"module": "doudizhu", "view": view, "legal": ["pass", *plays]})
    assert page.locator(".left .played .card").count() == 12
    for card in page.locator("button.card").all():
        card.click()
    page.get_by_role("button", name="Play 3 3 3 4 4 4 5 5 5 + 6 6 6").click()
    assert page.evaluate("window.chosen") == plays[1:]


@pytest.mark.parametrize("key", ["Enter", "Space"])
def test_a_key_that_opens_how_to_play_plays_nothing(page, served, key):
    page.goto(f"{served}/")
    view = {"history": [], "counts": [2, 2, 2], "hand": "34", "bottom": "", "turn": 0}
    page.evaluate(DRAW, {"module": "doudizhu", "view": view, "legal": ["pass", "3"]})
    page.evaluate("document.body.append(document.createElement('details'))")
    page.evaluate("document.querySelector('details').append(document.createElement('summary'))")
    page.locator("summary").focus()
    page.keyboard.press("3")
    page.keyboard.press(key)
    page.wait_for_selector("details[open]")
    assert page.evaluate("window.chosen") == []


def test_keys_that_come_faster_than_the_board_is_drawn_all_count(page, served):
    page.goto(f"{served}/")
    view = {"history": [], "counts": [3, 2, 2], "hand": "334", "turn": 0}
    page.evaluate(DRAW, {"module": "doudizhu", "view": view, "legal": ["3", "33"]})
    for keys in (["4", "Escape"], ["3", "3", "Enter"]):
        page.evaluate("keys => keys.forEach((key) => dispatchEvent(new KeyboardEvent('keydown', { key })))", keys)
    assert page.evaluate("window.chosen") == ["33"]


def test_a_chosen_card_of_the_pairing_game_is_seen_whole(page, served):
    view = {"hands": [["g1", "r2"], ["?"]], "pool": ["g5"], "deck": [], "libraries": [[], []], "selected": ["g1"]}
    view |= {"scores": [0, 0], "charges": [[0, 0], [0, 0]], "to_move": 0}
    page.goto(f"{served}/")
    page.evaluate(DRAW, {"module": "pairing", "view": view})
    assert page.evaluate("""async () => {
        const card = document.querySelector(".card.selected");
        await Promise.all(card.getAnimations().map((moving) => moving.finished));
        const { left, top } = card.getBoundingClientRect();
        return card.contains(document.elementFromPoint(left + 10, top + 2));
    }""")


def test_with_large_text_the_board_of_pairing_fits_a_phone_and_counts_what_is_hidden(page, served):
    view = {"hands": [["g1"], ["?"] * 10], "pool": [], "deck": [], "libraries": [[], []], "selected": []}
    view |= {"scores": [0, 0], "charges": [[0, 0], [0, 0]], "to_move": 0, "seat": 0}
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto(f"{served}/")
    page.evaluate(DRAW, {"module": "pairing", "view": view})
    page.evaluate("document.documentElement.style.fontSize = '200%'")
    assert page.get_by_role("img", name="10 cards").bounding_box()["height"] > 100  # two rows
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_the_board_of_pairing_says_what_to_choose(page, served):
    view = {"hands": [["g1", "r2"], ["?"]], "pool": ["g5"], "deck": [], "libraries": [[], []], "selected": []}
    view |= {"scores": [0, 0], "charges": [[0, 0], [0, 0]], "to_move": 0}
    page.goto(f"{served}/")
    for phase, legal, shown in (("A", ["g1", "r2"], True), ("A", [], False), ("init", ["enter:A"], False)):
        page.evaluate(DRAW, {"module": "pairing", "view": {**view, "phase": phase}, "legal": legal})
        assert ("Choose a card of your hand to swap" in page.locator(".seat.own").inner_text()) == shown


def test_the_board_of_pairing_says_when_a_card_is_discarded_while_pairing(page, served):
    """The preset of four phases has none for discards."""
    game, rng, said = rules.game("pairing", preset="four-phase"), random.Random(1), {}
    page.goto(f"{served}/")
    for seed in range(20):
        state = game.new_state(seed)
        while not state.terminal and len(said) < 3:
            view = state.view(state.to_act[0])
            shown, cards = drawn(view), [game.notation(action) for action in view.legal().tolist()]
            colours = {card[0] for card in shown["pool"]} & {card[0] for card in cards}
            kind = "second" if shown["selected"] else "pair" if colours else "discard"
            if view.seat == 0 and view.phase == "pairing" and kind not in said:
                page.evaluate(DRAW, {"module": "pairing", "view": shown, "legal": cards})
                said[kind] = page.locator(".seat.own > p").inner_text()
            state.apply(state.to_act[0], rng.choice(view.legal().tolist()))
    pair = "Choose a card of your hand and a card of the pool of its colour."
    assert said == {"pair": pair, "second": pair, "discard": "Choose a card of your hand to discard."}


def test_the_board_of_pairing_has_no_row_for_an_empty_hand(page, served):
    view = {"pool": ["g5"], "deck": [], "libraries": [["g1"], ["g2"]], "selected": [], "to_move": 0}
    view |= {"scores": [1, 2], "charges": [[0, 0], [0, 0]]}
    page.goto(f"{served}/")
    for hands, shown in (([["r2"], ["r3"]], 1), ([["r2"], ["?"]], 1), ([[], []], 0)):
        page.evaluate(DRAW, {"module": "pairing", "view": {**view, "hands": hands}})
        for place in ("across", "own"):
            assert page.locator(f".seat.{place} > .hand").count() == shown
    assert page.locator(".hand").count() == 3, "the pool and two libraries"


def test_the_board_of_mahjong_names_the_tiles_of_a_chow_and_marks_who_is_asked(page, served):
    view = {
        **{"hand": ["B1", "B3"], "drawn": None, "last_tile": "B2", "actor": 3, "phase": "claims"},
        **{"hand_sizes": [2] * 4, "wall_left": [9] * 4, "melds": [[]] * 4, "discards": [[], [], [], ["B2"]]},
        **{"prevalent_wind": "east"},
    }
    page.goto(f"{served}/")
    page.evaluate(DRAW, {"module": "mahjong", "view": view, "legal": ["pass", "chi:B2"]})
    assert page.locator(".actions button").all_inner_texts() == ["Pass", "Chow 1-2-3 dot"]
    assert page.locator(".seat.turn").evaluate_all("seats => seats.map((seat) => seat.ariaLabel)") == ["a"]


def test_the_board_of_mahjong_marks_the_last_discard_also_after_the_next_draw(page, served):
    game = rules.game("mahjong")
    state = game.new_state(1)
    for _ in range(4):  # each seat draws and discards
        seat = state.to_act[0]
        state.apply(seat, next(a for a in state.legal(seat).tolist() if game.notation(a).startswith("play:")))
    page.goto(f"{served}/")
    page.evaluate(DRAW, {"module": "mahjong", "view": drawn(state.view(0))})
    assert page.locator(".seat.own.turn").count() == 1
    assert page.locator(".river .selected").count() == page.locator(".seat.left .river .selected").count() == 1


def test_the_board_of_pairing_marks_what_the_other_player_has_just_collected(page, served):
    view = {"hands": [["g1", "r2"], ["?"]], "pool": ["g5"], "deck": [], "selected": [], "to_move": 0, "seat": 0}
    view |= {"libraries": [["g2", "g3"], ["b1", "b2", "r4", "r5"]], "scores": [5, 9], "charges": [[0, 0], [0, 0]]}
    turns = [[1, "enter:pairing"], [1, "b1"], [1, "b2"], [0, "enter:pairing"], [0, "g2"], [0, "g3"]]
    turns += [[1, "enter:A"], [1, "?"], [1, "enter:pairing"], [1, "r4"], [1, "r5"]]
    page.goto(f"{served}/")
    for more in ([], [[0, "enter:pairing"], [0, "g1"]]):
        page.evaluate(DRAW, {"module": "pairing", "view": {**view, "history": turns + more}})
        marked = page.locator(".marked").evaluate_all("cards => cards.map((card) => card.ariaLabel)")
        assert marked == ["red 4", "red 5"]


def test_where_all_hands_are_shown_so_are_the_concealed_kongs_of_others(page, served):
    unknown, known = ({"kind": "angang", "tile": tile, "claimed": None} for tile in (None, "F2"))
    view = {"hand": ["B1"], "drawn": None, "last_tile": None, "actor": 3, "phase": "turn", "prevalent_wind": "east"}
    view |= {"hand_sizes": [1] * 4, "wall_left": [9] * 4, "melds": [[], [unknown], [], []], "discards": [[]] * 4}
    page.goto(f"{served}/")
    for views, hidden in ((None, 4), ([view, {**view, "melds": [[], [known], [], []]}, view, view], 0)):
        page.evaluate(DRAW, {"module": "mahjong", "view": view, "views": views})
        assert page.locator(".meld .tile.back").count() == hidden
        assert page.locator(".meld .tile").count() == 4


@pytest.mark.parametrize("number", range(2, 10))
def test_dots_are_drawn_as_circles_and_bamboos_as_sticks(number):
    drawn = dict(re.findall(r'<symbol id="(\w+)"[^>]*>(.*?)</symbol>', TILES.read_text()))
    dots, bamboos = drawn[f"B{number}"], drawn[f"T{number}"]
    assert dots.count("<circle") % number == 0 < dots.count("<circle") and "<rect" not in dots
    assert bamboos.count("<rect") % number == 0 < bamboos.count("<rect") and "<circle" not in bamboos


def test_the_board_of_mahjong_counts_walls_and_flowers(page, served):
    page.goto(f"{served}/")
    for preset, heads in (("botzone", ["east a Wall 20", "south b Wall 21"]), ("shared-wall", ["east a", "south b"])):
        view = rules.game("mahjong", preset=preset).new_state(1).view(0).to_json()
        page.evaluate(DRAW, {"module": "mahjong", "view": view})
        shown = [page.locator(f".seat.{place} header").inner_text() for place in ("own", "right")]
        assert [" ".join(text.split()) for text in shown] == heads
        assert ("Wall 83" in page.locator(".middle").inner_text()) == (preset == "shared-wall")
    page.evaluate(DRAW, {"module": "mahjong", "view": {**view, "flowers": [0, 2, 0, 0]}})
    assert page.locator(".seat header", has_text="Flowers").count() == 1
    assert "Flowers 2" in page.locator(".seat.right header").inner_text()


def test_the_board_of_mahjong_says_how_the_hand_was_won(page, served):
    fans = [
        {"name": "all-pungs", "chinese": "碰碰和", "points": 6, "times": 1},
        {"name": "dragon-pung", "chinese": "箭刻", "points": 2, "times": 2},
    ]
    view = {
        **{"hand": ["W1"], "drawn": None, "last_tile": "J1", "actor": 3, "phase": "over", "prevalent_wind": "east"},
        **{"hand_sizes": [1, 13, 13, 13], "wall_left": [9] * 4, "melds": [[]] * 4, "discards": [[]] * 4},
    }
    page.goto(f"{served}/")
    for win, shown in (
        (
            {"seat": 0, "tile": "J1", "from": 3, "valid": True, "fans": fans},
            ["a wins with", "from d", "Fan points: 10 ="],
        ),
        ({"seat": 0, "tile": "J1", "from": 0, "valid": True, "fans": fans}, ["self-drawn", "dragon pung 2 × 2"]),
        ({"seat": 1, "tile": "J1", "from": 3, "valid": False, "fans": []}, ["b wins wrongly with"]),
        (None, ["The wall is used up."]),
    ):
        page.evaluate(DRAW, {"module": "mahjong", "view": {**view, "win": win}})
        text = page.locator(".win").inner_text()
        assert all(words in text for words in shown), text
    assert page.locator(".seat.turn").count() == 0
    assert page.get_by_role("img", name="13 hidden tiles").count() == 3
