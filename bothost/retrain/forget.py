"""Remove hands from retraining jobs: from their datasets and from everything derived from them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection
from pathlib import Path

from bothost.export.folder import aside, readable
from bothost.export.forget import forget as forget_in_export
from bothost.export.forget import without
from bothost.messages import Json
from bothost.retrain.dataset import is_made
from bothost.retrain.job import REQUEST, remove_derived
from bothost.retrain.task import DATASET


def forget(job: Path, game_ids: Collection[bytes], names: Collection[str] = ()) -> int:
    """Remove the hands with these ids from the dataset of a job, and these names from its query and the job's.

    Returns the number of removed rows. Derived files are removed, and so is an unfinished dataset. A job that continues
    makes them again. Models and checkpoints stay. Raises UsageError if the dataset is damaged.
    """
    request = _request(job)
    query = without(request["query"], names)
    if query != request["query"]:
        with aside(job / REQUEST) as file:
            file.write(readable(request | {"query": query}))
    if not is_made(job / DATASET):
        shutil.rmtree(job / DATASET, ignore_errors=True)
        return 0
    gone = forget_in_export(job / DATASET, game_ids, names)
    if gone:
        remove_derived(job)
    return gone


def _request(job: Path) -> Json:
    try:
        request = json.loads((job / REQUEST).read_bytes())
        return {**request, "query": dict(request["query"])}
    except (OSError, ValueError, LookupError, TypeError):  # then nothing continues it, and nothing reads it
        return {"query": {}}
