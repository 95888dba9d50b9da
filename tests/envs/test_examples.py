"""The examples that train do train."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples/envs"


@pytest.mark.long
@pytest.mark.timeout(1800)  # two minutes of processor time, beside other tests
def test_maskable_ppo_learns_to_beat_random_play(tmp_path):
    pytest.importorskip("sb3_contrib")
    out = tmp_path / "othello.zip"
    command = [sys.executable, str(EXAMPLES / "maskable_ppo.py"), "--steps", "20000", "--out", str(out)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=1700).stdout
    before, after = (float(mean) for mean in re.findall(r"mean score (\S+),", printed))
    assert before < 0.3
    assert after > 0.4
    assert out.stat().st_size > 0


@pytest.mark.long
def test_ppo_in_one_file_learns_to_beat_random_play(tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("matplotlib")
    plot = tmp_path / "wins.png"
    command = [sys.executable, str(EXAMPLES / "ppo.py"), "--total-timesteps", "60000", "--evaluations", "1"]
    printed = subprocess.run([*command, "--plot", str(plot)], capture_output=True, text=True, check=True).stdout
    before, after = (float(wins) for wins in re.findall(r"wins (\S+)%,", printed))
    assert before < 60
    assert after > 75
    assert plot.stat().st_size > 1000


@pytest.mark.long
@pytest.mark.timeout(900)
def test_rllib_learns_to_beat_random_play():
    for name in ("tree", "lz4", "ormsgpack"):
        pytest.importorskip(name, reason=f"RLlib needs {name}: make test-extras")
    command = [sys.executable, str(EXAMPLES / "rllib.py"), "--iterations", "5"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    before, after = (float(mean) for mean in re.findall(r"mean score (\S+),", printed))
    assert before < 0.2
    assert after > 0.3


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_notebook_goes_from_logged_games_to_a_model_that_plays(tmp_path):
    for name in ("nbclient", "ipykernel", "minari", "sb3_contrib"):
        pytest.importorskip(name, reason=f"the notebook needs {name}: make test-extras")
    notebook = Path(shutil.copy(EXAMPLES.parent / "notebooks/from_log_to_model.ipynb", tmp_path))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    execute = [sys.executable, "-c", "from nbclient.cli import main; main()", notebook, "--inplace"]
    subprocess.run(execute, check=True, cwd=tmp_path, env=os.environ | {"PATH": path})
    played = json.loads(notebook.read_text())["cells"][-1]["outputs"]
    text = "".join(line for output in played for line in output["text"])
    assert float(re.search(r"A wins +([\d.]+)", text)[1]) > 0.7, text
