"""What trainers return: figures that can be logged, whatever made them."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from bothost import Trainer
from bothost.errors import PluginError
from bothost.plugins import checked_figures


class Fits(Trainer):
    name = "fits"

    def train(self, run, report):
        return {}


def test_figures_of_numpy_and_torch_become_json():
    """A mean of an array is one of these. The end of a long training is no time to refuse it."""
    given = {"hands": np.int64(3), "loss": np.float32(0.5), "parts": np.array([1, 2]), "of": {"t": torch.tensor(0.25)}}
    figures = checked_figures(Fits, given | {"none": float("nan"), "out": Path("runs")})
    assert json.loads(json.dumps(figures, allow_nan=False)) == figures
    expected = {"hands": 3, "loss": 0.5, "parts": [1, 2], "of": {"t": 0.25}, "none": None, "out": "runs"}
    assert figures == expected and type(figures["hands"]) is int


def test_figures_that_are_no_json_are_refused_by_name():
    with pytest.raises(PluginError, match=r"plugin fits: Fits returned figures that are no JSON: .*object") as caught:
        checked_figures(Fits, {"model": object()})
    assert "numbers" in caught.value.advice
