"""Training of deep-mc: learning, larger networks, resuming, experts, logged hands."""

import functools
import json
import os
import shutil
import signal
from typing import ClassVar

import msgspec
import numpy as np
import pytest
import safetensors.torch
import torch

from bothost import LoggedStep, Model, TrainingRun, Trajectory, rules
from bothost.errors import ModelError, UsageError
from bothost.rules import doudizhu
from bothost.training.action_values import NativeActionValues
from bothost_deep_mc import branches, engine, experts, learn, train
from bothost_deep_mc.decide import DeepMc, PlayOptions
from bothost_deep_mc.encode import CARD_FEATURES, CHOICE, FEATURES, INPUTS, NOW, ROLES, Seen, encode, encode_rows, roles
from bothost_deep_mc.model import Sizes, begin_with, seeded, sizes_of
from bothost_deep_mc.selfplay import Decisions, Pairs
from bothost_deep_mc.selfplay import PlayOptions as SelfPlayOptions

GAME = rules.game("doudizhu")
BIDDING = rules.game("doudizhu", preset="bidding")
SEEN = Seen(NOW, FEATURES)
SIZES = Sizes(trunk=(32, 16), head=(16, 16), bidder_trunk=(16,), bidder_head=(16,))
QUIET = SelfPlayOptions(epsilon=0.0)


@pytest.fixture(scope="module")
def nets():
    model = seeded(SIZES, 3)
    return {role: NativeActionValues(model.of(role)) for role in ROLES}


def learner(**options):
    return learn.Networks(train.Options(sizes=SIZES, iterations=1, **options), 1)


@pytest.mark.parametrize(
    "sizes",
    [SIZES, msgspec.structs.replace(SIZES, features="cards"), msgspec.structs.replace(SIZES, positions="history")],
)
def test_networks_learn_what_a_round_teaches(nets, sizes):
    options = train.Options(sizes=sizes, learning_rate=3e-3, reduction_weight=0.01, minibatch=256)
    own = learn.Networks(options, 1)
    played = branches.play_round(
        GAME, nets, QUIET, hands=40, seed=1, seen=options.seen, imitate=True, keep_expert=True, branches=1
    )
    rng = np.random.default_rng(1)
    first = own.learn(played.decisions, played.pairs, 1.0, rng)
    for _ in range(25):
        last = own.learn(played.decisions, played.pairs, 1.0, rng)
    assert set(first) == {"loss", "difference", "regularizer", "reduction"}
    assert last["loss"] < 0.7 * first["loss"] and last["difference"] < 0.9 * first["difference"]


def test_minibatches_use_every_decision_once():
    rng = np.random.default_rng(0)
    n = 1000
    numbers = np.arange(n, dtype=np.float32)
    decisions = learn.Samples.of(Decisions(np.zeros((n, 1), np.uint8), np.zeros((n, 1, 1), np.uint8), numbers), "cpu")
    zeros = np.zeros((30, 1), np.uint8), np.zeros((30, 2, 1), np.uint8), np.zeros((30, 2), np.float32)
    pairs = learn.Samples.of(Pairs(*zeros), "cpu")
    batches = list(learn.minibatches(decisions, pairs, 128, rng))
    assert len(batches) == 8 and sum(len(b.pairs.returns) for b in batches) == 30
    assert np.array_equal(np.sort(np.concatenate([b.singles.returns for b in batches])), numbers)


