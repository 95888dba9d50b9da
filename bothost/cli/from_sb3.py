"""The policy network of a Stable-Baselines3 model, for ``bothost plugin new --from-sb3 model.zip``.

Such a file holds pickles, and its author is not trusted. Of ``policy.pth`` only tensors are loaded
(``torch.load(weights_only=True)``), of ``data`` only JSON is read. Nothing is ever unpickled.
"""

from __future__ import annotations

import io
import re
import warnings
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from bothost.errors import UsageError
from bothost.rules import Block, Game

LARGEST_MEMBER = 256 << 20
"""Bytes of an unpacked file of the archive."""
ADVICE = 'Train with MaskablePPO("MlpPolicy", SeatEnv(…)) or PPO, and save with model.save(…).'
_LAYER = re.compile(r"mlp_extractor\.policy_net\.(\d{1,3})\.(weight|bias)", re.ASCII)


@dataclass(frozen=True)
class Sb3Policy:
    """A multi-layer perceptron from a flattened encoder block to a logit of each action id."""

    tensors: dict[str, npt.NDArray[np.float32]]
    """``0.weight`` (outputs, inputs) and ``0.bias`` (outputs,) to those of the last layer, which gives the logits."""
    activation: str
    """Activation of the hidden layers: ``tanh`` or ``relu``."""
    block: str


def read_policy(path: Path, game: Game, block: str | None) -> Sb3Policy:
    """The policy of a model that was trained at ``SeatEnv(game, block=block)``. Raises UsageError for other files."""
    try:
        from bothost.envs.actions import block_of
    except ImportError as error:
        raise UsageError(str(error), advice='pip install "bothost[envs]"') from error
    observed = block_of(game, block)
    try:
        with zipfile.ZipFile(path) as archive:
            data = msgspec.json.decode(_member(archive, "data"), type=dict[str, Any])
            state = _tensors(_member(archive, "policy.pth"))
    except (OSError, KeyError, zipfile.BadZipFile, ValueError, RuntimeError) as error:
        raise UsageError(f"{path} is not a model of Stable-Baselines3: {error}", advice=ADVICE) from error
    layers = _layers(path, state)
    _check_shapes(path, layers, observed, game)
    tensors = {
        f"{number}.{name}": np.ascontiguousarray(values)
        for number, layer in enumerate(layers)
        for name, values in zip(("weight", "bias"), layer, strict=True)
    }
    return Sb3Policy(tensors, _activation(data), observed.name)


def _member(archive: zipfile.ZipFile, name: str) -> bytes:
    info = archive.getinfo(name)
    if info.file_size > LARGEST_MEMBER:
        raise RuntimeError(f"{name} has {info.file_size >> 20} MiB, more than {LARGEST_MEMBER >> 20}")
    return archive.read(info)  # zipfile reads no more than file_size


def _tensors(data: bytes) -> dict[str, npt.NDArray[np.float32]]:
    import pickle

    try:
        import torch
    except ImportError as error:
        raise UsageError("reading this file needs torch", advice='pip install "bothost[train]"') from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of pickles that are refused next
            loaded = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise RuntimeError("policy.pth holds more than tensors") from error
    if not isinstance(loaded, dict) or not all(isinstance(each, torch.Tensor) for each in loaded.values()):
        raise RuntimeError("policy.pth is not a mapping of tensors")
    return {str(name): each.detach().float().numpy() for name, each in loaded.items()}


def _layers(path: Path, state: dict[str, npt.NDArray[np.float32]]) -> list[tuple[Any, Any]]:
    """(weight, bias) of each layer of the policy, the last one included."""
    numbers = sorted({int(match[1]) for name in state if (match := _LAYER.fullmatch(name))})
    prefixes = [*(f"mlp_extractor.policy_net.{number}" for number in numbers), "action_net"]
    foreign = [name for name in state if name.startswith(("features_extractor.", "pi_features_extractor."))]
    if foreign:
        raise UsageError(f"{path} has a separate feature extractor: {foreign[0]}", advice=ADVICE)
    try:
        return [(state[f"{prefix}.weight"], state[f"{prefix}.bias"]) for prefix in prefixes]
    except KeyError as error:
        raise UsageError(f"{path} has no tensor {error}", advice=ADVICE) from error


def _check_shapes(path: Path, layers: list[tuple[Any, Any]], block: Block, game: Game) -> None:
    inputs = int(np.prod(block.shape))
    for weight, bias in layers:
        if weight.ndim != 2 or weight.shape[1] != inputs or bias.shape != weight.shape[:1]:
            message = f"{path}: a layer of shape {weight.shape} does not take {inputs} inputs"
            raise UsageError(message, advice=f"the block is {block.name!r}; see --block and --game")
        if not (np.isfinite(weight).all() and np.isfinite(bias).all()):
            raise UsageError(f"{path} has weights that are not finite", advice="train the model again")
        inputs = weight.shape[0]
    if inputs != game.num_actions:
        message = f"{path} chooses among {inputs} actions, {game.name} has {game.num_actions}"
        raise UsageError(message, advice='train at SeatEnv(…, actions="ids"), and name the game with --game')


def _activation(data: dict[str, Any]) -> str:
    """The activation in ``policy_kwargs``, such as ``<class 'torch.nn.modules.activation.ReLU'>``; default: tanh."""
    text = str((data.get("policy_kwargs") or {}).get("activation_fn", "Tanh"))
    for name in ("Tanh", "ReLU"):
        if re.search(rf"\b{name}\b", text):
            return name.lower()
    raise UsageError(f"the activation function {text[:80]} is not supported", advice="train with Tanh or ReLU")


def write_weights(policy: Sb3Policy, package: Path) -> list[Path]:
    """Write ``weights/policy.safetensors`` and its manifest into a plugin's package."""
    import hashlib

    from safetensors.numpy import save

    folder = package / "weights"
    folder.mkdir(parents=True)
    data = save(policy.tensors)
    (folder / "policy.safetensors").write_bytes(data)
    files = {"policy.safetensors": hashlib.sha256(data).hexdigest()}
    manifest = {"aliases": {"champion": "v1"}, "versions": {"v1": {"files": files}}}
    (folder / "manifest.json").write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=1))
    return [folder / "policy.safetensors", folder / "manifest.json"]
