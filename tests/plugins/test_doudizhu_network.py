"""The network of doudizhu-mcts: what it sees, that live play computes what was trained, and fits that go on exactly."""

import json
import math
from pathlib import Path

import msgspec
import numpy as np
import onnxruntime
import pytest
import safetensors.torch
import torch
from rule_values import RuleValues

from bothost import TrainingRun, cli
from bothost.errors import ConfigError, ModelError, UsageError
from bothost.plugins import Plugins, check_options
from bothost.plugins.weights import verify
from bothost.rules import game
from bothost.strategy import NoOptions
from bothost.training import loop, metrics
from bothost.training.publish import write_version
from bothost_doudizhu_mcts import records
from bothost_doudizhu_mcts.collect import Options as CollectOptions
from bothost_doudizhu_mcts.collect import SelfPlay
from bothost_doudizhu_mcts.distil import STEPS, Distiller, TeacherPositions, bits, loss, measure
from bothost_doudizhu_mcts.encode import ROLES, encode, roles, supports
from bothost_doudizhu_mcts.measure import HeldOut
from bothost_doudizhu_mcts.model import Candidates, Networks, RoleNet, graphs
from bothost_doudizhu_mcts.network import GRAPHS
from bothost_doudizhu_mcts.samples import Samples
from bothost_doudizhu_mcts.source import Options as DistilOptions
from bothost_doudizhu_mcts.source import Source
from bothost_doudizhu_mcts.train import Fitter, Options, loss_of

GAME = game("doudizhu")
RANKS = "3456789TJQKA2BR"
DEAL = {"hands": ["33334444BR2222555", "66777788889999TTT", "TJJJJQQQQKKKKAAAA"], "bottom": "566", "first": 0}


def position(words=""):
    state = GAME.state_from_deal(DEAL)
    for word in words.split():
        state.apply(state.to_act[0], GAME.parse(word))
    return state.view(state.to_act[0])


def positions(hands=2):
    rng = np.random.default_rng(1)
    views = []
    for hand in range(hands):
        state = GAME.new_state(hand)
        while not state.terminal:
            views.append(state.view(state.to_act[0]))
            state.apply(state.to_act[0], int(rng.choice(state.legal(state.to_act[0]))))
    return views


def test_the_planes_of_a_position_with_its_candidates():
    """The landlord led 3335, the next seat beat it with 7778 and the previous seat passed."""
    view = position("3335 7778 pass")
    actions = np.array([0, GAME.parse("BR")], np.int32)
    assert set(actions) <= set(view.legal())
    planes, moves, owner = encode([view], [actions])
    assert planes.shape == (1, 29, 15, 15) and moves.shape == (2, 1, 15, 15) and owner.tolist() == [0, 0]

    def cards(text):
        rows = np.zeros((15, 15))
        for rank in text:
            rows[text.count(rank) - 1, RANKS.index(rank)] = 1
        return rows

    def move(text, row, by_landlord):
        rows = cards(text)
        rows[row] = 1
        rows[14] = by_landlord
        return rows

    plane = planes[0]
    np.testing.assert_array_equal(plane[0], cards("34444BR2222555" + "66"))
    np.testing.assert_array_equal(plane[1], cards("66" + "7" + "888" + "9999TTTTJJJJQQQQKKKKAAAA"))
    np.testing.assert_array_equal(plane[2], np.zeros((15, 15)))
    np.testing.assert_array_equal(plane[3], cards("3335"))
    np.testing.assert_array_equal(plane[4], cards("7778"))
    np.testing.assert_array_equal(plane[5], np.zeros((15, 15)))
    np.testing.assert_array_equal(plane[6], move("7778", 7, by_landlord=False))
    np.testing.assert_array_equal(plane[7], cards("566"))
    for z, count in ((8, 16), (9, 13), (10, 17)):
        np.testing.assert_array_equal(plane[z].reshape(-1), np.arange(225) < count)
    np.testing.assert_array_equal(plane[11], np.zeros((15, 15)))  # a peasant's pass
    np.testing.assert_array_equal(plane[12], move("7778", 7, by_landlord=False))
    np.testing.assert_array_equal(plane[13], move("3335", 7, by_landlord=True))
    np.testing.assert_array_equal(plane[14:], np.zeros((15, 15, 15)))
    np.testing.assert_array_equal(moves[0, 0], np.arange(15)[:, None] * np.ones(15) == 14)  # the landlord's pass
    np.testing.assert_array_equal(moves[1, 0], move("BR", 13, by_landlord=True))


