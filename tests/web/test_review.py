"""Reviews: another strategy's opinion of a logged hand."""

import json
import re
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from bothost import Budget, Decision, Table, rules
from bothost.errors import PluginError, UsageError
from bothost.plugins import Plugins
from bothost.store import DecisionRecord
from bothost.store.reader import iter_hands, iter_timelines
from bothost.testing import misbehaving
from bothost.web import review
from bothost.web.review import (
    LIKELIER,
    OF_PROBABILITY,
    SEVERITIES,
    THRESHOLDS,
    limits_of,
    opinion,
    questions,
    reviewed,
    severity,
    value_lost,
)
from bothost.web.site import Site
from bothost.web.viewers import Viewer
from bothost_baselines.random import FirstLegal


def name_of(rows):
    """What the hand is called in addresses."""
    return f"{rows[0].game_id.hex()}-0"


PLANTED = {6: 1, 14: 2, 20: 3}
"""Number of the decision → place of the played action: an inaccuracy, a mistake and a blunder."""


def with_mistakes(number, legal):
    return legal[min(PLANTED.get(number, 0), len(legal) - 1)]


@pytest.fixture
def rows(logged, played):
    made = played("othello", with_mistakes)
    logged(made)
    return made


def timeline(site):
    return next(iter_timelines(site.store, iter_hands(site.store)))


def judged(site, **asked):
    messages = list(reviewed(site, timeline(site), asked.get("address", "rating"), asked.get("seat")))
    assert messages[-1]["over"]
    return [message["judged"] for message in messages if "judged" in message]


def test_the_three_planted_mistakes_are_found_and_no_other(site, rows):
    bad = [found for found in judged(site) if found["severity"]]
    assert {found["position"]: found["severity"] for found in bad} == dict(zip(PLANTED, SEVERITIES, strict=True))
    assert [found["lost"] for found in bad] == pytest.approx([0.15, 0.25, 0.4])


def test_the_moves_of_other_players_are_reviewed_too(site, rows):
    assert {found["seat"] for found in judged(site)} == {0, 1}
    assert {found["seat"] for found in judged(site, seat=1)} == {1}


@pytest.mark.parametrize("name", ["doudizhu", "mahjong", "othello", "pairing"])
def test_the_questions_are_those_of_the_hand(site, logged, played, name):
    """Each question stands at the position of the replay that its mover sees."""
    logged(played(name, lambda number, legal: legal[number % len(legal)], seed=3))
    game, found = rules.game(name), timeline(site)
    asked = questions(game, found)
    assert len(asked) >= len(found.decisions) > 2
    own = [question for question in asked if question.view.seat == 0]
    assert [question.view.to_bytes() for question in own] == [row.view for row in found.decisions]


async def test_a_reviewer_that_hangs_is_left_behind(site, rows, monkeypatch):
    hanging = Site(site.settings, site.store, Plugins.load(modules=[misbehaving]))
    monkeypatch.setattr(review, "HANGS_S", 0.2)
    with pytest.raises(PluginError, match="misbehaving-hang: it has not answered within"):
        async for _ in review.Reviews(hanging).run(Viewer(kind="spectator"), timeline(site), "misbehaving-hang", None):
            pass


async def test_a_reviewer_in_a_process_of_its_own_reviews_the_whole_hand(site, rows, monkeypatch):
    """Its process ends with the thread that started it."""
    monkeypatch.setattr(FirstLegal, "execution", "process")
    run = review.Reviews(site).run(Viewer(kind="spectator"), timeline(site), "first-legal", None)
    messages = [message async for message in run]
    assert messages[-1]["over"] and len(messages) == messages[-1]["of"] + 2 > 20


async def test_a_viewer_runs_one_review_at_a_time_and_leaves_room_for_others(site, rows):
    reviews, hand, eve = review.Reviews(site), timeline(site), Viewer(kind="spectator")
    running, waiting = (reviews.run(eve, hand, "rating", None) for _ in range(2))
    other = reviews.run(Viewer(kind="spectator"), hand, "rating", None)
    begins = {"of": len(judged(site))}
    assert await anext(running) == begins
    assert await anext(waiting) == {"waits": True}
    assert await anext(other) == begins
    await running.aclose()
    assert await anext(waiting) == begins
    for each in (waiting, other):
        await each.aclose()