def test_a_network_on_another_device_learns_the_same_and_plays_what_was_loaded_last(nets, monkeypatch):
    """Torch's own operations take the place of the native ones there. No GPU is needed to compare them."""
    played = branches.play_round(
        GAME, nets, QUIET, hands=20, seed=1, seen=SEEN, imitate=True, keep_expert=True, branches=1
    )
    here, there = learner(reduction_weight=0.01, minibatch=256), learner(reduction_weight=0.01, minibatch=256)
    expected = here.learn(played.decisions, played.pairs, 1.0, np.random.default_rng(1))
    monkeypatch.setattr(NativeActionValues, "on_processor", False)
    given_ = encode_rows(rules.vec_env(GAME, 6, 2), np.arange(6), analysis=True, inputs=NOW)
    before = there.nets["landlord"].evaluate(*given_)
    found = there.learn(played.decisions, played.pairs, 1.0, np.random.default_rng(1))
    assert found == pytest.approx(expected, rel=1e-4)
    np.testing.assert_array_equal(there.nets["landlord"].evaluate(*given_), before)
    there.load()
    np.testing.assert_allclose(
        there.nets["landlord"].evaluate(*given_), here.nets["landlord"].evaluate(*given_), atol=1e-4
    )


SMALL = train.Options(
    sizes=SIZES,
    hands=24,
    bidding_share=0.25,
    iterations=4,
    minibatch=128,
    imitation=0.25,
    expert_weight=0.1,
    reduction_weight=0.001,
    evaluate_every=2,
    evaluation_deals=8,
    checkpoint_every=2,
    pool_every=2,
)


class Killed(Exception):
    pass


def run(out, resume=False, seed=7, until=None, options=SMALL, start=None):
    """Train; ``until``: the round after which the training is killed."""

    def report(done, note="", total=None):
        if done == until:
            raise Killed

    given_ = TrainingRun(out=out, seed=seed, resume=resume, command="bothost train deep-mc", start=start)
    return train.DeepMcTrainer(options).train(given_, report)


