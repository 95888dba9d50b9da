"""Which hands a query accepts by their players."""

from __future__ import annotations

import json

import pytest

from bothost.store.query import HandQuery

PLAYERS = json.dumps([{"player": "ada", "seat": 0}, {"player": "u-7", "name": "bob", "seat": 1}])


@pytest.mark.parametrize(
    ("query", "accepted"),
    [
        (HandQuery(opponents=("bob",)), True),
        (HandQuery(opponents=("u-7",)), True),
        (HandQuery(opponents=("cyd", "bob")), True),
        (HandQuery(opponents=("ada",)), False),
        (HandQuery(players=("ada",)), True),
        (HandQuery(players=("ada",), opponents=("cyd",)), False),
        (HandQuery(), True),
    ],
)
def test_an_opponent_is_somebody_else_at_the_table(query: HandQuery, accepted: bool) -> None:
    assert query.accepts("ada", 0, PLAYERS) is accepted


@pytest.mark.parametrize("name", [{"name": "ada"}, {"player": "ada"}])
def test_an_opponent_may_have_the_name_of_our_account(name: dict[str, str]) -> None:
    other = {"player": "u-7", "seat": 1, **name}
    query = HandQuery(opponents=("ada",))
    assert query.accepts("ada", 0, json.dumps([{"player": "ada", "seat": 0}, other]))
    assert query.accepts("ada", 0, json.dumps([other])), "the lobby does not list us"
    assert not query.accepts("ada", 1, json.dumps([other])), "this is us"


def test_where_the_lobby_reports_no_seats_our_account_is_no_opponent() -> None:
    sitting = json.dumps([{"player": "ada"}, {"player": "u-7", "name": "bob"}])
    assert HandQuery(opponents=("bob",)).accepts("ada", 0, sitting)
    assert not HandQuery(opponents=("ada",)).accepts("ada", 0, sitting)
