"""The model registry: immutable versions with their lineage, and aliases that can be moved and rolled back.

The database also holds the content of the files, in parts keyed by sha256. So every host of a database gets every
model, and a backup of the database includes them. ``data_dir/models`` is a cache of verified copies:
``models/<sha256 of the model>/<file>``. Each folder is complete or absent.

Rows are never updated. The row of an alias with the highest number is valid, and numbers are unique: if two processes
move an alias at the same time, one gets an error.
"""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from bothost.config import nearest
from bothost.errors import InvalidName, ModelError, VersionNotFound, described, raised_at
from bothost.inference.graph_trial import try_graphs
from bothost.messages import Json
from bothost.plugins import settle, weights
from bothost.store import model_files
from bothost.store.models import model_aliases, models
from bothost.store.store import Store
from bothost.store.stored_files import StoredFiles
from bothost.strategy import Model, Strategy

Kind = Literal["promote", "rollback"]

CHAMPION, CHALLENGER, SHADOW, CANARY = "champion", "challenger", "shadow", "canary"
ALIASES = (CHAMPION, CHALLENGER, SHADOW, CANARY)
"""``level-1`` … ``level-99`` are aliases too."""
_BECAME = f"became {CHAMPION}"
"""Reason of the rows that clear the aliases of a new champion."""
_LEVEL = re.compile(r"level-[1-9]\d?")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


class AliasMoved(ModelError):
    """Another process moved the alias meanwhile."""


