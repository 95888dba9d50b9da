"""Clones as files: which of the two methods made one is told by its encoder version."""

from __future__ import annotations

from pathlib import Path

import safetensors

from bothost import ModelError
from bothost_fm_clone import model, shared
from bothost_fm_clone.model import Clone
from bothost_fm_clone.shared import SharedClone

AnyClone = Clone | SharedClone
VERSIONS = (Clone.version, SharedClone.version)
"""Encoder versions that can be loaded."""


def load_any(path: Path, game: str) -> AnyClone:
    """The clone of a file. Raises ModelError where it is none, or of another game or encoder."""
    try:
        with safetensors.safe_open(path, "numpy") as file:
            told = (file.metadata() or {}).get("encoder_version")
    except (OSError, safetensors.SafetensorError) as error:
        raise ModelError(f"{path} is no clone: {error}", advice="import the model anew, or train it again") from error
    return shared.load(path, game) if told == str(SharedClone.version) else model.load(path, game)
