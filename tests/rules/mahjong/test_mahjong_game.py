"""The game of mahjong: against its slow oracle, at its edges, and what its hidden information must be."""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

from bothost import rules
from bothost.rules import mahjong
from bothost.rules.game import Game, State, View

pytest.importorskip("MahjongGB")
from mahjong_oracle import TILES, Oracle

PRESETS = rules.presets("mahjong")
WALL = [t for t in TILES for _ in range(4)]


def words(state: State, seat: int) -> list[str]:
    return [state.game.notation(int(a)) for a in state.legal(seat)]


def prefer(rng: random.Random, choices: list[str]) -> str:
    """Random, with a bias to wins, kongs and claims, which are rare."""
    for move, share in (("hu", 0.9), ("bugang", 0.9), ("angang", 0.9), ("gang", 0.7), ("peng", 0.6), ("chi", 0.3)):
        some = [w for w in choices if w.startswith(move)]
        if some and rng.random() < share:
            return rng.choice(some)
    return rng.choice(choices)


def stacked_deal(rng: random.Random, game: Game) -> dict:
    """A deal in which kongs and wins are likely: the walls hold few kinds at first."""
    deal = game.new_state(rng.getrandbits(32)).deal
    if rng.random() < 0.5:
        quarter = len(deal["wall"]) // 4
        tiles = sorted(deal["wall"], key=lambda t: (hash_of(t, quarter), rng.random()))
        deal["wall"] = tiles
    return deal


def hash_of(tile: str, salt: int) -> int:
    return (ord(tile[0]) * 7 + ord(tile[1]) * 3 + salt) % 5


@pytest.mark.parametrize("preset", PRESETS)
def test_native_game_equals_the_oracle(preset: str) -> None:
    settled = rules.game("mahjong", preset=preset, minimum=2)
    rng = random.Random(11)
    ends: Counter[str] = Counter()
    for _ in range(150):
        deal = stacked_deal(rng, settled)
        state, oracle = settled.state_from_deal(deal), Oracle(settled.rules, deal)
        while not state.terminal:
            assert {s: words(state, s) for s in state.to_act} == oracle.asked
            seat = rng.choice(state.to_act)
            word = prefer(rng, words(state, seat))
            state.apply(seat, settled.parse(word))
            oracle.apply(seat, word)
            ends[word.partition(":")[0]] += 1
        assert oracle.scores == list(state.returns)
        ends[state.events(0)[-2].split()[0]] += 1
    assert min(ends[m] for m in ("pass", "play", "chi", "peng", "gang", "angang", "bugang", "hu")) > 0, ends


@pytest.mark.long
@pytest.mark.parametrize("preset", PRESETS)
def test_native_game_equals_the_oracle_in_many_games(preset: str) -> None:
    for minimum in (0, 8):
        settled = rules.game("mahjong", preset=preset, minimum=minimum)
        rng = random.Random(12)
        for _ in range(1000):
            deal = stacked_deal(rng, settled)
            state, oracle = settled.state_from_deal(deal), Oracle(settled.rules, deal)
            while not state.terminal:
                assert {s: words(state, s) for s in state.to_act} == oracle.asked
                seat = rng.choice(state.to_act)
                word = prefer(rng, words(state, seat))
                state.apply(seat, settled.parse(word))
                oracle.apply(seat, word)
            assert oracle.scores == list(state.returns)


def deal_of(hands: list[str], draws: list[str], wind: str = "east") -> dict:
    """A per-seat deal: each seat's 13 tiles and what it draws then; the rest of the set fills the walls up."""
    left = list(WALL)
    shares: list[list[str]] = []
    for hand, drawn in zip(hands, draws, strict=True):
        shares.append(hand.split() + drawn.split())
    for share in shares:
        for tile in share:
            left.remove(tile)
    for share in shares:
        while len(share) < 34:
            share.append(left.pop())
    return {"prevalent_wind": wind, "wall": [t for share in shares for t in reversed(share)]}


def play(state: State, line: str) -> None:
    """``0:play:W1 1:peng:W1 …``; every seat that is asked and not named passes."""
    for step in line.split():
        seat, word = int(step[0]), step[2:]
        while seat not in state.to_act or state.game.parse(word) not in state.legal(seat):
            state.apply(next(s for s in state.to_act if s != seat), state.game.parse("pass"))
        state.apply(seat, state.game.parse(word))


