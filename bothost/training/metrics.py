"""Metrics of a training: one JSON line per iteration, trackers, and a plot."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from bothost.errors import ModelError
from bothost.training.trackers import VARIABLE, Trackers

FILE = "metrics.jsonl"


class Metrics:
    """Writes metrics to ``folder/metrics.jsonl`` and to the trackers."""

    def __init__(self, folder: Path, *, after: int = 0, tensorboard: bool = True) -> None:
        """``after``: the iteration that the training resumes from. Later records are dropped. ``tensorboard``: whether
        to use TensorBoard if no trackers are configured."""
        self.path = folder / FILE
        folder.mkdir(parents=True, exist_ok=True)
        _keep_until(self.path, after)
        self._file = self.path.open("a")
        names = None if tensorboard or VARIABLE in os.environ else ()
        self._trackers = Trackers(folder, after=after, names=names)

    def write(self, iteration: int, figures: Mapping[str, float]) -> None:
        """Record the figures of one iteration."""
        self._file.write(json.dumps({"iteration": iteration, **figures}) + "\n")
        self._file.flush()
        self._trackers.log(iteration, figures)

    def close(self) -> None:
        self._file.close()
        self._trackers.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def read(path: Path) -> list[dict[str, float]]:
    """Return the records of a ``metrics.jsonl``, up to the first line that is truncated or damaged."""
    records = []
    for line in path.read_bytes().splitlines():
        try:
            records.append(json.loads(line))
        except ValueError:  # no JSON, or no text
            break
    return records


def read_until(path: Path, iteration: int) -> list[dict[str, float]]:
    """The records up to an iteration. Raises ModelError if the record of that iteration is missing."""
    records = [record for record in read(path) if record["iteration"] <= iteration] if path.is_file() else []
    if not records or records[-1]["iteration"] != iteration:
        raise ModelError(f"{path} has no record of update {iteration}", advice="train again into another folder")
    return records


def plot(records: Sequence[Mapping[str, float]], names: Sequence[str], path: Path) -> None:
    """Plot one panel per name over the samples, from the records that have it. The suffix of ``path`` chooses the
    format."""
    from matplotlib.figure import Figure

    height = 2 * len(names) + 0.5  # inches; fixed margins take half the time of a layout that measures the labels
    figure = Figure(figsize=(6, height))
    figure.subplots_adjust(left=0.14, right=0.97, bottom=0.5 / height, top=1 - 0.3 / height, hspace=0.25)
    for axes, name in zip(figure.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0], names, strict=True):
        known = [record for record in records if name in record]
        axes.plot([record["samples"] for record in known], [record[name] for record in known], linewidth=1)
        axes.set_title(name.replace("_", " "), loc="left", fontsize="medium", y=1.0)  # else it looks for a free height
        axes.grid(alpha=0.3)
    axes.set_xlabel("samples")
    figure.savefig(path, dpi=120)


def _keep_until(path: Path, iteration: int) -> None:
    if not path.exists():
        return
    kept = [json.dumps(record) + "\n" for record in read(path) if record["iteration"] <= iteration]
    building = path.with_name(f".{path.name}")
    building.write_text("".join(kept))
    building.replace(path)