def test_shared_planes_with_candidates_are_the_whole_block():
    views = positions(1)
    legal = [view.legal() for view in views]
    blocks = [view.encode_actions("planes_with_move", actions) for view, actions in zip(views, legal, strict=True)]
    inputs = encode(views, legal)
    whole = inputs.planes[inputs.owner]
    whole[:, 2] = inputs.moves[:, 0]  # the candidate move
    np.testing.assert_array_equal(whole, np.concatenate(blocks))
    assert supports(GAME) and not supports(game("othello"))


def test_the_tower_sees_the_hand_without_the_candidate():
    """A fixed layer computes it from the planes: one-hot counts of what is left."""
    view = position("3335 7778 pass")
    action = GAME.parse("BR")
    planes, moves, _ = map(torch.from_numpy, encode([view], [np.array([action], np.int32)]))
    net = RoleNet()
    left = net.one_hot(planes[:, 0, :4]) - net.one_hot(moves[:, 0, :4])
    cards = "34444222255566"  # the landlord's hand and bottom, without 3335 and without both jokers
    assert left[0, 0].tolist() == [cards.count(rank) for rank in RANKS]


def test_the_role_of_a_view_chooses_its_network():
    views = positions(2)
    assert [ROLES[role] for role in roles(views)] == [
        ("landlord", "next", "previous")[(view.seat - view.to_json()["landlord"]) % 3] for view in views
    ]


def test_live_play_computes_what_was_trained(tmp_path):
    """Of each role, in ONNX Runtime as in torch, with the parameters in 16 bits."""
    torch.manual_seed(0)
    nets, views = Networks(), positions(1)
    for parameter in nets.parameters():
        if parameter.dim() < 3:
            torch.nn.init.normal_(parameter, std=0.05)
    narrow = nets.in_16_bits()
    write_version(tmp_path, narrow, graphs(), 1)
    nets.load_state_dict(narrow.state_dict())
    inputs = encode(views, [view.legal() for view in views])
    for role in ROLES:
        session = onnxruntime.InferenceSession(tmp_path / GRAPHS[role])
        values, states = session.run(None, inputs._asdict())
        with torch.no_grad():
            wanted, wanted_states = nets.of[role](*map(torch.from_numpy, inputs))
        np.testing.assert_allclose(values, wanted.numpy(), atol=1e-4)
        np.testing.assert_allclose(states, wanted_states.numpy(), atol=1e-4)
        assert np.ptp(values) > 0.01


def test_all_roles_in_one_forward_are_those_of_each():
    torch.manual_seed(0)
    nets, views = Networks(), positions(2)
    legal = [view.legal() for view in views]
    with torch.no_grad():
        together, states = nets(Candidates.of(encode(views, legal), roles(views)))
        ends = np.cumsum([len(actions) for actions in legal])[:-1]
        positions_of = zip(views, legal, roles(views), np.split(together.numpy(), ends), states, strict=True)
        for view, actions, role, values, state in positions_of:
            alone, of_position = nets.of[ROLES[role]](*map(torch.from_numpy, encode([view], [actions])))
            np.testing.assert_allclose(values, alone.numpy(), atol=1e-5)
            assert float(state) == pytest.approx(float(of_position), abs=1e-5)