PLAIN = "W1 W4 W7 T1 T4 T7 B1 B4 B7 F1 F2 F3 F4"
BOTZONE = rules.game("mahjong", preset="botzone")


def last_event(state: State) -> list[str]:
    return state.events(0)[-2].split()


def test_a_robbed_kong_wins_for_the_robber() -> None:
    deal = deal_of(
        [
            PLAIN,
            "W8 W8 T2 T2 T8 T8 B2 B2 B8 B8 J1 J1 F4",
            "W1 W1 T3 T5 T9 B3 B5 B9 J2 J2 J3 J3 F2",
            "W2 W3 W4 W5 W6 W7 W8 W9 T2 T3 T4 B9 B9",
        ],
        ["J1", "J3", "W1", "F3 F4"],
    )
    state = BOTZONE.state_from_deal(deal)
    play(state, "0:play:W1 2:peng:W1 2:play:T9 3:play:F3 0:play:F2")
    while 2 not in state.to_act or state.view(2).phase != "turn":
        seat = state.to_act[0]
        choice = "pass" if "pass" in words(state, seat) else words(state, seat)[-1]
        state.apply(seat, state.game.parse(choice))
    play(state, "2:bugang:W1")
    assert state.to_act == (3,) and words(state, 3) == ["pass", "hu"]
    assert state.view(3).phase == "robbing"
    play(state, "3:hu")
    kind, seat, tile, source, fans = last_event(state)
    assert (kind, seat, tile, source) == ("hu", "3", "W1", "2")
    assert "robbing-the-kong" in fans and "last-tile" not in fans.split(",")
    points = state.returns[3] - 24
    assert list(state.returns) == [-8, -8, -8 - points, 24 + points]


def test_a_concealed_kong_is_hidden_until_the_reveal() -> None:
    deal = deal_of([f"J3 J3 J3 J3 {PLAIN[:26]}", *[PLAIN] * 3], ["B9", "", "", ""])
    state = BOTZONE.state_from_deal(deal)
    play(state, "0:angang:J3")
    assert state.events(0)[2] == "angang 0 J3"
    for seat in (1, 2, 3):
        assert state.events(seat)[2] == "angang 0"
        assert state.view(seat).to_json()["melds"][0] == [{"kind": "angang", "tile": None, "claimed": None}]
        assert "J3" not in str(state.events(seat)[1:])
    sampled = {state.view(1).sample_state(seed).view(0).to_json()["melds"][0][0]["tile"] for seed in range(60)}
    assert "J3" in sampled and len(sampled) > 5
    assert not sampled & set(PLAIN.split())


def test_a_win_beats_a_pung_and_the_nearest_winner_wins() -> None:
    waiting = "W2 W3 W4 W5 W6 W7 W8 W9 {} {} {} {} {}"
    hands = [
        PLAIN.replace("F1", "J1"),
        "J1 J1 T1 T2 T3 B4 B5 B7 B8 F2 F3 F4 W1",
        waiting.format("T2", "T3", "T4", "B9", "B9"),
        waiting.format("T5", "T6", "T7", "B3", "B3"),
    ]
    state = BOTZONE.state_from_deal(deal_of(hands, ["F1", "", "", ""]))
    play(state, "0:play:W1")
    assert state.to_act == (2, 3)
    play(state, "3:hu 2:hu")
    assert last_event(state)[:2] == ["hu", "2"]

    state = BOTZONE.state_from_deal(deal_of(hands, ["F1", "", "", ""]))
    play(state, "0:play:W1 2:pass 3:hu")
    assert last_event(state)[:2] == ["hu", "3"]


def test_a_pung_beats_a_chow() -> None:
    hands = [PLAIN, "W2 W3 T2 T5 T8 B2 B5 B8 F1 F2 F3 F4 J1", "W1 W1 T3 T6 T9 B3 B6 B9 J1 J2 J3 F2 F3", PLAIN]
    for answers, outcome in (("1:chi:W2 2:peng:W1", "peng 2 W1"), ("1:chi:W2 2:pass", "chi 1 W2")):
        state = BOTZONE.state_from_deal(deal_of(hands, ["J2", "", "", ""]))
        play(state, f"0:play:W1 {answers}")
        assert state.events(0)[-1] == outcome
        assert state.events(3)[-1] == outcome


