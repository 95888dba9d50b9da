"""The device that a network learns on."""

from __future__ import annotations

from typing import Literal

from bothost.errors import UsageError

Device = Literal["cpu", "cuda"]


def check_device(device: Device) -> None:
    """Raise UsageError if this machine, or its torch, does not have the device."""
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        problem = f"torch {torch.__version__} finds no GPU here"
        raise UsageError(problem, advice="leave out --device cuda, or install torch with CUDA on a machine with a GPU")