def parameters(out):
    return safetensors.torch.load_file(out / "checkpoint-000004" / "model.safetensors")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of a training that nothing happened to, by what its networks see. No test may change it."""

    @functools.cache
    def folder(positions="now"):
        out = tmp_path_factory.mktemp("trained") / positions
        sizes = msgspec.structs.replace(SIZES, positions=positions)
        assert run(out, options=msgspec.structs.replace(SMALL, sizes=sizes))["rounds"] == 4
        return out

    return folder


def test_larger_networks_begin_with_what_smaller_ones_know(trained, tmp_path):
    file = trained() / "checkpoint-000004" / "model.safetensors"
    assert sizes_of(file) == SIZES
    larger = Sizes(positions="history", trunk=(64, 32), head=(32, 16), bidder_trunk=(32,), bidder_head=(32,))
    small, large = seeded(SIZES, 0), seeded(larger, 1)
    begin_with(file, small)
    begin_with(file, large)
    every = encode_rows(rules.vec_env(GAME, 6, 2), np.arange(6), analysis=True)
    every.positions[:, NOW:] = np.random.default_rng(1).integers(2, size=(6, INPUTS - NOW))
    inputs = torch.from_numpy(every.positions), torch.from_numpy(every.moves), torch.from_numpy(every.offsets)
    expected, _ = small.of("landlord")(inputs[0][:, :NOW], *inputs[1:])
    found, _ = large.of("landlord")(*inputs)
    torch.testing.assert_close(found, expected)
    found.sum().backward()
    gradient = large.of("landlord").trunk_table.grad
    assert gradient[NOW:, :32].any() and large.of("landlord").trunk[0].weight.grad[:16, 32:].any()  # and learn

    start = Model("deep-mc", "small", "", str(file.parent))
    run(tmp_path / "large", options=msgspec.structs.replace(SMALL, sizes=larger, iterations=1), start=start)
    assert sizes_of(tmp_path / "large" / "checkpoint-000001" / "model.safetensors") == larger
    for wrong in (msgspec.structs.replace(larger, trunk=(16, 16)), msgspec.structs.replace(larger, head=(16,))):
        with pytest.raises(ModelError, match="do not fit"):
            begin_with(file, seeded(wrong, 0))
    (tmp_path / "other").write_bytes(safetensors.torch.save({"by_role.landlord.trunk_table": torch.zeros(())}))
    for read in (sizes_of, lambda path: begin_with(path, large)):
        with pytest.raises(ModelError):
            read(tmp_path / "other")
        with pytest.raises(ModelError):
            read(tmp_path / "nothing")


def test_a_training_that_was_interrupted_goes_on_as_if_it_never_was(trained, tmp_path):
    shutil.copytree(trained(), tmp_path / "whole")
    with pytest.raises(Killed):
        run(tmp_path / "parts", until=3)
    run(tmp_path / "parts", resume=True)  # from round 2; what was written of round 3 is dropped
    whole, parts = parameters(tmp_path / "whole"), parameters(tmp_path / "parts")
    assert all(torch.equal(whole[name], parts[name]) for name in whole)
    assert (tmp_path / "whole" / "training.png").is_file()
    rounds = [json.loads(line)["iteration"] for line in (tmp_path / "parts" / "metrics.jsonl").read_text().splitlines()]
    assert rounds == [1, 2, 3, 4]
    with pytest.raises(UsageError, match="not empty"):
        run(tmp_path / "whole")
    with pytest.raises(UsageError, match="seed"):
        run(tmp_path / "whole", resume=True, seed=8)
    (tmp_path / "whole" / "metrics.jsonl").unlink()
    with pytest.raises(ModelError, match="no record of update 4"):
        run(tmp_path / "whole", resume=True)


@pytest.mark.parametrize("positions", ["now", "history"])
def test_published_levels_play_what_was_learnt(trained, positions):
    sizes, out = msgspec.structs.replace(SIZES, positions=positions), trained(positions)
    from bothost.plugins import weights

    manifest = json.loads((out / "weights" / "manifest.json").read_text())
    assert manifest["aliases"]["champion"] == manifest["aliases"]["level-3"]
    model = weights.find(DeepMc, "champion", out / "weights")
    strategy = DeepMc(PlayOptions(), model)
    views = []
    for game in (GAME, BIDDING):
        state = game.new_state(3)
        while not state.terminal:
            views.append(state.view(state.to_act[0]))
            state.apply(views[-1].seat, int(state.legal(views[-1].seat)[0]))
    legal = [view.legal() for view in views]
    found = strategy.action_values(views, legal)
    net = seeded(sizes, 0)
    net.load_state_dict(parameters(out))
    every = encode(views, legal, sizes.seen.position)
    for i, role in enumerate(roles(every.positions)):
        part = slice(every.offsets[i], every.offsets[i + 1])
        with torch.no_grad():
            expected, _ = net.of(ROLES[role])(
                torch.from_numpy(every.positions[i : i + 1]),
                torch.from_numpy(every.moves[part]),
                torch.tensor([0, len(legal[i])]),
            )
        np.testing.assert_allclose(found[i], expected.clamp(-1, 1).numpy(), atol=0.01)  # 16 bits


def test_options_that_make_no_sense_are_refused(tmp_path):
    for wrong in (
        {"iterations": 0},
        {"hands": 0},
        {"imitation": 1.5},
        {"branches": -1},
        {"evaluation_deals": 0},
        {"pool_every": 0},
        {"parity": 0.0},
        {"expert_margin": -0.1},
        {"learning_rate": float("nan")},
        {"levels": ()},
        {"levels": (0.5, 0.2)},
        {"levels": (0.5, 1.1)},
        {"workers": -1},
        {"timeout_s": 0.0},
    ):
        with pytest.raises(msgspec.ValidationError, match=next(iter(wrong))):
            msgspec.convert(wrong, train.Options)
    for wrong in ({"epsilon": 1.5}, {"temperature": 0.0}, {"others": -1}):
        with pytest.raises(msgspec.ValidationError, match=next(iter(wrong))):
            msgspec.convert(wrong, SelfPlayOptions)
    with pytest.raises(ValueError, match="multiples of 16"):
        Sizes(trunk=(20,))
    with pytest.raises(UsageError, match="no logged hands"):
        train.DeepMcTrainer(train.Options(expert="logged")).train(TrainingRun(out=tmp_path), lambda *_, **__: None)
    with pytest.raises(UsageError, match="workers"):
        engine.Engine(train.Options(runner="ray"), engine.Setup(SIZES, QUIET), seeded(SIZES, 0), {})


@pytest.mark.long
def test_a_lost_worker_plays_its_part_again(tmp_path):
    options = train.Options(sizes=SIZES, iterations=1, workers=2)
    model = seeded(SIZES, 1)
    order = engine.Order((1, 2), (20, 8), 0.0, False, False, 1)
    setup = engine.Setup(SIZES, QUIET)
    with engine.Engine(options, setup, model, {}) as playing:
        first = playing.play(order, np.random.default_rng(1))
        os.kill(playing.workers[0].id, signal.SIGKILL)
        again = playing.play(order, np.random.default_rng(1))
    for role, decisions in first.decisions.items():
        for a, b in zip(decisions, again.decisions[role], strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.long
def test_a_round_of_fewer_hands_than_workers_is_played_by_some_of_them():
    options = train.Options(sizes=SIZES, iterations=1, workers=2)
    order = engine.Order((1, 2), (1, 0), 0.0, False, False, 1)
    with engine.Engine(options, engine.Setup(SIZES, QUIET), seeded(SIZES, 1), {}) as playing:
        played = playing.play(order, np.random.default_rng(1))
    assert played.hands == 2 and 0.0 <= played.agreement <= 1.0


def strongest(view):
    return int(doudizhu.rule_choice(view)[0])


def trajectory(seed, seat=0, game=GAME, own=True):
    """One seat's decisions in a hand of rule players, as the log tells them."""
    state, steps = game.new_state(seed), []
    while not state.terminal:
        (asked,) = state.to_act
        view, legal = state.view(asked), state.legal(asked)
        action = strongest(view)
        if asked == seat:
            steps.append(LoggedStep(view, legal, action, None, {}, own, None))
        state.apply(asked, action)
    return Trajectory(game, f"hand-{seed}", seat, tuple(state.returns), tuple(steps))


