"""The search player: what it reports, that it replays, and that more playouts play better."""

from __future__ import annotations

import _thread
import math
import threading
import time

import msgspec
import pytest

from bothost import rules
from bothost.arena.lineup import lineups
from bothost.arena.match import play_deals
from bothost.strategy import Budget, NoOptions, Table
from bothost_baselines import search
from bothost_baselines.random import Random
from bothost_baselines.search import Options, SearchPairing, SearchPlayer

GAME = rules.game("pairing")
NO_CLOCK = Budget(deadline=math.inf)


def player(seed: int = 1, **options: object) -> SearchPlayer:
    strategy = SearchPairing(Options(**options))  # type: ignore[arg-type]
    return strategy.player(Table(lobby="test", table="t", game=GAME, seat=0, seed=seed))


def first_view() -> rules.View:
    state = GAME.new_state(seed=3)
    return state.view(state.to_act[0])


def test_a_decision_tells_how_often_each_action_was_tried() -> None:
    view = first_view()
    decision = player(iterations=200).decide(view, view.legal(), NO_CLOCK)
    assert decision.stats["iterations"] == 200
    assert decision.policy is not None and sum(decision.policy) == pytest.approx(1.0)
    assert decision.policy[view.legal().tolist().index(decision.action)] == max(decision.policy)
    assert decision.value is not None and -1.0 <= decision.value <= 1.0


def test_the_same_table_and_view_give_the_same_decision() -> None:
    view = first_view()
    one, two = (player(seed=5, iterations=100).decide(view, view.legal(), NO_CLOCK) for _ in range(2))
    assert one == two


def test_a_deadline_ends_the_search() -> None:
    view = first_view()
    start = time.monotonic()
    decision = player(iterations=10**8).decide(view, view.legal(), Budget(deadline=start + 0.05))
    assert time.monotonic() - start < 2.0
    assert 0 < decision.stats["iterations"] < 10**8


def test_ctrl_c_ends_a_search_without_a_clock() -> None:
    view = first_view()
    start = time.monotonic()
    threading.Timer(0.1, _thread.interrupt_main).start()
    with pytest.raises(KeyboardInterrupt):
        player(iterations=10**6).decide(view, view.legal(), NO_CLOCK)
    assert time.monotonic() - start < 5.0


def test_time_is_left_for_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A decision that comes after its deadline is not played."""
    given: list[float] = []

    class Tree:
        def __init__(self, view: rules.View, *args: object, **options: object) -> None:
            self.tree = rules.search(view, 1)

        def run(self, iterations: int, ms: float) -> None:
            given.append(ms)
            self.tree.run(1)

        def __getattr__(self, name: str) -> object:
            return getattr(self.tree, name)

    monkeypatch.setattr(search, "search", Tree)
    view = first_view()
    player().decide(view, view.legal(), Budget(deadline=time.monotonic() + 1000.0))
    assert 0.0 < given[0] < 900_000.0


def test_without_any_time_it_plays_the_first_legal_action() -> None:
    view = first_view()
    decision = player().decide(view, view.legal(), Budget(deadline=time.monotonic() - 1.0))
    assert decision.action == view.legal()[0]


def test_it_beats_random_play_by_far() -> None:
    strategies = [SearchPairing(Options(iterations=60, utility="points")), Random(NoOptions())]
    deals = play_deals(GAME, strategies, lineups(GAME, 2), range(12), seed=1)
    leads = [hand.returns[0] * (1 if i == 0 else -1) for deal in deals for i, hand in enumerate(deal.hands)]
    assert sum(leads) / len(leads) > 5.0


@pytest.mark.parametrize("wrong", [{"iterations": 0}, {"exploration": -1.0}, {"points_scale": 0.0}])
def test_options_are_checked(wrong: dict[str, float]) -> None:
    with pytest.raises(msgspec.ValidationError, match=next(iter(wrong))):
        msgspec.convert(wrong, Options)
