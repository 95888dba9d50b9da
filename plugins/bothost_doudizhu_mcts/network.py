"""The network in play: values of all legal moves of a position."""

from __future__ import annotations

from typing import Any

import numpy as np

from bothost import Model
from bothost.inference import Session
from bothost.rules import ActionArray, FloatArray, View
from bothost_doudizhu_mcts.encode import VERSION, encode


class Network:
    """Values of moves: 2 P(win) - 1 of the side that moves."""

    def __init__(self, model: Model) -> None:
        """Raises ModelError where the model cannot be used."""
        self.session = Session(model, encoder_version=VERSION)

    @property
    def sha256(self) -> str:
        return self.session.model.sha256

    version = VERSION
    """Of the encoder."""

    def values(self, view: View, legal: ActionArray) -> FloatArray:
        """Shape (len(legal),), float32, within [-1, 1]."""
        inputs: dict[str, Any] = encode([view], [legal])._asdict()
        return np.clip(self.session.run(**inputs)[0], -1.0, 1.0).astype(np.float32)