class Log:
    manifest: ClassVar = {}

    def __init__(self, hands):
        self.hands = hands

    def trajectories(self, split="train"):
        return iter(self.hands)


def test_a_search_is_an_expert(nets):
    found = experts.searched(GAME, nets, 6, 60, others=2, seen=SEEN, seed=1)
    assert sum(len(part.returns) for part in found.values()) == 6
    for role, part in found.items():
        assert part.moves.shape[1:] == (4, FEATURES) and set(np.unique(part.returns)) <= {-1.0, 1.0}
        assert (roles(part.positions.astype(np.float32)) == ROLES.index(role)).all()
    again = experts.searched(GAME, nets, 6, 60, others=2, seen=SEEN, seed=1)
    assert all(np.array_equal(a, b) for role in found for a, b in zip(found[role], again[role], strict=True))


def test_a_search_wins_the_hands_that_it_could_end_at_once():
    """It may win them by another move: what counts is that it wins them."""
    won = []
    for seed in range(12):
        state = GAME.new_state(seed)
        while not state.terminal:
            (seat,) = state.to_act
            view, legal = state.view(seat), state.legal(seat)
            hand = "".join(sorted(view.to_json()["hand"], key=doudizhu.RANKS.index))
            if len(legal) > 1 and any(doudizhu.move(a).cards == hand for a in legal):
                again = state.clone()
                again.apply(seat, experts.by_search(view, 300, seed))
                while not again.terminal:
                    again.apply(again.to_act[0], strongest(again.view(again.to_act[0])))
                won.append(again.returns[seat] > 0)
            state.apply(seat, strongest(view))
    assert len(won) > 5 and all(won)


