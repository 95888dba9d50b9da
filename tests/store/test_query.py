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
    assert query.accepts("ada", PLAYERS) is accepted
