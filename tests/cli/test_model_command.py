"""``bothost model``: import, list, show, promote through the gate, roll back."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from bothost.cli import main
from bothost.config import StoreSettings
from bothost.errors import UsageError
from bothost.plugins import weights
from bothost.store import schema
from bothost_phase_ppo.decide import PhasePpo

VERSIONS = {n: weights.manifest(PhasePpo).aliases[f"level-{n}"] for n in range(1, 6)}
"""Level → the version that comes with the package."""

WEIGHTS = Path(weights.folder(PhasePpo))
WITHOUT_SEARCH = ("--option", "playouts=0")
"""The networks alone decide matches: playouts would take most of the time."""


@pytest.fixture
def model(tmp_path, monkeypatch, capsys):
    """Runs ``bothost model …`` in a folder with a configuration and an empty database."""
    (tmp_path / "config.toml").write_text('[host]\ndata_dir = "var"\n[store]\nurl = "sqlite:///var/bothost.db"\n')
    monkeypatch.chdir(tmp_path)
    schema.upgrade(StoreSettings(url=f"sqlite:///{tmp_path}/var/bothost.db"))

    def run(*args: str) -> tuple[int, str, str]:
        code = main(["model", *args])
        out, err = capsys.readouterr()
        return code, out, err

    return run


def aliases(model):
    listed = json.loads(model("list", "phase-ppo", "--json")[1])
    return {alias: item["version"] for item in listed for alias in item["aliases"]}


def test_what_comes_with_the_package_is_listed_and_shown(model):
    assert aliases(model)["champion"] == VERSIONS[5]
    code, out, _ = model("show", "phase-ppo")
    assert code == 0 and VERSIONS[5] in out and "model.safetensors" in out


def test_a_damaged_package_hides_no_other(model, tmp_path, monkeypatch):
    (tmp_path / "manifest.json").write_text("{")
    usual = weights.folder
    monkeypatch.setattr(weights, "folder", lambda cls: tmp_path if cls.name == "phase-ppo" else usual(cls))
    code, out, err = model("list")
    assert code == 0 and "deep-mc" in out and "phase-ppo" not in out and "manifest.json cannot be read" in err
    code, _, err = model("list", "phase-ppo")
    assert code != 0 and "manifest.json cannot be read" in err


def test_an_imported_model_becomes_challenger_and_a_better_one_champion(model):
    assert model("promote", f"phase-ppo:{VERSIONS[1]}", "--force")[0] == 0
    assert aliases(model)["champion"] == VERSIONS[1]
    code, out, _ = model("import", "phase-ppo", str(WEIGHTS), "--of", "level-4", "--json")
    assert code == 0 and json.loads(out)["version"] == "r1" and json.loads(out)["alias"] == "challenger"
    assert aliases(model)["challenger"] == "r1"
    code, out, err = model("promote", "phase-ppo", "--deals", "200", "--json")
    found = json.loads(out)
    assert code == 0, err
    assert found["version"] == "r1" and found["match"]["better"] and found["match"]["p_better"] <= 0.05
    assert aliases(model)["champion"] == "r1" and "challenger" not in aliases(model)
    lineage = json.loads(model("show", "phase-ppo:r1", "--json")[1])
    assert lineage["lineage"]["kind"] == "import" and lineage["history"][0]["version"] == VERSIONS[1]
    assert "better" in lineage["history"][-2]["reason"]

    assert json.loads(model("rollback", "phase-ppo", "--json")[1])["version"] == VERSIONS[1]
    assert model("rollback", "phase-ppo")[0] == 0
    assert aliases(model)["champion"] == VERSIONS[5]


def test_a_worse_challenger_is_refused_with_the_numbers(model):
    code, _, err = model("promote", f"phase-ppo:{VERSIONS[1]}", "--deals", "24", *WITHOUT_SEARCH)
    assert code == 1 and "not promoted" in err and f"is worse than phase-ppo:{VERSIONS[5]}" in err
    assert "deals" in err and "95 %" in err and "p = " in err and "--force" in err
    assert aliases(model)["champion"] == VERSIONS[5]


def test_options_of_play_reach_both_players_of_the_match(model):
    match = ("promote", f"phase-ppo:{VERSIONS[4]}", "--deals", "2", *WITHOUT_SEARCH)
    code, _, err = model(*match, "--option", "no_such_option=1")
    assert code != 0 and "no_such_option" in err
    for option in ("temperature=0.5", "temperature=1.0"):
        code, _, err = model(*match, "--option", option)
        assert code == 1 and "not shown to be better" in err  # each match has a journal of its own


def test_matches_of_different_games_have_journals_of_their_own(model, monkeypatch):
    """Else the second match of a strategy for several games is refused: the journal holds another one."""
    journals = []

    def refused(*_, journal, **how):
        journals.append(journal)
        raise UsageError("not played")

    monkeypatch.setattr("bothost.retrain.gate.play", refused)
    for game in ("pairing", "othello", "othello"):
        model("promote", f"phase-ppo:{VERSIONS[4]}", "--game", game)
    first, second, again = journals
    assert first != second == again


def test_without_a_challenger_the_command_that_makes_one_is_named(model):
    code, _, err = model("promote", "phase-ppo")
    assert code == 1 and "phase-ppo has no challenger" in err and "bothost retrain phase-ppo" in err


def test_one_who_is_no_better_is_refused_and_champions_are_not_matched_with_themselves(model):
    code, _, err = model("promote", f"phase-ppo:{VERSIONS[5]}")
    assert code == 2 and "is the champion already" in err
    code, _, err = model("promote", f"phase-ppo:{VERSIONS[4]}", "--deals", "2")
    assert code == 1 and "not shown to be better" in err


def test_who_is_compared_on_held_out_hands_needs_more_of_them_not_deals(model, monkeypatch):
    monkeypatch.setattr("bothost.retrain.gate.gains", lambda *_: iter([0.1, 0.0]))
    code, _, err = model("promote", f"phase-ppo:{VERSIONS[4]}")
    assert code == 1 and "2 held-out hands" in err and "let the player play more hands" in err and "--deals" not in err


def test_shadow_canary_and_levels_need_no_match(model):
    assert "10%" in model("promote", f"phase-ppo:{VERSIONS[4]}", "--to", "canary")[1]
    assert model("promote", f"phase-ppo:{VERSIONS[3]}", "--to", "shadow")[0] == 0
    assert model("promote", f"phase-ppo:{VERSIONS[1]}", "--to", "level-2")[0] == 0
    found = aliases(model)
    assert (found["canary=0.1"], found["shadow"], found["level-2"]) == (VERSIONS[4], VERSIONS[3], VERSIONS[1])
    assert "phase-ppo:canary → none (rollback" in model("rollback", "phase-ppo", "--alias", "canary")[1]
    code, _, err = model("promote", f"phase-ppo:{VERSIONS[4]}", "--to", "best")
    assert code == 2 and "not an alias" in err
    assert model("rollback", "phase-ppo", "--alias", "best")[0] == 2


def test_what_is_wrong_is_refused_with_a_fix(model, tmp_path):
    shutil.copytree(WEIGHTS, tmp_path / "weights")
    path = tmp_path / "weights" / VERSIONS[5] / "model.safetensors"
    path.write_bytes(path.read_bytes()[:5000])
    code, _, err = model("import", "phase-ppo", str(tmp_path / "weights"))
    assert code == 1 and "sha256" in err and "truncated" in err
    code, _, err = model("import", "phase-ppo", str(tmp_path / "weights"), "--of", "level-9")
    assert code == 2 and "level-" in err
    code, _, err = model("import", "phase-ppo", str(WEIGHTS), "--version", "my model")
    assert code == 2 and "'my model' is not a valid version name" in err
    code, _, err = model("import", "phase-ppo", str(tmp_path))
    assert code == 1 and "manifest.json" in err
    manifest = json.loads((tmp_path / "weights" / "manifest.json").read_text())
    manifest["versions"][VERSIONS[1]]["encoder_version"] = 1
    (tmp_path / "weights" / "manifest.json").write_text(json.dumps(manifest))
    code, _, err = model("import", "phase-ppo", str(tmp_path / "weights"), "--of", "level-1")
    assert code == 1 and "encoder version" in err
    assert [item for item in json.loads(model("list", "--json")[1]) if item["created"]] == []
    assert model("promote", "nobody:r1")[0] != 0 and model("show", "phase-ppo:r7")[0] == 2
    assert "see bothost model list phase-ppo" in model("rollback", "phase-ppo")[2]


@pytest.mark.parametrize(
    ("alias", "told"),
    [
        ("chalenger", "'chalenger' is not an alias"),
        ("canary", "bothost model promote NAME:VERSION --to canary"),  # it would have no share of the tables
    ],
)
def test_an_alias_that_an_import_cannot_have_is_refused_before_anything_is_registered(model, tmp_path, alias, told):
    shutil.copytree(WEIGHTS, tmp_path / "weights")
    before = aliases(model)
    for how in (("import", "phase-ppo", str(tmp_path / "weights")), ("pull", "phase-ppo", str(tmp_path / "absent"))):
        code, _, err = model(*how, "--version", "mine", "--alias", alias)
        assert code == 2 and told in err
    assert aliases(model) == before
    assert [item for item in json.loads(model("list", "--json")[1]) if item["created"]] == []


def test_a_rollback_undoes_an_import_that_was_repeated(model):
    for _ in range(2):
        assert model("import", "phase-ppo", str(WEIGHTS), "--of", "level-1")[0] == 0
    assert "phase-ppo:challenger → none (rollback" in model("rollback", "phase-ppo", "--alias", "challenger")[1]


def test_a_folder_that_is_no_model_of_the_strategy_is_refused_with_what_is_wrong(model, tmp_path):
    _, _, err = model("import", "phase-ppo", str(tmp_path / "absent"))
    assert "manifest.json cannot be read: No such file or directory\n" in err and "Errno" not in err
    shutil.copytree(WEIGHTS, tmp_path / "weights")
    manifest = json.loads((tmp_path / "weights" / "manifest.json").read_text())
    manifest["aliases"]["champion"] = "v99"
    manifest["versions"][VERSIONS[1]]["encoder_version"] = 1
    (tmp_path / "weights" / "manifest.json").write_text(json.dumps(manifest))
    _, _, err = model("import", "phase-ppo", str(tmp_path / "weights"))
    assert "has no version 'v99', for which its alias 'champion' stands" in err and "did you mean 'champion'" not in err
    _, _, err = model("import", "deep-mc", str(tmp_path / "weights"), "--of", "level-1")
    assert "trained for deep-mc" in err and "import the model again" not in err


def test_files_of_any_depth_are_read_or_refused(model, tmp_path):
    deep = '{"versions": {}, "deep": ' + "[" * 100_000 + "]" * 100_000 + "}"
    shutil.copytree(WEIGHTS, tmp_path / "weights")
    (tmp_path / "weights" / "lineage.json").write_text(deep)
    assert model("import", "phase-ppo", str(tmp_path / "weights"), "--of", "level-1")[0] == 0
    (tmp_path / "weights" / "manifest.json").write_text(deep)
    code, _, err = model("import", "phase-ppo", str(tmp_path / "weights"), "--of", "level-1")
    assert code == 1 and "manifest.json cannot be read" in err


def test_a_strategy_whose_package_has_no_model_may_have_some_in_the_registry(model):
    code, _, err = model("show", "random:r1")
    assert code == 2 and "its package has no models" in err and "bothost model list" in err


LEARNER = """
from bothost import Strategy, Trainer, hookimpl

