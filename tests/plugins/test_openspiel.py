"""OpenSpiel's games keep every law of games, their names are checked, and its bots play them."""

import pickle
import time
from unittest.mock import Mock

import pytest

import bothost_openspiel
from bothost import Budget, Table, rules
from bothost.errors import ConfigError, UsageError
from bothost.plugins import Plugins
from bothost.rules import GameFactory, register_game
from bothost.testing.check_game import check_game
from bothost.testing.check_strategy import check_strategy

pytest.importorskip("pyspiel")

QUICK = ["breakthrough", "checkers", "connect_four", "go(board_size=9)", "havannah", "hex", "mancala", "tic_tac_toe"]
SLOW = ["backgammon", "chess", "y"]
MORE = ["amazons", "clobber", "dots_and_boxes", "gomoku", "nine_mens_morris", "oware", "pentago", "pig"]


@pytest.fixture(autouse=True)
def plugins():
    return Plugins.load(entry_points=False, modules=[bothost_openspiel])


@pytest.mark.parametrize("name", [name.replace("havannah", "havannah(board_size=4)") for name in QUICK])
def test_games_keep_the_laws(name):
    assert check_game(rules.game(f"openspiel:{name}"), n=1) == []


def test_games_of_more_seats_keep_the_laws():
    game = rules.game("openspiel:pig(horizon=60,players=3,winscore=20)")
    assert game.num_seats == 3
    assert check_game(game, n=1) == []


def test_chance_keeps_the_laws():
    """Pig is all dice."""
    assert check_game(rules.game("openspiel:pig(horizon=100,winscore=20)"), n=3) == []


@pytest.mark.long
@pytest.mark.parametrize("name", [*QUICK, *SLOW, *MORE])
def test_more_hands_of_more_games_keep_the_laws(name):
    assert check_game(rules.game(f"openspiel:{name}"), n=5, seed=100) == []


def test_every_listed_game_can_be_made():
    listed = [name for name in rules.games() if name.startswith("openspiel:")]
    assert sorted(listed) == sorted(f"openspiel:{name}" for name in [*QUICK, *SLOW])
    for name in listed:
        game = rules.game(name)
        assert game.name == name
        assert rules.game(game.name, **game.rules) == game == pickle.loads(pickle.dumps(game))
        assert rules.presets(name) == ("default",)


def test_two_names_are_two_games():
    assert rules.game("openspiel:go(board_size=9)") != rules.game("openspiel:go(board_size=13)")
    assert rules.game("openspiel:go(board_size=13)").num_actions == 170


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "is not a valid name"),
        ("../../etc/passwd", "is not a valid name"),
        ("chess\n", "is not a valid name"),
        ("chess()", "is not the canonical name"),
        ("go(board_size=9", "is not a valid name"),
        ("misere(game=chess())", "is not a valid name"),
        ("efg_game(filename=/etc/passwd)", "is not a valid name"),
        ("go(" + ",".join(["board_size=9"] * 20) + ")", "is not a valid name"),
        ("efg_game", "cannot be played here"),
        ("chess2", "no game 'chess2'"),
        ("kuhn_poker", "hides information"),
        ("goofspiel", "act at the same time|hides information"),
        ("2048", "fewer than two seats"),
        ("go(boardsize=9)", "no parameter 'boardsize'"),
        ("go(board_size=9,board_size=9)", "given twice"),
        ("go(komi=5.5,board_size=9)", "is not the canonical name"),
        ("go(board_size=1)", "it must be within 2 .. 38"),
        ("go(board_size=30)", "OpenSpiel refuses"),
        ("hive(board_size=32)", "OpenSpiel refuses"),
        ("go(board_size=9.5)", "invalid literal"),
        ("go(komi=nan)", "it must be within -1000 .. 1000"),
        ("hex(board_size=100000)", "it must be within 2 .. 32"),
        ("gomoku(dims=4)", "it must be 2"),
        ("chess(chess960=yes)", "True or False"),
        ("backgammon(scoring_type=../x)", "is not a valid name"),
    ],
)
def test_names_that_are_refused(name, message):
    with pytest.raises(UsageError, match=message):
        rules.game(f"openspiel:{name}")


