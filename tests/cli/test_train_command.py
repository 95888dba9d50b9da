import itertools
import json
import re
import time
from pathlib import Path

import pytest
import torch
from safetensors.numpy import load_file

from bothost import rules
from bothost.cli import main, options
from bothost.config import load
from bothost.plugins import Plugins
from bothost.plugins.weights import model_sha256, verify
from bothost.testing.sample_rows import played_hand, write_rows

TINY = [
    word
    for option in ("iterations=2", "environments=4", "horizon=4", "checkpoint_every=1", "pool_every=1", "ppo.epochs=1")
    for word in ("--option", option)
]


def train(capsys, *args: str) -> tuple[int, str, str]:
    code = main(["train", *args])
    out, err = capsys.readouterr()
    return code, out, err


def test_training_ends_in_weights_as_a_package_ships_them(tmp_path, capsys):
    out = tmp_path / "my run"
    code, text, _ = train(capsys, "phase-ppo", "--seed", "3", "--out", str(out), *TINY, "--json")
    figures = json.loads(text)
    assert code == 0 and figures["updates"] == 2 and figures["samples"] == 2 * 4 * 4
    manifest = json.loads((out / "weights" / "manifest.json").read_text())
    assert list(manifest["aliases"]) == ["level-1", "level-2", "level-3", "level-4", "level-5", "champion"]
    for name, version in manifest["versions"].items():
        verify(out / "weights" / name, version["files"])
        assert version["encoder_version"] == 2 and model_sha256(version["files"])
        assert ("play.json" in version["files"]) == (name == manifest["aliases"]["level-5"])
    lineage = json.loads((out / "weights" / "lineage.json").read_text())
    assert lineage["command"].startswith("bothost train phase-ppo --seed 3 --option iterations=2")
    assert lineage["levels"]["level-5"]["updates"] == 2

    code, _, err = train(capsys, "phase-ppo", "--seed", "3", "--out", str(out), *TINY)
    assert code == 2 and "is not empty" in err and "--resume" in err
    longer = [word.replace("iterations=2", "iterations=3") for word in TINY]
    code, text, _ = train(capsys, "phase-ppo", "--seed", "3", "--out", str(out), "--resume", *longer)
    assert code == 0 and re.search(r"^updates +3$", text, re.MULTILINE)
    assert text.endswith(f"next: bothost model import phase-ppo '{out / 'weights'}'\n"), "a command to copy"


def test_a_folder_belongs_to_one_training_at_a_time(tmp_path, capsys):
    out = tmp_path / "run"
    with options.alone_in(out):
        for command in (["train", "phase-ppo"], ["reproduce", "phase-ppo"]):
            assert main([*command, "--out", str(out)]) == 2
            assert f"another bothost writes to {out} now" in capsys.readouterr().err
    assert not out.exists(), "nothing was written"
    code, _, err = train(capsys, "phase-ppo", "--out", str(out), "--resume")
    assert code == 2 and "there is no checkpoint" in err and not out.exists()


ON_A_GPU = (["phase-ppo"], ["deep-mc"], ["doudizhu-mcts", "distil"])


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["phase-pop"], "phase-ppo"),
        (["random"], "phase-ppo"),
        (["phase-ppo", "--resume"], "--out"),
        (["phase-ppo", "--minuts", "1"], "no option --minuts\n  fix: did you mean 'minutes'?"),
        (["phase-ppo", "--option", "ppo.epoch=1"], "epochs"),
        (["phase-ppo", "--option", "ppo=1"], "ppo"),
        (["phase-ppo", "--option", "fast"], "KEY=VALUE"),
        (["phase-ppo", "--option", "ppo=1", "--option", "ppo.epochs=1"], "ppo"),
        (["mahjong-ppo", "--option", "start=v5"], "model import mahjong-ppo FOLDER --of v5"),
        (["mahjong-ppo", "--option", "start=v0"], "no version or level 'v0'"),
        (["mahjong-ppo", "--option", "start=level-1"], "of the encoding"),
        (["doudizhu-mcts", "distil", "--minutes", "1", "--start", "v3"], "model import doudizhu-mcts FOLDER --of v3"),
        (["doudizhu-mcts", "distil", "--minutes", "1", "--start", "deep-mc"], "no version or level 'deep-mc'"),
        *(([*name, "--minutes", "1", "--device", "cuda", "--workers", "1"], "finds no GPU here") for name in ON_A_GPU),
    ],
)
def test_what_cannot_be_trained_is_refused_with_the_fix(tmp_path, capsys, monkeypatch, args, told):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    code, _, err = train(capsys, *args)
    assert code != 0 and told in err and "Traceback" not in err and "is a bug" not in err
    assert not any(Path(tmp_path).iterdir())


