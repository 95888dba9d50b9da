"""Checkpoints: everything that a training needs to continue exactly. Safetensors and JSON, never pickles.

``checkpoint-000040/`` holds ``model.safetensors``, ``optimizer.safetensors`` and ``state.json``. It gets this
name when it is complete. Then all older checkpoints but one are removed.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import msgspec
import safetensors
import safetensors.torch
import torch

from bothost.errors import ModelError, UsageError
from bothost.strategy import TrainingRun

STATE, MODEL, OPTIMIZER = "state.json", "model.safetensors", "optimizer.safetensors"
KEPT = 2


class Progress(msgspec.Struct, kw_only=True):
    """The progress of a training."""

    iteration: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Updates made."""
    samples: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Decisions of the learner so far."""
    seconds: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    """Time spent training, in all runs together."""
    seed: int = 0
    encoder_version: int | None = None
    start: str | None = None
    """Label of the version that it started with; "" for fresh parameters. None: a checkpoint of an earlier release."""
    options: dict[str, Any] = {}
    """Options of the trainer."""

    def figures(self, iterations: str = "updates") -> dict[str, float]:
        """Iterations, samples and minutes, for results and lineages."""
        return {iterations: self.iteration, "samples": self.samples, "minutes": round(self.seconds / 60, 2)}


def save(folder: Path, progress: Progress, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> Path:
    """Write a checkpoint into ``folder`` and return its path. If this is interrupted, the previous one stays valid."""
    return write(folder, progress, {MODEL: model.state_dict(), OPTIMIZER: optimizer_tensors(optimizer)})


def write(folder: Path, progress: Progress, files: Mapping[str, dict[str, torch.Tensor]]) -> Path:
    """Like ``save``, with any tensors: file name → name → tensor."""
    target = folder / f"checkpoint-{progress.iteration:06d}"
    for unfinished in folder.glob(".checkpoint-*"):  # of a run that was killed, or whose disk was full
        shutil.rmtree(unfinished)
    building = folder / f".{target.name}"
    building.mkdir(parents=True)
    for name, tensors in files.items():
        save_tensors(tensors, building / name)
    (building / STATE).write_bytes(msgspec.json.format(msgspec.json.encode(progress)))
    shutil.rmtree(target, ignore_errors=True)
    building.replace(target)
    for old in _checkpoints(folder)[:-KEPT]:
        shutil.rmtree(old)
    return target


def save_tensors(tensors: dict[str, torch.Tensor], file: Path) -> None:
    """Write a safetensors file. Raises OSError, as for other files."""
    try:
        safetensors.torch.save_file(tensors, file)
    except safetensors.SafetensorError as error:
        raise OSError(f"{file} cannot be written: {error}") from error


def read(checkpoint: Path, *, seed: int, encoder_version: int) -> Progress:
    """Read the progress of a checkpoint. Raises ModelError for another encoder version, UsageError for another seed."""
    with readable(checkpoint):
        progress = msgspec.json.decode((checkpoint / STATE).read_bytes(), type=Progress)
    if progress.encoder_version != encoder_version:
        problem = f"{checkpoint} was trained with encoder version {progress.encoder_version}, this is {encoder_version}"
        raise ModelError(problem, advice="train again into another folder")
    if progress.seed != seed:
        problem = f"{checkpoint} was started with seed {progress.seed}"
        raise UsageError(problem, advice=f"resume it with --seed {progress.seed}")
    return progress


@contextmanager
def readable(checkpoint: Path) -> Iterator[None]:
    """Raise ModelError if the block reads a damaged file, or one that does not fit."""
    try:
        yield
    except (OSError, msgspec.DecodeError, safetensors.SafetensorError, RuntimeError, LookupError, ValueError) as error:
        advice = "train into another folder, or remove this checkpoint to resume from the previous one"
        raise ModelError(f"checkpoint {checkpoint} cannot be read: {error}", advice=advice) from error


def reached(folder: Path, *, seed: int, encoder_version: int) -> Progress:
    """The progress of the newest checkpoint in ``folder``, if there is one. Raises as ``read``."""
    newest = latest(folder)
    if newest is None:
        return Progress(seed=seed, encoder_version=encoder_version)
    return read(newest, seed=seed, encoder_version=encoder_version)


def latest(folder: Path) -> Path | None:
    """The newest checkpoint in ``folder``, or None."""
    found = _checkpoints(folder)
    return found[-1] if found else None


def last(folder: Path) -> Path:
    """The newest checkpoint in ``folder``. Raises UsageError if there is none."""
    found = latest(folder)
    if found is None:
        begun = folder.is_dir() and any(folder.iterdir())  # killed before its first checkpoint
        first = "empty it or name another folder, and " if begun else ""
        raise UsageError(f"there is no checkpoint in {folder}", advice=f"{first}leave out --resume to start a training")
    return found


def take_up(out: Path, *, seed: int, minutes: float | None = None, command: str = "") -> TrainingRun:
    """Make a run that resumes the training in ``out``, or starts it if there is no checkpoint.

    Reproductions use it: they may be killed at any moment and run again. Without a checkpoint, everything in ``out`` is
    removed.
    """
    resume = latest(out) is not None
    if not resume:
        shutil.rmtree(out, ignore_errors=True)
    return TrainingRun(out=out, seed=seed, minutes=minutes, resume=resume, command=command)


def check_empty(folder: Path) -> None:
    """Raise UsageError if ``folder`` is not empty."""
    if folder.is_dir() and any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty", advice="continue with --resume, or name another folder")


def load(checkpoint: Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> Progress:
    """Restore model and optimizer. Raises ModelError if the checkpoint does not fit the model."""
    with readable(checkpoint):
        progress = msgspec.json.decode((checkpoint / STATE).read_bytes(), type=Progress)
        parameters, slots = (safetensors.torch.load_file(checkpoint / file) for file in (MODEL, OPTIMIZER))
        if not _fits(parameters, model):
            advice = "resume with the options that it was started with, or train into another folder"
            raise ModelError(f"checkpoint {checkpoint} is of another network than these options make", advice=advice)
        model.load_state_dict(parameters)
        restore_optimizer(optimizer, slots)
    return progress


def load_model(file: Path, model: torch.nn.Module) -> None:
    """Load the parameters of a safetensors file. Raises ModelError if they do not fit the model."""
    parameters = parameters_of(file)
    if not _fits(parameters, model):
        raise _unusable(file, "it is of another network")
    model.load_state_dict(parameters)


def _fits(parameters: Mapping[str, torch.Tensor], model: torch.nn.Module) -> bool:
    """Whether these are the model's parameters, by names and shapes."""
    shapes = {name: tensor.shape for name, tensor in parameters.items()}
    return shapes == {name: tensor.shape for name, tensor in model.state_dict().items()}


