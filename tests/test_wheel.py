"""The wheel on a machine without a compiler: install it into a fresh environment, play, export, retrain."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from functools import partial
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def wheel() -> Path:
    for old in (ROOT / "dist").glob("*"):
        old.unlink()
    subprocess.run(["make", "wheel"], cwd=ROOT, check=True)
    (found,) = (ROOT / "dist").glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of an environment that holds the wheel and its dependencies, and no compiler."""
    folder = tmp_path_factory.mktemp("fresh")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    pip = [folder / "bin" / "pip", "install", "--quiet", "--only-binary", ":all:"]
    subprocess.run([*pip, "-c", ROOT / "constraints.txt", wheel], check=True, env=environment(folder))
    return folder / "bin"


def run(installed: Path, folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    line, env = [str(installed / "bothost"), *args], environment(installed.parent)
    return subprocess.run(line, cwd=folder, env=env, capture_output=True, text=True, timeout=300)


def environment(folder: Path) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if key.startswith("PIP_") or key in ("LANG", "TMPDIR")}
    return kept | {"PATH": str(folder / "bin"), "HOME": str(folder)}


def test_the_wheel_is_for_every_linux_of_its_kind(wheel: Path) -> None:
    assert "manylinux" in wheel.name
    assert list((ROOT / "dist").glob("bothost-*.tar.gz"))


def test_it_holds_no_experiments_and_nothing_of_the_tests(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert [name for name in names if name.startswith(("experiments", "tests")) or "_testing" in name] == []
    assert "bothost/__init__.py" in names


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder where it plays."""
    return tmp_path_factory.mktemp("played")


def test_it_plays_exports_and_says_what_training_needs(installed: Path, played: Path) -> None:
    env = environment(installed.parent)
    assert shutil.which("cc", path=env["PATH"]) is None and shutil.which("g++", path=env["PATH"]) is None

    bothost = partial(run, installed, played)
    demo = bothost("demo", "--hands", "2", "--no-web", "--json")
    assert demo.returncode == 0, demo.stderr
    status = json.loads(demo.stdout)
    assert status["hands"] >= 2 and status["fallbacks"] == {}
    assert bothost("demo", "--hands", "4", "--game", "pairing", "--no-web").returncode == 0
    hands = bothost("games", "list", "--closed", "--json")
    assert hands.returncode == 0 and json.loads(hands.stdout)
    assert bothost("export", "--out", "exports").returncode == 0
    retrain = bothost("retrain", "phase-ppo")
    assert retrain.returncode == 2
    assert "needs torch" in retrain.stderr and 'pip install "bothost[train]"' in retrain.stderr


def test_it_retrains_with_the_extra(wheel: Path, installed: Path, played: Path) -> None:
    pip = [installed / "pip", "install", "--quiet", "--only-binary", ":all:", "-c", ROOT / "constraints.txt"]
    subprocess.run([*pip, f"{wheel}[train]"], check=True, env=environment(installed.parent))
    bothost = partial(run, installed, played)
    retrain = bothost("retrain", "phase-ppo", "--minutes", "0.1", "--json")
    assert retrain.returncode == 0, retrain.stderr
    version = json.loads(retrain.stdout)["version"]
    promoted = bothost("model", "promote", f"phase-ppo:{version}", "--force")
    assert promoted.returncode == 0, promoted.stderr
    assert bothost("arena", "pairing", f"phase-ppo:{version}", "random", "--deals", "2").returncode == 0
