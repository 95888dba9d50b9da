"""``bothost plugin new --from-sb3``: a policy becomes a strategy, and a hostile file is refused unopened."""

import io
import json
import pickle
import zipfile
from pathlib import Path

import pytest
import torch

from bothost import rules
from bothost.cli.from_sb3 import read_policy
from bothost.errors import UsageError

OTHELLO = rules.game("othello")


def state(inputs: int = 192, actions: int = 65) -> dict[str, torch.Tensor]:
    torch.manual_seed(1)
    shapes = {
        "mlp_extractor.policy_net.0": (8, inputs),
        "mlp_extractor.policy_net.2": (8, 8),
        "action_net": (actions, 8),
    }
    out = {f"{name}.weight": torch.randn(shape) for name, shape in shapes.items()}
    return out | {f"{name}.bias": torch.randn(shape[0]) for name, shape in shapes.items()}


def archive(path: Path, policy: object = None, data: object = None) -> Path:
    saved = io.BytesIO()
    torch.save(state() if policy is None else policy, saved)
    with zipfile.ZipFile(path, "w") as out:
        out.writestr("policy.pth", policy if isinstance(policy, bytes) else saved.getvalue())
        out.writestr("data", json.dumps({"policy_kwargs": {}} if data is None else data))
    return path


def test_the_policy_is_read_as_it_was_trained(tmp_path):
    policy = read_policy(archive(tmp_path / "model.zip"), OTHELLO, None)
    assert (policy.activation, policy.block) == ("tanh", "board")
    assert policy.tensors["0.weight"].shape == (8, 192)
    assert policy.tensors["2.bias"].tolist() == state()["action_net.bias"].tolist()
    relu = {"policy_kwargs": {"activation_fn": "<class 'torch.nn.modules.activation.ReLU'>", ":serialized:": "x"}}
    assert read_policy(archive(tmp_path / "relu.zip", data=relu), OTHELLO, "squares").activation == "relu"


def test_it_becomes_a_strategy_with_a_test_that_passes(run, run_tests, tmp_path):
    Path("config.toml").write_text("")
    target = tmp_path / "plugins.d" / "bothost-mine"
    model = archive(tmp_path / "model.zip")
    code, out, _ = run("plugin", "new", "mine", "--game", "othello", "--from-sb3", model, "--dir", target)
    assert code == 0
    assert "policy.safetensors" in out
    assert "1 passed" in run_tests(target, target)


class Bomb:
    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self):
        return Path.touch, (self.mark,)


def test_nothing_is_unpickled(tmp_path):
    mark = tmp_path / "exploded"
    for number, policy in enumerate([{"action_net.weight": Bomb(mark)}, pickle.dumps(Bomb(mark))]):
        with pytest.raises(UsageError, match="not a model of Stable-Baselines3"):
            read_policy(archive(tmp_path / f"{number}.zip", policy), OTHELLO, None)
    assert not mark.exists()


@pytest.mark.parametrize(
    ("policy", "data", "message"),
    [
        ([torch.zeros(2)], None, "not a mapping of tensors"),
        ({"action_net.weight": torch.zeros(65, 8)}, None, "has no tensor"),
        (state(inputs=191), None, "does not take 192 inputs"),
        (state(actions=64), None, "chooses among 64 actions, othello has 65"),
        (state() | {"features_extractor.cnn.0.weight": torch.zeros(1)}, None, "a separate feature extractor"),
        (state() | {"action_net.bias": torch.full((65,), float("nan"))}, None, "not finite"),
        (None, [], "not a model of Stable-Baselines3"),
        (None, {"policy_kwargs": {"activation_fn": "<class 'ELU'>"}}, "ELU"),
    ],
)
def test_other_files_are_refused(policy, data, message, tmp_path):
    with pytest.raises(UsageError, match=message):
        read_policy(archive(tmp_path / "model.zip", policy, data), OTHELLO, None)


def test_what_is_no_archive_is_refused(tmp_path):
    (tmp_path / "model.zip").write_bytes(b"PK no zip")
    for name in ("model.zip", "absent.zip"):
        with pytest.raises(UsageError, match="not a model of Stable-Baselines3"):
            read_policy(tmp_path / name, OTHELLO, None)


def test_a_model_makes_no_game(run, tmp_path):
    model = archive(tmp_path / "model.zip")
    code, _, err = run("plugin", "new", "mine", "--kind", "game", "--from-sb3", model, "--dir", tmp_path / "x")
    assert code == 2
    assert "a model makes no game" in err