def test_a_game_without_a_family_has_no_members():
    with pytest.raises(UsageError, match="no game is called 'othello:big'"):
        rules.game("othello:big")
    members = ("letters:a", "letters:upper(n=3)")
    made = Mock()
    made.name = "letters:b"  # an argument would name the mock
    register_game(GameFactory("letters:", lambda letter: made, members=members))
    try:
        assert rules.game("letters:b") is made
        assert "letters:a" in rules.games()
        assert "letters:" not in rules.games()
        with pytest.raises(UsageError, match="no game is called 'letters'"):
            rules.game("letters")
        with pytest.raises(UsageError) as caught:
            rules.game("upper")
        assert caught.value.advice == "did you mean 'letters:upper(n=3)'?"
    finally:
        rules.forget_game("letters:")


def test_options_are_part_of_the_name():
    with pytest.raises(ValueError, match="takes no options"):
        rules.game("openspiel:chess", chess960=True)


def test_labels_are_the_words_of_openspiel():
    state = rules.game("openspiel:chess").new_state(1)
    (white,) = state.to_act
    view = state.view(white)
    labels = view.to_json()["labels"]
    assert len(labels) == 20
    assert "rnbqkbnr" in view.to_json()["position"]
    opening = view.parse(next(notation for notation, label in labels.items() if label == "e4"))
    state.apply(white, opening)
    assert state.events(0)[-1] == f"play {white} {opening} e4"
    assert state.view(white).to_json()["labels"] == {}


def test_no_view_knows_the_dice_to_come():
    game = rules.game("openspiel:backgammon")
    first, second = game.new_state(123456789), game.new_state(2)
    again = game.state_from_deal({"seed": second.deal["seed"], "chance": [a for s, a, _ in first.history if s < 0]})
    assert again.view(0).to_bytes() == first.view(0).to_bytes()
    assert str(first.deal["seed"]) not in str(first.view(0).to_json())
    ends = {tuple(sampled_rolls(first.view(0), seed)) for seed in range(5)}
    assert len(ends) > 1


def sampled_rolls(view, seed):
    state = view.sample_state(seed)
    for _ in range(6):
        state.apply(state.to_act[0], int(state.legal(state.to_act[0])[0]))
    return [action for seat, action, _ in state.history if seat < 0]


@pytest.mark.parametrize("address", ["openspiel-random", "openspiel-mcts"])
def test_bots_conform(address, plugins):
    options = {"simulations": 20} if address == "openspiel-mcts" else {}
    names = ["openspiel:tic_tac_toe", "openspiel:go(board_size=5)"]
    check_strategy(address, games=names, hands=5, options=options, plugins=plugins).require()


@pytest.mark.parametrize("address", ["openspiel-random", "openspiel-mcts"])
def test_what_the_lobby_has_refused_is_not_chosen_again(address, plugins):
    game = rules.game("openspiel:tic_tac_toe")
    view = game.new_state(0).view(0)
    player = plugins.resolve(address).make().player(Table(lobby="test", table="1", game=game, seat=0, seed=1))
    for action in view.legal():
        assert player.decide(view, view.legal()[action : action + 1], Budget(time.monotonic() + 1.0)).action == action


def test_bots_play_no_other_games(plugins):
    strategy = plugins.resolve("openspiel-mcts").make()
    assert strategy.supports(rules.game("openspiel:hex"))
    assert not strategy.supports(rules.game("othello"))


def test_search_wins_where_a_move_wins(plugins):
    """Three columns of tic-tac-toe: 0 1 . / 3 4 . ; seat 0 completes its row with 2."""
    game = rules.game("openspiel:tic_tac_toe")
    view = game.replay({}, [(0, 0), (1, 3), (0, 1), (1, 4)]).view(0)
    strategy = plugins.resolve("openspiel-mcts", {"simulations": 200}).make()
    player = strategy.player(Table(lobby="test", table="1", game=game, seat=0, seed=1))
    decision = player.decide(view, view.legal(), Budget(deadline=float("inf")))
    assert decision.action == 2
    assert decision.policy is not None
    assert len(decision.policy) == 5


def test_a_search_without_time_still_plays_a_legal_action(plugins):
    game = rules.game("openspiel:tic_tac_toe")
    view = game.new_state(0).view(0)
    player = plugins.resolve("openspiel-mcts").make().player(Table(lobby="test", table="1", game=game, seat=0, seed=1))
    assert view.is_legal(player.decide(view, view.legal(), Budget(deadline=time.monotonic() - 1.0)).action)


def test_options_are_checked(plugins):
    with pytest.raises(ConfigError, match="simulations"):
        plugins.resolve("openspiel-mcts", {"simulations": 0})
