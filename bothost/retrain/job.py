"""One retraining job: dataset → training → challenger. An interrupted job continues where it was.

::

    request.json      the request
    dataset/          an export of the log (``bothost.retrain.dataset``)
    start/            the champion when the job started: the training begins with it
    training/         the trainer's folder: checkpoints, metrics, weights/
    result.json       written last
    promotion.pending until the job's promotion was tried, if it was asked for

Trainers derive all other folders from the dataset, and make them again if they are missing. A finished job has none:
encoded hands may take gigabytes.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import sqlalchemy as sa

from bothost.errors import ModelError, UsageError
from bothost.export.folder import aside, readable
from bothost.plugins import Plugins, check_options, require
from bothost.plugins.weights import find, verify
from bothost.retrain.dataset import Dataset
from bothost.retrain.task import (
    DATASET,
    TRAINING,
    Learn,
    Request,
    RetrainTask,
    last_checkpoint,
    learn,
    trainer_of,
)
from bothost.store.leases import JobLease
from bothost.store.models import decisions
from bothost.store.query import first_id
from bothost.store.registry import CHALLENGER, Registry
from bothost.store.store import Store
from bothost.strategy import Model, ReportProgress, Strategy

Json = dict[str, Any]
LEASE, LOCK = "retrain", "retrain.id"
START, REQUEST, RESULT, PENDING = "start", "request.json", "result.json", "promotion.pending"
JOBS_KEPT = 3
"""Folders that the jobs of a watch leave: each holds a copy of the log, and they must not fill the disk."""
KEPT = frozenset((DATASET, START, TRAINING))
"""Folders that a trainer cannot derive from the dataset."""


class Tools(msgspec.Struct, frozen=True):
    """What a job needs."""

    plugins: Plugins
    store: Store
    registry: Registry


def retrain(
    tools: Tools,
    request: Request,
    out: Path,
    report: ReportProgress,
    elsewhere: Learn | None = None,
    *,
    promotes: bool = False,
) -> Json:
    """Run the job in the folder ``out``, or continue it. Returns its result.

    ``elsewhere`` runs the training in another process. ``promotes``: the caller then promotes, and removes ``PENDING``.
    Raises LeaseHeld while another process retrains on this database, UsageError for a request that cannot be met, and
    ModelError if the trainer's model is invalid.
    """
    if (out / RESULT).exists() and _same(_asked(out), request):
        return dict(json.loads((out / RESULT).read_bytes()))
    strategy: type[Strategy] = require(tools.plugins, tools.plugins.strategies, "strategy", request.strategy)
    check_options(trainer_of(tools.plugins, request.strategy), request.options)  # before anything is written
    with JobLease(tools.store, LEASE, lock=tools.registry.folder.with_name(LOCK)) as lease:
        asked = _request_of(out, request)
        started_us = time.time_ns() // 1000
        dataset = Dataset.make(
            tools.store,
            asked.query,
            out / DATASET,
            strategy.name,
            request=msgspec.to_builtins(asked.query),
            progress=lambda done, total: report(done, "dataset", total),
        )
        if not dataset.manifest["rows"]:
            shutil.rmtree(out)
            raise _nothing_logged(strategy, asked)
        tools.store.remember("", f"retrain {strategy.name}", {"dataset_us": dataset.manifest["created_us"]})
        start = _start(tools.plugins, asked, out)

        def watched(done: int, note: str = "", total: int | None = None) -> None:
            lease.check()
            report(done, note, total)

        task = RetrainTask(request=asked, folder=out.resolve(), dataset_sha256=dataset.sha256, start=start)
        try:
            learnt = (elsewhere or partial(learn, tools.plugins, lambda: nullcontext(tools.store)))(task, watched)
        except UsageError:
            if last_checkpoint(out / TRAINING) is None:  # then the next attempt sees what was played meanwhile
                shutil.rmtree(out)
            raise
        lease.check()
        read = {} if learnt.log is None else {"log": learnt.log}
        made = _register(tools.registry, strategy, asked, out, dataset, start, {**read, "figures": learnt.figures})
        seconds = round(time.time() - started_us / 1e6, 1)
        result = {**made, "figures": learnt.figures, "out": str(out), "seconds": seconds}
        if promotes:
            (out / PENDING).touch()
        _write(out / RESULT, result)
        remove_derived(out)
        return result


def _nothing_logged(strategy: type[Strategy], asked: Request) -> UsageError:
    game = f" --game {strategy.games[0]}" if strategy.games != ("*",) else ""
    advice = f"play some: bothost demo{game} --hands 20; or ask for more: --since, --lobby, --player"
    of = f" of {strategy.name}" if asked.query.strategies else ""
    at = f" of {', '.join(asked.query.players)}" if asked.query.players else ""
    return UsageError(f"no logged decision{of} in a scored hand{at}", advice=advice)


def remove_derived(out: Path) -> None:
    """Remove the folders that the trainer derived from the dataset."""
    for path in out.iterdir():
        if path.is_dir() and path.name not in KEPT:
            shutil.rmtree(path)


def new_decisions(store: Store, request: Request) -> tuple[int, int]:
    """The number of live decisions since the strategy's last dataset, and its time in microseconds (0: never).

    Counts those of the strategies that the request names; of all if it names none.
    """
    since = int(store.memo("", f"retrain {request.strategy}").get("dataset_us", 0))
    d, by = decisions.c, request.query.strategies
    query = sa.select(sa.func.count()).where(
        d.game_id >= first_id(since), d.role == "live", d.at_us > since, *([d.strategy.in_(by)] if by else [])
    )
    with store.begin() as connection:
        return int(connection.execute(query).scalar() or 0), since


def interrupted(folder: Path, request: Request, *, promotes: bool = False) -> Path | None:
    """The newest unfinished job for the same request under ``folder``. Jobs that cannot be read are skipped.

    ``promotes``: a job whose promotion was interrupted is unfinished too.
    """
    for path in sorted(folder.glob(f"{request.strategy}-*"), reverse=True):
        unfinished = not (path / RESULT).exists() or (promotes and (path / PENDING).exists())
        if unfinished and (path / REQUEST).exists():
            with suppress(UsageError):
                if _same(_asked(path), request):
                    return path
    return None


def remove_old(folder: Path, request: Request, current: Path) -> None:
    """Remove the folders of the jobs with the same request under ``folder``, but ``current`` and the newest others.

    In all ``JOBS_KEPT`` are left. Jobs that cannot be read stay.
    """
    kept = 1
    for path in sorted(folder.glob(f"{request.strategy}-*"), reverse=True):
        with suppress(UsageError):
            if path != current and _same(_asked(path), request):
                kept += 1
                if kept > JOBS_KEPT:
                    shutil.rmtree(path, ignore_errors=True)


def _asked(out: Path) -> Request:
    try:
        return msgspec.json.decode((out / REQUEST).read_bytes(), type=Request)
    except (OSError, ValueError) as error:
        raise UsageError(f"{out / REQUEST} cannot be read: {error}", advice="name another folder with --out") from error


def _same(old: Request, new: Request) -> bool:
    """Whether both ask for the same training. Times may differ: "the last 7 days" changes with the clock."""
    return _timeless(old) == _timeless(new)


def _timeless(request: Request) -> Request:
    query = request.query
    bounds = {name: None if getattr(query, name) is None else 0 for name in ("since_us", "until_us")}
    return msgspec.structs.replace(request, query=msgspec.structs.replace(query, **bounds), minutes=None, command="")


def _request_of(out: Path, request: Request) -> Request:
    """The request of the job in the folder: of the interrupted job, with the new time limit; otherwise the new one."""
    path = out / REQUEST
    if path.exists():
        old = _asked(out)
        if not _same(old, request):
            raise UsageError(f"{out} holds another retraining", advice="name another folder with --out")
        return old if request.minutes is None else msgspec.structs.replace(old, minutes=request.minutes)
    if out.exists() and any(out.iterdir()):
        raise UsageError(f"{out} is not empty", advice="name another folder with --out")
    out.mkdir(parents=True, exist_ok=True)
    _write(path, msgspec.to_builtins(request))
    return request


def _start(plugins: Plugins, request: Request, out: Path) -> Model | None:
    """The model to begin with: the champion when the job started. Its files are copied into the job's folder."""
    place = out / START
    if not place.exists():
        model = None if request.fresh else plugins.resolve(request.strategy).model
        building = place.with_name(f".{START}.{os.getpid()}")
        shutil.rmtree(building, ignore_errors=True)
        building.mkdir()
        if model is not None and model.path is not None:
            for name in model.files:
                (building / "files" / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(Path(model.path) / name, building / "files" / name)
        _write(building / "model.json", msgspec.to_builtins(model))
        building.rename(place)
    try:
        model = msgspec.json.decode((place / "model.json").read_bytes(), type=Model | None)
    except (OSError, ValueError) as error:
        raise ModelError(f"{place / 'model.json'} cannot be read: {error}", advice="name another folder") from error
    if model is None or model.path is None:
        return model
    root = (place / "files").resolve()
    verify(root, model.files)
    return msgspec.structs.replace(model, path=str(root))


def _register(
    registry: Registry,
    strategy: type[Strategy],
    request: Request,
    out: Path,
    dataset: Dataset,
    start: Model | None,
    learnt: Json,
) -> Json:
    """Register the new model as challenger, with its lineage."""
    weights = out / TRAINING / "weights"
    trained = find(strategy, "champion", weights)
    if trained is None or trained.path is None:
        raise ModelError(f"the trainer of {strategy.name} left no model in {weights}")
    info = dataset.manifest
    lineage = {
        "kind": "retrain",
        "command": request.command,
        "seed": request.seed,
        "options": request.options,
        "started_from": None if start is None else {"version": start.version, "sha256": start.sha256},
        "dataset": {
            "manifest_sha256": dataset.sha256,
            **{key: info[key] for key in ("query", "rows", "hands", "splits", "created_us", "files")},
        },
        **learnt,
    }
    made = registry.add(
        strategy, Path(trained.path), trained.files, encoder_version=trained.encoder_version, lineage=lineage
    )
    pointer = registry.pointers(strategy.name).get((strategy.name, CHALLENGER))
    if pointer is None or pointer.version != made.version:
        rows = f"{info['rows']:,} logged decisions"
        registry.point(strategy, CHALLENGER, made.version, reason=f"retrained from {rows}")
    return {"strategy": strategy.name, "version": made.version, "sha256": made.sha256, "rows": info["rows"]}


def _write(path: Path, data: Any) -> None:
    with aside(path) as file:
        file.write(readable(data))
