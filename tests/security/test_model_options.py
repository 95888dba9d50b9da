"""JSON files of a stranger's model: the options in its ``play.json``, and how large they may be."""

import json

import pytest

from bothost import Model
from bothost.errors import ModelError
from bothost.plugins import Plugins
from bothost.plugins.weights import sha256_of
from bothost.store import model_files
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


def test_json_that_would_fill_the_memory_is_refused_by_its_size(tmp_path):
    """Two gigabytes of empty lists would take forty."""
    file = tmp_path / "table.json"
    with file.open("wb") as written:
        written.truncate(model_files.MAX_JSON + 1)
    with pytest.raises(ModelError, match="larger than 64 MiB"):
        model_files.check(tmp_path, {"table.json": "0" * 64})