def test_only_installed_strategies_may_be_asked(site, rows):
    for address in ("exec:touch /tmp/x", "exec", "rule-mahjong", "nobody", ""):
        with pytest.raises(UsageError):
            list(reviewed(site, timeline(site), address, None))


def test_a_strategy_whose_supports_fails_hides_no_other():
    class Odd(FirstLegal):
        @classmethod
        def supports(cls, game):
            raise RuntimeError("misbehaving as announced")

    plugins = Mock(strategies={"first-legal": FirstLegal, "odd": Odd})
    assert [found["name"] for found in review.reviewers(plugins, rules.game("othello"))] == ["first-legal"]


BREACHES = {
    "crash": "RuntimeError",
    "exit": "SystemExit",
    "panic": "PanicException",
    "player": "RuntimeError",
    "init": "RuntimeError",
    "close": "RuntimeError",
    "illegal": "is illegal",
    "no-decision": "not a Decision",
    "policy": "policy is not finite",
    "dies": "ended with code 1",
}


@pytest.mark.parametrize("how", BREACHES)
def test_a_reviewer_that_breaks_its_contract_is_named(site, rows, how):
    broken = Site(site.settings, site.store, Plugins.load(modules=[misbehaving]))
    with pytest.raises(PluginError, match=f"misbehaving-{how}: .*{BREACHES[how]}"):
        list(reviewed(broken, timeline(site), f"misbehaving-{how}", None))


def test_an_opinion_is_json_whatever_a_strategy_puts_into_it():
    view = rules.game("othello").new_state(0).view(0)
    legal = view.legal()
    stats = {"reason": {"a", "set"}, "candidates": {view.notation(int(legal[0])): [3, 0.5], "b": ["x"], "c": None}}
    found = opinion(Decision(action=int(legal[0]), value=np.float32(0.5), stats=stats), view, legal)
    assert json.loads(json.dumps(found))["value"] == 0.5
    assert [row["visits"] for row in found["actions"]] == [3] + [None] * (len(legal) - 1)


def test_a_hand_is_shown_whatever_its_statistics_are(client, logged, played):
    rows = played("othello", lambda number, legal: legal[0])
    for row in rows:
        if isinstance(row, DecisionRecord):
            row.stats = json.dumps({"candidates": {"d3": ["many", 0.5], "c4": [], "f5": 7}})
    logged(rows)
    assert client.get(f"/api/hands/{name_of(rows)}").json()["decisions"]


def test_a_loss_is_measured_in_values_else_in_probability():
    legal = np.array([3, 5, 9], np.int32)
    assert value_lost(Decision(action=3, values=[1.0, 0.25, 0.0]), legal, 5) == ("value", 0.75)
    assert value_lost(Decision(action=9, policy=[0.25, 0.0, 0.75]), legal, 3) == ("probability", 0.5)
    assert value_lost(Decision(action=9), legal, 3) == (None, None)


def test_a_review_of_pairing_says_how_many_points_each_move_costs(site):
    """At a table, moves that the network rules out get no playouts, and then no move has a value."""
    state = rules.game("pairing").new_state(1)
    view = state.view(state.to_act[0])
    reviewer = review.adviser(site, "phase-ppo")
    table = Table(lobby="w", table="1", game=view.game, seat=view.seat, seed=1)
    found = reviewer.player(table).decide(view, view.legal(), Budget(float("inf")))
    assert value_lost(found, view.legal(), int(view.legal()[0]))[0] == "value"
    reviewer.close()


def test_severities_begin_at_their_thresholds():
    assert [severity(lost, (0.1, 0.2, 0.3)) for lost in (0.0, 0.09, 0.1, 0.2, 0.5)] == [None, None, *SEVERITIES]


