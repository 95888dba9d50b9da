"""A person plays against bots in a real browser."""

import json
import re

import pytest

from bothost import rules
from bothost.store import consent
from bothost.store.query import players_of
from bothost.store.reader import iter_hands, iter_timelines, join_events
from bothost.store.rebuild import moves_of
from bothost.web import opponents
from bothost.web.drawn import drawn
from bothost.web.matches import LOBBY

PLAYED = {
    "othello": "rule-othello",
    "doudizhu": "rule-doudizhu",
    "pairing": "rule-pairing",
    "mahjong": "rule-mahjong",
}
CLICKABLE = {
    "othello": ".cell[aria-disabled=false], .othello .actions button",
    "pairing": ".pairing button:not(:disabled)",
    "mahjong": ".seat.own .actions button:not(.primary), .seat.own button.tile",
}
"""Something legal to click on the board of each game. In Dou Dizhu cards are chosen first."""
LABELS = {"☆": "black joker", "★": "red joker"}


def streamed(page, *messages):
    """Let the stream of game 1 say this."""
    body = "".join(f"data: {json.dumps(message)}\n\n" for message in messages)
    page.route("**/api/play/1", lambda route: route.fulfill(content_type="text/event-stream", body=body))


def asked(state, game):
    """What the player at seat 0 is shown when it is their turn."""
    view = state.view(0)
    legal = [{"action": int(action), "notation": view.notation(action)} for action in state.legal(0)]
    shown = {"state": "playing", "game": game, "seat": 0, "names": ["eve", "bob", "ann", "cyd"], "view": drawn(view)}
    return shown | {"legal": legal, "ask": "1", "left_ms": 60_000, "notice": "", "left": False, "ended": False}


@pytest.mark.parametrize(
    ("game", "words"),
    [
        ("doudizhu", "bob: pass · ann: pass"),
        ("mahjong", "bob: 3 character · ann: 9 character · cyd: 3 character"),
        ("othello", "bob: c3"),
        ("pairing", "bob: swap a card, pair any two: green 11, red 1, pair: red 5, red 4"),
    ],
)
def test_in_ones_turn_the_page_says_what_the_others_did(page, served, game, words):
    state, movers = rules.game(game).new_state(1), [0]
    while movers[-1] == 0 or state.to_act != (0,):
        movers.append(state.to_act[0])
        moves = {state.game.notation(action): action for action in state.legal(movers[-1]).tolist()}
        discard = next((move for move in moves if move.startswith("play:")), None)
        state.apply(movers[-1], moves["pass" if "pass" in moves else discard or next(iter(moves))])
    streamed(page, asked(state, game))
    page.goto(f"{served}/play/1")
    page.wait_for_selector(".turn-note:has-text('Your turn.')")
    assert page.locator(".turn-note .news").inner_text() == f"{words} Your turn."


def test_what_is_wrong_is_in_view_on_a_phone(page, served):
    """The hand lies far below the head of the page. The stream ends at once: the connection is lost."""
    page.set_viewport_size({"width": 360, "height": 500})
    shown = asked(rules.game("doudizhu").new_state(1), "doudizhu")
    streamed(page, shown | {"acted": {"reason": "timeout", "action": "pass"}})
    page.goto(f"{served}/play/1")
    page.wait_for_selector("[role=alert]:has-text('The connection is lost.')")
    page.locator(".chooser").evaluate("(hand) => hand.scrollIntoView(false)")
    for notice in ("[role=alert]", ".notice:has-text('Your time ran out.')"):
        box = page.locator(notice).bounding_box()
        assert page.evaluate("scrollY") > 0 <= box["y"] and box["y"] + box["height"] <= 500


HIDDEN = """hidden => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
    document.dispatchEvent(new Event("visibilitychange"));
}"""


