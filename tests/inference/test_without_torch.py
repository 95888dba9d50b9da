"""Playing needs no torch: every trained strategy plays in a process that cannot import it."""

import subprocess
import sys

PLAY = """
import sys

SHORT = {"doudizhu-mcts": ["--option", "A.iterations=20"]}  # else it would search for seconds
TRAINING = {"torch", "onnx", "matplotlib", "tensorboard", "ray"}

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in TRAINING:
            raise ModuleNotFoundError(f"{name} is blocked", name=name)

sys.meta_path.insert(0, Blocked())
from bothost.cli import main
from bothost.plugins import Plugins, weights

for name, strategy in Plugins.load(None).strategies.items():
    for game in strategy.games if weights.manifest(strategy) is not None else ():
        assert main(["arena", game, name, "first-legal", "--deals", "1", *SHORT.get(name, [])]) == 0, (game, name)
        print("played", game, name)
assert main(["init"]) == 0
assert main(["retrain", "phase-ppo"]) == 2  # names the command that installs torch
assert not TRAINING & set(sys.modules)
"""


def test_every_trained_strategy_plays_where_torch_cannot_be_imported(tmp_path):
    done = subprocess.run([sys.executable, "-c", PLAY], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "training phase-ppo needs torch" in done.stderr and 'pip install "bothost[train]"' in done.stderr
    played = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("played")]
    assert sorted(played) == [
        ["doudizhu", "deep-mc"],
        ["doudizhu", "doudizhu-mcts"],
        ["doudizhu", "fm-clone"],
        ["mahjong", "fm-clone"],
        ["mahjong", "mahjong-ppo"],
        ["othello", "fm-clone"],
        ["pairing", "phase-ppo"],
    ]
