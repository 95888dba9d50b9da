"""What a model's files must be before anything opens them: plain names, safe formats, whole, and of a sane size.

Safetensors and ONNX are data; a pickle is a program. The checks here read headers and structure alone. Whether the
numbers fit a strategy, the strategy says when it is made with the model (:func:`bothost.store.registry.trial`).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from bothost.errors import ModelError
from bothost.plugins import weights

MAX_FILES = 64
MAX_BYTES = 2 << 30
"""Of one file."""
MAX_HEADER = 100 << 20
"""Of a safetensors file: the format's own limit."""
LOOPS = frozenset({"Loop", "Scan"})
"""ONNX nodes that may run for any time."""
SUFFIXES = (".safetensors", ".onnx", ".json")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
_SAFE = "models are .safetensors, .onnx and .json files"


def check(root: Path, files: Mapping[str, str]) -> None:
    """Raise ModelError unless these files of ``root`` (name → sha256) are what they must be."""
    names(files)
    for name in files:
        path = root / name
        if path.is_symlink() or not path.is_file():
            raise ModelError(f"model file {path} is missing, or no plain file", advice="name the folder of a model")
        if path.stat().st_size > MAX_BYTES:
            raise ModelError(f"model file {path} is larger than {MAX_BYTES >> 30} GiB")
    weights.verify(root, files)
    for name in files:
        if name.endswith(".safetensors"):
            safetensors(root / name)
        elif name.endswith(".onnx"):
            onnx(root / name, files)
        else:
            _json(root / name)


def names(files: Mapping[str, Any]) -> None:
    """Raise ModelError for a name that is not a plain file name of a safe format."""
    if not 1 <= len(files) <= MAX_FILES:
        raise ModelError(f"a model of {len(files)} files", advice=f"1 to {MAX_FILES} files")
    for name in files:
        if not _NAME.fullmatch(name) or not name.endswith(SUFFIXES):
            raise ModelError(f"model file name {name!r} is not allowed", advice=_SAFE)


def hashes(root: Path, wanted: Iterable[str]) -> dict[str, str]:
    """Name → sha256 of files in ``root``. Raises ModelError where one cannot be read."""
    found = {}
    for name in sorted(wanted):
        try:
            with (root / name).open("rb") as file:
                found[name] = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise ModelError(f"model file {root / name}: {error.strerror}") from error
    return found


def safetensors(path: Path) -> None:
    """Raise ModelError unless the header describes exactly the bytes that follow.

    Source: https://huggingface.co/docs/safetensors: 8 bytes of header length, the header in JSON, the tensors.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(size - 8, MAX_HEADER):
            raise _broken(path, "its header is cut short")
        try:
            header = json.loads(file.read(length))
            tensors = [entry["data_offsets"] for name, entry in header.items() if name != "__metadata__"]
            spans = sorted((int(first), int(end)) for first, end in tensors)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise _broken(path, f"its header cannot be read ({error})") from error
    place = 0
    for first, end in spans:
        if first != place or end < first:
            raise _broken(path, "its tensors overlap or leave gaps")
        place = end
    if 8 + length + place != size:
        raise _broken(path, f"its header speaks of {8 + length + place} bytes, it has {size}")


def onnx(path: Path, files: Mapping[str, str]) -> None:
    """Raise ModelError unless it is an ONNX graph that takes a limited time, and whose external data lie in files of
    this very model."""
    import onnx as library  # slow to import, and few processes check models

    try:
        model = library.load(str(path), load_external_data=False)
        trained = [graph for info in model.training_info for graph in (info.initialization, info.algorithm)]
        graphs = [inner for graph in (model.graph, *trained) for inner in _graphs(graph)]
        nodes = [node for graph in graphs for node in graph.node]
        for function in model.functions:
            inner = [graph for node in function.node for graph in _inside(node)]
            nodes += [*function.node, *(node for graph in inner for node in graph.node)]
            graphs += inner
    except Exception as error:  # protobuf raises what it likes on bytes that are no message
        raise _broken(path, "it is no ONNX model") from error
    if not model.graph.node or not model.graph.output:
        raise _broken(path, "it computes nothing")
    if loops := LOOPS & {node.op_type for node in nodes}:
        raise _broken(path, f"it has a {min(loops)} node, so that its running time has no limit")
    for tensor in _tensors(graphs, nodes):
        for entry in tensor.external_data:
            if entry.key == "location" and entry.value not in files:
                raise _broken(path, f"it refers to {entry.value!r}, which is no file of the model")


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
    """All tensors, the parts of sparse ones too."""
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
        raise _broken(path, "it is no JSON") from error


def _broken(path: Path, why: str) -> ModelError:
    advice = "the file was changed or cut short; make or fetch it again"
    return ModelError(f"model file {path} is refused: {why}", advice=advice)
