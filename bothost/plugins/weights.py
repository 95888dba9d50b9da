"""Model versions in a plugin package: ``weights/manifest.json`` and the files that it lists.

::

    {"aliases": {"champion": "v1", "level-1": "v1"},
     "versions": {"v1": {"files": {"model.onnx": "<sha256>"}, "encoder_version": 1}}}

A version's files are in ``weights/v1/`` if that folder exists, else in ``weights/`` itself. One of them may be
``play.json``: default options of the strategy for this version, such as ``{"playouts": 64}``. They are part of the
version's sha256. A route or a command can override them.

``"retired"`` lists versions whose files the package no longer has, with the last release or commit that had them. Logs
name versions by their sha256. Loading a retired version fails with a message that names that release.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from bothost.config import nearest
from bothost.errors import ModelError
from bothost.strategy import Model, Strategy

MANIFEST = "manifest.json"
PLAY = "play.json"
MAX_PLAY_BYTES = 64 << 10


class Version(msgspec.Struct, frozen=True, omit_defaults=True):
    """One version of the manifest: file name → sha256 in hex."""

    files: dict[str, str]
    encoder_version: int | None = None
    about: str = ""
    """What sets it apart, in a few words. ``bothost plugin list`` shows it."""


class RetiredVersion(msgspec.Struct, frozen=True):
    """A version whose files the package no longer has."""

    files: dict[str, str]
    last_in: str
    """The last release or commit that has the files."""
    encoder_version: int | None = None
    instead: str = ""
    """The most similar player: ``level-5 with playouts = 0``."""


class Manifest(msgspec.Struct, frozen=True):
    """``weights/manifest.json``"""

    versions: dict[str, Version]
    aliases: dict[str, str] = {}
    retired: dict[str, RetiredVersion] = {}


def model_sha256(files: Mapping[str, str]) -> str:
    """Return the sha256 of a model: that of its only file, or else of the lines ``<sha256>  <name>`` sorted by name."""
    if len(files) == 1:
        return next(iter(files.values()))
    listing = "".join(f"{sha}  {name}\n" for name, sha in sorted(files.items()))
    return hashlib.sha256(listing.encode()).hexdigest()


def folder(strategy: type[Strategy]) -> Path | None:
    """The ``weights`` folder of the strategy's package; None if there is none."""
    package = sys.modules.get(strategy.__module__.partition(".")[0])
    places = list(getattr(package, "__path__", []))
    return next((Path(place) / "weights" for place in places if (Path(place) / "weights").is_dir()), None)


def manifest(strategy: type[Strategy], where: Path | None = None) -> Manifest | None:
    """The manifest of a strategy's package, or of the folder ``where``; None if there is none.

    Raises ModelError if it cannot be read.
    """
    where = where or folder(strategy)
    if where is None or not (where / MANIFEST).is_file():
        return None
    try:
        return msgspec.json.decode((where / MANIFEST).read_bytes(), type=Manifest)
    except (OSError, ValueError, RecursionError) as error:
        advice = f"install the package of {strategy.name} again"
        raise ModelError(f"{where / MANIFEST} cannot be read: {error}", advice=advice) from error


def find(strategy: type[Strategy], alias: str, where: Path | None = None) -> Model | None:
    """Return the version with this alias or name, with verified files; None if there is none.

    ``where``: the folder of the manifest; default: the strategy's package.

    Raises ModelError if the version is retired, or if a file is missing, changed, or outside the folder.
    """
    where = where or folder(strategy)
    known = manifest(strategy, where)
    if known is None:
        return None
    name = known.aliases.get(alias, alias)
    if name in known.retired:
        raise _retired_error(strategy, name, known.retired[name])
    version = known.versions.get(name)
    if where is None or version is None:
        if alias in known.aliases:
            advice = nearest(name, known.versions)
            raise ModelError(f"{strategy.name}:{alias} points to {name!r}, which does not exist", advice=advice)
        return None
    _plain(name)
    root = where / name if (where / name).is_dir() else where
    verify(root, version.files)
    return Model(strategy.name, name, model_sha256(version.files), str(root), version.files, version.encoder_version)