@pytest.mark.parametrize("preset", PRESETS)
def test_nothing_but_a_win_is_legal_on_the_last_tile(preset: str) -> None:
    settled = rules.game("mahjong", preset=preset)
    rng = random.Random(5)
    seen = 0
    for seed in range(60):
        state = settled.new_state(seed)
        while not state.terminal:
            for seat in state.to_act:
                shown = state.view(seat).to_json()
                shared = settled.rules["wall"] == "shared"
                if shown["wall_left"][0 if shared else (shown["actor"] + 1) % 4] == 0:
                    seen += 1
                    moves = {w.partition(":")[0] for w in words(state, seat)}
                    assert moves <= {"pass", "hu", "play"}
            seat = rng.choice(state.to_act)
            legal = words(state, seat)
            state.apply(seat, settled.parse("pass" if "pass" in legal else rng.choice(legal)))
    assert seen > 20


def test_a_false_win_costs_thirty() -> None:
    settled = rules.game("mahjong", preset="false-win")
    hands = [
        PLAIN.replace("F1", "J1"),
        PLAIN,
        "W2 W3 W4 W7 W8 W9 T2 T3 T4 B5 B6 J3 J3",
        PLAIN.replace("W1", "J1"),
    ]
    state = settled.state_from_deal(deal_of(hands, ["B7", "", "", ""]))
    play(state, "0:play:B7 2:hu")
    assert last_event(state) == ["false-hu", "2", "B7", "0"]
    assert list(state.returns) == [10, 10, -30, 10]
    strict = BOTZONE.state_from_deal(deal_of(hands, ["B7", "", "", ""]))
    play(strict, "0:play:B7")
    assert 2 not in strict.to_act


def test_flowers_pay_but_do_not_help_to_the_minimum() -> None:
    settled = rules.game("mahjong", preset="open-mahjong")
    rng = random.Random(2)
    for seed in range(40):
        state = settled.new_state(seed)
        shown = state.view(0).to_json()
        assert sum(shown["flowers"]) + sum(shown["wall_left"]) + sum(shown["hand_sizes"]) == 144
        assert sum(e.startswith("flower 0") for e in state.events(0)) == shown["flowers"][0]
        assert not any(t.startswith("H") for t in shown["hand"])
        while not state.terminal:
            seat = rng.choice(state.to_act)
            state.apply(seat, settled.parse(prefer(rng, words(state, seat))))


def test_a_claim_is_followed_by_the_discard_in_a_view() -> None:
    """What a lobby needs that takes claim and discard at once."""
    hands = [PLAIN, "W2 W3 T2 T5 T8 B2 B5 B8 F1 F2 F3 F4 J1", "W1 W1 T3 T6 T9 B3 B6 B9 J1 J2 J3 F2 F3", PLAIN]
    state = BOTZONE.state_from_deal(deal_of(hands, ["J2", "", "", ""]))
    play(state, "0:play:W1")
    view = state.view(1)
    view.apply(BOTZONE.parse("chi:W2"))
    assert view.asked and view.phase == "discard"
    assert [BOTZONE.notation(int(a)) for a in view.legal()] == [
        f"play:{t}" for t in sorted(hands[1].split()[2:], key=TILES.index)
    ]


SNAPSHOT = {
    "seat": 1,
    "phase": "turn",
    "actor": 1,
    "prevalent_wind": "south",
    "hand": ["W2", "W3", "W4", "T5", "T6", "T7", "B2", "B2", "J1", "J1", "W9"],
    "melds": [[], [{"kind": "peng", "tile": "F2", "claimed": "F2"}], [{"kind": "angang", "tile": None}], []],
    "discards": [["F2", "W1"], ["J3"], ["B9"], ["T9", "T9"]],
}


def test_a_snapshot_gives_a_playable_view() -> None:
    view = BOTZONE.view_from_snapshot(SNAPSHOT)
    assert view.asked and view.phase == "turn"
    assert {BOTZONE.notation(int(a)) for a in view.legal()} == {f"play:{t}" for t in SNAPSHOT["hand"]}
    again = BOTZONE.view_from_bytes(view.to_bytes())
    assert again == view == BOTZONE.view_from_json(view.to_json())
    rng = random.Random(1)
    for seed in range(10):
        state = view.sample_state(seed)
        assert state.view(1) == view
        with pytest.raises(ValueError, match="unknown"):
            state.deal  # noqa: B018
        while not state.terminal:
            seat = rng.choice(state.to_act)
            state.apply(seat, int(rng.choice(state.legal(seat))))
    view.observe("play 1 W9")
    view.observe("draw 2")
    assert BOTZONE.view_from_bytes(view.to_bytes()) == view
    assert view.to_json()["discards"][1] == ["J3", "W9"]