class ModelVersion(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a strategy's model."""

    strategy: str
    version: str
    sha256: str
    """``bothost.plugins.model_sha256`` of the files."""
    files: dict[str, str]
    """Name → sha256."""
    encoder_version: int | None
    lineage: Json
    """How it was made: command, options, dataset (sha256 and query of its manifest), the model it started from."""
    created_us: int


class Pointer(msgspec.Struct, frozen=True, kw_only=True):
    """One row of an alias's history: the version it points to from this row on."""

    strategy: str
    alias: str
    number: int
    version: str | None
    """None: the alias of the package applies again."""
    sha256: str | None
    """sha256 of that version's model."""
    share: float | None
    """Share of new tables, for ``canary``."""
    kind: Kind
    reason: str
    at_us: int


class Registry:
    """The models of one database. Synchronous and thread-safe; a call makes one or two short transactions.

    All methods raise StoreUnavailable while the database cannot be reached.
    """

    def __init__(self, store: Store, folder: Path) -> None:
        """``folder``: the cache for files, normally ``data_dir/models``."""
        self.store = store
        self.folder = folder
        self._files = StoredFiles(store, folder)

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

        Raises ModelError if a file does not match ``files`` or has no safe format, or if a parameter is not finite.
        Raises it also if the strategy cannot use the model (another encoder version, other shapes), or if the version's
        name is taken. Raises InvalidName if no version may have that name.
        """
        files = {name: sha.lower() for name, sha in files.items()}
        model_files.check(source, files)
        for name in files:
            model_files.finite(source / name)
        if foreign:
            try_graphs([source / name for name in sorted(files) if name.endswith(".onnx")])
        if version is not None and (not _VERSION.fullmatch(version) or is_alias(version)):
            raise InvalidName(
                f"{version!r} is not a valid version name", advice="use letters, digits, _ . -, and not an alias"
            )
        strategy, sha256 = plays.name, weights.model_sha256(files)
        trial(plays, Model(strategy, version or "new", sha256, str(source), files, encoder_version))
        known = self._find(models.c.strategy == strategy, models.c.sha256 == sha256)
        if known is not None:
            return known
        packaged = weights.manifest(plays)
        if packaged is not None and (version in packaged.versions or version in packaged.retired):
            # An alias that stands for the package's version would stand for this one.
            raise ModelError(f"{strategy}:{version} comes with the package", advice="choose another name")
        for name, sha in sorted(files.items()):
            self._files.add(source / name, sha)
        return self._inserted(
            ModelVersion(
                strategy=strategy,
                version=version or "",
                sha256=sha256,
                files=files,
                encoder_version=encoder_version,
                lineage=lineage,
                created_us=time.time_ns() // 1000,
            )
        )

    def _inserted(self, wanted: ModelVersion) -> ModelVersion:
        """Insert a version. One without a name gets the next free one. Raises ModelError if its name is taken."""
        strategy, name = wanted.strategy, wanted.version
        for _ in range(20):
            made = wanted if name else msgspec.structs.replace(wanted, version=f"r{self._count(strategy) + 1}")
            try:
                self._insert(made)
                return made
            except IntegrityError:
                known = self._find(models.c.strategy == strategy, models.c.sha256 == wanted.sha256)
                if known is not None:
                    return known  # another process registered it meanwhile
                if name:
                    raise ModelError(
                        f"{strategy}:{name} exists with other files", advice="choose another name"
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
        """Return the version with that name; None if there is none."""
        return self._find(models.c.strategy == strategy, models.c.version == name)

    def of_sha256(self, sha256: str) -> ModelVersion | None:
        """Return the version with that model sha256, of any strategy, as logged with decisions."""
        return self._find(models.c.sha256 == sha256)

    def model(self, version: ModelVersion) -> Model:
        """Fetch and verify the files of a version into ``folder``. Raises ModelError if they are incomplete or bad."""
        root = self._files.fetch(f"{version.strategy}:{version.version}", version.sha256, version.files)
        return Model(
            version.strategy, version.version, version.sha256, str(root), version.files, version.encoder_version
        )

    # ------------------------------------------------------------------------------------------------------ aliases

    def pointers(self, strategy: str | None = None) -> dict[tuple[str, str], Pointer]:
        """Return (strategy, alias) → current pointer."""
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
        """Return all pointers of an alias, oldest first."""
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
        """Point an alias to a version of the registry or the package; None: to what the package's alias names.

        ``after``: the pointer number that the caller's decision was based on. Raises VersionNotFound if there is
        no such version, InvalidName if there is no such alias, and AliasMoved if the alias has another number by now.
        """
        check_alias(alias)
        if share is not None and not 0.0 < share < 1.0:
            raise ModelError(f"the share of tables is {share}", advice="give a number between 0 and 1, such as 0.1")
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

    def promote(
        self,
        strategy: type[Strategy],
        alias: str,
        version: str,
        *,
        reason: str,
        share: float | None = None,
        after: int | None = None,
    ) -> Pointer:
        """As ``point``, for a version that can play. A new champion is no longer challenger, canary or shadow.

        Raises ModelError also if the strategy cannot load the version.
        """
        found = self.resolve(strategy.name, version)
        model = found if isinstance(found, Model) else weights.find(strategy, version)
        if model is not None:  # else ``point`` says so
            trial(strategy, model)
        pointer = self.point(strategy, alias, version, reason=reason, share=share, after=after)
        if alias == CHAMPION:
            pointers = self.pointers(strategy.name)
            for other in (CHALLENGER, CANARY, SHADOW):
                old = pointers.get((strategy.name, other))
                if old is not None and old.version == version:
                    self.point(strategy, other, None, reason=_BECAME, after=old.number)
        return pointer

    def back(self, strategy: type[Strategy], alias: str, *, reason: str) -> Pointer:
        """Undo the last promotion of an alias that is not undone yet. Raises ModelError if there is none.

        Aliases that the promotion cleared stand for the version again, unless they were moved since.
        """
        check_alias(alias)
        history = self.history(strategy.name, alias)
        standing = _standing(history)
        if not standing:
            why = "has no promotion left to undo" if history else "was never moved"
            raise ModelError(f"{strategy.name}:{alias} {why}", advice=f"see bothost model list {strategy.name}")
        pointer = self._undo(strategy, history, reason)
        undone = standing[-1]
        for other in (CHALLENGER, CANARY, SHADOW) if alias == CHAMPION else ():
            moves = self.history(strategy.name, other)
            match _standing(moves):
                case [*_, old, cleared] if (
                    cleared.reason == _BECAME and cleared.at_us >= undone.at_us and old.version == undone.version
                ):
                    with contextlib.suppress(ModelError):  # it was moved meanwhile, or a package lost the version
                        self._undo(strategy, moves, reason)
        return pointer

    def _undo(self, strategy: type[Strategy], history: list[Pointer], reason: str) -> Pointer:
        """Point an alias with this history to what its last promotion replaced."""
        standing = _standing(history)
        before = standing[-2] if len(standing) > 1 else None
        return self.point(
            strategy,
            history[-1].alias,
            before.version if before is not None else None,
            share=before.share if before is not None else None,
            kind="rollback",
            reason=reason,
            after=history[-1].number,
        )

    def resolve(self, strategy: str, name: str) -> Model | str | None:
        """Resolve ``strategy:name`` to a model of the registry or the name of a packaged version.

        None: the registry does not know the name. Raises ModelError if the model's files are incomplete or bad.
        """
        packaged = None
        if is_alias(name):
            pointer = self.pointers(strategy).get((strategy, name))
            if pointer is None or pointer.version is None:
                return None
            name = packaged = pointer.version
        found = self.version(strategy, name)
        return packaged if found is None else self.model(found)

    # ----------------------------------------------------------------------------------------------------- plumbing

    def _sha256_of(self, strategy: type[Strategy], name: str) -> str:
        found = self.version(strategy.name, name)
        if found is not None:
            return found.sha256
        packaged = weights.find(strategy, name)
        if packaged is None:
            known = [*(version.version for version in self.versions(strategy.name)), *weights.aliases(strategy)]
            raise VersionNotFound(f"{strategy.name} has no version {name!r}", advice=nearest(name, known))
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
    """Whether a name is an alias: ``champion``, ``challenger``, ``shadow``, ``canary`` or a level."""
    return name in ALIASES or _LEVEL.fullmatch(name) is not None


def check_alias(name: str) -> None:
    """Raise InvalidName unless the name is an alias."""
    if not is_alias(name):
        raise InvalidName(f"{name!r} is not an alias", advice=nearest(name, (*ALIASES, "level-1")))


def trial(strategy: type[Strategy], model: Model) -> None:
    """Check that the strategy can load this model with its default options.

    Raises ModelError if not: wrong encoder version, wrong tensor shapes, an unsupported ONNX graph.
    """
    settled = settle(strategy, model, {})
    try:
        strategy(settled, model).close()
    except ModelError:
        raise
    except Exception as error:  # a plugin may raise anything
        at = raised_at(error, strategy.__module__)
        cause = f"{described(error)} ({at})" if at else described(error)
        raise ModelError(f"{strategy.name} cannot load the model {model.version}: {cause}") from error


def _standing(history: list[Pointer]) -> list[Pointer]:
    """The promotions that no rollback has undone, oldest first."""
    standing: list[Pointer] = []
    for pointer in history:
        if pointer.kind == "promote":
            standing.append(pointer)
        elif standing:
            standing.pop()
    return standing


def _version(row: Any) -> ModelVersion:
    values = dict(row._mapping)
    return ModelVersion(**{**values, "files": json.loads(values["files"]), "lineage": json.loads(values["lineage"])})