SMALL = {"hands": 8, "chunk": 64, "batch": 32, "measured": 48, "checkpoint_every": 2}


def test_chunks_hold_the_teachers_values_of_its_best_and_other_moves():
    source = Source(RuleValues(NoOptions()), DistilOptions(**SMALL), seed=3)
    chunk, again = source.chunk(5, 64), source.chunk(5, 64)
    for one, other in zip(chunk, again, strict=True):
        np.testing.assert_array_equal(one, other)
    ends = np.cumsum(chunk.counts)[:-1]
    assert len(chunk.counts) == 64 and chunk.counts.min() >= 2 and chunk.counts.max() <= 8
    assert all(values[0] == 0.5 and (values[1:] == -0.5).all() for values in np.split(chunk.values, ends))
    assert not np.array_equal(chunk.planes, source.chunk(6, 64).planes)


def distil(out, positions, *, resume=False, begin=None, **options):
    run = TrainingRun(out=out, seed=1, resume=resume, evaluators={"teacher": RuleValues(NoOptions())}, start=begin)
    return Distiller(DistilOptions(**SMALL, positions=positions, **options)).train(run, lambda *args: None)


def test_networks_learn_from_a_teacher_and_go_on_where_they_were_stopped(tmp_path):
    """A move that is not the teacher's loses 1 here, and few moves are."""
    first = distil(tmp_path / "out", 224)  # the last iteration makes one step of two
    second = distil(tmp_path / "out", 640, resume=True)
    assert [(each["steps"], each["positions"]) for each in (first, second)] == [(7, 224), (20, 640)]
    assert second["regret"] < 0.75
    nets = Networks()
    nets.load_state_dict(weights_of(tmp_path / "out"))
    held_out = Source(RuleValues(NoOptions()), DistilOptions(**SMALL), seed=77).chunk(0, 128, every_move=True)
    assert measure(nets, held_out)["regret"] < measure(Networks(), held_out)["regret"] - 0.05


def test_a_distillation_that_is_resumed_after_its_end_learns_no_further(tmp_path):
    first = distil(tmp_path, 64)
    again = distil(tmp_path, 64, resume=True)
    assert {**again, "minutes": 0} == {**first, "minutes": 0}
    (tmp_path / metrics.FILE).unlink()
    with pytest.raises(ModelError, match=r"metrics\.jsonl has no record of update"):
        distil(tmp_path, 64, resume=True)


def test_a_distillation_needs_a_teacher():
    with pytest.raises(ConfigError, match=r"options\.teacher"):
        check_options(Distiller, {"teacher": ""})


def test_more_workers_make_the_same_chunks(tmp_path):
    nets = []
    for workers in (1, 2):
        distil(tmp_path / str(workers), 128, workers=workers)
        nets.append(weights_of(tmp_path / str(workers)))
    for name, value in nets[0].items():
        assert torch.equal(value, nets[1][name]), name


def test_networks_that_diverge_are_not_published(folder, tmp_path):
    with pytest.raises(ModelError, match="diverged"):
        distil(tmp_path / "distilled", 128, learning_rate=math.inf)
    with pytest.raises(ModelError, match="diverged"):
        fit(folder, tmp_path / "fitted", epochs=0.2, learning_rate=math.inf)
    assert not list(tmp_path.glob("*/weights"))


def test_bits_are_unpacked_as_they_were_packed():
    cells = np.random.default_rng(1).random((3, 2, 15, 15)) < 0.3
    packed = np.packbits(cells.reshape(3, -1), axis=1)
    np.testing.assert_array_equal(bits(torch.from_numpy(packed), 2, 15, 15).numpy(), cells)


