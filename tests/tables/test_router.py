"""Which strategy plays: the first route that matches."""

from bothost.config import AccountSettings, LobbySettings, RouteSettings, Settings
from bothost.tables.router import Router, address, unreached, wished_level


def choose(routes, *, lobby="home", account="ada", game="doudizhu", known=("rule-doudizhu",), **attributes):
    return Router(routes, known.__contains__).choose(lobby, account, game, attributes)


def test_the_first_route_that_matches_decides():
    routes = [
        RouteSettings(strategy="a", lobby="away"),
        RouteSettings(strategy="b", account="bob"),
        RouteSettings(strategy="c", game="doudizhu", attributes={"rated": True}),
        RouteSettings(strategy="d", game="doudizhu"),
        RouteSettings(strategy="e"),
    ]
    assert choose(routes).strategy == "d"
    assert choose(routes, lobby="away").strategy == "a"
    assert choose(routes, account="bob").strategy == "b"
    assert choose(routes, rated=True).strategy == "c"
    assert choose(routes, game="pairing").strategy == "e"


def test_no_route_is_no_strategy():
    assert choose([RouteSettings(strategy="a", game="pairing")]) is None


def test_the_fallback_is_the_rule_player_of_the_game_where_there_is_one():
    assert choose([RouteSettings(strategy="a")]).fallback == "rule-doudizhu"
    assert choose([RouteSettings(strategy="a", fallback="random")]).fallback == "random"
    assert choose([RouteSettings(strategy="a")], game="othello").fallback is None


def test_level_table_follows_the_wish_of_the_table():
    routes = [RouteSettings(strategy="mcts", level="table", options={"threads": 2})]
    assert choose(routes, level=3).strategy == "mcts:level-3"
    assert choose(routes, level="strong").strategy == "mcts:strong"
    assert choose(routes).strategy == "mcts"
    assert choose(routes, level=3).options == {"threads": 2}


def test_a_level_of_the_route_does_not_ask_the_table():
    assert choose([RouteSettings(strategy="mcts", level=2)], level=5).strategy == "mcts:level-2"


def test_a_wish_that_is_no_level_is_ignored():
    for wish in ("../../etc", "", "a b", True, 1.5, None, ["level-1"], "x" * 100):
        assert wished_level("table", {"level": wish}) is None


def test_an_address_with_an_alias_or_a_program_keeps_it():
    assert address("mcts:champion", "level-3") == "mcts:champion"
    assert address("exec:./bot --fast", "level-3") == "exec:./bot --fast"


def test_routes_that_no_table_reaches_are_described():
    ours = (AccountSettings(name="deep-mc"),)
    home = LobbySettings(name="home", adapter="embedded", url="ws://127.0.0.1:9/", accounts=ours, own_accounts=("far",))

    def described(*routes):
        made = tuple(RouteSettings(strategy="random", **route) for route in routes)
        return list(unreached(Settings(lobbies=(home,), routes=made)))

    (line,) = described({"account": "deep-mc"}, {"account": "deep_mc"})
    assert line == "route[1] is never used: there is no account 'deep_mc'; did you mean 'deep-mc'?"
    assert "at home; did you mean" in described({"account": "deep_mc", "lobby": "home"})[0]
    assert described({"account": "far"}) == []
    othello = {"game": "othello"}
    for covered in ({**othello, "account": "deep-mc"}, {**othello, "attributes": {"level": 1}}):
        assert described(othello, {}, covered) == ["route[1] matches every table; the routes after it are never tried"]
        assert described(othello, covered, {}) == ["route[1] is never tried: route[0] matches all of its tables"]
        assert described(covered, othello, {}) == []
