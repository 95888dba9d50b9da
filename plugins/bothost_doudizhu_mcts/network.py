"""The networks at play: values of moves, for the tree's priors and leaves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bothost import Model
from bothost.inference import Session
from bothost.rules import ActionArray, FloatArray, View
from bothost_doudizhu_mcts.encode import ROLES, VERSION, encode, roles

GRAPHS = {role: f"{role}.onnx" for role in ROLES}
"""File of each role's network."""
ONE_FOR_ALL = "model.onnx"
"""The graph of older models, which have one network for all roles."""


class Network:
    """Values of moves: 2 P(win) - 1 of the side that moves."""

    version = VERSION
    """Of the encoder."""

    def __init__(self, model: Model) -> None:
        """Raises ModelError if the model cannot be used."""
        files = [ONE_FOR_ALL] * len(ROLES) if ONE_FOR_ALL in model.files else list(GRAPHS.values())
        sessions = {file: Session(model, encoder_version=VERSION, file=file) for file in dict.fromkeys(files)}
        self.model = model
        self.sessions = [sessions[file] for file in files]
        """Of each role."""

    def action_values(self, views: Sequence[View], legal: Sequence[ActionArray]) -> list[FloatArray]:
        """Values of the given moves of each view, float32 in [-1, 1], with one inference for each role."""
        of = roles(views)
        found: list[FloatArray] = [np.empty(0, np.float32)] * len(views)
        for role in np.unique(of):
            rows = np.flatnonzero(of == role).tolist()
            inputs = encode([views[i] for i in rows], [legal[i] for i in rows])
            values = self.sessions[role].run(planes=inputs.planes, moves=inputs.moves, owner=inputs.owner)[0]
            ends = np.cumsum([len(legal[i]) for i in rows])[:-1]
            for i, own in zip(rows, np.split(np.clip(values, -1.0, 1.0).astype(np.float32), ends), strict=True):
                found[i] = own
        return found

    def values(self, view: View, legal: ActionArray) -> FloatArray:
        """Values of the given moves: shape (len(legal),), float32, in [-1, 1]."""
        return self.action_values([view], [legal])[0]
