import pytest

from bothost import Model, TrainingRun
from bothost.errors import UsageError
from bothost.training.checkpoint import Progress
from bothost.training.publish import lineage_of, parameters_file


def test_a_lineage_says_by_what_command_and_on_how_many_processes_a_model_was_made(tmp_path):
    run = TrainingRun(out=tmp_path, seed=1, command="bothost train x --seed 1")
    alone = lineage_of(run, Progress(seed=1, options={"workers": 0}), 3, {"samples": 7})
    assert list(alone) == ["command", "seed", "encoder_version", "machine", "samples", "options"]
    assert alone["command"] == run.command and alone["encoder_version"] == 3 and alone["samples"] == 7
    assert alone["machine"].startswith("one core of a ")
    many = lineage_of(run, Progress(seed=1, options={"workers": 4}), 3, {})
    assert many["machine"].startswith("4 processes that play, on a ")


def test_a_version_that_sees_another_encoding_is_no_beginning(tmp_path):
    version = Model("x", "v7", "00", str(tmp_path), encoder_version=2)
    assert parameters_file(version, 2) == tmp_path / "model.safetensors"
    with pytest.raises(UsageError, match=r"x:v7 sees version 2 .* for version 1"):
        parameters_file(version, 1)