def test_a_distillation_that_starts_with_a_version_keeps_a_network_for_each_role(tmp_path):
    start = Plugins.load().resolve("doudizhu-mcts").model
    distil(tmp_path / "out", 64, begin=start, start="doudizhu-mcts", learning_rate=1e-9, shared=1.0)
    parameters = safetensors.torch.load_file(Path(start.path) / "model.safetensors")
    for name, value in weights_of(tmp_path / "out").items():
        torch.testing.assert_close(value, parameters[name].float(), atol=1e-6, rtol=1e-3)
    lineage = json.loads((tmp_path / "out" / "weights" / "lineage.json").read_text())
    assert lineage["start"] == f"doudizhu-mcts:{start.version} {start.sha256}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("records")
    batch = records.Batch()
    for number in range(20):
        batch.extend(SelfPlay(CollectOptions(iterations=30), 1).hand(number))
    records.write(out / "records.parquet", batch, GAME.rules, {"command": "bothost train doudizhu-mcts collect"})
    return out


def fit(folder, out, *, resume=False, start=None, taught_by=None, **options):
    told = []
    settled = {"positions": 16, "held_out": 0.3, "checkpoint_every": 10, "half_visits": 5.0, "measured": 80} | options
    evaluators, command = {"teacher": taught_by} if taught_by else {}, "bothost train doudizhu-mcts fit"
    run = TrainingRun(out=out, seed=3, resume=resume, command=command, evaluators=evaluators, start=start)
    return Fitter(Options(records=str(folder), **settled)).train(run, lambda *args: told.append(args)), told


def test_it_learns_what_generalizes_to_deals_it_has_not_seen(folder, tmp_path):
    """Here the landlord, seat 0, always wins."""
    whole_hands, batch = records.load(folder), records.Batch()
    for i in range(len(whole_hands)):
        actions = whole_hands.actions[whole_hands.offsets[i] : whole_hands.offsets[i + 1]]
        seat = whole_hands.view(i).seat
        moves = [(int(action), 20, 1.0 if seat == 0 else -1.0) for action in actions]
        batch.add(whole_hands.deals[i], seat, whole_hands.views[i], moves)
    (tmp_path / "records").mkdir()
    records.write(tmp_path / "records" / "taught.parquet", batch, GAME.rules, {})
    figures, _ = fit(tmp_path / "records", tmp_path / "fit", epochs=2, candidates=4)
    lineage = json.loads((tmp_path / "fit" / "weights" / "lineage.json").read_text())
    assert figures["l1"] < 0.5 * lineage["constant"]["l1"]


def test_a_fit_that_continues_has_a_smaller_learning_rate(folder, tmp_path):
    start = Plugins.load().resolve("doudizhu-mcts").model
    for out, first, rate in ((tmp_path / "fresh", None, 0.002), (tmp_path / "continued", start, 0.0002)):
        fit(folder, out, start=first, epochs=0.2)
        assert json.loads((out / "weights" / "lineage.json").read_text())["options"]["learning_rate"] == rate


def test_a_fit_in_bfloat16_learns_about_the_same(folder, tmp_path):
    found = [fit(folder, tmp_path / str(bf16), epochs=0.2, measured=8, bf16=bf16)[0]["l1"] for bf16 in (False, True)]
    assert found[1] == pytest.approx(found[0], abs=0.1) and found[1] != found[0]


def test_a_fit_with_a_teacher_also_learns_its_values(folder, tmp_path):
    """Only the teacher values whole positions, so without it the layer of these values keeps its parameters."""
    fit(folder, tmp_path, taught_by=RuleValues(NoOptions()), rehearsed=4, epochs=0.1, measured=4, weight_decay=0.0)
    torch.manual_seed(3)  # of the fit
    learnt, begun = weights_of(tmp_path)["of.landlord.state2.weight"], Networks().of["landlord"].state2.weight
    assert (learnt - begun).abs().max() > 1e-3
    lineage = json.loads((tmp_path / "weights" / "lineage.json").read_text())
    assert lineage["teacher"] == "rule-values" and "start" not in lineage


