"""ONNX graphs from elsewhere: no reference to a file outside the model, wherever it stands, and no endless loop."""

import onnx
import pytest
from onnx import TensorProto, helper

from bothost.errors import ModelError
from bothost.inference.graph_trial import try_graphs
from bothost.store.model_files import onnx as check


def outside():
    tensor = TensorProto(name="x", dims=[4], data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="/etc/passwd")
    return tensor


def inside():
    return helper.make_tensor("x", TensorProto.FLOAT, [4], [1.0, 2.0, 3.0, 4.0])


def sparse(values):
    indices = helper.make_tensor("i", TensorProto.INT64, [4], [0, 1, 2, 3])
    return onnx.SparseTensorProto(values=values, indices=indices, dims=[8])


def graph(nodes, **more):
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    return helper.make_graph(nodes, "g", [], [output], **more)


def in_attribute(tensor):
    return helper.make_model(graph([helper.make_node("Constant", [], ["y"], value=tensor)]))


def in_sparse_attribute(tensor):
    return helper.make_model(graph([helper.make_node("Constant", [], ["y"], sparse_value=sparse(tensor))]))


def in_sparse_attributes(tensor):
    node = helper.make_node("Constant", [], ["y"])
    node.attribute.append(onnx.AttributeProto(name="many", sparse_tensors=[sparse(tensor)]))
    return helper.make_model(graph([node]))


def in_sparse_initializer(tensor):
    return helper.make_model(graph([helper.make_node("Identity", ["x"], ["y"])], sparse_initializer=[sparse(tensor)]))


def in_branch(tensor):
    branch = graph([helper.make_node("Constant", [], ["y"], sparse_value=sparse(tensor))])
    return helper.make_model(graph([helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)]))


def in_function(tensor):
    node = helper.make_node("Constant", [], ["y"], sparse_value=sparse(tensor))
    function = helper.make_function("own", "f", [], ["y"], [node], [helper.make_opsetid("", 20)])
    return helper.make_model(graph([helper.make_node("f", [], ["y"], domain="own")]), functions=[function])


def in_training(tensor):
    model = helper.make_model(graph([helper.make_node("Constant", [], ["y"], value=inside())]))
    model.training_info.add().algorithm.CopyFrom(graph([helper.make_node("Constant", [], ["y"], value=tensor)]))
    return model


PLACES = [in_attribute, in_sparse_attribute, in_sparse_attributes, in_sparse_initializer, in_branch, in_function]


@pytest.mark.parametrize("place", [*PLACES, in_training])
def test_a_file_outside_the_model_is_refused_wherever_it_is_named(tmp_path, place):
    path = tmp_path / "model.onnx"
    path.write_bytes(place(outside()).SerializeToString())
    with pytest.raises(ModelError, match="/etc/passwd"):
        check(path, {"model.onnx": ""})
    path.write_bytes(place(inside()).SerializeToString())
    check(path, {"model.onnx": ""})


@pytest.mark.parametrize("kind", ["Loop", "Scan"])
@pytest.mark.parametrize("deep", [False, True])
def test_a_graph_that_may_run_for_ever_is_refused(tmp_path, kind, deep):
    body = graph([helper.make_node("Constant", [], ["y"], value=inside())])
    node = helper.make_node(kind, [], ["y"], body=body)
    if deep:
        node = helper.make_node("If", ["c"], ["y"], then_branch=graph([node]), else_branch=body)
    path = tmp_path / "model.onnx"
    path.write_bytes(helper.make_model(graph([node])).SerializeToString())
    with pytest.raises(ModelError, match=f"{kind} node"):
        check(path, {"model.onnx": ""})


def written(path, nodes, output, inputs=(), initializers=()):
    made = helper.make_graph(nodes, "g", list(inputs), [output], initializers)
    path.write_bytes(
        helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    )
    return path


def big(path, size):
    """A graph of 200 bytes whose output has size² numbers of 4 bytes."""
    shape = helper.make_tensor("shape", TensorProto.INT64, [2], [size, size])
    node = helper.make_node("ConstantOfShape", ["shape"], ["y"])
    return written(path, [node], helper.make_tensor_value_info("y", TensorProto.FLOAT, [size, size]), (), [shape])


def test_a_graph_that_needs_too_much_memory_is_refused_by_its_trial(tmp_path):
    try_graphs([big(tmp_path / "small.onnx", 1_000)])
    with pytest.raises(ModelError, match="allocate memory"):
        try_graphs([big(tmp_path / "big.onnx", 40_000)])  # 6.4 GB


def test_a_graph_that_runs_too_long_is_refused_by_its_trial(tmp_path, monkeypatch):
    # A product of 3,000 × 3,000 matrices takes about a second; twenty of them one after the other more than two.
    monkeypatch.setattr("bothost.inference.graph_trial.CPU_SECONDS", 2)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [3_000, 3_000])
    nodes = [helper.make_node("MatMul", [f"y{n}" if n else "x", "x"], [f"y{n + 1}"]) for n in range(20)]
    y = helper.make_tensor_value_info("y20", TensorProto.FLOAT, [3_000, 3_000])
    with pytest.raises(ModelError, match="SIGXCPU"):
        try_graphs([written(tmp_path / "slow.onnx", nodes, y, [x])])
