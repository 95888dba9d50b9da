import platform
import subprocess
import sys

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper

from bothost import Model, ModelError
from bothost.inference import Session
from bothost.plugins.weights import model_sha256, sha256_of
from bothost.training.publish import write_version


def graph() -> onnx.ModelProto:
    node = helper.make_node("Gemm", ["x", "weight", "bias"], ["y"], transB=1)
    parameters = [
        TensorProto(name="weight", dims=[3, 8], data_type=TensorProto.FLOAT),
        TensorProto(name="bias", dims=[3], data_type=TensorProto.FLOAT),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 8])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 3])
    net = helper.make_graph([node], "linear", [x], [y], parameters)
    return helper.make_model(net, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture
def linear():
    torch.manual_seed(0)
    return torch.nn.Linear(8, 3)


@pytest.fixture
def model(tmp_path, linear):
    version = write_version(tmp_path / "v1", linear, graph(), encoder_version=4)
    return Model("linear", "v1", model_sha256(version.files), str(tmp_path / "v1"), version.files, 4)


def test_a_session_computes_what_the_model_does_in_torch(model, linear):
    session = Session(model, encoder_version=4)
    x = np.random.default_rng(0).random((5, 8), np.float32)
    (y,) = session.run(x=x)
    assert session.outputs == ("y",)
    np.testing.assert_allclose(y, linear(torch.from_numpy(x)).detach().numpy(), atol=1e-6)


def test_a_row_does_not_depend_on_its_batch(model):
    session = Session(model, encoder_version=4)
    x = np.random.default_rng(0).random((33, 8), np.float32)
    (together,) = session.run(x=x)
    assert all(np.array_equal(session.run(x=x[i : i + 1])[0], together[i : i + 1]) for i in range(33))


WIDE = """
import sys
import numpy as np
import onnx
from onnx import TensorProto, helper
from bothost.inference.session import open_session
from bothost.native import _native

def rss_mb():
    _native.return_free_memory()
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS"))

nodes = [helper.make_node("Tile", ["x", "times"], ["a"])]
nodes += [helper.make_node("Relu", [f"{'a' * n}"], [f"{'a' * (n + 1)}"]) for n in (1, 2, 3)]
nodes.append(helper.make_node("ReduceSum", ["aaaa"], ["y"]))
shape = lambda name, *sizes: helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes)
times = helper.make_tensor("times", TensorProto.INT64, [2], [1, 8192])
graph = helper.make_graph(nodes, "wide", [shape("x", "batch", 1)], [shape("y", 1, 1)], [times])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), sys.argv[1])
session = open_session(sys.argv[1])
session.run(None, {"x": np.ones((1, 1), np.float32)})
before = rss_mb()
for batch in range(1, 600, 7):
    session.run(None, {"x": np.ones((batch, 1), np.float32)})
print(rss_mb() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other allocators decide for themselves")
def test_batches_of_many_sizes_keep_no_memory(tmp_path):
    command = [sys.executable, "-c", WIDE, tmp_path / "wide.onnx"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert float(result.stdout) < 10.0, "MiB; the largest batch needs 37"


def test_a_model_of_another_encoder_is_refused(model):
    with pytest.raises(ModelError, match="linear:v1 was made for encoder version 4, this is version 5"):
        Session(model, encoder_version=5)


@pytest.mark.parametrize("name", ["model.onnx", "model.safetensors"])
def test_a_changed_file_is_refused(model, tmp_path, name):
    path = tmp_path / "v1" / name
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(ModelError, match=f"{name} has sha256"):
        Session(model, encoder_version=4)


def test_a_file_that_is_no_model_is_refused_even_with_its_right_sum(tmp_path):
    import hashlib

    (tmp_path / "model.onnx").write_bytes(b"not a model")
    files = {"model.onnx": hashlib.sha256(b"not a model").hexdigest()}
    with pytest.raises(ModelError, match="cannot be loaded"):
        Session(Model("linear", "v1", model_sha256(files), str(tmp_path), files, 4), encoder_version=4)
    with pytest.raises(ModelError, match="has no file model"):
        Session(Model("linear", "v1", "0", None, {}, 4), encoder_version=4)


def test_outputs_that_are_no_numbers_are_refused(tmp_path, linear):
    with torch.no_grad():
        linear.bias[1] = float("nan")
    version = write_version(tmp_path / "v1", linear, graph(), encoder_version=4)
    model = Model("linear", "v1", model_sha256(version.files), str(tmp_path / "v1"), version.files, 4)
    with pytest.raises(ValueError, match="linear:v1: its outputs are not finite"):
        Session(model, encoder_version=4).run(x=np.zeros((2, 8), np.float32))


@pytest.mark.parametrize("shape", [["batch", "anything"], []])
def test_the_width_of_an_input_is_fixed_or_refused(tmp_path, model, shape):
    assert Session(model, encoder_version=4).width("x") == 8

    def floats(name):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    node = helper.make_node("Relu", ["x"], ["y"])
    net = helper.make_graph([node], "any", [floats("x")], [floats("y")])
    onnx.save(helper.make_model(net, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "any.onnx")
    files = {"any.onnx": sha256_of(tmp_path / "any.onnx")}
    session = Session(Model("any", "v1", "0", str(tmp_path), files, 4), encoder_version=4, file="any.onnx")
    for name in ("x", "z"):
        with pytest.raises(ModelError, match=r"has no input '.' of a fixed size"):
            session.width(name)


def test_wrong_inputs_are_told_by_the_name_of_the_model(model):
    with pytest.raises(ValueError, match="linear:v1"):
        Session(model, encoder_version=4).run(x=np.zeros((2, 9), np.float32))
