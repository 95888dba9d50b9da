"""Check a model's files before they are loaded: plain names, safe formats, right sha256, limited size.

Safetensors and ONNX are data; a pickle is a program. ``check`` reads headers and structure, ``finite`` the numbers.
Whether a model fits its strategy is checked by :func:`bothost.store.registry.trial`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open

from bothost.errors import ModelError
from bothost.plugins import weights

MAX_FILES = 64
MAX_BYTES = 2 << 30
"""Most bytes of one file."""
MAX_JSON = 64 << 20
"""Most bytes of a JSON file: in memory it may take twenty times as much."""
MAX_HEADER = 100 << 20
"""Most bytes of a safetensors header: the format's limit."""
LOOPS = frozenset({"Loop", "Scan"})
"""ONNX nodes that may run for an unlimited time."""
SUFFIXES = (".safetensors", ".onnx", ".json")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
_SAFE = "models are .safetensors, .onnx and .json files"


def check(root: Path, files: Mapping[str, str]) -> None:
    """Raise ModelError unless these files of ``root`` (name → sha256) are valid model files."""
    names(files)
    for name in files:
        path = root / name
        if path.is_symlink() or not path.is_file():
            raise ModelError(f"model file {path} is missing or not a regular file", advice="name the folder of a model")
        most = MAX_JSON if name.endswith(".json") else MAX_BYTES
        if path.stat().st_size > most:
            raise ModelError(f"model file {path} is larger than {most >> 20} MiB")
    weights.verify(root, files)
    for name in files:
        if name.endswith(".safetensors"):
            safetensors(root / name)
        elif name.endswith(".onnx"):
            onnx(root / name, files)
        else:
            _json(root / name)


def names(files: Mapping[str, Any]) -> None:
    """Raise ModelError unless all names are plain file names of a safe format."""
    if not 1 <= len(files) <= MAX_FILES:
        raise ModelError(f"the model has {len(files)} files", advice=f"a model has 1 to {MAX_FILES} files")
    for name in files:
        if not _NAME.fullmatch(name) or not name.endswith(SUFFIXES):
            raise ModelError(f"model file name {name!r} is not allowed", advice=_SAFE)


def safetensors(path: Path) -> None:
    """Raise ModelError unless the header describes exactly the bytes that follow.

    Format: 8 bytes of header length, the JSON header, the tensors (https://huggingface.co/docs/safetensors).
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(size - 8, MAX_HEADER):
            raise _broken(path, "its header is truncated")
        try:
            header = json.loads(file.read(length))
            tensors = [entry["data_offsets"] for name, entry in header.items() if name != "__metadata__"]
            spans = sorted((int(first), int(end)) for first, end in tensors)
        except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError) as error:
            raise _broken(path, f"its header cannot be read ({error})") from error
    place = 0
    for first, end in spans:
        if first != place or end < first:
            raise _broken(path, "its tensors overlap or leave gaps")
        place = end
    if 8 + length + place != size:
        raise _broken(path, f"its header describes {8 + length + place} bytes, but it has {size}")


def finite(path: Path) -> None:
    """Raise ModelError if a model file that passed ``check`` has a parameter that is NaN or infinite."""
    try:
        wrong = next((name for name, values in _arrays(path) if not _is_finite(values)), None)
    except Exception as error:  # the libraries have no common base
        raise _broken(path, f"its parameters cannot be read ({error})") from error
    if wrong is not None:
        advice = "the training of such a model failed; train it again"
        raise ModelError(f"model file {path} is refused: {wrong} has a number that is NaN or infinite", advice=advice)


def _arrays(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the name and the values of each tensor."""
    if path.suffix == ".safetensors":
        with safe_open(path, "numpy") as file:
            for name in file.keys():  # noqa: SIM118
                try:
                    yield name, file.get_tensor(name)
                except (AttributeError, TypeError):
                    continue  # numpy has no such type
    elif path.suffix == ".onnx":
        from onnx import numpy_helper

        _, graphs, nodes = _read(path)
        for tensor in _tensors(graphs, nodes):
            if tensor.data_type and not tensor.external_data:  # none, or a tensor of another file of the model
                yield tensor.name or "a constant", numpy_helper.to_array(tensor)


def _is_finite(values: Any) -> bool:
    """Whether no parameter is NaN or infinite. -inf among zeros is a mask, not a parameter."""
    if values.dtype.kind in "OUS":
        return True
    return bool(np.isfinite(values).all() or ((values == 0) | (values == -np.inf)).all())


def onnx(path: Path, files: Mapping[str, str]) -> None:
    """Raise ModelError unless it is an ONNX graph without loops whose external data are in the model's own files."""
    model, graphs, nodes = _read(path)
    if not model.graph.node or not model.graph.output:
        raise _broken(path, "it computes nothing")
    if loops := LOOPS & {node.op_type for node in nodes}:
        raise _broken(path, f"it has a {min(loops)} node, so its running time is unlimited")
    for tensor in _tensors(graphs, nodes):
        for entry in tensor.external_data:
            if entry.key == "location" and entry.value not in files:
                raise _broken(path, f"it refers to {entry.value!r}, which is not a file of the model")


def _read(path: Path) -> tuple[Any, list[Any], list[Any]]:
    """A model with all of its graphs and nodes, those inside other nodes too. Raises ModelError."""
    import onnx as library  # slow to import

    try:
        model = library.load(str(path), load_external_data=False)
        trained = [graph for info in model.training_info for graph in (info.initialization, info.algorithm)]
        graphs = [inner for graph in (model.graph, *trained) for inner in _graphs(graph)]
        nodes = [node for graph in graphs for node in graph.node]
        for function in model.functions:
            inner = [graph for node in function.node for graph in _inside(node)]
            nodes += [*function.node, *(node for graph in inner for node in graph.node)]
            graphs += inner
    except Exception as error:  # protobuf raises various errors on invalid bytes
        raise _broken(path, "it is not an ONNX model") from error
    return model, graphs, nodes


def _graphs(graph: Any) -> Iterator[Any]:
    """A graph and the graphs inside its nodes."""
    yield graph
    for node in graph.node:
        yield from _inside(node)


def _inside(node: Any) -> Iterator[Any]:
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            yield from _graphs(graph)


def _tensors(graphs: Iterable[Any], nodes: Iterable[Any]) -> Iterator[Any]:
    """Yield all tensors, including the parts of sparse ones."""
    sparse = [each for graph in graphs for each in graph.sparse_initializer]
    for graph in graphs:
        yield from graph.initializer
    for node in nodes:
        for attribute in node.attribute:
            yield from (attribute.t, *attribute.tensors)
            sparse += [attribute.sparse_tensor, *attribute.sparse_tensors]
    for each in sparse:
        yield from (each.values, each.indices)


def _json(path: Path) -> None:
    try:
        json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise _broken(path, "it is not valid JSON") from error


def _broken(path: Path, why: str) -> ModelError:
    advice = "the file was changed or truncated; create or download it again"
    return ModelError(f"model file {path} is refused: {why}", advice=advice)
