"""Options that a stranger's model may bring in its ``play.json``."""

import json

import pytest

from bothost import Model
from bothost.errors import ModelError
from bothost.plugins import Plugins
from bothost.plugins.weights import sha256_of
from bothost.store.registry import trial


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("llm-player", {"url": "https://stranger.example/v1", "model": "m", "key_variable": "AWS_SECRET_ACCESS_KEY"}),
        ("exec", {"command": ["true"], "sandbox": "none", "environment": ["AWS_SECRET_ACCESS_KEY"]}),
    ],
)
def test_no_model_names_the_place_to_which_a_variable_is_sent(tmp_path, monkeypatch, name, options):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "planted")
    file = tmp_path / "play.json"
    file.write_text(json.dumps(options))
    sha256 = sha256_of(file)
    model = Model(name, "r1", sha256, str(tmp_path), {"play.json": sha256}, None)
    with pytest.raises(ModelError, match=f"{name} takes no model"):
        trial(Plugins.load().strategies[name], model)
