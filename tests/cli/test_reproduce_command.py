"""``bothost reproduce``: any plugin's experiment, its matches and what comes out of it."""

from __future__ import annotations

import importlib
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import bothost
from bothost import Reproduction, cli
from experiments import EXPERIMENTS

PLUGIN = """
from typing import ClassVar

import msgspec
from bothost import Contestant, Reproduced, Reproduction, ResultTable, Strategy, hookimpl


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    deals: int = 6


class Compare(Reproduction):
    name = "compared"
    Options: ClassVar = Options

    def run(self, run, report):
        sides = [Contestant("random"), Contestant("first-legal")]
        if (run.out / "weights").is_dir():
            sides[0] = Contestant("phase-ppo:mine", {"symmetries": 1}, run.out / "weights")
        figures = run.play("pairing", sides, deals=self.options.deals, seed=run.seed)
        report(1, "played", 1)
        (run.out / "plot.png").write_bytes(b"")
        table = ResultTable("Random play", ("deals", "wins"), ((str(figures["deals"]), f"{figures['wp']:.2f}"),))
        return Reproduced(figures=figures | {"full": run.full}, tables=(table,), plots=("plot.png",), notes=("small",))


class Compared(Strategy):
    name = "compared"
    version = "1"
    games = ("pairing",)

    def player(self, table): ...

    @classmethod
    def reproduction(cls):
        return Compare


@hookimpl
def bothost_strategies():
    return [Compared]
"""


@pytest.fixture(autouse=True)
def _plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "plugins.d").mkdir()
    (tmp_path / "plugins.d" / "compared.py").write_text(PLUGIN)
    (tmp_path / "config.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BOTHOST_CONFIG", raising=False)
    yield
    sys.modules.pop("compared", None)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def command(*argv: object) -> tuple[int, str, str]:
        code = cli.main(["reproduce", *(str(argument) for argument in argv)])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err

    return command


def test_a_reproduction_prints_its_tables_and_leaves_them_with_figures_and_plots(
    run: Callable[..., tuple[int, str, str]],
) -> None:
    code, out, _ = run("compared", "--out", "here", "--seed", "3")
    assert code == 0 and "Random play" in out and "results.md" in out and "small" in out
    text = Path("here/results.md").read_text()
    assert "bothost reproduce compared --seed 3" in text and "| deals | wins |" in text and "(plot.png)" in text
    record = json.loads(Path("here/results.json").read_text())
    assert record["figures"]["deals"] == 6 and record["figures"]["full"] is False and record["seconds"] >= 0
    code, out, _ = run("compared", "--out", "here", "--seed", "3", "--full", "--json")
    assert code == 0 and json.loads(out)["figures"]["full"] is True


def test_run_again_it_goes_on_where_its_matches_were(run: Callable[..., tuple[int, str, str]]) -> None:
    run("compared", "--out", "here")
    (journal,) = Path("here/matches").iterdir()
    first = journal.read_bytes()
    run("compared", "--out", "here", "--option", "deals=8")
    assert journal.read_bytes().startswith(first) and journal.read_bytes().count(b"\n") == first.count(b"\n") + 2
    assert [journal] == list(Path("here/matches").iterdir())


def test_a_contestant_plays_by_the_weights_of_a_folder(run: Callable[..., tuple[int, str, str]]) -> None:
    shipped = Path(__file__).parents[2] / "plugins" / "bothost_phase_ppo" / "weights"
    weights = Path("here/weights")
    manifest = json.loads((shipped / "manifest.json").read_text())
    name = manifest["aliases"]["level-1"]
    version = {name: manifest["versions"][name]}
    shutil.copytree(shipped / name, weights / name)
    (weights / "manifest.json").write_text(json.dumps({"versions": version, "aliases": {"mine": name}}))
    code, out, _ = run("compared", "--out", "here", "--workers", "2", "--json")
    assert code == 0 and json.loads(out)["figures"]["contestants"] == ["phase-ppo:mine", "first-legal"]
    (weights / "manifest.json").write_text(json.dumps({"versions": version, "aliases": {}}))
    code, _, err = run("compared", "--out", "here")
    assert code != 0 and "'mine'" in err and "here/weights" in err


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["compard"], "compared"),
        (["random"], "compared"),
        (["compared", "--option", "deal=1"], "deals"),
        (["compared", "--option", "deals"], "KEY=VALUE"),
        (["compared", "--out", "config.toml"], "is a file"),
    ],
)
def test_what_cannot_be_reproduced_is_refused_with_the_fix(
    run: Callable[..., tuple[int, str, str]], args: list[str], told: str
) -> None:
    code, _, err = run(*args)
    assert code != 0 and told in err and "is a bug" not in err
    assert sorted(path.name for path in Path().iterdir() if path.name != "__pycache__") == ["config.toml", "plugins.d"]


def test_every_experiment_of_the_checkout_loads_and_is_listed(run: Callable[..., tuple[int, str, str]]) -> None:
    for name, target in EXPERIMENTS.items():
        module, attribute = target.split(":")
        experiment = getattr(importlib.import_module(module), attribute)
        assert issubclass(experiment, Reproduction) and experiment.name == name
    code, _, err = run("nobody")
    assert code == 2 and all(name in err for name in [*EXPERIMENTS, "compared"])


def test_without_a_checkout_it_says_where_the_experiments_are(
    run: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(bothost, "__file__", str(tmp_path / "bothost" / "__init__.py"))
    code, _, err = run("phase-ppo")
    assert code == 2 and "experiments/" in err and "checkout" in err
    code, _, _ = run("compared", "--out", "here")  # what a plugin brings runs anywhere
    assert code == 0
