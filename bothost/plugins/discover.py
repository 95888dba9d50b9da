"""Finds plugins and imports them one by one. An error in one of them becomes a :class:`Failure`.

Sources, in this order: the entry-point group ``bothost`` (bothost's own plugins first), then ``plugins_dir``. There a
plugin is a ``*.py`` file, a package, or a project: a folder whose pyproject.toml has ``bothost`` entry points. Names
that start with ``_`` or ``.`` are skipped.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import stat
import sys
import tomllib
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

import msgspec

from bothost.errors import described

GROUP = "bothost"


class Failure(msgspec.Struct, frozen=True):
    """An error of a plugin. It disables that plugin, or the object that it registers, and nothing else."""

    plugin: str
    source: str
    cause: str
    advice: str = ""
    traceback: str = ""


class PluginSource(msgspec.Struct, frozen=True):
    """A place with a plugin."""

    name: str
    """Unique name of the plugin."""
    source: str
    """Where it was found: the installed package, or a path in ``plugins_dir``."""
    module: str
    path: Path | None = None
    """Its file, or the folder of its package; None: import ``module`` from ``sys.path``."""
    version: str = ""


def entry_points() -> Iterator[PluginSource]:
    """Installed plugins. bothost's own come first, so that no other takes their names."""
    found = []
    released: dict[int, tuple[str, str]] = {}  # name and version of each distribution: its metadata is parsed once
    for point in importlib.metadata.entry_points(group=GROUP):
        if id(point.dist) not in released:
            released[id(point.dist)] = (point.dist.name, point.dist.version) if point.dist else ("?", "")
        name, version = released[id(point.dist)]
        source = PluginSource(point.name, name, point.module, None, version)
        found.append((name != "bothost", point.name, source))
    yield from (source for *_, source in sorted(found, key=lambda entry: entry[:2]))


def loose(folder: Path) -> Iterator[PluginSource | Failure]:
    """Plugins in ``plugins_dir``; none if the folder does not exist."""
    try:
        paths = sorted(folder.iterdir()) if folder.is_dir() else []
    except OSError as error:
        yield Failure(folder.name, str(folder), f"cannot be listed: {error.strerror}", f"chmod u+rx {folder}")
        return
    for path in paths:
        if path.name.startswith(("_", ".")):
            continue
        if (open_to_others := _writable_by_others([folder, *_files_of(path)])) is not None:
            cause = f"other users can write to {open_to_others}"
            advice = f"make it yours (chown), and run: chmod go-w {open_to_others}"
            yield Failure(path.stem, str(path), cause, advice)
            continue
        if path.suffix == ".py" and path.is_file():
            yield PluginSource(path.stem, str(path), path.stem, path)
        elif (path / "__init__.py").is_file():
            yield PluginSource(path.name, str(path), path.name, path)
        elif (path / "pyproject.toml").is_file():
            yield from _project(path)
        elif any(path.glob("*.py")) or any(path.glob("*/__init__.py")):
            cause = "it has neither __init__.py nor pyproject.toml"
            yield Failure(path.name, str(path), cause, f"put the plugin's files or package into {folder} itself")


def _files_of(path: Path) -> Iterator[Path]:
    """A plugin's path, and all files and folders in it. Symbolic links are followed."""
    yield path
    seen = set()
    for folder, folders, files in os.walk(path, followlinks=True):
        if (real := os.path.realpath(folder)) in seen:  # a link that leads back
            folders.clear()
            continue
        seen.add(real)
        yield from (Path(folder, name) for name in (*folders, *files))


def _writable_by_others(paths: Iterable[Path]) -> Path | None:
    """Return the first path that another user owns, or that all users, or a group other than ours, may write to."""
    for path in paths:
        try:
            found = path.stat()
        except OSError:  # the import reports it
            continue
        foreign = stat.S_IWOTH | (0 if found.st_gid == os.getegid() else stat.S_IWGRP)
        if found.st_mode & foreign or found.st_uid not in (0, os.geteuid()):
            return path
    return None


def _project(folder: Path) -> Iterator[PluginSource | Failure]:
    file = folder / "pyproject.toml"
    try:
        project = tomllib.loads(file.read_text("utf-8"))["project"]
        points = dict(project["entry-points"][GROUP])
        version = str(project.get("version", ""))
    except (OSError, ValueError, KeyError, TypeError) as error:
        advice = 'a plugin project has [project.entry-points.bothost] with NAME = "MODULE"'
        yield Failure(folder.name, str(folder), f"pyproject.toml: {type(error).__name__}: {error}", advice)
        return
    for name, module in points.items():
        package = str(module).partition(".")[0]
        roots = [folder / "src", folder]
        places = [place for root in roots for place in (root / package, root / f"{package}.py")]
        path = next((place for place in places if place.exists()), None)
        if path is None or not package.isidentifier():
            advice = f"put the package {package} into {folder} or {folder / 'src'}"
            yield Failure(name, str(folder), f"its module {module} was not found", advice)
        else:
            yield PluginSource(name, str(folder), str(module), path, version)


def load(found: PluginSource) -> ModuleType | Failure:
    """Import a plugin. Any exception except KeyboardInterrupt becomes its failure."""
    try:
        if found.path is not None:
            _import_path(found.path)
        return importlib.import_module(found.module)
    except (Exception, SystemExit) as error:
        return failure(found, error)


def _import_path(path: Path) -> None:
    """Import a file or package under its own name, without touching ``sys.path``."""
    module = path.name if path.is_dir() else path.stem
    if not module.isidentifier():
        raise ImportError(f"{module!r} cannot be a module name: use letters, digits and _")
    file = path / "__init__.py" if path.is_dir() else path
    if (known := sys.modules.get(module)) is not None and getattr(known, "__file__", None) == str(file):
        return
    if known is not None or importlib.util.find_spec(module) is not None:
        raise ImportError(f"there is another module named {module!r}: rename this one")
    search = [str(path)] if path.is_dir() else None
    spec = importlib.util.spec_from_file_location(module, file, submodule_search_locations=search)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} cannot be imported")
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[module] = loaded
    try:
        spec.loader.exec_module(loaded)
    except BaseException:
        for name in [n for n in sys.modules if n == module or n.startswith(f"{module}.")]:
            del sys.modules[name]
        raise


def failure(found: PluginSource, error: BaseException, *, during: str = "") -> Failure:
    """Make a Failure from an exception in a plugin, with the line in the plugin's own files and the traceback."""
    cause = described(error)
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if "importlib" not in f.filename and not f.filename.startswith(str(Path(__file__).parent))]
    if isinstance(error, SyntaxError) and error.filename:
        cause = f"SyntaxError: {error.msg} ({Path(error.filename).name}, line {error.lineno})"
    elif own:
        cause += f" ({Path(own[-1].filename).name}, line {own[-1].lineno})"
    advice = ""
    if isinstance(error, ModuleNotFoundError) and error.name:
        advice = f"install the package with the module {error.name.partition('.')[0]}, or fix the import"
    text = "".join(traceback.format_exception(error))
    return Failure(found.name, found.source, f"{during}: {cause}" if during else cause, advice, text)
