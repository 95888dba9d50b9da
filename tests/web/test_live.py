"""Live tables: what each kind of viewer receives, frame by frame."""

import json
import time

import pytest

from bothost.web.live import Live, line, seen
from bothost.web.viewers import Viewer


def now_us():
    """Older hands are not shown as live."""
    return time.time_ns() // 1000 - 1_000_000


@pytest.mark.parametrize(
    ("viewer", "knows"),
    [
        (Viewer(kind="operator"), True),
        (Viewer(kind="operator", plays_at=frozenset({"the table"})), False),
        (Viewer(kind="spectator"), False),
        (Viewer(kind="player", player="eve"), False),
    ],
    ids=["operator", "operator who plays there", "spectator", "player"],
)
def test_no_frame_holds_a_card_that_its_viewer_may_not_see(site, logged, played, viewer, knows):
    rows = played("doudizhu", lambda number, legal: legal[number % len(legal)], started_us=now_us())
    rows[0].table = "the table"
    logged(rows[:1])
    live, frames = Live(site), []
    for row in rows[1:-1]:
        logged([row])
        live._read()
        (hand,) = live.hands.values()
        if hand.view is None or hand.view.terminal:
            break  # at the end all hands are shown
        own = hand.view.to_json()["hand"]
        frames.append((own, json.dumps([seen(hand, viewer, {}), line(hand)])))
    assert len(frames) > 10
    for own, frame in frames:
        assert (f'"hand": "{own}"' in frame) is knows
        assert knows or len(own) < 3 or own not in frame


def test_a_table_says_when_its_last_move_was(site, logged, played):
    rows = played("othello", lambda number, legal: legal[0], started_us=now_us())
    logged(rows[:-1])
    live = Live(site)
    assert live._read() and not live._read()
    (hand,) = live.hands.values()
    assert line(hand)["moved_us"] > rows[0].started_us and not line(hand)["silent"]
    logged(rows[-1:])
    assert live._read() and not live.hands
