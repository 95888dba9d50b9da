"""Loads clones from files. The encoder version shows which of the two methods made a clone."""

from __future__ import annotations

from pathlib import Path

from bothost_fm_clone import model, shared
from bothost_fm_clone.model import Clone
from bothost_fm_clone.shared import SharedClone

AnyClone = Clone | SharedClone
VERSIONS = (Clone.version, SharedClone.version)
"""Encoder versions that can be loaded."""


def load_any(path: Path, game: str) -> AnyClone:
    """Load a clone. Raises ModelError if the file is not a clone, or of another game or encoder version."""
    with model.opened(path) as file:
        version = (file.metadata() or {}).get("encoder_version")
    return shared.load(path, game) if version == str(SharedClone.version) else model.load(path, game)
