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
    """Raise ModelError unless it is an ONNX graph whose external data lie in files of this very model."""
    import onnx as library  # slow to import, and few processes check models

    try:
        model = library.load(str(path), load_external_data=False)
        stored = [*_tensors(model.graph), *(t for function in model.functions for t in _of_nodes(function.node))]
    except Exception as error:  # protobuf raises what it likes on bytes that are no message
        raise _broken(path, "it is no ONNX model") from error
    if not model.graph.node or not model.graph.output:
        raise _broken(path, "it computes nothing")
    for tensor in stored:
        for entry in tensor.external_data:
            if entry.key == "location" and entry.value not in files:
                raise _broken(path, f"it refers to {entry.value!r}, which is no file of the model")


def _tensors(graph: Any) -> Iterator[Any]:
    """All tensors of a graph: of its nodes and of the graphs inside them too."""
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    yield from _of_nodes(graph.node)


def _of_nodes(nodes: Iterable[Any]) -> Iterator[Any]:
    for node in nodes:
        for attribute in node.attribute:
            yield from (attribute.t, *attribute.tensors)
            for graph in (attribute.g, *attribute.graphs):
                yield from _tensors(graph)


def _json(path: Path) -> None:
    try:
        json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise _broken(path, "it is no JSON") from error


def _broken(path: Path, why: str) -> ModelError:
    advice = "the file was changed or cut short; make or fetch it again"
    return ModelError(f"model file {path} is refused: {why}", advice=advice)