def test_the_title_says_whose_turn_it_is_in_a_hidden_tab_too(page, served):
    """A hidden tab has left its connection to others."""
    shown, title = asked(rules.game("othello").new_state(1), "othello"), "Othello: eve, bob, ann, cyd · bothost"
    page.clock.install()
    page.route("**/api/play/1/turn", lambda route: route.fulfill(json={"asked": True}))
    streamed(page, shown | {"ask": None, "legal": []})
    page.goto(f"{served}/play/1")
    page.wait_for_function("title => document.title === title", arg=title)
    page.clock.fast_forward(6_000)
    page.evaluate(HIDDEN, True)
    page.clock.fast_forward(6_000)
    page.wait_for_function("title => document.title === title", arg=f"Your turn. {title}")
    streamed(page, shown)
    page.evaluate(HIDDEN, False)
    page.wait_for_selector(".turn-note:has-text('Your turn.')")
    assert page.title().startswith("Your turn. ")
    streamed(page, shown | {"state": "over", "ended": True})
    page.evaluate(HIDDEN, True)
    page.evaluate(HIDDEN, False)
    page.wait_for_function("title => document.title === title", arg=title)
    looks = []
    page.on("request", lambda request: looks.append(request.url))
    page.evaluate(HIDDEN, True)
    page.clock.fast_forward(12_000)
    page.evaluate("fetch('/api/session')")  # a request made now comes after those of the timer
    assert [url for url in looks if url.endswith("/turn")] == [], "nobody asks about a game that is over"


def test_hints_come_from_the_usual_strategy_where_the_list_is_lost(chromium, served):
    context, errors = chromium.new_context(locale="en-GB"), []
    page = context.new_page()
    page.on("pageerror", lambda error: errors.append(str(error)))
    streamed(page, asked(rules.game("othello").new_state(1), "othello"))
    page.route("**/api/play", lambda route: route.abort())
    with page.expect_event("requestfailed", lambda request: request.url.endswith("/api/play")):
        page.goto(f"{served}/play/1")
    page.wait_for_selector(".hint button:not([disabled])")
    assert page.locator(".hint select").input_value() == "rule-othello"
    context.close()
    assert errors == []


def test_a_long_clock_counts_minutes(page, served):
    streamed(page, asked(rules.game("othello").new_state(1), "othello") | {"left_ms": 300_000})
    page.goto(f"{served}/play/1")
    assert re.fullmatch(r"5:00|4:5\d", page.get_by_role("timer").inner_text())


@pytest.mark.parametrize("game", ["othello", "doudizhu"])
def test_a_game_that_ended_early_asks_nothing_any_more(page, served, game):
    """Its last question stays open, as nobody answered it."""
    shown = asked(rules.game(game).new_state(1), game)
    streamed(page, shown, shown | {"state": "over", "notice": "the opponents have gone", "ended": True})
    page.goto(f"{served}/play/1")
    page.wait_for_selector("text=the opponents have gone")
    page.wait_for_selector(".board")
    asks = ".cell[aria-disabled=false], .board .actions button, button.card"
    assert page.locator(asks).count() == page.get_by_role("timer").count() == 0


def test_players_find_their_hands(page, served):
    page.route("**/api/play", lambda route: route.fulfill(json={**route.fetch().json(), "name": "eve"}))
    page.goto(f"{served}/play")
    page.get_by_role("link", name="Your hands").click()
    page.wait_for_url("**/hands?players=eve")


def test_a_link_to_an_open_game_names_it_and_when_it_started(page, served):
    """Two open games of one kind have different links."""
    noon = page.evaluate("new Date(2026, 4, 1, 12).getTime() * 1000")
    started = {"1": ("othello", noon), "2": ("openspiel:chess", noon + 1_000_000), "3": ("othello", noon + 61_000_000)}
    running = {number: {"game": game, "started_us": us} for number, (game, us) in started.items()}
    page.route("**/api/play", lambda route: route.fulfill(json={**route.fetch().json(), "running": running}))
    page.goto(f"{served}/play")
    for number, words in {
        "1": "Othello, started at 12:00:00",
        "2": "Chess (OpenSpiel), started at 12:00:01",
        "3": "Othello, started at 12:01:01",
    }.items():
        link = page.get_by_role("link", name=f"Go on with your game of {words}.")
        assert link.get_attribute("href") == f"/play/{number}"


