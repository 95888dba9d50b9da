"""A clone of one game, and its file: the grown combinations of features, and one linear layer."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import safetensors
import safetensors.numpy

from bothost import ModelError
from bothost.training.factorization import FloatArray, IntArray, Samples
from bothost.training.logistic import Linear
from bothost_fm_clone.combinations import Combinations
from bothost_fm_clone.encode import VERSION, Encoding, encoding


@dataclass(frozen=True)
class Clone:
    """Predicts class r with probability softmax(y)_r over the legal classes, where y is the bias plus the sum of the
    set features' weights."""

    version: ClassVar[int] = VERSION
    """Of the encoder."""
    encoding: Encoding
    combinations: Combinations
    linear: Linear

    def odds(self, one: Samples) -> FloatArray:
        """The probability of each legal class of a single sample, float32. Every release must compute the same bits, so
        that logged decisions replay."""
        features, legal = one.features[0], one.legal[0]
        weights = self.linear.weights[self.combinations.evaluate(features)]
        scores = self.linear.bias[legal] + weights[:, legal].sum(axis=0)
        if len(self.linear.alternatives):
            scores += np.einsum("ri,ir->r", self._leaves(one), self.linear.alternatives[:, legal])
        chances = np.exp(scores - scores.max())
        out: FloatArray = (chances / chances.sum()).astype(np.float32)
        return out

    def probabilities_of(self, samples: Samples) -> FloatArray:
        """The probabilities of many samples of base features, float32, laid out as ``samples.legal.items``."""
        features = self.combinations.extend(samples.features)
        return self.linear.probabilities(features, samples.legal, samples.alternatives)

    def reasons(self, one: Samples, chosen: int, count: int = 5) -> list[dict[str, object]]:
        """The set features with the largest weights for or against a class, in words.

        A weight is the feature's weight for the class less its mean over the legal classes by their probabilities. For
        a feature of the afterstate that other classes have and this one lacks, the words begin with "not".
        """
        features, legal = one.features[0], one.legal[0]
        odds, at = self.odds(one), int(np.searchsorted(legal, chosen))
        found = self.combinations.evaluate(features)
        over = self.linear.weights[found][:, legal]
        own = np.zeros((len(legal), 0), np.float32)
        if len(self.linear.alternatives):
            own = self._leaves(one)
            over = np.concatenate([over, own.T * self.linear.alternatives[:, legal]])
        weights = over[:, at] - over @ odds

        def named(place: int) -> list[str]:
            if place < len(found):
                return self.combinations.names(int(found[place]), self.encoding.features)
            name = self.encoding.leaves[place - len(found)]
            return [name if own[at, place - len(found)] else f"not: {name}"]

        order = np.argsort(-np.abs(weights), kind="stable")[:count]
        return [
            {"features": named(int(place)), "weight": round(float(weights[place]), 3)}
            for place in order
            if weights[place] != 0.0
        ]

    def _leaves(self, one: Samples) -> FloatArray:
        """float32, shape (legal classes, afterstate features): 1 if set."""
        assert one.alternatives is not None
        return one.alternatives.dense(len(self.encoding.leaves))

    @cached_property
    def rounded(self) -> Clone:
        """The same clone with weights rounded to 16 bits, as in a file."""
        weights, own = (
            values.astype(np.float16).astype(np.float32) for values in (self.linear.weights, self.linear.alternatives)
        )
        return Clone(self.encoding, self.combinations, Linear(weights, self.linear.bias, own))

    def save(self, path: Path) -> None:
        """Write the file."""
        tensors: dict[str, npt.NDArray[Any]] = {
            "pairs": self.combinations.pairs,
            "weights": self.linear.weights.astype(np.float16),
            "bias": self.linear.bias.astype(np.float32),
        }
        if len(self.linear.alternatives):
            tensors["afterstates"] = self.linear.alternatives.astype(np.float16)
        metadata = {"game": self.encoding.game, "encoder_version": str(VERSION)}
        path.write_bytes(in_order(safetensors.numpy.save(tensors, metadata)))


def in_order(data: bytes) -> bytes:
    """Sort the metadata of a safetensors file. The library's order varies, and equal models must give equal files."""
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":")).encode()
    return data[:8] + text.ljust(end - 8) + data[end:]


def file_of(game: str) -> str:
    """The file name of a game's clone."""
    return f"{game}.safetensors"


@contextlib.contextmanager
def opened(path: Path, kind: tuple[str, int] | None = None) -> Iterator[Any]:
    """Open a clone's file. Raises ModelError for errors of the block, or if the file is not of this ``kind``.

    ``kind``: the game and the encoder version.
    """
    try:
        with safetensors.safe_open(path, "numpy") as file:
            metadata = file.metadata() or {}
            game, version = metadata.get("game"), metadata.get("encoder_version")
            if kind is not None and (game, version) != (kind[0], str(kind[1])):
                raise ValueError(f"it is for {game}, encoder version {version}, not for {kind[0]}, version {kind[1]}")
            yield file
    except (OSError, safetensors.SafetensorError, KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{path} is not a clone: {error}", advice="import the model again, or retrain it") from error


def load(path: Path, game: str) -> Clone:
    """Load a clone. Raises ModelError if the file is not a clone, or of another game or encoder version."""
    own = encoding(game)
    with opened(path, (game, VERSION)) as file:
        none: npt.NDArray[Any] = np.zeros((0, len(own.classes)), np.float16)
        after = file.get_tensor("afterstates") if "afterstates" in file.keys() else none  # noqa: SIM118
        pairs, weights, bias = (file.get_tensor(name) for name in ("pairs", "weights", "bias"))
        return _checked(own, pairs, weights, bias, after)


def _checked(own: Encoding, pairs: IntArray, weights: FloatArray, bias: FloatArray, after: FloatArray) -> Clone:
    if pairs.dtype != np.int32 or weights.dtype != np.float16 or bias.dtype != np.float32 or after.dtype != np.float16:
        raise ValueError("its tensors have the wrong types")
    combinations = Combinations(len(own.features), pairs)
    if weights.shape != (len(combinations), len(own.classes)) or bias.shape != (len(own.classes),):
        raise ValueError(f"its weights are {weights.shape}, not {(len(combinations), len(own.classes))}")
    if after.shape not in ((0, len(own.classes)), (len(own.leaves), len(own.classes))):
        raise ValueError(f"its weights of afterstates are {after.shape}, not {(len(own.leaves), len(own.classes))}")
    if not all(np.isfinite(values).all() for values in (weights, bias, after)):
        raise ValueError("its weights are not all finite")
    return Clone(own, combinations, Linear(weights.astype(np.float32), bias, after.astype(np.float32)))


def games_of(files: Sequence[str]) -> list[str]:
    """The games of a version's files."""
    return [name.removesuffix(".safetensors") for name in files if name.endswith(".safetensors")]
