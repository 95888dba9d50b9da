"""The model of players of doudizhu-mcts: training, the version that has it, and the search that counts on it."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from bothost import Decision, Evaluator, Model, ModelError, Table, TrainingRun
from bothost.errors import UsageError
from bothost.plugins import Plugins, model_sha256
from bothost.plugins.weights import verify
from bothost.rules import ActionArray, FloatArray, View, doudizhu, game
from bothost.strategy import Budget, NoOptions, Player
from bothost_doudizhu_mcts import players
from bothost_doudizhu_mcts.distil import Distiller
from bothost_doudizhu_mcts.imitate import Imitator, Options
from bothost_doudizhu_mcts.source import Options as DistilOptions

GAME = game("doudizhu")
PLUGINS = Plugins.load()


class RhcpValues(Evaluator):
    """Values the RHCP player's choice most."""

    name, version, games = "rhcp-values", "1", ("doudizhu",)

    def action_values(self, views: Sequence[View], legal: Sequence[ActionArray]) -> list[FloatArray]:
        return [
            np.where(actions == doudizhu.rhcp_choice(view)[0], 0.5, -0.5).astype(np.float32)
            for view, actions in zip(views, legal, strict=True)
        ]

    def player(self, table: Table) -> Player:
        raise AssertionError("a teacher does not sit at tables here")


TEACHER = {"teacher": RhcpValues(NoOptions())}


def run_in(out: Path, start: Model | None, **more: object) -> TrainingRun:
    return TrainingRun(out=out, seed=1, evaluators=TEACHER, start=start, **more)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def champion() -> Model:
    model = PLUGINS.resolve("doudizhu-mcts").model
    assert model is not None
    return model


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, champion: Model) -> Path:
    out = tmp_path_factory.mktemp("players") / "out"
    options = Options(positions=4000, epochs=3, batch=128, hands=32, held_out=0.1)
    figures = Imitator(options).train(run_in(out, champion), lambda *args: None)
    assert figures["top1"] > 0.6 and figures["log_loss"] < 1.2  # one move in eleven is right by chance, and 2.0
    return out / "weights"


def version_of(weights: Path) -> Model:
    """The version of a training's folder."""
    entry = json.loads((weights / "manifest.json").read_text())["versions"]["v1"]
    verify(weights / "v1", entry["files"])
    return Model("doudizhu-mcts", "v1", model_sha256(entry["files"]), str(weights / "v1"), entry["files"], 1)


def decide(model: Model, **options: object) -> Decision:
    resolved = PLUGINS.resolve("doudizhu-mcts", {"iterations": 60, **options})
    player = resolved.strategy(resolved.options, model).player(
        Table(lobby="test", table="1", game=GAME, seat=1, seed=7)
    )
    state = GAME.new_state(4)
    for _ in range(6):
        state.apply(state.to_act[0], doudizhu.rule_choice(state.view(state.to_act[0]))[0])
    view = state.view(state.to_act[0])
    return player.decide(view, view.legal(), Budget(float("inf")))


def test_it_knows_its_teachers_moves_and_keeps_the_networks(trained: Path, champion: Model) -> None:
    model = version_of(trained)
    assert model.files["model.safetensors"] == champion.files["model.safetensors"]
    lineage = json.loads((trained / "lineage.json").read_text())
    assert lineage["teacher"] == "rhcp-values" and lineage["start"] == champion.label
    known = players.load(model)
    assert known is not None
    chances, state = [], GAME.new_state(99)
    while not state.terminal:
        view = state.view(state.to_act[0])
        action = doudizhu.rhcp_choice(view)[0]
        if len(legal := view.legal()) > 1:
            chances.append(known.probabilities(view)[legal.searchsorted(action)])
        state.apply(view.seat, action)
    assert np.mean(chances) > 0.4


def test_the_search_counts_on_the_model_unless_told_not_to(trained: Path, champion: Model) -> None:
    networks_alone = {name: sha for name, sha in champion.files.items() if name != players.FILE}
    without = Model("doudizhu-mcts", "v0", "0", champion.path, networks_alone, 1)
    model = version_of(trained)
    assert decide(model).value == decide(model).value != decide(without).value
    assert decide(model, player_model="off").value == decide(without).value


def test_later_stages_keep_the_model_of_their_start(trained: Path, tmp_path: Path) -> None:
    small = DistilOptions(hands=8, chunk=64, batch=32, measured=48, positions=64, start="doudizhu-mcts")
    Distiller(small).train(run_in(tmp_path, version_of(trained)), lambda *args: None)
    assert version_of(tmp_path / "weights").files[players.FILE] == version_of(trained).files[players.FILE]


def test_a_file_that_is_no_model_is_refused_by_name(trained: Path, tmp_path: Path) -> None:
    broken = tmp_path / players.FILE
    broken.write_bytes((trained / "v1" / players.FILE).read_bytes()[:-4])
    with pytest.raises(ModelError, match=str(broken)):
        players.load(Model("doudizhu-mcts", "v1", "0", str(tmp_path), {players.FILE: "0"}, 1))


def test_it_has_no_time_limit_and_does_not_resume(tmp_path: Path, champion: Model) -> None:
    for more in ({"minutes": 1.0}, {"resume": True}):
        with pytest.raises(UsageError, match="limited by positions"):
            Imitator(Options()).train(run_in(tmp_path, champion, **more), lambda *args: None)


def test_something_is_held_out_of_few_positions(tmp_path: Path, champion: Model) -> None:
    figures = Imitator(Options(positions=100, held_out=0.001, hands=8, epochs=1)).train(
        run_in(tmp_path, champion), lambda *args: None
    )
    assert figures["positions"] == 99 and figures["top1"] in (0.0, 1.0)