def test_the_rules_of_our_games_are_chosen_by_words(page, served):
    """Every preset and every option has a label in both languages; every list of words is the game's own."""
    page.goto(f"{served}/play")
    words = page.evaluate("""async () => {
        const [{ PRESETS, RULES }, { t, setLanguage }] = await Promise.all(
            ["rules", "i18n"].map((name) => import(`/static/${name}.js`)));
        setLanguage("zh");
        const labels = [PRESETS, RULES].flatMap((table) => Object.values(table).flatMap(Object.values))
            .flatMap((rule) => (rule.choices ? [rule.label, ...Object.values(rule.choices)] : [rule]));
        return { PRESETS, RULES, english: labels.filter((label) => t(label) === label) };
    }""")
    assert words["english"] == []
    assert set(words["RULES"]) == set(rules.games(plugins=False))
    for name, options in words["RULES"].items():
        assert tuple(words["PRESETS"][name]) == rules.presets(name)
        assert set(options) == set(rules.game(name).rules) - {"preset", "points"}, (
            name
        )  # lists of numbers have no field
        for option, value in rules.game(name).rules.items():
            if isinstance(value, str) and option != "preset":
                for choice in options[option]["choices"]:
                    assert rules.game(name, **{option: choice}).rules[option] == choice
                with pytest.raises(ValueError) as refused:
                    rules.game(name, **{option: "nothing"})
                known = set(re.findall(r"[a-z_-]+", str(refused.value)))
                assert set(options[option]["choices"]) <= known


@pytest.mark.parametrize(
    ("language", "wrong", "words"),
    [
        ("en", "0", "Points of a hand: 0 is not within 1 .. 1000000"),
        ("en", "1.5", "Points of a hand: must be an integer"),
        ("zh", "0", "底分\uff1a0 不在 1 到 1000000 之间"),
        ("zh", "1.5", "底分\uff1a须为整数"),
    ],
)
def test_a_rule_that_is_refused_is_named_as_the_page_does(chromium, served, language, wrong, words):
    context = chromium.new_context(locale=language)
    page = context.new_page()
    page.goto(f"{served}/play?game=doudizhu")
    page.locator("input[name=name]").fill("eve")
    page.locator("details:has(.rules) summary").click()
    page.locator("input[name='rule.base']").fill(wrong)
    page.locator("form.setup .act.primary").click()
    assert page.get_by_role("alert").inner_text() == words
    context.close()


def test_a_game_is_played_by_the_rules_that_are_chosen(page, served, site):
    wanted = []
    page.on("request", lambda request: wanted.append(request.post_data_json) if request.method == "POST" else None)
    page.goto(f"{served}/play?game=mahjong")
    page.locator("select[name=preset]").select_option("Flowers, one wall for all")
    page.get_by_text("individual rules").click()
    assert page.get_by_label("with flowers").is_checked()
    assert page.locator("select[name='rule.wall']").input_value() == "shared"
    page.locator("select[name=game]").select_option("othello")
    page.locator("select[name=preset]").select_option("Discs count")
    page.locator("select[name='opponent.0']").select_option("rule-othello")
    page.get_by_text("individual rules").click()
    page.get_by_label("random moves at the start").fill("4")
    page.get_by_label("your name").fill("eve")
    page.get_by_role("button", name="start").click()
    page.wait_for_selector(".board", timeout=60_000)
    assert wanted[0]["rules"] == {"preset": "discs", "random_plies": 4}


def play_cards(page):
    """Dou Dizhu: choose the cards that the hint names, then play them."""
    page.get_by_role("button", name="hint").click()
    page.wait_for_selector(".hint strong")
    advice = page.locator(".hint strong").inner_text()
    if advice == "pass":
        page.get_by_role("button", name="pass").click()
        return
    for rank in advice.split():
        page.locator(f".chooser .card[aria-label='{LABELS.get(rank, rank)}'][aria-pressed=false]").first.click()
    page.locator(".chooser button.primary").first.click()


def play_out(page, game):
    for _ in range(400):
        page.wait_for_selector(".turn-note:has-text('Your turn.'), a:has-text('play again')", timeout=60_000)
        if page.get_by_role("link", name="play again").count():
            return
        ask = page.locator(".board").inner_html()
        if game == "doudizhu":
            play_cards(page)
        else:
            page.locator(CLICKABLE[game]).first.click()
        page.wait_for_function("old => document.querySelector('.board').innerHTML !== old", arg=ask)


