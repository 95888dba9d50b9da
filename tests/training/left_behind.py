"""What a training leaves in its folder, to be compared with what another one left."""

from pathlib import Path

import safetensors.torch
import torch

from bothost.training import checkpoint, metrics

CLOCKED = ("seconds", "rollout_steps_per_s", "worker_steps_per_s", "play_seconds", "update_seconds")


def tensors(out: Path):
    """Model and optimizer as of the last checkpoint."""
    last = checkpoint.latest(out)
    return {
        **safetensors.torch.load_file(last / checkpoint.MODEL),
        **safetensors.torch.load_file(last / checkpoint.OPTIMIZER),
    }


def same(one: Path, other: Path) -> bool:
    mine, theirs = tensors(one), tensors(other)
    return mine.keys() == theirs.keys() and all(torch.equal(mine[name], theirs[name]) for name in mine)


def steady(out: Path):
    """The metrics but for those that the clock makes."""
    return [
        {key: value for key, value in record.items() if key not in CLOCKED}
        for record in metrics.read(out / "metrics.jsonl")
    ]
