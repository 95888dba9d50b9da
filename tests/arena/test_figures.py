import pytest

from bothost.arena.figures import doudizhu_figures, mahjong_figures, settlement
from bothost.arena.match import DealResult, HandResult


def hand(returns, final=None, contestants=2):
    return HandResult(
        returns=tuple(map(float, returns)),
        final=final or {},
        decisions=(10,) * contestants,
        seconds=(0.1,) * contestants,
        illegal=(0,) * contestants,
    )


@pytest.mark.parametrize(
    ("returns", "expected"),
    [
        ((54, -18, -18, -18), (0, None, 10)),
        ((-8, -8, 32, -16), (2, 3, 8)),
        ((0, 0, 0, 0), None),
        ((-30, 10, 10, 10), None),
    ],
)
def test_the_scores_of_a_mahjong_hand_tell_how_it_ended(returns, expected):
    assert settlement(returns) == expected


def test_mahjong_figures_are_per_agent_whatever_the_seat():
    seats = [(0, 1, 2, 3), (1, 2, 3, 0), (2, 3, 0, 1), (3, 0, 1, 2)]
    # A wins 8 fan off whoever sits after it, in every seat; the last deal is drawn.
    deal = DealResult(
        0,
        tuple(hand([32 if who == 0 else -16 if who == 1 else -8 for who in lineup], contestants=4) for lineup in seats),
    )
    drawn = DealResult(1, tuple(hand([0, 0, 0, 0], contestants=4) for _ in seats))
    agents = mahjong_figures([deal, drawn], seats)["agents"]
    assert agents["A"]["score"] == 16
    assert agents["A"]["win_rate"] == 0.5
    assert agents["A"]["fan_per_win"] == 8
    assert agents["B"]["deal_in_rate"] == 0.5
    assert agents["C"]["deal_in_rate"] == 0
    assert agents["D"]["fan_per_win"] is None
    assert sum(agent["score"] for agent in agents.values()) == 0


def test_dou_dizhu_counts_a_as_landlord_and_as_peasants_apart():
    seats = [(0, 1, 1), (1, 0, 0)]
    landlord = {"landlord": 0}
    deals = [
        DealResult(0, (hand([2, -1, -1], landlord), hand([2, -1, -1], landlord))),  # the landlord wins both
        DealResult(1, (hand([4, -2, -2], landlord), hand([-2, 1, 1], landlord))),  # A wins both
    ]
    figures = doudizhu_figures(deals, seats)
    assert figures["landlord_wp"] == 1.0
    assert figures["peasant_wp"] == 0.5
    assert figures["wp"] == 0.75
    assert figures["adp"] == pytest.approx(((2 - 2) / 2 + (4 + 2) / 2) / 2)
    assert "agents" not in figures


def test_three_contestants_at_dou_dizhu_have_figures_each():
    seats = [(0, 1, 2), (1, 2, 0), (2, 0, 1)]
    # The landlord has seat 0. A wins as landlord; B loses as landlord; C wins as landlord.
    hands = (hand([2, -1, -1], {"landlord": 0}, 3), hand([-2, 1, 1], {"landlord": 0}, 3))
    figures = doudizhu_figures([DealResult(0, (*hands, hands[0]))], seats)
    agents = figures["agents"]
    assert [agents[name]["score"] for name in "ABC"] == [
        pytest.approx(2 / 3),
        pytest.approx(-4 / 3),
        pytest.approx(2 / 3),
    ]
    assert [agents[name]["win_rate"] for name in "ABC"] == pytest.approx([2 / 3, 0, 2 / 3])
    assert [agents[name]["landlord_wp"] for name in "ABC"] == [1, 0, 1]
    assert [agents[name]["peasant_wp"] for name in "ABC"] == [0.5, 0, 0.5]
    assert figures["wp"] == pytest.approx(agents["A"]["win_rate"])
    assert set(figures["ms_per_move"]) == {"A", "B", "C"}
