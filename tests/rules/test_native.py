"""The native core takes any input: wrong types raise TypeError, wrong values ValueError, nothing crashes."""

import copy
import gc
import threading

import numpy as np
import pytest

from bothost import rules


@pytest.fixture
def game() -> rules.Game:
    return rules.game("claims")


@pytest.fixture
def view(game: rules.Game) -> rules.View:
    state = game.new_state(1)
    return state.view(state.to_act[0])


def legal_step(env: rules.VecEnv, rng: np.random.Generator) -> np.ndarray:
    offsets = env.legal_offsets
    return env.legal_ids[offsets[:-1] + (rng.random(env.n) * np.diff(offsets)).astype(np.int64)]


@pytest.mark.parametrize("seed", [0, -1, 2**63, 2**64, -(2**200), True, np.int64(5)])
def test_any_integer_is_a_seed(game: rules.Game, seed: int):
    assert game.new_state(seed).deal == game.new_state(int(seed) % 2**64).deal


@pytest.mark.parametrize("number", [-1, 11, 2**31, 2**63, 2**200, -(2**200)])
def test_actions_out_of_range(game: rules.Game, view: rules.View, number: int):
    assert not view.is_legal(number)
    for call in (view.apply, view.notation, game.notation, lambda a: game.new_state(1).apply(0, a)):
        with pytest.raises(ValueError, match=r"not within 0 \.\. 10"):
            call(number)


@pytest.mark.parametrize("number", [-1, 3, 2**200])
def test_seats_out_of_range(game: rules.Game, number: int):
    state = game.new_state(1)
    for call in (game.new_view, state.view, state.legal, state.events, lambda s: state.apply(s, 0)):
        with pytest.raises(ValueError, match=r"not within 0 \.\. 2"):
            call(number)
    with pytest.raises(ValueError, match="negative"):
        state.events(0, -1)
    assert state.events(0, 2**200) == []


@pytest.mark.parametrize("wrong", ["1", 1.0, None, [1], b"1"])
def test_numbers_of_wrong_type(game: rules.Game, view: rules.View, wrong: object):
    for call in (game.new_state, game.new_view, game.notation, view.is_legal, view.apply, view.sample_state):
        with pytest.raises(TypeError):
            call(wrong)


def test_wrong_arguments_of_other_kinds(game: rules.Game, view: rules.View):
    for call in (
        lambda: view.observe(1),
        lambda: view.observe("\ud800"),
        lambda: view.observe_all([b"deal"]),
        lambda: view.observe_all(1),
        lambda: game.view_from_bytes("text"),
        lambda: game.state_from_deal({1: 2}),
        lambda: game.state_from_deal({"hands": {1, 2}}),
        lambda: game.state_from_deal(object()),
        lambda: game.replay(game.new_state(1).deal, 5),
        lambda: rules.game("claims", seats=object()),
        lambda: rules.Oracle(view, 0),
        lambda: rules.vec_env(game, "3"),
    ):
        with pytest.raises(TypeError):
            call()
    for call in (
        lambda: game.state_from_deal({"hands": 2**64}),
        lambda: game.replay(game.new_state(1).deal, [5]),
        lambda: game.replay(game.new_state(1).deal, [(1, 2, 3)]),
        lambda: game.state_from_deal({}),
        lambda: rules.game("claims", seats=9),
        lambda: rules.Oracle(game.new_state(1), 3),
        lambda: rules.vec_env(game, 2**20 + 1),
        lambda: rules.vec_env(game, -1),
    ):
        with pytest.raises(ValueError, match=r".+"):
            call()


def test_hostile_text_is_quoted_in_errors(game: rules.Game, view: rules.View):
    with pytest.raises(ValueError, match="ÿ"):
        view.parse("ÿ" * 20)
    with pytest.raises(ValueError, match=r"preset"):
        rules.game("claims", preset="\x00\x01")


def test_output_arrays_are_checked(game: rules.Game, view: rules.View):
    actions = view.legal()
    good = np.empty(8, np.float32)
    assert view.encode("hand", good) is good
    frozen = np.zeros(8, np.float32)
    frozen.flags.writeable = False
    for wrong in (np.zeros(8), np.zeros(16, np.float32)[::2], frozen, [0.0] * 8, "x"):
        with pytest.raises(TypeError):
            view.encode("hand", wrong)
    odd = np.zeros(33, np.uint8)[1:].view(np.float32)
    for wrong in (np.zeros(7, np.float32), np.zeros((8, 1), np.float32), np.zeros((), np.float32), odd):
        with pytest.raises(ValueError, match="out"):
            view.encode("hand", wrong)
    with pytest.raises(ValueError, match="shape"):
        view.encode_actions("kind", actions, np.zeros((len(actions) + 1, 11), np.float32))
    for wrong in (actions.astype(np.int64), actions.reshape(1, -1), [1, 2]):
        with pytest.raises(TypeError):
            view.encode_actions("kind", wrong)
    with pytest.raises(ValueError, match="not within"):
        view.encode_actions("kind", np.array([99], np.int32))


