"""The content of models' files: in the database, in parts keyed by sha256, and in a folder of verified copies."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import time
from collections.abc import Mapping
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from bothost.errors import ModelError
from bothost.locking import locked
from bothost.plugins import weights
from bothost.store import model_files
from bothost.store.models import model_files as parts
from bothost.store.store import Store

_SHA256 = re.compile(r"[0-9a-f]{64}")
PART_BYTES = 4 << 20


class StoredFiles:
    """The files of the models of one database, and their cache ``folder``."""

    def __init__(self, store: Store, folder: Path) -> None:
        self.store = store
        self.folder = folder

    def add(self, path: Path, sha256: str) -> None:
        """Store a file in the database unless it is there."""
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
            return  # another process stored the same bytes meanwhile

    def fetch(self, name: str, sha256: str, files: Mapping[str, str]) -> Path:
        """Return the cache folder of the version ``name``, whose model has this sha256. A damaged folder is replaced.

        Raises ModelError if the files are incomplete or bad.
        """
        if not _SHA256.fullmatch(sha256) or weights.model_sha256(files) != sha256:
            raise ModelError(f"the sha256 of {name} does not match its files")
        model_files.names(files)
        root = self.folder / sha256
        if not _is_whole(root, files):
            try:
                self._build(root, files)
            except OSError as error:
                advice = "free space, or let this user write there"
                raise ModelError(f"{name} cannot be stored in {self.folder}: {error}", advice=advice) from error
        return root

    def _build(self, root: Path, files: Mapping[str, str]) -> None:
        """Make or replace the cache folder of a version. Raises ModelError and OSError."""
        self.folder.mkdir(parents=True, exist_ok=True)
        building = self.folder / f".{root.name}.{os.getpid()}.{time.monotonic_ns()}"
        # Two that fetch at once must not move away the copy that the other has begun to use.
        with locked(self.folder, wait=True):
            if _is_whole(root, files):
                return
            building.mkdir()
            try:
                for name, sha256 in files.items():
                    self._load(building / name, sha256)
                model_files.check(building, files)
                with contextlib.suppress(FileNotFoundError):  # a damaged copy
                    root.rename(building.with_suffix(".broken"))
                building.rename(root)
            finally:
                for leftover in (building, building.with_suffix(".broken")):
                    shutil.rmtree(leftover, ignore_errors=True)

    def _load(self, path: Path, sha256: str) -> None:
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


def _is_whole(root: Path, files: Mapping[str, str]) -> bool:
    try:
        model_files.check(root, files)
    except ModelError:
        return False
    return True