def test_what_is_rehearsed_depends_on_the_step_alone():
    torch.manual_seed(1)
    net, teacher = Networks(), RuleValues(NoOptions())
    one, other = (TeacherPositions.of(teacher, 4, seed=2) for _ in range(2))
    losses = {step: loss(net, one.batch(step), one.options)[0].item() for step in (0, 3, STEPS, STEPS + 3)}
    assert all(loss(net, other.batch(step), other.options)[0].item() == losses[step] for step in (STEPS + 3, 3))
    assert len(set(losses.values())) == len(losses)


def test_without_the_weight_of_values_only_differences_count(folder):
    torch.manual_seed(1)
    net, batch = Networks(), Samples(records.load(folder), 8, 4, 5.0, 0.3, 1).batch(0)
    raised = batch._replace(values=batch.values + 0.5)

    def loss(batch, values):
        return float(loss_of(net, batch, Options(records="", values=values))[0].detach())

    assert loss(raised, 0.0) == pytest.approx(loss(batch, 0.0), abs=1e-6) and loss(batch, 0.0) > 0
    assert loss(raised, 1.0) != pytest.approx(loss(batch, 1.0), abs=1e-3)


def test_agreement_and_regret_are_those_of_the_moves_that_would_be_played(folder):
    found = records.load(folder)
    held_out = HeldOut(found, Samples(found, 8, 4, 5.0, 0.3, 1), 40)

    def measured(values):
        """Of a network with these values of all records, in one batch."""
        return held_out.measure(lambda *_: (torch.from_numpy(values[np.concatenate(held_out.rows)]), None))

    visits, values = found.visits.astype(np.float32), found.values
    assert (measured(visits)["best_move"], measured(visits)["regret"]) == (1.0, 0.0)
    several = [rows for rows in held_out.rows if len(rows) > 1]
    lost = [values[rows[visits[rows].argmax()]] - values[rows].min() for rows in several]
    assert measured(-values)["regret"] == pytest.approx(np.mean(lost), abs=1e-6) and np.mean(lost) > 0


def test_both_stages_from_the_command_line(tmp_path, capsys):
    words = ["train", "doudizhu-mcts", "--seed", "1"]
    out, fitted = tmp_path / "records", tmp_path / "fit"
    assert cli.main([*words, "collect", "--records", "300", "--iterations", "8", "--out", str(out)]) == 0
    options = ["--records", str(out), "--epochs", "0.2", "--held_out=0.5", "--measured", "20"]
    assert cli.main([*words, "fit", *options, "--out", str(fitted), "--json"]) == 0
    assert (fitted / "weights" / "v1" / "landlord.onnx").is_file()
    assert '"l1"' in capsys.readouterr().out


def test_a_collection_searches_with_the_network_and_a_fit_begins_with_its_parameters(tmp_path):
    words = ["train", "doudizhu-mcts", "--seed", "1"]
    out, fitted = tmp_path / "records", tmp_path / "fit"
    searched = ["collect", "--evaluator", "doudizhu-mcts", "--iterations", "8", "--records", "200", "--out", str(out)]
    assert cli.main([*words, *searched]) == 0
    options = ["--records", str(out), "--epochs", "0.2", "--held_out=0.5", "--learning_rate=1e-9"]
    assert cli.main([*words, "fit", *options, "--start", "doudizhu-mcts", "--out", str(fitted)]) == 0
    shipped = Plugins.load().resolve("doudizhu-mcts").model
    parameters = safetensors.torch.load_file(Path(shipped.path) / "model.safetensors")
    for name, value in weights_of(fitted).items():
        torch.testing.assert_close(value, parameters[name].float(), atol=1e-6, rtol=1e-3)


def weights_of(out):
    found = safetensors.torch.load_file(out / "weights" / "v1" / "model.safetensors")
    assert all(value.dtype == torch.float16 for value in found.values())
    return {name: value.float() for name, value in found.items()}