def test_thresholds_depend_on_the_game_and_on_what_is_measured():
    assert limits_of("pairing", "value") == THRESHOLDS["pairing"]
    assert limits_of("mahjong", "probability") == OF_PROBABILITY["mahjong"]
    assert limits_of("doudizhu", "probability") == limits_of("nim", "probability") == LIKELIER
    assert limits_of("nim", "value") == (0.1, 0.2, 0.3)


def test_the_thresholds_are_documented():
    text = (Path(__file__).parents[2] / "docs/reference/reviews.md").read_text()
    of_probability = {f"{game}, by probability": limits for game, limits in OF_PROBABILITY.items()}
    for game, limits in {**THRESHOLDS, "probability": LIKELIER, **of_probability}.items():
        (line,) = [line for line in text.splitlines() if line.startswith(f"| {game} |")]
        assert [float(cell) for cell in line.strip("| ").split("|")[2:]] == list(limits)


def test_progress_comes_as_a_stream_and_errors_in_words(client, rows):
    stream = client.get(f"/api/hands/{name_of(rows)}/review?with=rating&seat=0").text
    lines = [json.loads(line[6:]) for line in stream.splitlines() if line.startswith("data: ")]
    assert lines[0]["of"] == lines[-2]["done"] == len(lines) - 2
    refused = client.get(f"/api/hands/{name_of(rows)}/review?with=exec:sh")
    assert refused.status_code == 400 and "exec:sh" in refused.json()["error"]


def test_in_the_browser(page, served, rows):
    """Review a hand, jump between its mistakes, follow a link to a decision, save the hand as one file."""
    name = name_of(rows)
    page.goto(f"{served}/hands")
    page.goto(f"{served}/hand/{name}?at=0")
    page.get_by_label("review with").select_option("rating")
    page.get_by_role("button", name="Review", exact=True).click()
    page.wait_for_selector(".mistakes li:nth-child(3)")
    page.wait_for_selector("text=same move")
    assert page.locator(".mistakes li").count() == 3
    for position in (*PLANTED, 20):
        page.keyboard.press("n")
        page.wait_for_url(f"**/hand/{name}?at={position}")
    page.keyboard.press("p")
    page.wait_for_url("**?at=14")
    assert page.locator(".judgement .severity").inner_text() == "? mistake"
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**?at=15")
    page.go_back()  # a step is no page of its own
    page.wait_for_url("**/hands")
    page.goto(f"{served}/hand/{name}?at=20")
    page.wait_for_selector(".othello")
    assert page.locator(".steps [role=status]").inner_text().startswith("20 / ")


def test_the_seat_that_is_watched_stays_on_the_way_through_the_hand(page, served, rows):
    page.goto(f"{served}/hand/{name_of(rows)}?seat=1")
    page.get_by_role("button", name="next").click()
    page.wait_for_url("**?at=1&seat=1")
    page.reload()
    assert page.get_by_label("seat view").input_value() == "1"
    assert page.locator(".review").get_by_label("player").input_value() == "1"  # whose decisions are reviewed
    page.get_by_label("seat view").select_option("player-0")
    page.wait_for_url("**?at=1")


def test_a_curve_follows_the_theme(canvas, served, rows):
    canvas.emulate_media(color_scheme="light")
    canvas.goto(f"{served}/hand/{name_of(rows)}")
    canvas.get_by_label("review with").select_option("rating")
    canvas.get_by_role("button", name="Review", exact=True).click()
    for scheme, colour in (("light", "#566072"), ("dark", "#a3aebd")):
        canvas.emulate_media(color_scheme=scheme)
        canvas.wait_for_function("(colour) => drawn.at(-1)?.endsWith(colour)", arg=colour)
    canvas.get_by_label("theme").select_option("light")
    canvas.wait_for_function("() => drawn.at(-1).endsWith('#566072')")


def test_a_click_on_the_curve_keeps_the_seat_that_is_watched(page, served, rows):
    page.goto(f"{served}/hand/{name_of(rows)}")
    page.get_by_label("review with").select_option("rating")
    page.get_by_role("button", name="Review", exact=True).click()
    page.wait_for_selector("text=same move")
    page.get_by_label("seat view").select_option("player-1")
    page.wait_for_url("**?at=0&seat=1")
    page.locator(".u-over").click()
    page.wait_for_url(re.compile(r"\?at=[1-9]\d*&seat=1$"))