def test_a_training_begins_with_the_version_that_its_option_names(tmp_path, capsys):
    shipped = Plugins.load().resolve("mahjong-ppo").model
    for name in (shipped.version, "mahjong-ppo:champion"):
        out = tmp_path / name
        code, *_ = train(capsys, "mahjong-ppo", "--start", name, "--iterations", "0", "--out", str(out))
        begun, parameters = (load_file(Path(p) / "model.safetensors") for p in (out / "weights" / "v1", shipped.path))
        assert code == 0 and all((begun[key] == value).all() for key, value in parameters.items())
        lineage = json.loads((out / "weights" / "lineage.json").read_text())
        assert lineage["start"] == f"mahjong-ppo:{shipped.version} {shipped.sha256}"


IN_STAGES = """
import msgspec
from bothost import Decision, Player, Strategy, Trainer, hookimpl

class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    records: int = 0
    folder: str = "none"

class Collect(Trainer):
    name = "in-stages"
    Options = Options

    def train(self, run, report):
        report(1)
        return {"command": run.command, "records": self.options.records, "folder": self.options.folder}

class Fit(Collect):
    def train(self, run, report):
        return {"stage": "fit", "levels": {"v1": {"samples": 1000, "loss": 0.5}, "v2": {"samples": 2000, "loss": 0.25}}}

class InStages(Strategy):
    name, version, games = "in-stages", "1", ("doudizhu",)

    @classmethod
    def trainer(cls):
        return {"collect": Collect, "fit": Fit}

    def player(self, table):
        raise NotImplementedError

@hookimpl
def bothost_strategies():
    return [InStages]
"""


NUMBERS = itertools.count()


@pytest.fixture
def in_stages(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("config.toml").write_text("")
    Path("plugins.d").mkdir()
    name = f"in_stages_{next(NUMBERS)}"  # a module of that name stays imported
    Path("plugins.d", f"{name}.py").write_text(IN_STAGES)


def test_a_trainer_with_stages_runs_the_one_that_is_named(in_stages, capsys):
    words = ["in-stages", "collect", "--records", "5", "--seed", "2", "--folder=a b", "--json"]
    code, text, _ = train(capsys, *words)
    figures = json.loads(text)
    assert code == 0 and figures["records"] == 5 and figures["folder"] == "a b"
    assert figures["command"] == "bothost train in-stages collect --seed 2 --option records=5 --option 'folder=a b'"
    code, text, _ = train(capsys, "in-stages", "fit")
    assert code == 0 and "levels  v1: samples 1,000, loss 0.5; v2: samples 2,000, loss 0.25\n" in text


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["in-stages"], "collect, fit"),
        (["in-stages", "--records", "5"], "collect, fit"),
        (["in-stages", "colect"], "collect, fit"),
        (["in-stages", "collect", "--record", "5"], "records"),
        (["in-stages", "collect", "--records"], "needs a value"),
        (["in-stages", "collect", "--records", "--seed", "1"], "needs a value"),
        (["in-stages", "collect", "5"], "unexpected argument"),
        (["in-stages", "collect", "--", "5"], "unexpected argument"),
        (["in-stages", "collect", "-r", "5"], "unexpected argument"),
        (["phase-ppo", "fit"], "no stages"),
        (["phase-ppo", "--ppo.epoch=1"], "epochs"),
        (["phase-ppo", "--iterations", "many"], "iterations"),
        (["phase-ppo", "--device", "cuda"], "error: options: phase-ppo: device"),
    ],
)
def test_stages_and_options_that_do_not_exist_are_refused_with_the_fix(in_stages, tmp_path, capsys, args, told):
    code, _, err = train(capsys, *args)
    assert code != 0 and told in err and "Traceback" not in err and "is a bug" not in err
    assert not Path("runs").exists()