def test_unknown_blocks_list_the_known(game: rules.Game, view: rules.View):
    with pytest.raises(ValueError, match="it has: hand"):
        view.encode("fist")
    with pytest.raises(ValueError, match="is of kind oracle, not view"):
        view.encode("hands")
    assert rules.Oracle(game.new_state(1), 2).encode("hands").shape == (4, 8)


def test_views_compare_by_what_they_know(game: rules.Game):
    state = game.new_state(1)
    assert state.view(0) == state.view(0)
    assert state.view(0) != state.view(1)
    assert state.view(0) == copy.copy(state.view(0)) == copy.deepcopy(state.view(0))
    assert state.view(0) != "view"
    assert state.view(0) == rules.game("claims").new_state(1).view(0)
    assert rules.game("claims").new_view(0) != rules.game("claims", hand=3).new_view(0)
    assert game.new_view(0) != rules.game("othello").new_view(0)
    with pytest.raises(TypeError, match="unhashable"):
        hash(state.view(0))


def test_a_view_outlives_its_game():
    view = rules.game("claims").new_state(1).view(0)
    gc.collect()
    assert view.game.name == "claims"
    assert view.game.blocks["hand"].shape == (8,)
    block = view.game.blocks["hand"]
    del view
    gc.collect()
    assert block.doc


def test_a_sampled_state_numbers_its_events_on(game: rules.Game):
    state = game.new_state(1)
    view = state.view(0)
    sampled = view.sample_state(4)
    assert sampled.events(0) == []
    seat = sampled.to_act[0]
    sampled.apply(seat, int(sampled.legal(seat)[0]))
    assert sampled.events(0, view.seq) == sampled.events(0)
    assert len(sampled.actions) == 1


# Batches


def test_equal_seeds_give_equal_batches_and_each_environment_its_own_stream(game: rules.Game):
    one, two = rules.vec_env(game, 50, seed=-3), rules.vec_env(game, 20, seed=2**64 - 3)
    assert [one.deal(i) for i in range(20)] == [two.deal(i) for i in range(20)]
    assert len({str(one.deal(i)) for i in range(50)}) == 50
    near = rules.vec_env(game, 50, seed=-2)
    assert not {str(one.deal(i)) for i in range(50)} & {str(near.deal(i)) for i in range(50)}


def test_an_illegal_action_in_a_batch_changes_nothing(game: rules.Game):
    env = rules.vec_env(game, 8, seed=1)
    rng = np.random.default_rng(0)
    for _ in range(20):
        env.step(legal_step(env, rng))
        before = [env.seat.copy(), env.legal_ids.copy(), env.legal_offsets.copy(), env.returns.copy()]
        bad = legal_step(env, rng)
        bad[5] = 77
        with pytest.raises(ValueError, match="environment 5: action 77"):
            env.step(bad)
        after = [env.seat, env.legal_ids, env.legal_offsets, env.returns]
        assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
    with pytest.raises(ValueError, match="7 actions for 8 environments"):
        env.step(np.zeros(7, np.int32))
    for wrong in (np.zeros(8, np.int64), np.zeros((8, 1), np.int32), [0] * 8, None):
        with pytest.raises(TypeError):
            env.step(wrong)


