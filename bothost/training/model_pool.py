"""The model pool: past versions of a model in self-play, from which opponents are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from bothost.training.checkpoint import load_model, save_tensors


class ModelPool:
    """Versions of one model in a folder: one safetensors file each, named by its iteration.

    Draws depend only on the versions and the generator, so a resumed training repeats them.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def versions(self) -> list[int]:
        """Iterations after which a version was added, ascending."""
        numbers = [path.stem.removeprefix("v") for path in self.folder.glob("v*.safetensors")]
        # Other files may lie here: a version's name is the one that ``path`` makes.
        return sorted(int(number) for number in numbers if number.isdecimal() and number == f"{int(number):06d}")

    def path(self, version: int) -> Path:
        return self.folder / f"v{version:06d}.safetensors"

    def add(self, version: int, model: torch.nn.Module) -> None:
        """Add the model with its current parameters."""
        building = self.folder / f".{version}"
        save_tensors(model.state_dict(), building)
        building.replace(self.path(version))

    def load(self, version: int, model: torch.nn.Module) -> None:
        """Load that version into ``model``. Raises ModelError if its file is damaged or missing."""
        load_model(self.path(version), model)

    def draw(self, rng: np.random.Generator, newest_share: float) -> int:
        """Draw the newest version with probability ``newest_share``, otherwise any version, equally likely."""
        return self.draw_from(self.versions, rng, newest_share)

    @staticmethod
    def draw_from(versions: Sequence[int], rng: np.random.Generator, newest_share: float) -> int:
        """As ``draw``, from ``versions`` in ascending order."""
        return versions[-1] if rng.random() < newest_share else int(rng.choice(versions))

    def forget_after(self, version: int) -> None:
        """Remove versions later than ``version``. A training that resumes there makes them again."""
        for later in self.versions:
            if later > version:
                self.path(later).unlink()