def test_a_hand_that_was_broken_off_says_so_and_who_was_away(page, served, logged, played):
    *made, end = played("othello", with_mistakes)
    end.reason, end.scores, end.away = "aborted", None, "[1]"
    logged([*made[:9], end])
    page.goto(f"{served}/hand/{name_of(made)}")
    page.wait_for_selector(".panel:has(h2:text-is('Result')) >> text=aborted")
    page.wait_for_selector("text=player-1: away. The lobby may have moved for them.")


def test_hands_that_were_never_revealed_are_not_offered(page, served, logged, played):
    *made, _, end = played("doudizhu", with_mistakes)  # without the events in which the hands are revealed
    logged([*made, end])
    page.goto(f"{served}/hand/{name_of(made)}")
    page.wait_for_selector(".doudizhu")
    assert page.get_by_role("button", name="all hands").is_disabled()


def test_a_reviewer_that_rates_nothing_lists_the_moves_that_differ(page, served, rows, tmp_path):
    page.goto(f"{served}/hand/{name_of(rows)}?at=0")
    page.get_by_label("review with").select_option("first-legal")
    page.get_by_role("button", name="Review", exact=True).click()
    page.wait_for_selector("text=same move")
    listed = page.locator(".mistakes li a")
    assert [link.get_attribute("href") for link in listed.all()] == [f"?at={position}" for position in PLANTED]
    assert page.locator(".review .severity").count() == 0
    listed.last.click()
    page.wait_for_selector(".judgement >> text=played: ")
    assert re.search(r"actions\. Legal moves: \d+$", page.locator(".judgement .dim").last.inner_text())
    with page.expect_download() as download:
        page.get_by_role("button", name="save as file").click()
    file = tmp_path / "hand.html"
    download.value.save_as(file)
    page.goto(file.as_uri())
    assert page.locator("h1 .about").count() == 1  # on a phone a line of its own
    page.get_by_role("button", name=re.compile(rf"^\S.* → .+ · {min(PLANTED)}$")).click()
    assert page.locator("#where").inner_text().startswith(f"{min(PLANTED)} / ")


def test_a_mistake_that_is_chosen_brings_the_board_into_view(page, served, rows):
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{served}/hand/{name_of(rows)}")
    page.get_by_label("review with").select_option("rating")
    page.get_by_role("button", name="Review", exact=True).click()
    last = page.locator(".mistakes li:nth-child(3) a")
    last.click()
    page.wait_for_selector(".mistakes li:nth-child(3) [aria-current]")
    board = page.locator(".board").bounding_box()
    assert board["y"] > -1 and board["y"] + board["height"] < 845


def test_with_large_text_the_candidates_fit_a_phone(page, served):
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto(f"{served}/")
    page.evaluate("""async () => {
        const [{ render, html }, { Bars }, { t }] = await Promise.all(
            ["html", "candidates", "i18n"].map((name) => import(`/static/${name}.js`)));
        const actions = [{ action: 1, notation: "10 J Q K A", probability: 0.5, value: -12.5, visits: 7915 }];
        document.documentElement.style.fontSize = "200%";
        render(html`<${Bars} actions=${actions} describe=${(notation) => notation} t=${t} />`, document.body);
    }""")
    assert page.locator(".candidates .figure").count() == 3
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_a_saved_hand_needs_no_server(page, served, rows, tmp_path):
    page.goto(f"{served}/hand/{name_of(rows)}?at=4")
    with page.expect_download() as download:
        page.get_by_role("button", name="save as file").click()
    file = tmp_path / "hand.html"
    download.value.save_as(file)
    assert not re.search(r"""(src|href)=["']?(/|https?:)""", file.read_text())
    page.goto(file.as_uri())
    assert page.locator(".position:visible").count() == 1
    assert page.locator("#where").inner_text().startswith("4 / ")
    page.keyboard.press("ArrowRight")
    assert page.locator("#where").inner_text().startswith("5 / ")
