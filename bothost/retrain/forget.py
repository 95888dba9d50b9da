"""Take hands out of retrainings: out of their datasets, and out of whatever trainers made of these."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from pathlib import Path

from bothost.export.forget import forget as forget_in_export
from bothost.retrain.job import KEPT
from bothost.retrain.task import DATASET


def forget(job: Path, game_ids: Collection[bytes]) -> int:
    """Take the hands with these ids out of the dataset in the folder of a job; returns how many rows went.

    What was made of the dataset is removed, and a dataset that is not finished whole: where the job goes on, it makes
    them anew. Models and checkpoints stay. Raises UsageError for a dataset that was damaged.
    """
    if not (job / DATASET / "meta" / "info.json").exists():
        shutil.rmtree(job / DATASET, ignore_errors=True)
        return 0
    gone = forget_in_export(job / DATASET, game_ids)
    if gone:
        for path in job.iterdir():
            if path.is_dir() and path.name not in KEPT:
                shutil.rmtree(path)
    return gone
