"""The model pool: past versions of a model in self-play, from which opponents are drawn."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import safetensors.torch
import torch


class ModelPool:
    """Versions of one model in a folder, one safetensors file each, named by the update after which they were taken.

    What is drawn depends on the versions and the generator alone, so a training that resumes draws as one that never
    stopped.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def versions(self) -> list[int]:
        """Updates after which a version was taken, ascending."""
        return sorted(int(path.stem.removeprefix("v")) for path in self.folder.glob("v*.safetensors"))

    def path(self, version: int) -> Path:
        return self.folder / f"v{version:06d}.safetensors"

    def add(self, version: int, model: torch.nn.Module) -> None:
        """Keep the model as it is now."""
        building = self.folder / f".{version}.{os.getpid()}"
        safetensors.torch.save_file(model.state_dict(), building)
        building.replace(self.path(version))

    def load(self, version: int, model: torch.nn.Module) -> None:
        """Make ``model`` that version."""
        model.load_state_dict(safetensors.torch.load_file(self.path(version)))

    def draw(self, rng: np.random.Generator, newest_share: float) -> int:
        """The newest version with probability ``newest_share``, else any, all equally likely."""
        return self.draw_from(self.versions, rng, newest_share)

    @staticmethod
    def draw_from(versions: Sequence[int], rng: np.random.Generator, newest_share: float) -> int:
        """As ``draw``, among ``versions``, ascending."""
        return versions[-1] if rng.random() < newest_share else int(rng.choice(versions))

    def forget_after(self, version: int) -> None:
        """Drop versions later than ``version``: a training that resumes there will make them again."""
        for later in self.versions:
            if later > version:
                self.path(later).unlink()
