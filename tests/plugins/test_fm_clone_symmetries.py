"""A clone of an Othello player sees a board and its mirror images alike."""

import re
from dataclasses import replace

import numpy as np
import pytest

from bothost import rules
from bothost.training.factorization import Samples, SparseRows
from bothost_fm_clone import shared
from bothost_fm_clone.encode import encoding
from bothost_fm_clone.shared import SharedClone
from bothost_fm_clone.sight import sight
from bothost_fm_clone.symmetries import renamed, shuffled, symmetries

OTHELLO = rules.game("othello")
BOARDS = symmetries("othello")
OWN = encoding("othello")


def positions(count=12):
    """Samples of positions with several moves from random games."""
    rng, found = np.random.default_rng(5), []
    while len(found) < count:
        state = OTHELLO.new_state(0)
        for _ in range(int(rng.integers(4, 50))):
            if not state.terminal:
                state.apply(state.to_act[0], int(rng.choice(state.view(state.to_act[0]).legal())))
        if not state.terminal and len(choices := OWN.choices(view := state.view(state.to_act[0]), view.legal())) > 2:
            found.append(OWN.one(view, choices))
    return Samples.joined(found)


@pytest.fixture(scope="module")
def clone():
    """With random parameters, combinations and factors of both kinds."""
    known = len(sight("othello").positions)
    return of_chance([[5, known + 7], [known + 30, known + 222]])


def of_chance(pairs):
    blank, known = SharedClone.blank(OWN, 3, 4, 2), sight("othello")
    rng = np.random.default_rng(3)
    factors = (len(known.positions) + len(known.choices) + len(pairs) + 1) * 7
    sizes = {"weights": len(blank.parameters["weights"]) + len(pairs), "factors": factors}
    parameters = {
        name: rng.normal(0, 0.3, sizes.get(name, len(values))).astype(np.float32)
        for name, values in blank.parameters.items()
    }
    return replace(blank, pairs=np.array(pairs, np.int32).reshape(-1, 2), parameters=parameters)


def test_the_eight_symmetries_of_a_board_are_a_group():
    moved = {tuple(each.inputs.tolist()) for each in BOARDS}
    assert len(moved) == 8 and tuple(range(len(BOARDS[0].inputs))) in moved
    assert moved == {tuple(a.inputs[b.inputs].tolist()) for a in BOARDS for b in BOARDS}
    assert len(symmetries("doudizhu")) == len(symmetries("mahjong")) == 1


def test_kinds_of_squares_stay_and_corners_go_to_corners():
    for each in BOARDS:
        np.testing.assert_array_equal(OWN.groups[each.classes], OWN.groups)


@pytest.mark.parametrize("number", range(8))
def test_rules_and_features_are_the_same_on_a_renamed_board(number):
    """Afterstates and all derived features of renamed positions are those of the positions, renamed."""
    samples, board = positions(), BOARDS[number]
    turned, (places,) = renamed(samples, [board])
    np.testing.assert_array_equal(turned.legal.items[places], board.classes[samples.legal.items])
    np.testing.assert_array_equal(turned.chosen[places], samples.chosen)
    after = OWN.afterstates(turned.features, turned.legal)
    np.testing.assert_array_equal(after.items, turned.alternatives.items)
    known = sight("othello")
    before, seen = known.seen(samples), known.seen(turned)
    of_positions, first = len(known.positions), board.inputs[: len(known.positions)]
    np.testing.assert_array_equal(
        seen.features.dense(of_positions)[:, first], before.features.dense(of_positions), "position"
    )
    width = len(known.choices)
    of_choices = board.inputs[of_positions:] - of_positions
    np.testing.assert_array_equal(
        seen.alternatives.dense(width)[places][:, of_choices], before.alternatives.dense(width), "candidates"
    )


def test_the_clone_gives_moves_and_their_mirror_images_the_same_odds(clone):
    samples = positions()
    odds = clone.probabilities_of(samples)
    sums = np.add.reduceat(odds, samples.legal.offsets[:-1])
    np.testing.assert_allclose(sums, 1.0, atol=1e-5)
    plain = replace(clone, symmetric=False).probabilities_of(samples)
    assert np.abs(odds - plain).max() > 0.05
    for board in BOARDS:
        turned, (places,) = renamed(samples, [board])
        np.testing.assert_allclose(clone.probabilities_of(turned)[places], odds, atol=2e-6)


def test_reasons_name_the_squares_of_the_board_that_was_seen(clone):
    one = positions(1)
    chosen = int(one.legal[0][1])
    told = clone.reasons(one, chosen, count=400)
    assert len(told) > 20
    held = {OWN.features[n] for n in one.features[0]}
    names = {name for reason in told for name in reason["features"] if re.match(r"(holds|the opponent holds) ", name)}
    assert names and names <= held, "what is said of the position is so"
    board = BOARDS[5]
    turned, _ = renamed(one, [board])
    mirrored = clone.reasons(turned, int(board.classes[chosen]), count=400)
    assert [reason["weight"] for reason in mirrored] == pytest.approx([reason["weight"] for reason in told], abs=2e-3)


def test_a_file_says_whether_its_clone_is_symmetric_and_older_files_are_not(clone, tmp_path):
    path = tmp_path / "othello.safetensors"
    for symmetric in (True, False):
        replace(clone, symmetric=symmetric).save(path)
        assert shared.load(path, "othello").symmetric is symmetric
    assert b"symmetric" not in path.read_bytes(), "as older releases wrote it"


def test_decisions_keep_their_order_when_each_gets_a_random_symmetry():
    samples = positions(40)
    drawn = shuffled(samples, BOARDS, np.random.default_rng(1))
    lengths = np.diff(samples.legal.offsets)
    np.testing.assert_array_equal(np.diff(drawn.legal.offsets), lengths)
    which = [
        [n for n, board in enumerate(BOARDS) if np.array_equal(np.sort(board.positions[one]), other)]
        for one, other in ((samples.features[row], drawn.features[row]) for row in range(len(samples)))
    ]
    assert all(which) and len({each[0] for each in which}) > 4
    assert shuffled(samples, BOARDS[:1], np.random.default_rng(1)) is samples


def test_a_reason_is_what_the_choice_loses_without_its_features():
    """Computed by the machine, with the features removed from all candidates."""
    clone, known = replace(of_chance([]), symmetric=False), sight("othello")
    view = OTHELLO.new_state(1).view(0)
    one = OWN.one(view, OWN.choices(view, view.legal()))
    seen, machine, odds = clone.seen(one), clone.machine(), clone.odds(one)

    def lead(*removed):
        kept = [
            SparseRows.of(
                [row[~np.isin(row, [names.index(name) for name in removed if name in names])] for row in rows]
            )
            for rows, names in ((seen.features, known.positions), (seen.alternatives, known.choices))
        ]
        less = replace(seen, features=kept[0], alternatives=kept[1])
        logs = np.log(machine.probabilities(less, np.zeros(1, np.int32)))
        return logs[0] - odds[1:] @ logs[1:] / odds[1:].sum()

    told = clone.reasons(one, int(one.legal.items[0]), count=500)
    assert {len(reason["features"]) for reason in told} == {1, 2}
    for reason in told:
        names = [name.removeprefix("not: ") for name in reason["features"]]
        effect = lead() - lead(*names)
        if len(names) == 2:
            effect = 2 * lead() - lead(names[0]) - lead(names[1]) - effect
        assert reason["weight"] == pytest.approx(effect, abs=2e-3), names