IMITATES = """
from bothost import Strategy, Trainer, hookimpl

class Count(Trainer):
    name, learns_from_log = "imitates", True

    def train(self, run, report):
        moves = list(run.log.moves("doudizhu", run.players))
        return {"command": run.command, "players": list(run.players), "hands": len({m.game_id for m in moves}),
                "by": sorted({m.player for m in moves}), "query": run.log.lineage()["query"]}

class Imitates(Strategy):
    name, version, games = "imitates", "1", ("doudizhu",)

    @classmethod
    def trainer(cls):
        return Count

    def player(self, table):
        raise NotImplementedError

@hookimpl
def bothost_strategies():
    return [Imitates]
"""


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('return {"stage": "fit",', 'figures = {"stage": "fit",', "Fit returned NoneType"),
        ("    Options = Options", "    Options = dict", "Collect.Options is <class 'dict'>"),
        ('return {"collect": Collect, "fit": Fit}', 'return "fit"', "trainer returned 'fit'"),
        ('return {"collect": Collect, "fit": Fit}', "import numpyy", "needs numpyy"),
        ('return {"collect": Collect, "fit": Fit}', "from bothost import Triner", "cannot import name 'Triner'"),
    ],
)
def test_what_is_wrong_with_a_trainer_is_said(in_stages, capsys, old, new, told):
    (file,) = Path("plugins.d").iterdir()
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    code, _, err = train(capsys, "in-stages", "fit")
    assert code in (1, 2) and told in err and "fix: " in err and "Traceback" not in err and "is a bug" not in err
    assert "bothost[train]" not in err


def test_a_trainer_that_imitates_is_given_the_log_of_those_who_agreed(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("config.toml").write_text('[store]\nurl = "sqlite:///log.db"\n')
    Path("plugins.d").mkdir()
    Path("plugins.d", f"imitates_{next(NUMBERS)}.py").write_text(IMITATES)
    code, _, err = train(capsys, "imitates")
    assert code == 75 and "bothost db upgrade" in err
    assert main(["db", "upgrade"]) == 0
    game, day = rules.game("doudizhu"), 86_400_000_000
    hands = [played_hand(game, seed, started_us=time.time_ns() // 1000 - day * seed) for seed in range(4)]
    write_rows(load().store, tmp_path, hands)
    capsys.readouterr()
    code, _, err = train(capsys, "imitates", "--player", "ada")
    assert code == 2 and "bothost games consent ada --lobby home" in err
    for command in ["train", "imitates"], ["retrain", "fm-clone"], ["retrain", "fm-clone", "--watch"]:
        for option, mistyped, near in ("--lobby", "hom", "home"), ("--player", "adda", "ada"):
            assert main([*command, option, mistyped]) == 2
            assert f"did you mean {near!r}?" in capsys.readouterr().err
    assert main(["games", "consent", "ada", "--lobby", "home"]) == 0
    capsys.readouterr()
    code, text, _ = train(capsys, "imitates", "--player", "ada", "--since", "60h", "--lobby", "home", "--json")
    figures = json.loads(text)
    assert code == 0 and figures["players"] == figures["by"] == ["ada"] and figures["hands"] == 3
    assert figures["command"] == "bothost train imitates --seed 0 --player ada --lobby home --since 60h"
    assert figures["query"]["lobbies"] == ["home"]
    code, text, _ = train(capsys, "imitates", "--until", "60h", "--json")
    assert code == 0 and json.loads(text)["hands"] == 1
    code, _, err = train(capsys, "phase-ppo", "--player", "ada")
    assert code == 2 and "leave out --player" in err


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (
            ["phase-ppo"],
            ["Options of phase-ppo:", "--improve.deals int (>= 1)", "default: 24", "Playouts of each action"],
        ),
        (["doudizhu-mcts"], ["Stages of doudizhu-mcts", "distil", "collect", "Fit the networks to records."]),
        (["doudizhu-mcts", "distil"], ["Options of doudizhu-mcts distil:", "--teacher str", "default: deep-mc"]),
        (["--minutes", "3", "random"], ["random cannot be trained"]),
        (["phase-pp"], ["there is no strategy 'phase-pp'"]),
    ],
)
def test_the_help_lists_the_stages_and_options_of_a_strategy(arguments, shown, capsys):
    assert main(["train", *arguments, "--help"]) == 0
    text = capsys.readouterr().out
    assert "--minutes" in text and all(words in text for words in shown)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("phase-ppo", ["Options of phase-ppo, each as --option NAME=VALUE:", "  improve.deals int (>= 1)"]),
        ("doudizhu-mcts", ["  half_visits float (>= 0)"]),
        ("random", ["random does not learn from logged hands; strategies that do: deep-mc,"]),
    ],
)
def test_the_help_of_retrain_lists_the_options_of_the_trainer_that_learns_from_the_log(name, shown, capsys):
    assert main(["retrain", name, "--help"]) == 0
    text = capsys.readouterr().out
    assert "--watch" in text and all(words in text for words in shown)


def test_a_retraining_of_a_strategy_that_does_not_learn_names_those_that_do(capsys):
    assert main(["retrain", "rule-othello"]) == 2
    error = capsys.readouterr().err
    assert "does not learn from logged hands" in error and "deep-mc, doudizhu-mcts, fm-clone, " in error