def test_environments_can_be_left_as_they_stand(game: rules.Game):
    """Even those step in one batch, all step in the other; the odd ones of the first catch up later."""
    some, every = rules.vec_env(game, 6, seed=2), rules.vec_env(game, 6, seed=2)
    rng, odd = np.random.default_rng(4), np.arange(6) % 2 == 1
    for _ in range(60):
        actions = legal_step(every, rng)
        before = some.seat[odd].copy()
        waiting = [some.legal_ids[some.legal_offsets[i] : some.legal_offsets[i + 1]].tolist() for i in (1, 3, 5)]
        some.step(np.where(odd, -1, actions).astype(np.int32))
        every.step(actions)
        assert np.array_equal(some.seat[odd], before) and not some.done[odd].any() and not some.returns[odd].any()
        assert np.array_equal(some.seat[~odd], every.seat[~odd])
        assert np.array_equal(some.returns[~odd], every.returns[~odd])
        assert np.array_equal(some.done[~odd], every.done[~odd])
        for i in range(6):
            ids = some.legal_ids[some.legal_offsets[i] : some.legal_offsets[i + 1]].tolist()
            expected = every.legal_ids[every.legal_offsets[i] : every.legal_offsets[i + 1]].tolist()
            assert ids == (waiting[i // 2] if odd[i] else expected)


def test_arrays_of_a_batch_are_read_only_and_stay_valid():
    env = rules.vec_env(rules.game("doudizhu"), 4, seed=1)
    rng = np.random.default_rng(0)
    kept = []
    for _ in range(300):
        kept.append(env.legal_ids)
        env.step(legal_step(env, rng))
    seat, returns = env.seat, env.returns
    assert not any(a.flags.writeable for a in (*kept, seat, returns, env.done, env.legal_offsets))
    del env
    gc.collect()
    assert sum(int(a.sum()) for a in kept) >= 0
    assert seat.shape == (4,)
    assert returns.shape == (4, 3)


def test_encoders_of_a_batch_equal_those_of_views(game: rules.Game):
    env = rules.vec_env(game, 6, seed=9)
    states = [game.state_from_deal(env.deal(i)) for i in range(6)]
    views = [state.view(int(env.seat[i])) for i, state in enumerate(states)]
    hand = np.empty((6, 8), np.float32)
    kind, mask = np.empty((len(env.legal_ids), 11), np.float32), np.empty((6, 11), np.bool_)
    env.encode("hand", hand)
    env.encode_actions("kind", kind)
    env.legal_mask(mask)
    for i, view in enumerate(views):
        rows = slice(env.legal_offsets[i], env.legal_offsets[i + 1])
        assert np.array_equal(hand[i], view.encode("hand"))
        assert np.array_equal(kind[rows], view.encode_actions("kind", view.legal()))
        assert np.flatnonzero(mask[i]).tolist() == view.legal().tolist()
    hands = np.empty((6, *game.blocks["hands"].shape), np.float32)
    env.encode_oracle("hands", hands)
    for i, state in enumerate(states):
        assert np.array_equal(hands[i], rules.Oracle(state, int(env.seat[i])).encode("hands"))
    with pytest.raises(ValueError, match="hand"):
        env.encode("hands", hands)
    with pytest.raises(ValueError, match="hand"):
        env.encode_oracle("hand", hand)
    some = np.array([4, 1], np.int64)
    of_some = np.concatenate([np.arange(env.legal_offsets[i], env.legal_offsets[i + 1]) for i in some])
    hand_of_some, kind_of_some = np.empty((2, 8), np.float32), np.empty((len(of_some), 11), np.float32)
    env.encode("hand", hand_of_some, some)
    env.encode_actions("kind", kind_of_some, some)
    assert np.array_equal(hand_of_some, hand[some]) and np.array_equal(kind_of_some, kind[of_some])
    for wrong in (-1, 6):
        with pytest.raises(ValueError, match="environment"):
            env.encode("hand", hand_of_some, np.array([0, wrong]))
    with pytest.raises(ValueError, match="shape"):
        env.encode("hand", hand, some)
    with pytest.raises(ValueError, match="shape"):
        env.encode("hand", np.empty((5, 8), np.float32))
    with pytest.raises(TypeError):
        env.encode("hand", None)
    with pytest.raises(ValueError, match="shape"):
        env.legal_mask(np.empty((6, 12), np.bool_))
    with pytest.raises(TypeError):
        env.legal_mask(np.empty((6, 11), np.int8))
    with pytest.raises(ValueError, match="512"):
        rules.vec_env(rules.game("doudizhu"), 1).legal_mask(np.empty((1, 5), np.bool_))
    for i in (-1, 6, 2**70):
        with pytest.raises(ValueError, match="environment"):
            env.deal(i)


def test_threads_in_one_batch_are_refused_not_mixed():
    env = rules.vec_env(rules.game("othello"), 2000, seed=1)
    refused, unexpected = [], []

    def play(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(60):
            try:
                env.step(legal_step(env, rng))
            except (ValueError, IndexError) as e:  # another thread's step, or its stale arrays
                refused.append(str(e))
            except Exception as e:  # pragma: no cover
                unexpected.append(e)

    threads = [threading.Thread(target=play, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not unexpected
    env.step(legal_step(env, np.random.default_rng(0)))