def test_after_a_snapshot_another_seat_has_drawn_any_of_its_tiles_equally_likely() -> None:
    view = BOTZONE.view_from_snapshot(SNAPSHOT)
    view.observe("play 1 W9")
    view.observe("draw 2")
    draws = 2_000
    places: Counter[int] = Counter()
    rng = random.Random(1)
    for seed in range(draws):
        shown = view.sample_state(seed).view(2).to_json()
        hand = sorted(shown["hand"], key=TILES.index)
        places[rng.choice([place for place, tile in enumerate(hand) if tile == shown["drawn"]])] += 1
    assert_chi_square(places, dict.fromkeys(range(11), draws / 11))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hand": ["W1"] * 5}, "four times"),
        ({"hand": ["W1"]}, "size"),
        ({"phase": "over"}, "under way"),
        ({"actor": None}, "seat that acts"),
        ({"phase": "claims"}, "last tile|too many"),
        ({"discards": [["J1"] * 3, [], [], []]}, "more copies"),
        ({"wall_left": [144, 0, 0, 0]}, "more tiles"),
        ({"colour": "red"}, "colour"),
        ({"melds": [[], [], [], []]}, "size|too many"),
    ],
)
def test_impossible_snapshots_are_refused(change, message) -> None:
    with pytest.raises(ValueError, match=message):
        BOTZONE.view_from_snapshot(SNAPSHOT | change)


@pytest.mark.parametrize(
    ("deal", "message"),
    [
        ({"wall": WALL}, "prevalent_wind"),
        ({"prevalent_wind": "up", "wall": WALL}, "not one of east, south, west, north"),
        ({"prevalent_wind": "east", "wall": WALL[1:]}, "every tile"),
        ({"prevalent_wind": "east", "wall": [*WALL[1:], "W2"]}, "every tile"),
        ({"prevalent_wind": "east", "wall": [*WALL[1:], "H1"]}, "no tile"),
        ({"prevalent_wind": "east", "wall": WALL, "seed": 1}, "seed"),
    ],
)
def test_impossible_deals_are_refused(deal, message) -> None:
    with pytest.raises(ValueError, match=message):
        BOTZONE.state_from_deal(deal)


def near_the_end() -> View:
    """A position whose hidden tiles can be counted: two hands of four tiles or fewer stay hidden, and a short wall."""
    rng = random.Random(9)
    best: tuple[int, State] | None = None
    for seed in range(100):
        state = BOTZONE.new_state(seed)
        while not state.terminal:
            seat = rng.choice(state.to_act)
            state.apply(
                seat, BOTZONE.parse(prefer(rng, [w for w in words(state, seat) if w != "hu"] or words(state, seat)))
            )
            if state.terminal:
                break
            seat = state.to_act[0]
            shown = state.view(seat).to_json()
            if shown["phase"] != "turn" or any(m["kind"] == "angang" for melds in shown["melds"] for m in melds):
                continue
            hidden = sum(shown["hand_sizes"]) - len(shown["hand"]) + sum(shown["wall_left"])
            if best is None or hidden < best[0]:
                best = (hidden, state.clone())
    assert best is not None
    return best[1].view(best[1].to_act[0])


def unseen(shown: dict[str, Any]) -> Counter[str]:
    """The tiles that a seat does not see, by kind."""
    seen = Counter(shown["hand"]) + Counter(t for tiles in shown["discards"] for t in tiles)
    for melds in shown["melds"]:
        for m in melds:
            i = TILES.index(m["tile"])
            tiles = (
                [TILES[i - 1], m["tile"], TILES[i + 1]]
                if m["kind"] == "chi"
                else [m["tile"]] * (4 if m["kind"] == "gang" else 3)
            )
            seen.update(tiles)
            seen[m["claimed"]] -= 1  # it is among the discards
    return Counter({t: 4 for t in TILES}) - seen


def draws_of(pool: Counter[str], size: int) -> dict[tuple[str, ...], float]:
    """The probability of each set of so many tiles that are drawn from a pool."""
    ways: dict[tuple[str, ...], int] = {(): 1}
    for tile, number in sorted(pool.items()):
        ways = {
            (*tiles, *[tile] * taken): count * math.comb(number, taken)
            for tiles, count in ways.items()
            for taken in range(min(number, size - len(tiles)) + 1)
        }
    return {tiles: count / math.comb(pool.total(), size) for tiles, count in ways.items() if len(tiles) == size}