class Teaches(Trainer):
    name = "pupil"
    def train(self, run, report): return {}

class Pupil(Strategy):
    name, version, games = "pupil", "1", ("othello",)
    def player(self, table): raise NotImplementedError
    @classmethod
    def trainer(cls): return Teaches

@hookimpl
def bothost_strategies(): return [Pupil]
"""


def test_where_no_version_is_the_champion_the_advice_names_the_others(model, tmp_path):
    (tmp_path / "plugins.d").mkdir()
    (tmp_path / "plugins.d" / "pupil_of_a_test.py").write_text(LEARNER)
    (tmp_path / "weights" / "one").mkdir(parents=True)
    (tmp_path / "weights" / "one" / "model.json").write_text("{}")
    files = {"model.json": hashlib.sha256(b"{}").hexdigest()}
    made = {"aliases": {"champion": "one"}, "versions": {"one": {"files": files, "encoder_version": None}}}
    (tmp_path / "weights" / "manifest.json").write_text(json.dumps(made))
    assert model("import", "pupil", str(tmp_path / "weights"))[0] == 0  # the challenger
    code, _, err = model("show", "pupil")
    assert code == 1 and "pupil has no champion" in err and "bothost model list pupil" in err
    assert model("show", "pupil:r1")[0] == 0


@pytest.mark.parametrize("arguments", [("show", "random"), ("promote", "random"), ("push", "random", "elsewhere")])
def test_a_strategy_that_cannot_learn_has_no_models(model, arguments):
    code, _, err = model(*arguments)
    assert code == 1 and "random has no models" in err and "phase-ppo" in err and "retrain" not in err
