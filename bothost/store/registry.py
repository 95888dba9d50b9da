"""The model registry: immutable versions with their lineage, and aliases that can be moved and moved back.

Versions and aliases are rows; the files' content is in the database too, in parts, keyed by its sha256. So every host
of a database gets every model, a backup of the database holds the models, and ``data_dir/models`` is a cache of
verified copies: ``models/<sha256 of the model>/<file>``, each folder complete or absent.

Nothing is ever updated. The highest number of an alias is valid, and each number exists once: of two
who move an alias at the same time, one gets an error.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from bothost.config import nearest
from bothost.errors import ModelError
from bothost.inference.graph_trial import try_graphs
from bothost.plugins import settle, weights
from bothost.store import model_files
from bothost.store.models import model_aliases, models
from bothost.store.models import model_files as parts
from bothost.store.store import Store
from bothost.strategy import Model, Strategy

Json = dict[str, Any]
Kind = Literal["promote", "rollback"]

CHAMPION, CHALLENGER, SHADOW, CANARY = "champion", "challenger", "shadow", "canary"
ALIASES = (CHAMPION, CHALLENGER, SHADOW, CANARY)
"""Beside these, ``level-1`` … ``level-99``."""
PART_BYTES = 4 << 20
_LEVEL = re.compile(r"level-[1-9]\d?")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


class AliasMoved(ModelError):
    """Another user moved the alias in the meantime."""


class ModelVersion(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a strategy's model."""

    strategy: str
    version: str
    sha256: str
    """Of the model: ``bothost.plugins.model_sha256`` of its files."""
    files: dict[str, str]
    """Name → sha256."""
    encoder_version: int | None
    lineage: Json
    """How it was made: command, options, dataset (its manifest's sha256 and query), the model it started from."""
    created_us: int


class Pointer(msgspec.Struct, frozen=True, kw_only=True):
    """What an alias stands for since one moment."""

    strategy: str
    alias: str
    number: int
    version: str | None
    """None: nothing of the registry; what the package says counts again."""
    sha256: str | None
    """Of that version's model."""
    share: float | None
    """Of new tables, for ``canary``."""
    kind: Kind
    reason: str
    at_us: int


