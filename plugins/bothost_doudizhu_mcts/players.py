"""A version's model of how strong players move: ``players.safetensors``.

The search asks it how likely the others' moves were, given each possible hand, and how they continue.
"""

from __future__ import annotations

from pathlib import Path

import safetensors
import safetensors.numpy

from bothost import Model, ModelError
from bothost.rules.doudizhu import PlayerModel

FILE = "players.safetensors"


def load(model: Model | None) -> PlayerModel | None:
    """The version's model of players; None if it has none. Raises ModelError if the file is no such model."""
    path = file_of(model)
    if path is None:
        return None
    try:
        return PlayerModel(**safetensors.numpy.load_file(path))
    except (OSError, safetensors.SafetensorError, TypeError, ValueError) as error:
        raise ModelError(f"{path} is not a model of players: {error}", advice="import the version again") from error


def file_of(model: Model | None) -> Path | None:
    """The version's file; None if it has none."""
    return Path(model.path) / FILE if model is not None and model.path is not None and FILE in model.files else None
