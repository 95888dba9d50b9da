"""Published models: pushed, pulled, signed; and what is wrong with them is refused before anything uses it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import fsspec
import pytest
from fake_hub import FakeHub

from bothost.cli import main
from bothost.config import StoreSettings
from bothost.errors import ModelError, UsageError
from bothost.plugins.weights import Version
from bothost.store import hub, schema

DATA = b'{"playouts": 4}'
FILES = {"play.json": hashlib.sha256(DATA).hexdigest()}


@pytest.fixture
def model(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "play.json").write_bytes(DATA)
    return tmp_path / "model"


@pytest.fixture
def bucket():
    system = fsspec.filesystem("memory")
    yield "memory://models/best"
    with contextlib.suppress(FileNotFoundError):
        system.rm("/models", recursive=True)


def keys(folder: Path) -> tuple[Path, Path]:
    private, public = folder / "key.pem", folder / "key.pub"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", private], check=True)
    subprocess.run(["openssl", "pkey", "-in", private, "-pubout", "-out", public], check=True)
    return private, public


@pytest.mark.parametrize("where", ["memory", "folder", "file URL"])
def test_what_is_pushed_is_pulled(where, model, bucket, tmp_path):
    folder = tmp_path / "共享 50%25? a::b"
    url = {"memory": bucket, "folder": str(folder), "file URL": f"file://{tmp_path}/shared"}[where]
    pushed = hub.push(url, model, "v1", Version(FILES, 3))
    assert (folder / "manifest.json").exists() == (where == "folder")
    assert hub.pull(url, tmp_path / "got", sha256=pushed) == pushed
    assert (tmp_path / "got" / "play.json").read_bytes() == DATA
    manifest = json.loads((tmp_path / "got" / "manifest.json").read_bytes())
    assert manifest["versions"]["v1"] == {"files": FILES, "encoder_version": 3}
    assert hashlib.sha256((tmp_path / "got" / "manifest.json").read_bytes()).hexdigest() == pushed


def test_a_signature_vouches_for_the_manifest(model, bucket, tmp_path):
    pytest.importorskip("cryptography")
    (tmp_path / "other").mkdir()
    private, public = keys(tmp_path)
    _, stranger = keys(tmp_path / "other")
    hub.push(bucket, model, "v1", Version(FILES), private)
    hub.pull(bucket, tmp_path / "a", public_key=public)
    with pytest.raises(ModelError, match="is wrong"):
        hub.pull(bucket, tmp_path / "b", public_key=stranger)
    with pytest.raises(UsageError, match="not a readable public"):
        hub.pull(bucket, tmp_path / "b", public_key=private)
    hub.push(bucket, model, "v2", Version(FILES))  # unsigned: the old signature goes
    with pytest.raises(ModelError, match=r"no manifest\.json\.sig"):
        hub.pull(bucket, tmp_path / "c", public_key=public)


def test_another_manifest_than_announced_is_refused(model, bucket, tmp_path):
    hub.push(bucket, model, "v1", Version(FILES))
    with pytest.raises(ModelError, match="has sha256"):
        hub.pull(bucket, tmp_path / "got", sha256="0" * 64)
    assert not (tmp_path / "got").exists()


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        (b"\xff", "is not a valid manifest"),
        (b"[" * 100_000, "is not a valid manifest"),
        (b'{"versions": {"\xe9": {}}}', "is not a valid manifest"),
        (b'{"versions": {}, "more": ' + b"[" * 100_000, "is not a valid manifest"),
        (b" " * (hub.MAX_MANIFEST + 1), "larger than"),
        (json.dumps({"versions": {}}).encode(), "has 0 versions"),
        (json.dumps({"versions": {"v": {"files": {"../x.json": "0" * 64}}}}).encode(), "is not allowed"),
        (json.dumps({"versions": {"v": {"files": {"/etc/x.json": "0" * 64}}}}).encode(), "is not allowed"),
        (json.dumps({"versions": {"v": {"files": {"model.pkl": "0" * 64}}}}).encode(), "is not allowed"),
        (json.dumps({"versions": {"v": {"files": {"manifest.json": "0" * 64}}}}).encode(), "is not allowed"),
        (json.dumps({"versions": {"v": {"files": {"a.json": "no hash"}}}}).encode(), "is not allowed"),
        (json.dumps({"versions": {"v": {"files": {"gone.json": "0" * 64}}}}).encode(), "has no gone.json"),
        (json.dumps({"versions": {"v": {"files": {"play.json": "0" * 64}}}}).encode(), "does not have the sha256"),
    ],
)
def test_hostile_models_are_refused(manifest, words, model, bucket, tmp_path):
    hub.push(bucket, model, "v1", Version(FILES))
    system, path = hub.place(bucket)
    system.pipe_file(f"{path}/manifest.json", manifest)
    with pytest.raises(ModelError, match=words):
        hub.pull(bucket, tmp_path / "got")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("ftp://host/x", "is not supported for models"),
        ("https://host/x", "is not supported for models"),
        ("memory://a::file:///etc", "is not supported for models"),
        ("s3://key:secret@bucket/x", "credentials"),
        ("s3://bucket/x?token=1", "credentials"),
    ],
)
def test_addresses_that_are_refused(url, words):
    with pytest.raises(UsageError, match=words):
        hub.place(url)


@pytest.mark.parametrize("verb", ["push", "pull"])
def test_an_empty_address_is_not_this_folder(verb, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["model", verb, "phase-ppo", ""]) == 2
    assert "it is empty" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_by_the_command_line_a_pulled_model_becomes_a_challenger(tmp_path, monkeypatch, capsys):
    (tmp_path / "config.toml").write_text('[host]\ndata_dir = "var"\n[store]\nurl = "sqlite:///var/bothost.db"\n')
    monkeypatch.chdir(tmp_path)
    schema.upgrade(StoreSettings(url=f"sqlite:///{tmp_path}/var/bothost.db"))
    assert main(["model", "push", "phase-ppo:level-4", "shared", "--json"]) == 0
    sha256 = json.loads(capsys.readouterr().out)["manifest_sha256"]
    assert main(["model", "pull", "phase-ppo", "shared", "--sha256", sha256, "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["alias"], made["lineage"]["manifest_sha256"]) == ("challenger", sha256)
    assert main(["model", "pull", "deep-mc", "shared", "--sha256", sha256]) == 1  # a model of another strategy
    weights = next((tmp_path / "shared").glob("*.safetensors"))
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    assert main(["model", "pull", "phase-ppo", "shared", "--sha256", sha256]) == 1
    assert "does not have the sha256" in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.filterwarnings("default")  # those inside the storage's client are not ours
def test_s3_compatible_storage(model, tmp_path, monkeypatch):
    pytest.importorskip("s3fs")
    server = pytest.importorskip("moto.server").ThreadedMotoServer("127.0.0.1", port=0)
    server.start()
    try:
        host, port = server.get_host_and_port()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        hub.place("s3://models/best")[0].mkdir("models")
        pushed = hub.push("s3://models/best", model, "v1", Version(FILES))
        assert hub.pull("s3://models/best", tmp_path / "got", sha256=pushed) == pushed
        assert (tmp_path / "got" / "play.json").read_bytes() == DATA
    finally:
        server.stop()


ON_THE_HUB = """
import sys
from pathlib import Path
from bothost.plugins.weights import Version
from bothost.store import hub

