"""Models of players: the native network against the encoder's blocks in NumPy, and what a search makes of one."""

import numpy as np
import pytest

from bothost import rules
from bothost.rules import doudizhu

GAME = rules.game("doudizhu")
SHAPES = {"position": (195, 32), "bias": (32,), "move": (141, 32), "output": (32,), "linear": (141,)}


def parameters(seed: int, scale: float = 0.4) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {name: rng.normal(0, scale, shape).astype(np.float32) for name, shape in SHAPES.items()}


def by_blocks(model: dict[str, np.ndarray], view: rules.View) -> np.ndarray:
    position = np.concatenate([view.encode("compact")[:162], view.encode("situation")])
    moves = view.encode_actions("move_analysis", view.legal())[:, :141]
    hidden = np.maximum(position @ model["position"] + model["bias"] + moves @ model["move"], 0)
    logits = (hidden @ model["output"] + moves @ model["linear"]).astype(np.float64)
    weights = np.exp(logits - logits.max())
    chances: np.ndarray = weights / weights.sum()
    return chances


@pytest.mark.parametrize("preset", ["rlcard", "bidding", "douzero", "botzone"])
def test_probabilities_are_those_of_the_encoders_blocks(preset: str) -> None:
    game, rng = rules.game("doudizhu", preset=preset), np.random.default_rng(1)
    for hand in range(4):
        numbers = parameters(hand)
        model, state = doudizhu.PlayerModel(**numbers), game.new_state(hand)
        while not state.terminal:
            view = state.view(state.to_act[0])
            if view.phase == "bid":
                with pytest.raises(ValueError, match="plays, and no calls"):
                    model.probabilities(view)
            else:
                np.testing.assert_allclose(model.probabilities(view), by_blocks(numbers, view), atol=1e-5)
            state.apply(view.seat, int(rng.choice(view.legal())))


def test_the_situation_tells_roles_and_hand_counts() -> None:
    hands = ["33334444BR2222555", "66777788889999TTT", "TJJJJQQQQKKKKAAAA"]
    state = GAME.state_from_deal({"hands": hands, "bottom": "566", "first": 0})

    def cells() -> list[int]:
        return np.flatnonzero(state.view(state.to_act[0]).encode("situation")).tolist()

    assert cells() == [0, 9 + 5, 27 + 5]  # the landlord leads, all hold more than 12 cards
    for play in ("3333", "pass", "pass", "4444", "pass", "pass", "BR"):
        state.apply(state.to_act[0], GAME.parse(play))
    assert cells() == [3 + 1, 9 + 4, 15 + 5, 21 + 4, 27 + 5]  # the next seat follows the landlord, who has 10 cards
    for play in ("pass", "pass", "2222", "pass", "pass", "55566"):
        state.apply(state.to_act[0], GAME.parse(play))
    assert cells() == [3 + 1, 9 + 0, 15 + 5, 21 + 0, 27 + 5]  # who has one card left now


@pytest.mark.parametrize("wrong", ["shape", "nan", "type", "missing"])
def test_what_is_no_model_is_refused(wrong: str) -> None:
    numbers = parameters(0)
    if wrong == "shape":
        numbers["move"] = numbers["move"][:140]
    elif wrong == "nan":
        numbers["output"][3] = np.nan
    elif wrong == "type":
        numbers["bias"] = "zeros"  # type: ignore[assignment]
    else:
        del numbers["linear"]
    with pytest.raises((ValueError, TypeError)):
        doudizhu.PlayerModel(**numbers)


def played_by(model: doudizhu.PlayerModel, hand: int, moves: int) -> rules.State:
    """A hand after so many moves that all seats drew from the model, or a later one if that ended before."""
    rng, state = np.random.default_rng(hand), GAME.new_state(hand)
    for _ in range(moves):
        view = state.view(state.to_act[0])
        chances = model.probabilities(view).astype(np.float64)
        state.apply(view.seat, int(rng.choice(view.legal(), p=chances / chances.sum())))
        if state.terminal:
            return played_by(model, hand + 1000, moves)
    return state


def test_a_model_explains_the_play_of_its_own_players_better_than_the_rules_do() -> None:
    """Its players have strange tastes: the rule player's preferences tell little about their hands."""
    model = doudizhu.PlayerModel(**parameters(5, scale=0.6))

    def ahead(state: rules.State, players: doudizhu.PlayerModel | None) -> float:
        """The log-likelihood of the true hands, less that of the mean sample."""
        view = state.view(state.to_act[0])
        samples = [view.sample_state(i) for i in range(60)]
        true, *others = (doudizhu.log_likelihood(view, deal, players=players) for deal in [state, *samples])
        return float(true - np.log(np.exp(others).mean()))

    hands = [played_by(model, hand, 14) for hand in range(30)]
    with_model, without = ([ahead(state, players) for state in hands] for players in (model, None))
    assert np.mean(with_model) > 1.0
    assert np.mean(np.array(with_model) - without) > 1.0


def test_a_search_counts_on_such_players() -> None:
    """It is a function of seed and model, and another model gives other values."""
    view = played_by(doudizhu.PlayerModel(**parameters(1)), 0, 8)
    root = view.view(view.to_act[0])
    options = {"playout": "rule", "others": "policy", "belief": 200}

    def found(players: doudizhu.PlayerModel | None) -> list[tuple[int, int, float]]:
        search = rules.search(root, 3, players, **options)
        search.run(iterations=300)
        return search.root_actions

    first, second = (doudizhu.PlayerModel(**parameters(seed)) for seed in (1, 2))
    assert found(first) == found(doudizhu.PlayerModel(**parameters(1)))
    assert found(first) != found(second)
    assert found(first) != found(None)


def test_a_model_of_another_game_is_refused() -> None:
    othello = rules.game("othello").new_state(0)
    with pytest.raises(ValueError, match="another game"):
        rules.search(othello.view(0), 0, doudizhu.PlayerModel(**parameters(0)))