def parameters_of(file: Path) -> dict[str, torch.Tensor]:
    """The tensors of a safetensors file by name. Raises ModelError for any other file."""
    try:
        return safetensors.torch.load_file(file)
    except (OSError, safetensors.SafetensorError, ValueError) as error:
        raise _unusable(file, error) from error


def _unusable(file: Path, why: object) -> ModelError:
    advice = "start with another version, or train again into another folder"
    return ModelError(f"{file} cannot be used here: {why}", advice=advice)


def _checkpoints(folder: Path) -> list[Path]:
    found = [path for path in folder.glob("checkpoint-*") if (path / STATE).is_file()]
    return sorted(found, key=lambda path: (len(path.name), path.name))  # from a million on, numbers are longer


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    """The optimizer's state: ``INDEX.SLOT`` → tensor, by index of the parameter."""
    state = optimizer.state_dict()["state"]
    return {f"{index}.{name}": tensor for index, slots in state.items() for name, tensor in slots.items()}


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: dict[str, torch.Tensor]) -> None:
    """Restore the state that ``optimizer_tensors`` returned. Raises ValueError if it is of other parameters."""
    state: dict[int, dict[str, torch.Tensor]] = {}
    for key, tensor in tensors.items():
        index, _, name = key.partition(".")
        state.setdefault(int(index), {})[name] = tensor
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for number, slots in state.items():
        shapes = {slot.shape for slot in slots.values() if slot.ndim}  # ``step`` is a scalar
        if not 0 <= number < len(parameters) or not shapes <= {parameters[number].shape}:
            raise ValueError("its optimizer is of other parameters")
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