model, files, into = Path(sys.argv[1]), {"play.json": sys.argv[2]}, Path(sys.argv[3])
pushed = hub.push("hf://me/models/best", model, "v1", Version(files, 3))
assert hub.pull("hf://me/models/best", into, sha256=pushed) == pushed
"""


@pytest.mark.parametrize("token", ["planted-token", "wrong"])
def test_a_hugging_face_repository(token, model, tmp_path):
    """At a fake of the Hub. The client reads its settings when it is imported: hence a process of its own."""
    pytest.importorskip("huggingface_hub")
    with FakeHub("me/models", "planted-token") as server:
        settings = {
            "HF_ENDPOINT": server.url,
            "HF_TOKEN": token,
            "HF_HOME": str(tmp_path / "hf"),
            "HF_HUB_OFFLINE": "0",
        }
        run = subprocess.run(
            [sys.executable, "-c", ON_THE_HUB, model, FILES["play.json"], tmp_path / "got"],
            env={**os.environ, **settings, "HF_HUB_DISABLE_TELEMETRY": "1"},
            capture_output=True,
            text=True,
            timeout=120,
        )
        if token == "wrong":
            assert "hf://me/models/best cannot be written" in run.stderr and not server.files
            assert "wrong" not in run.stderr.rpartition("ModelError")[2]
        else:
            assert run.returncode == 0, run.stderr
            assert set(server.files) == {"best/play.json", "best/manifest.json"}
            assert (tmp_path / "got" / "play.json").read_bytes() == DATA