def test_a_fit_ends_in_weights_as_a_package_ships_them(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "plot", metrics.plot)
    figures, told = fit(folder, tmp_path, epochs=1)
    curve = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    lineage = json.loads((tmp_path / "weights" / "lineage.json").read_text())
    assert curve[-1]["l1_train"] < curve[0]["l1_train"] and len(told) == len(curve) == len(lineage["l1_curve"])
    assert lineage["records_made_by"][0]["records"] == figures["records"] and figures["deals"] == 20
    assert (tmp_path / "training.png").stat().st_size > 1000
    manifest = json.loads((tmp_path / "weights" / "manifest.json").read_text())
    assert manifest["aliases"] == {"champion": "v1"} and manifest["versions"]["v1"]["encoder_version"] == 1
    verify(tmp_path / "weights" / "v1", manifest["versions"]["v1"]["files"])


def test_a_fit_that_was_stopped_goes_on_bit_for_bit(folder, tmp_path):
    class Interrupted(Exception):
        pass

    def interrupt(done, *_):
        if done >= 2:
            raise Interrupted

    fit(folder, tmp_path / "once", epochs=0.5)
    run = TrainingRun(out=tmp_path / "twice", seed=3)
    options = Options(
        records=str(folder), epochs=0.5, positions=16, held_out=0.3, checkpoint_every=10, half_visits=5.0, measured=80
    )
    with pytest.raises(Interrupted):
        Fitter(options).train(run, interrupt)
    fit(folder, tmp_path / "twice", epochs=0.5, resume=True)
    one, other = weights_of(tmp_path / "once"), weights_of(tmp_path / "twice")
    assert one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)
    with pytest.raises(UsageError, match="is not empty"):
        fit(folder, tmp_path / "once", epochs=0.5)


def test_steps_are_functions_of_their_number_and_never_see_held_out_deals(folder):
    found = records.load(folder)
    one, other = (Samples(found, 8, 4, 5.0, 0.3, 1) for _ in range(2))
    learnt = {found.deals[i] for i in one.learnt}
    assert learnt.isdisjoint(found.deals[i] for i in one.held) and len(learnt) > 10
    other.batch(5)
    for got, want in zip(other.batch(2).candidates, one.batch(2).candidates, strict=True):
        np.testing.assert_array_equal(got, want)
    candidates, values, weight, outcomes = one.batch(one.steps)  # the second epoch begins
    assert len(candidates.roles) == 8 and not outcomes.all()
    assert len(candidates.planes) == 8 and candidates.owner.bincount().max() <= 4
    assert len(values) == len(weight) == len(candidates.moves) and (weight < 1).all()


def test_what_cannot_be_fitted_is_refused_with_the_fix(folder, tmp_path):
    with pytest.raises(UsageError, match="needs records"):
        Fitter(Options(epochs=1)).train(TrainingRun(out=tmp_path), lambda *_: None)
    with pytest.raises(UsageError, match="no stopping condition"):
        fit(folder, tmp_path)
    with pytest.raises(UsageError, match="no checkpoint"):
        fit(folder, tmp_path, epochs=1, resume=True)
    with pytest.raises(UsageError, match="there are no records"):
        fit(tmp_path, tmp_path / "x", epochs=1)
    with pytest.raises(UsageError, match="too few deals"):
        fit(folder, tmp_path / "y", epochs=1, held_out=1e-6)
    for wrong in ({"held_out": 0.0}, {"half_visits": math.nan}, {"learning_rate": -1.0}, {"weight_decay": math.nan}):
        with pytest.raises(msgspec.ValidationError, match=next(iter(wrong))):
            msgspec.convert(wrong, Options)
    for wrong in ({"learning_rate": math.nan}, {"differences": -1.0}, {"states": math.nan}, {"positions": 0}):
        with pytest.raises(msgspec.ValidationError, match=next(iter(wrong))):
            msgspec.convert(wrong, DistilOptions)