def test_who_leaves_can_play_again_at_once_and_the_lobby_plays_their_hand(page, served, site, monkeypatch):
    monkeypatch.setattr(opponents, "MIN_MOVE_MS", 0)
    page.on("dialog", lambda dialog: dialog.accept())
    page.goto(f"{served}/play")
    page.get_by_label("your name").fill("eve")
    page.locator("select[name=game]").select_option("othello")
    page.locator("select[name='opponent.0']").select_option("rule-othello")
    assert page.get_by_label("your name").input_value() == "eve"  # the choice of a game changes nothing else
    page.get_by_role("button", name="start").click()
    page.wait_for_selector(".turn-note:has-text('Your turn.')", timeout=60_000)
    page.get_by_role("button", name="leave").click()
    page.wait_for_selector("text=You left the table.")
    assert page.evaluate("() => fetch('/api/play').then((answer) => answer.json())")["running"] == {}
    page.get_by_role("link", name="review this hand").wait_for(timeout=120_000)
    page.get_by_role("link", name="play again").click()
    page.wait_for_function("() => document.querySelector('select[name=game]')?.value === 'othello'")  # as before
    page.get_by_role("button", name="start").click()
    page.wait_for_selector(".turn-note:has-text('Your turn.')", timeout=60_000)
    (hand,) = [hand for hand in iter_hands(site.store) if hand.end is not None]
    assert hand.end.reason == "normal" and sum(hand.scores) == 0


def test_in_ones_turn_the_board_is_one_tab_away_and_the_clock_in_view(page, served, monkeypatch):
    """The control that was pressed may be gone by then, and the board is higher than the window of a phone."""
    monkeypatch.setattr(opponents, "MIN_MOVE_MS", 0)
    page.set_viewport_size({"width": 360, "height": 500})
    page.goto(f"{served}/play?game=pairing&opponent=rule-pairing")
    page.get_by_label("your name").fill("eve")
    page.get_by_role("button", name="start").click()
    for _ in range(8):
        page.wait_for_selector(".turn-note:has-text('Your turn.')", timeout=60_000)
        page.wait_for_function("() => document.activeElement.closest('.place')")
        page.locator(".seat.own").evaluate("(seat) => seat.scrollIntoView(false)")
        assert page.evaluate("scrollY") > 0 <= page.get_by_role("timer").bounding_box()["y"]
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.closest('.board button') !== null")
        before = page.locator(".board").inner_html()
        page.keyboard.press("Enter")
        page.wait_for_function("old => document.querySelector('.board').innerHTML !== old", arg=before)


@pytest.mark.parametrize("game", PLAYED)
def test_a_whole_hand_by_clicking(page, served, site, game, monkeypatch):
    monkeypatch.setattr(opponents, "MIN_MOVE_MS", 0)
    page.goto(f"{served}/play")
    page.locator("select[name=game]").select_option(game)
    if game == "othello":  # its moves are all of one kind, and ten show it as thirty do
        page.get_by_text("individual rules").click()
        page.get_by_label("random moves at the start").fill("40")
    page.get_by_label("your name").fill("小明")
    for choice in page.locator("select[name^=opponent]").all():
        choice.select_option(PLAYED[game])
    page.get_by_label("A strategy may be trained").check()
    page.get_by_role("button", name="start").click()
    page.wait_for_selector(".board", timeout=60_000)
    play_out(page, game)
    assert page.locator(".turn-note").inner_text() in ("You won.", "You lost.", "A draw.")
    assert page.locator(".board :is(.card, .tile).back").count() == 0  # nothing is hidden any more
    assert page.get_by_role("link", name="clone me").count() == (game != "pairing")  # fm-clone does not play it
    page.get_by_role("link", name="review this hand").click(timeout=60_000)
    page.wait_for_selector(".steps")
    timeline = next(iter_timelines(site.store, iter_hands(site.store)))
    record = timeline.hand.game
    seats = {player["player"]: player["seat"] for player in players_of(record.players)}
    assert record.lobby == LOBBY and timeline.hand.end.reason == "normal" and timeline.hand.away == frozenset()
    lines = join_events([(stretch.seq, stretch.events) for stretch in timeline.events])
    moves = moves_of(site.game(record.game, record.rules), record.seat, lines, of={seats["小明"]})
    assert len(list(moves)) > 1
    assert consent.recorded(site.store)[LOBBY, "小明"].granted
