"""Write trained models as packages ship them: ``weights/manifest.json`` and a folder per version.

A version has ``model.safetensors``, the parameters, and ``model.onnx``, the graph, which reads its numbers from the
parameters (ONNX external data). A model of several networks has a graph for each. So no number is stored twice.
``play.json`` has options of play that belong to the version.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import onnx
import onnx.parser
import torch
from onnx import TensorProto

from bothost.errors import UsageError
from bothost.plugins.weights import MANIFEST, PLAY, Manifest, sha256_of
from bothost.plugins.weights import Version as Version
from bothost.plugins.weights import play_options as play_options
from bothost.strategy import Model, TrainingRun
from bothost.training.checkpoint import Progress, save_tensors
from bothost.training.loop import version_at
from bothost.training.model_pool import ModelPool

WEIGHTS, GRAPH, LINEAGE = "model.safetensors", "model.onnx", "lineage.json"


def write_version(
    folder: Path,
    model: torch.nn.Module,
    graph: onnx.ModelProto | Mapping[str, onnx.ModelProto],
    encoder_version: int,
    play: Mapping[str, Any] | None = None,
    more: Sequence[Path] = (),
) -> Version:
    """Write the files of a version into ``folder`` and return its entry in the manifest.

    ``graph`` names its initializers without data as the model names its parameters. Several graphs: by file name.
    ``play``: options of play, plain data, that belong to the version. ``more``: further files, which are copied.
    """
    folder.mkdir(parents=True, exist_ok=True)
    save_tensors(model.state_dict(), folder / WEIGHTS)
    graphs = graph if isinstance(graph, Mapping) else {GRAPH: graph}
    for name, one in graphs.items():
        refer(one, folder / WEIGHTS)
        (folder / name).write_bytes(one.SerializeToString())
        onnx.checker.check_model(str(folder / name))  # by path: the data lie beside it
    names = [*graphs, WEIGHTS]
    for file in more:
        shutil.copyfile(file, folder / file.name)
        names.append(file.name)
    if play:
        (folder / PLAY).write_text(json.dumps(dict(play), indent=2) + "\n")
        names.append(PLAY)
    return version_of(folder, names, encoder_version)


def version_of(folder: Path, names: Iterable[str], encoder_version: int) -> Version:
    """The manifest's entry of a version with these files in ``folder``."""
    files = {name: sha256_of(folder / name) for name in names}
    return Version(files, encoder_version)