def of_sha256(strategy: type[Strategy], sha256: str) -> Model | None:
    """The version of the strategy's package with this sha256, its files verified; None if the package never had it.

    Raises ModelError as :func:`find` does.
    """
    known = manifest(strategy)
    if known is None:
        return None
    every: dict[str, Version | RetiredVersion] = {**known.versions, **known.retired}
    name = next((name for name, version in every.items() if model_sha256(version.files) == sha256), None)
    return None if name is None else find(strategy, name)


def _retired_error(strategy: type[Strategy], name: str, version: RetiredVersion) -> ModelError:
    instead = f"; or use {strategy.name}:{version.instead}" if version.instead else ""
    sha256 = model_sha256(version.files)
    return ModelError(
        f"{strategy.name}:{name} ({sha256[:12]}) is retired: this release does not include its files",
        advice=f"{version.last_in} has them: bothost model import {strategy.name} FOLDER --of {name}{instead}",
    )


def aliases(strategy: type[Strategy]) -> dict[str, str]:
    """All aliases and versions of a strategy's package, each with what sets its version apart, or ''."""
    known = manifest(strategy)
    if known is None:
        return {}
    versions = known.aliases | {name: name for name in known.versions}
    return {
        name: known.versions[version].about if version in known.versions else "" for name, version in versions.items()
    }


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file's content, in hexadecimal. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def verify(root: Path, files: Mapping[str, str]) -> None:
    """Raise ModelError unless every file lies under ``root`` and has its sha256."""
    if not files:
        raise ModelError(f"a model in {root} lists no files")
    for name, sha in files.items():
        path = _inside(root, name)
        try:
            actual = sha256_of(path)
        except OSError as error:
            raise ModelError(f"model file {path}: {error.strerror}", advice="install the package again") from error
        if actual != sha.lower():
            advice = "the file was changed or truncated; install the package again, or import the model again"
            raise ModelError(f"model file {path} has sha256 {actual}, its manifest says {sha}", advice=advice)


def play_options(model: Model | None) -> dict[str, Any]:
    """Return the options in ``play.json`` of a model version, as plain data; {} if it has none.

    ``bothost.plugins.settle`` checks them against the strategy. Raises ModelError if the file is missing, changed, too
    large, or not a JSON object.
    """
    if model is None or model.path is None or PLAY not in model.files:
        return {}
    path = _inside(Path(model.path), PLAY)
    try:
        with path.open("rb") as file:
            data = file.read(MAX_PLAY_BYTES + 1)
    except OSError as error:
        raise ModelError(f"model file {path}: {error.strerror}", advice="install the package again") from error
    if len(data) > MAX_PLAY_BYTES:
        raise ModelError(f"model file {path} is larger than {MAX_PLAY_BYTES >> 10} KiB")
    if hashlib.sha256(data).hexdigest() != model.files[PLAY].lower():
        raise ModelError(
            f"model file {path} was changed", advice="install the package again, or import the model again"
        )
    try:
        return msgspec.json.decode(data, type=dict[str, Any])
    except (ValueError, RecursionError) as error:
        raise ModelError(f"model file {path} is not a JSON object: {error}", advice="create the model again") from error


def _plain(name: str) -> None:
    pure = PurePosixPath(name)
    if not name or pure.is_absolute() or ".." in pure.parts or "\\" in name or "\0" in name or ":" in name:
        raise ModelError(f"model file name {name!r} is not allowed", advice="names are relative, inside the package")


def _inside(root: Path, name: str) -> Path:
    _plain(name)
    path = root / name
    if not path.resolve().is_relative_to(root.resolve()):
        raise ModelError(f"model file {name!r} lies outside {root}", advice="names are relative, inside the package")
    return path
