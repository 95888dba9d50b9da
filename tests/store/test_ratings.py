"""What the ladder knows is asked for by name and lobby, and forgotten with the player."""

import sqlalchemy as sa

from bothost.ladder import Contestant, Rating, rating_of
from bothost.store import Store, ratings
from bothost.store.models import rating_history, rating_pairs
from bothost.store.models import ratings as table

ADA, BEN = Contestant("player", "ada", "home"), Contestant("player", "ben", "home")
BOT = Contestant("strategy", "deep-mc", version="3f9c21aa", level="level-2")


def put(store, who, mu, *, scope="others", game="doudizhu"):
    with store.begin() as connection:
        row = {"scope": scope, "game": game, "contestant": who.key, "mu": mu, "sigma": 2.0, "hands": 9, "last_us": 5}
        connection.execute(table.insert(), row)


def test_a_players_rating_is_of_a_game_and_a_lobby(any_settings):
    with Store.open(any_settings) as store:
        put(store, ADA, 27.5)
        put(store, ADA, 11.0, scope="all")
        put(store, BOT, 30.0)
        found = rating_of(store, "home", "ada", "doudizhu")
        assert found == Rating(27.5, 2.0, 9, 5) and found.ci95 == (27.5 - 3.92, 27.5 + 3.92)
        assert rating_of(store, "away", "ada", "doudizhu") is None
        assert rating_of(store, "home", "ada", "mahjong") is None
        assert list(ratings.all_ratings(store)["doudizhu"]) == [BOT, ADA]


def test_a_forgotten_player_leaves_no_rating(any_settings):
    with Store.open(any_settings) as store:
        for who in (ADA, BEN, BOT):
            put(store, who, 25.0)
        pair = {"scope": "others", "game": "doudizhu", "hands": 3, "wins": 1.5}
        with store.begin() as connection:
            for a, b in ((ADA, BEN), (BEN, BOT), (ADA, BOT)):
                connection.execute(rating_pairs.insert(), {**pair, "contestant": a.key, "opponent": b.key})
            point = {"scope": "others", "game": "doudizhu", "hands": 1, "mu": 25.0, "sigma": 8.0, "at_us": 1}
            connection.execute(rating_history.insert(), {**point, "contestant": BEN.key})
        assert ratings.forget(store, {"ben", "deep-mc"}) == 1
        assert set(ratings.all_ratings(store)["doudizhu"]) == {ADA, BOT}
        with store.begin() as connection:
            left = connection.execute(sa.select(rating_pairs.c.contestant, rating_pairs.c.opponent)).all()
            assert [tuple(row) for row in left] == [(ADA.key, BOT.key)]
            assert not connection.execute(sa.select(rating_history)).all()


def test_labels_say_who_is_meant():
    assert [who.label for who in (ADA, BOT)] == ["ada at home", "deep-mc:level-2 (3f9c21aa)"]
    assert Contestant("role", "landlord").label == "being landlord"