def graph_of(text: str, parameters: Mapping[str, torch.Tensor], prefix: str = "") -> onnx.ModelProto:
    """A graph for ONNX Runtime from its text, with these parameters, which have no numbers yet: see ``refer``.

    ``text`` is in the syntax of https://onnx.ai/onnx/repo-docs/Syntax.html and has ``_`` for each dot in the names of
    parameters. It computes in 32 bits, whatever the parameters have; those without a dot must have 32 themselves.
    ``prefix``: of their names in the file.
    """
    model = onnx.parser.parse_model(text)
    widened = []
    for name, tensor in parameters.items():
        kind = TensorProto.FLOAT16 if tensor.dtype == torch.float16 else TensorProto.FLOAT
        model.graph.initializer.append(TensorProto(name=prefix + name, dims=tensor.shape, data_type=kind))
        plain = name.replace(".", "_")
        if prefix + name != plain:
            widened.append(onnx.helper.make_node("Cast", [prefix + name], [plain], to=TensorProto.FLOAT))
    nodes = [*widened, *model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model


def refer(graph: onnx.ModelProto, weights: Path) -> None:
    """Make the initializers without data refer to the tensors of the same names in a safetensors file beside it.

    Source of the layout: https://huggingface.co/docs/safetensors: 8 bytes of header length, the header in JSON with
    offsets relative to its end, then the tensors, little-endian and C order, as ONNX stores them too.
    """
    data = weights.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    tensors = json.loads(data[8:begin])
    for initializer in graph.graph.initializer:
        if initializer.name not in tensors:
            continue
        first, end = tensors[initializer.name]["data_offsets"]
        initializer.data_location = TensorProto.EXTERNAL
        del initializer.external_data[:]
        for key, value in (("location", weights.name), ("offset", begin + first), ("length", end - first)):
            initializer.external_data.add(key=key, value=str(value))


def parameters_file(version: Model | None, encoder_version: int) -> Path | None:
    """The file with the parameters of a version to begin with; None if there is no version, or no file.

    Raises UsageError if it sees another version of the encoding than the training.
    """
    if version is not None and version.encoder_version not in (None, encoder_version):
        raise UsageError(
            f"{version.strategy}:{version.version} sees version {version.encoder_version} of the encoding; this "
            f"training is for version {encoder_version}",
            advice="begin with another version; a retraining begins with the champion, or anew with --fresh",
        )
    return None if version is None or version.path is None else Path(version.path) / WEIGHTS


def lineage_of(
    run: TrainingRun, progress: Progress, encoder_version: int, figures: Mapping[str, Any]
) -> dict[str, Any]:
    """The lineage of a training's versions: command, seed, start, machine, ``figures`` and options."""
    workers = progress.options.get("workers") or 1
    start = progress.start if progress.start is not None else run.start and run.start.label
    used = "one core of" if workers == 1 else f"{workers} processes that play, on"
    return {
        "command": run.command,
        "seed": progress.seed,
        "encoder_version": encoder_version,
        **({"start": start} if start else {}),
        "machine": f"{used} a {os.cpu_count()}-core {platform.machine()} machine",
        **figures,
        "options": progress.options,
    }


def publish_one(
    run: TrainingRun,
    progress: Progress,
    model: torch.nn.Module,
    graph: onnx.ModelProto | Mapping[str, onnx.ModelProto],
    encoder_version: int,
    figures: Mapping[str, Any],
    play: Mapping[str, Any] | None = None,
    more: Sequence[Path] = (),
) -> None:
    """Write a training's only version, ``v1``, into ``run.out/weights``. Parameters: see ``write_version``."""
    folder = run.out / "weights"
    version = write_version(folder / "v1", model, graph, encoder_version, play, more)
    write_manifest(folder, {"v1": version}, {"champion": "v1"}, lineage_of(run, progress, encoder_version, figures))


def publish_levels(
    run: TrainingRun,
    progress: Progress,
    parts: Sequence[float],
    generation: str,
    model: torch.nn.Module,
    write: Callable[[Path, bool], Version],
    encoder_version: int,
    iterations: str = "updates",
) -> dict[str, Any]:
    """Write a training's levels, weakest first, into ``run.out/weights``. Returns how each was made.

    ``parts``: when each is taken, as parts of the training's samples. ``generation``: the prefix of the versions'
    names. ``write`` writes what ``model`` is then into a folder. Its second argument: whether the level is the last.
    """
    folder, pool = run.out / "weights", ModelPool(run.out / "pool")
    versions, aliases, made = {}, {}, {}
    for number, part in enumerate(parts, start=1):
        version, then = version_at(run.out, part * progress.samples)
        pool.load(version, model)
        level = f"level-{number}"
        aliases[level] = f"{generation}-{level}"
        versions[aliases[level]] = write(folder / aliases[level], number == len(parts))
        made[level] = then.figures(iterations)
    aliases["champion"] = aliases[f"level-{len(parts)}"]
    figures = {**progress.figures(iterations), "levels": made}
    write_manifest(folder, versions, aliases, lineage_of(run, progress, encoder_version, figures))
    return made


def write_manifest(
    folder: Path, versions: Mapping[str, Version], aliases: Mapping[str, str], lineage: Mapping[str, Any]
) -> None:
    """Write ``manifest.json`` and ``lineage.json``, which says how the versions were made."""
    manifest = Manifest(dict(versions), dict(aliases))
    (folder / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(manifest)) + b"\n")
    (folder / LINEAGE).write_text(json.dumps(lineage, indent=2) + "\n")
