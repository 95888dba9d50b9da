"""Legal actions of many views at once."""

import numpy as np
import pytest

from bothost import rules
from bothost.testing.nim import Nim


def test_many_views_equal_each_alone():
    views = []
    for name in ("doudizhu", "othello", "claims"):
        state = rules.game(name).new_state(3)
        views += [state.view(seat) for seat in range(state.game.num_seats)]
    ids, offsets = rules.legal_many(views)
    assert ids.dtype == np.int32
    assert offsets.dtype == np.int64
    for i, view in enumerate(views):
        assert ids[offsets[i] : offsets[i + 1]].tolist() == view.legal().tolist()
    assert rules.legal_many([])[1].tolist() == [0]


def test_plain_python_views_are_taken_too():
    state = Nim().new_state(1)
    ids, offsets = rules.legal_many([state.view(0), state.view(1), rules.game("othello").new_state(0).view(0)])
    assert offsets.tolist() == [0, 3, 3, 7]
    assert ids[:3].tolist() == [0, 1, 2]


def test_other_objects_are_refused():
    with pytest.raises((TypeError, AttributeError)):
        rules.legal_many([1])