def assert_chi_square(seen: Counter[Any], expected: dict[Any, float], scale: float = 1.0) -> None:
    """Raise unless the counts fit: p is below 0.001 beyond the limit. ``scale``: of counts that are not independent."""
    assert set(seen) <= set(expected)
    chi2 = scale * sum((seen[key] - count) ** 2 / count for key, count in expected.items())
    freedom = len(expected) - 1
    limit = freedom * (1 - 2 / (9 * freedom) + 3.09 * math.sqrt(2 / (9 * freedom))) ** 3  # Wilson and Hilferty (1931)
    assert chi2 < limit, (chi2, limit, freedom)


def test_sampling_is_uniform_over_the_unseen_tiles() -> None:
    """Every unseen tile is equally likely in every hidden place, also jointly for several places."""
    view = near_the_end()
    shown, draws = view.to_json(), 4_000
    pool = unseen(shown)
    others = [seat for seat in range(4) if seat != view.seat]
    sizes = {seat: shown["hand_sizes"][seat] for seat in others} | {"wall": sum(shown["wall_left"])}
    assert pool.total() == sum(sizes.values())
    places: dict[Any, Counter[tuple[str, ...]]] = {place: Counter() for place in sizes}
    joint: Counter[tuple[str, ...]] = Counter()
    least = min(others, key=lambda seat: sizes[seat])
    for seed in range(draws):
        sample = view.sample_state(seed)
        hands = {seat: sample.view(seat).to_json()["hand"] for seat in others}
        left = pool - Counter(tile for hand in hands.values() for tile in hand)
        for place, tiles in (hands | {"wall": left.elements()}).items():
            places[place][tuple(sorted(tiles))] += 1
        joint[*hands[least], *sorted(left.elements())] += 1
    for place, size in sizes.items():
        tiles = Counter(tile for found, count in places[place].items() for tile in found * count)
        # Tiles of one hand exclude each other, so their numbers vary less than independent ones.
        scale = (pool.total() - 1) / (pool.total() - size)
        assert_chi_square(tiles, {t: draws * size * n / pool.total() for t, n in pool.items()}, scale)
        assert_chi_square(places[place], {k: draws * p for k, p in draws_of(pool, size).items()})
    assert_chi_square(
        joint,
        {
            (*hand, *wall): draws * p * q
            for hand, p in draws_of(pool, sizes[least]).items()
            for wall, q in draws_of(pool - Counter(hand), sizes["wall"]).items()
        },
    )


def test_planes_show_the_hand_and_what_lies_open() -> None:
    state = BOTZONE.new_state(4)
    rng = random.Random(4)
    for _ in range(60):
        if state.terminal:
            break
        seat = rng.choice(state.to_act)
        view = state.view(seat)
        planes, shown = view.encode("tiles"), view.to_json()
        counts = planes.sum(axis=1)
        assert counts[0].tolist() == [shown["hand"].count(t) for t in TILES]
        for i in range(4):
            assert counts[5 + i].tolist() == [shown["discards"][(seat + i) % 4].count(t) for t in TILES]
        hidden_kongs = sum(m["tile"] is None for melds in shown["melds"] for m in melds)
        unseen = sum(shown["hand_sizes"]) - len(shown["hand"]) + sum(shown["wall_left"]) + 4 * hidden_kongs
        assert counts[10].sum() == unseen
        assert np.isin(planes, (0, 1)).all()
        state.apply(seat, BOTZONE.parse(prefer(rng, words(state, seat))))


def test_a_lobby_may_leave_out_the_fans_of_a_win() -> None:
    state = BOTZONE.new_state(1)
    view = state.view(1)
    view.observe(f"play 0 {words(state, 0)[0].removeprefix('play:')}")
    tile = view.to_json()["last_tile"]
    view.observe(f"hu 2 {tile} 0")
    assert view.terminal
    assert BOTZONE.view_from_bytes(view.to_bytes()) == view == BOTZONE.view_from_json(view.to_json())
    with pytest.raises(ValueError, match="over"):
        view.sample_state(1)


def test_fan_words_name_what_the_judge_names() -> None:
    assert mahjong.fan_words({"独听・单钓": 1, "碰碰和": 1, "箭刻": 2}) == "all-pungs,dragon-pung*2,single-wait"
    with pytest.raises(ValueError, match="龙"):
        mahjong.fan_words({"龙": 1})
