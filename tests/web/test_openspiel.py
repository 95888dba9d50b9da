"""OpenSpiel's games in the browser: a table that spectators follow, and a hand that a person plays and reviews."""

import json

import pytest

from bothost.host.recorder import now_us
from bothost.store.query import HandQuery
from bothost.store.reader import iter_hands
from bothost.web import opponents
from bothost.web.hands import name_of
from bothost.web.live import Live, line, seen
from bothost.web.viewers import Viewer

pytest.importorskip("pyspiel")
GAMES = ("openspiel:connect_four", "openspiel:go(board_size=9)")


@pytest.mark.parametrize("game", GAMES)
def test_spectators_see_the_position_of_a_live_table(site, logged, played, game):
    rows = played(game, lambda number, legal: legal[number % len(legal)], started_us=now_us())
    logged(rows[:12])
    live = Live(site)
    live.read()
    (hand,) = live.hands.values()
    shown = seen(hand, Viewer(kind="spectator"))
    assert shown["view"]["position"] == hand.view.to_json()["position"] != ""
    assert line(hand, knows_seat=False)["game"] == game and json.dumps(shown)


def test_a_live_table_of_connect_four(page, served, logged, played):
    rows = played("openspiel:connect_four", lambda number, legal: legal[number % len(legal)], started_us=now_us())
    logged(rows[:8])
    page.goto(f"{served}/")
    page.get_by_role("link", name="Connect four (OpenSpiel)").first.wait_for()
    page.locator(f"a[href='/table/{rows[0].game_id.hex()}-0']").first.click()
    page.wait_for_selector(".board.generic pre")
    assert "x" in page.locator(".board.generic pre").inner_text()


def test_a_live_table_of_chess_shows_the_board_not_only_its_fen(page, served, logged, played):
    rows = played("openspiel:chess", lambda number, legal: legal[0], started_us=now_us())
    logged(rows[:2])
    page.goto(f"{served}/table/{rows[0].game_id.hex()}-0")
    page.wait_for_selector(".board.generic pre")
    shown = page.locator(".board.generic pre").inner_text().splitlines()
    assert shown[0] == "8 r n b q k b n r" and shown[4] == "4 . . . . . . . ." and shown[8] == "  a b c d e f g h"


def test_the_board_lists_the_moves_and_marks_who_has_the_turn(page, served, logged, played):
    rows = played("openspiel:backgammon", lambda number, legal: legal[0], seed=1)
    logged(rows)
    page.goto(f"{served}/hand/{rows[0].game_id.hex()}-0?at=3")
    page.wait_for_selector(".board.generic tr:has-text('moves')")
    (position,) = page.locator(".steps [role=status]").all_inner_texts()
    moves = page.locator(".board.generic tr:has-text('moves') td").inner_text().split(" · ")
    assert len(moves) == 3 and position.endswith(f": {moves[-1]}") and not any("_" in move for move in moves)
    assert page.locator(".board.generic .turn").count() == 1
    assert page.locator(".board.generic th").all_inner_texts() == ["Position", "Moves"]


def test_moves_are_shown_in_the_words_of_their_position(page, served, logged, played):
    """OpenSpiel's numbers of actions mean nothing to people."""
    rows = played("openspiel:tic_tac_toe", lambda number, legal: legal[0])
    logged(rows)
    page.goto(f"{served}/hand/{rows[0].game_id.hex()}-0?at=2")
    page.wait_for_selector(".steps [role=status]:has-text('player-1: o(0,1)')")
    page.wait_for_selector("aside:has-text('played: x(0,2)')")
    page.get_by_label("review with").select_option("rating")
    page.locator(".review button").click()
    page.wait_for_selector(".judgement .candidates li:has-text('x(2,2)')")


def test_a_live_table_of_chess_fits_a_phone(page, served, logged, played):
    rows = played("openspiel:chess", lambda number, legal: legal[0], started_us=now_us())
    logged(rows[:2])
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{served}/table/{rows[0].game_id.hex()}-0")
    page.wait_for_selector(".board.generic pre")
    assert page.locator(".board .scroll").evaluate(
        "(part) => part.scrollWidth <= part.clientWidth && part.clientWidth < 390"
    )


def test_a_hand_of_connect_four_by_clicking_and_its_review(page, served, site, monkeypatch):
    monkeypatch.setattr(opponents, "MIN_MOVE_MS", 0)
    page.goto(f"{served}/play")
    page.locator("select[name=game]").select_option(label="Connect four (OpenSpiel)")
    page.get_by_label("your name").fill("eve")
    page.locator("select[name='opponent.0']").select_option("openspiel-random")
    page.get_by_role("button", name="start").click()
    review = page.get_by_role("link", name="review this hand")
    move = page.locator(".board.generic .actions button")
    advisers = page.get_by_label("Strategy", exact=True)
    advisers.get_by_text("openspiel-mcts").wait_for(state="attached", timeout=60_000)
    assert advisers.input_value() == "openspiel-mcts"
    for _ in range(60):
        review.or_(move.first).first.wait_for(timeout=60_000)
        if review.count():
            break
        before = page.locator(".board.generic pre").inner_text()
        move.first.click()
        page.wait_for_function(
            "(before) => document.querySelector('.board.generic pre')?.innerText !== before || "
            "[...document.querySelectorAll('a')].some((link) => link.innerText === 'review this hand')",
            arg=before,
        )
    review.click(timeout=60_000)
    page.wait_for_selector(".steps")
    page.keyboard.press("End")
    page.wait_for_selector(".board.generic pre")
    (hand, *_) = iter_hands(site.store, HandQuery(games=("openspiel:connect_four",), scored=True))
    assert sum(hand.scores) == 0
    page.goto(f"{served}/hands?games=openspiel%3Aconnect_four")
    page.locator(f"a[href*='{name_of(hand)}']").first.wait_for(timeout=30_000)
    assert page.get_by_label("Game", exact=True).input_value() == "Connect four (OpenSpiel)"
    with page.expect_response("**/api/hands?games=openspiel%3Aconnect_four*"):
        page.get_by_role("button", name="search").click()
    assert page.url.endswith("/hands?games=openspiel%3Aconnect_four")