def test_logged_moves_are_the_experts():
    hands = [trajectory(seed, seat) for seed in range(4) for seat in range(3)]
    found = experts.logged(hands, others=1, seen=SEEN, seed=1)
    expected = sum(len(step.legal) > 1 for hand in hands for step in hand.steps)
    assert sum(len(part.returns) for part in found.values()) == expected
    for part in found.values():
        np.testing.assert_array_equal(part.moves[:, 0], part.moves[:, 1])
        assert part.moves[:, 1, CHOICE].all()  # the rule player logged them
    won = sum(sum(len(s.legal) > 1 for s in h.steps) for h in hands if h.scores[h.seat] > 0)
    assert sum((part.returns > 0).sum() for part in found.values()) == won
    assert experts.logged([trajectory(1, own=False)], others=1, seen=SEEN, seed=1) == {}
    some = experts.some(found, 10, np.random.default_rng(1))
    assert 8 <= sum(len(part.returns) for part in some.values()) <= 12


def test_of_many_logged_moves_some_of_all_hands_are_kept():
    hands = [trajectory(seed, seat) for seed in range(4) for seat in range(3)]
    whole = experts.logged(hands, others=0, seen=SEEN, seed=1)
    some = experts.logged(iter(hands), others=0, seen=SEEN, seed=1, most=40)
    assert sum(len(part.returns) for part in some.values()) == 40
    for role, part in some.items():
        known = {row.tobytes(): place for place, row in enumerate(whole[role].positions)}
        places = sorted(known[row.tobytes()] for row in part.positions)
        assert len({*places}) == len(places) and places[0] < len(known) / 2 < places[-1]


def test_what_networks_played_is_their_best_move_and_the_experts(monkeypatch, nets):
    monkeypatch.setattr(experts, "AT_ONCE", 7)
    found = experts.played_by(GAME, nets, 20, others=3, wide=SEEN, seen=SEEN, seed=1)
    assert sum(len(part.returns) for part in found.values()) > 20 * 10
    for role, (positions, moves, returns) in found.items():
        np.testing.assert_array_equal(moves[:, 0], moves[:, 1])
        n, k, cells = moves.shape
        inputs = positions.astype(np.float32), moves.reshape(n * k, cells).astype(np.float32)
        values = nets[role].evaluate(*inputs, np.arange(0, n * k + 1, k)).reshape(n, k)
        assert k == 5 and (values[:, 0] >= values.max(axis=1) - 1e-6).all()
        assert set(np.unique(returns)) == {-1.0, 1.0}
    narrow = experts.played_by(GAME, nets, 20, others=3, wide=SEEN, seen=Seen(NOW, CARD_FEATURES), seed=1)
    for role, part in narrow.items():
        np.testing.assert_array_equal(part.moves, found[role].moves[:, :, :CARD_FEATURES])
        np.testing.assert_array_equal(part.returns, found[role].returns)


@pytest.mark.parametrize("positions", ["now", "history"])
def test_retraining_learns_from_logged_hands_with_networks_like_the_champions(trained, tmp_path, positions):
    """Whatever networks the options ask for."""
    from bothost.plugins import weights

    start = weights.find(DeepMc, "champion", trained(positions) / "weights")
    others = msgspec.structs.replace(SIZES, trunk=(48, 32))
    options = msgspec.structs.replace(SMALL, iterations=2, sizes=others)
    log = Log([trajectory(seed, seat) for seed in range(3) for seat in range(3)])
    given_ = TrainingRun(out=tmp_path / "again", seed=1)
    figures = train.DeepMcTrainer(options).retrain(given_, log, start, lambda *_, **__: None)
    assert figures["rounds"] == 2 and figures["logged_decisions"] > 50
    challenger = weights.find(DeepMc, "champion", tmp_path / "again" / "weights")
    assert challenger.sha256 != start.sha256
    begun = safetensors.torch.load_file(tmp_path / "again" / "pool" / "v000000.safetensors")
    assert all(
        torch.equal(begun[n], p.float())
        for n, p in safetensors.torch.load_file(f"{start.path}/model.safetensors").items()
    )
    with pytest.raises(UsageError, match="no scored hand"):
        train.DeepMcTrainer(options).retrain(given_, Log([]), start, lambda *_, **__: None)