class Registry:
    """The models of one database. Synchronous and thread-safe; every call is one short transaction or two.

    All methods raise StoreUnavailable while the database cannot be reached.
    """

    def __init__(self, store: Store, folder: Path) -> None:
        """``folder``: where files are kept for use, as a rule ``data_dir/models``."""
        self.store = store
        self.folder = folder

    # ----------------------------------------------------------------------------------------------------- versions

    def add(
        self,
        plays: type[Strategy],
        source: Path,
        files: Mapping[str, str],
        *,
        encoder_version: int | None,
        lineage: Json,
        version: str | None = None,
        foreign: bool = False,
    ) -> ModelVersion:
        """Register a model from the files of a folder. Files that are registered already keep their version.

        ``foreign``: the files come from elsewhere. Their graphs first run in a process with limited memory and time.

        Raises ModelError if a file does not match ``files`` or has no safe format, if the strategy cannot use the model
        (another encoder version, other shapes), or if the version's name is taken.
        """
        files = {name: sha.lower() for name, sha in files.items()}
        model_files.check(source, files)
        if foreign:
            try_graphs([source / name for name in sorted(files) if name.endswith(".onnx")])
        if version is not None and (not _VERSION.fullmatch(version) or is_alias(version)):
            raise ModelError(f"{version!r} cannot name a version", advice="letters, digits, _ . -, and no alias")
        strategy, sha256 = plays.name, weights.model_sha256(files)
        trial(plays, Model(strategy, version or "new", sha256, str(source), files, encoder_version))
        known = self._find(models.c.strategy == strategy, models.c.sha256 == sha256)
        if known is not None:
            return known
        for name, sha in sorted(files.items()):
            self._store_file(source / name, sha)
        for _ in range(20):
            made = ModelVersion(
                strategy=strategy,
                version=version or f"r{self._count(strategy) + 1}",
                sha256=sha256,
                files=files,
                encoder_version=encoder_version,
                lineage=lineage,
                created_us=time.time_ns() // 1000,
            )
            try:
                self._insert(made)
                return made
            except IntegrityError:
                known = self._find(models.c.strategy == strategy, models.c.sha256 == sha256)
                if known is not None:
                    return known  # another process registered it meanwhile
                if version is not None:
                    raise ModelError(
                        f"{strategy}:{version} is there already, with other files", advice="choose another name"
                    ) from None
        raise ModelError(f"no free name for a version of {strategy}", advice="name it with --version")

    def versions(self, strategy: str | None = None) -> list[ModelVersion]:
        """All versions, oldest first."""
        query = sa.select(models).order_by(models.c.created_us, models.c.strategy, models.c.version)
        if strategy is not None:
            query = query.where(models.c.strategy == strategy)
        with self.store.begin() as connection:
            return [_version(row) for row in connection.execute(query)]

    def version(self, strategy: str, name: str) -> ModelVersion | None:
        """The version of that name; None where the registry has none."""
        return self._find(models.c.strategy == strategy, models.c.version == name)

    def of_sha256(self, sha256: str) -> ModelVersion | None:
        """The version with that model, of whatever strategy: what a logged decision names."""
        return self._find(models.c.sha256 == sha256)

    def model(self, version: ModelVersion) -> Model:
        """The version with its files, verified, in ``folder``. Raises ModelError where they cannot be had whole."""
        root = self._fetch(version)
        return Model(
            version.strategy, version.version, version.sha256, str(root), version.files, version.encoder_version
        )

    # ------------------------------------------------------------------------------------------------------ aliases

    def pointers(self, strategy: str | None = None) -> dict[tuple[str, str], Pointer]:
        """(strategy, alias) → what it stands for now."""
        a = model_aliases
        newest = sa.select(a.c.strategy, a.c.alias, sa.func.max(a.c.number).label("number")).group_by(
            a.c.strategy, a.c.alias
        )
        if strategy is not None:
            newest = newest.where(a.c.strategy == strategy)
        last = newest.subquery()
        query = sa.select(a).join(
            last,
            sa.and_(a.c.strategy == last.c.strategy, a.c.alias == last.c.alias, a.c.number == last.c.number),
        )
        with self.store.begin() as connection:
            found = [Pointer(**row._mapping) for row in connection.execute(query)]
        return {(pointer.strategy, pointer.alias): pointer for pointer in found}

    def history(self, strategy: str, alias: str) -> list[Pointer]:
        """Everything that the alias stood for, oldest first."""
        a = model_aliases
        query = sa.select(a).where(a.c.strategy == strategy, a.c.alias == alias).order_by(a.c.number)
        with self.store.begin() as connection:
            return [Pointer(**row._mapping) for row in connection.execute(query)]

    def point(
        self,
        strategy: type[Strategy],
        alias: str,
        version: str | None,
        *,
        reason: str,
        share: float | None = None,
        kind: Kind = "promote",
        after: int | None = None,
    ) -> Pointer:
        """Let an alias stand for a version, of the registry or the package; None: for what the package says.

        ``after``: the number that the alias had when this was decided. Raises ModelError where there is no such
        version, and AliasMoved where the alias has another number by now.
        """
        if not is_alias(alias):
            raise ModelError(f"{alias!r} is no alias", advice=nearest(alias, (*ALIASES, "level-1")))
        if share is not None and not 0.0 < share < 1.0:
            raise ModelError(f"a share of {share} of the tables", advice="between 0 and 1, as in 0.1")
        sha256 = None if version is None else self._sha256_of(strategy, version)
        history = self.history(strategy.name, alias)
        number = (history[-1].number if history else 0) + 1
        moved = AliasMoved(f"{strategy.name}:{alias} was moved meanwhile", advice="see bothost model show, then decide")
        if after is not None and after != number - 1:
            raise moved
        pointer = Pointer(
            strategy=strategy.name,
            alias=alias,
            number=number,
            version=version,
            sha256=sha256,
            share=share,
            kind=kind,
            reason=reason,
            at_us=time.time_ns() // 1000,
        )
        try:
            with self.store.begin() as connection:
                connection.execute(model_aliases.insert(), msgspec.to_builtins(pointer))
        except IntegrityError:
            raise moved from None
        return pointer

    def back(self, strategy: type[Strategy], alias: str, *, reason: str, after: int | None = None) -> Pointer:
        """Undo the last promotion of an alias that is not undone yet. Raises ModelError where there is none."""
        stack: list[Pointer] = []
        history = self.history(strategy.name, alias)
        for pointer in history:
            if pointer.kind == "promote":
                stack.append(pointer)
            elif stack:
                stack.pop()
        if not stack:
            raise ModelError(f"{strategy.name}:{alias} was never moved", advice="see bothost model show")
        before = stack[-2] if len(stack) > 1 else None
        return self.point(
            strategy,
            alias,
            before.version if before is not None else None,
            share=before.share if before is not None else None,
            kind="rollback",
            reason=reason,
            after=history[-1].number if after is None else after,
        )

    def resolve(self, strategy: str, name: str) -> Model | str | None:
        """What ``strategy:name`` stands for: a model of the registry, the name of a version of the package, or None
        where the registry does not know. Raises ModelError where the model's files cannot be had whole."""
        if is_alias(name):
            pointer = self.pointers(strategy).get((strategy, name))
            if pointer is None or pointer.version is None:
                return None
            name = pointer.version
            found = self.version(strategy, name)
            return name if found is None else self.model(found)
        found = self.version(strategy, name)
        return None if found is None else self.model(found)

    # -------------------------------------------------------------------------------------------------------- files

    def _store_file(self, path: Path, sha256: str) -> None:
        """Put a file into the database, once."""
        part, digest = 0, hashlib.sha256()
        with self.store.begin() as connection:
            known = connection.execute(sa.select(sa.func.count()).where(parts.c.sha256 == sha256)).scalar()
        if known:
            return
        try:
            with path.open("rb") as file, self.store.begin() as connection:
                while content := file.read(PART_BYTES):
                    digest.update(content)
                    connection.execute(parts.insert(), {"sha256": sha256, "part": part, "content": content})
                    part += 1
                if digest.hexdigest() != sha256:
                    raise ModelError(f"model file {path} changed while it was read")
        except IntegrityError:
            return  # another process put it there meanwhile: the same bytes, by the same name

    def _fetch(self, version: ModelVersion) -> Path:
        """The folder of a version's files. What is there and not as it was is replaced."""
        if not _SHA256.fullmatch(version.sha256) or weights.model_sha256(version.files) != version.sha256:
            raise ModelError(f"{version.strategy}:{version.version} has another sha256 than its files")
        model_files.names(version.files)
        root = self.folder / version.sha256
        try:
            model_files.check(root, version.files)
            return root
        except ModelError:
            pass
        building = self.folder / f".{version.sha256}.{os.getpid()}.{time.monotonic_ns()}"
        building.mkdir(parents=True)
        try:
            for name, sha256 in version.files.items():
                self._load_file(building / name, sha256)
            model_files.check(building, version.files)
            with contextlib.suppress(FileNotFoundError):  # what is there is not what it was: out of the way
                root.rename(building.with_suffix(".broken"))
            with contextlib.suppress(OSError):  # another process was first
                building.rename(root)
        finally:
            for leftover in (building, building.with_suffix(".broken")):
                shutil.rmtree(leftover, ignore_errors=True)
        model_files.check(root, version.files)
        return root

    def _load_file(self, path: Path, sha256: str) -> None:
        query = sa.select(parts.c.content).where(parts.c.sha256 == sha256)
        with path.open("wb") as file:
            part = 0
            while True:
                with self.store.begin() as connection:
                    content = connection.execute(query.where(parts.c.part == part)).scalar()
                if content is None:
                    break
                file.write(content)
                part += 1
            file.flush()
            os.fsync(file.fileno())

    # ----------------------------------------------------------------------------------------------------- plumbing

    def _sha256_of(self, strategy: type[Strategy], name: str) -> str:
        found = self.version(strategy.name, name)
        if found is not None:
            return found.sha256
        packaged = weights.find(strategy, name)
        if packaged is None:
            known = [*(version.version for version in self.versions(strategy.name)), *weights.aliases(strategy)]
            raise ModelError(f"{strategy.name} has no version {name!r}", advice=nearest(name, known))
        return packaged.sha256

    def _find(self, *conditions: Any) -> ModelVersion | None:
        query = sa.select(models).where(*conditions).order_by(models.c.created_us).limit(1)
        with self.store.begin() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else _version(row)

    def _count(self, strategy: str) -> int:
        query = sa.select(models.c.version).where(models.c.strategy == strategy)
        with self.store.begin() as connection:
            names = connection.execute(query).scalars().all()
        return max((int(name[1:]) for name in names if re.fullmatch(r"r\d{1,9}", name)), default=0)

    def _insert(self, made: ModelVersion) -> None:
        row = msgspec.to_builtins(made)
        row["files"], row["lineage"] = (json.dumps(row[name], sort_keys=True) for name in ("files", "lineage"))
        with self.store.begin() as connection:
            connection.execute(models.insert(), row)


def is_alias(name: str) -> bool:
    """Whether a name is one that can be moved from version to version."""
    return name in ALIASES or _LEVEL.fullmatch(name) is not None


def trial(strategy: type[Strategy], model: Model, options: Mapping[str, Any] | None = None) -> None:
    """Make the strategy with this model, and let it go. Raises ModelError where it refuses: another encoder version,
    tensors of other shapes, a graph that ONNX Runtime does not take, options of play that it does not know."""
    settled = settle(strategy, model, dict(options or {}))
    try:
        strategy(settled, model).close()
    except ModelError:
        raise
    except Exception as error:  # a plugin may raise anything
        raise ModelError(f"{strategy.name} cannot play by {model.version}: {error!r}") from error


def _version(row: Any) -> ModelVersion:
    values = dict(row._mapping)
    return ModelVersion(**{**values, "files": json.loads(values["files"]), "lineage": json.loads(values["lineage"])})
