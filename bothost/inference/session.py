"""Run a model with ONNX Runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bothost.errors import ModelError
from bothost.plugins import weights
from bothost.rules.game import FloatArray
from bothost.strategy import Model


class Session:
    """Runs ``model.onnx`` of a model version on one thread.

    For models of dense layers, the outputs of a row do not depend on the other rows of the batch. So a decision replays
    bit for bit on the same type of CPU.
    """

    def __init__(self, model: Model, *, encoder_version: int, file: str = "model.onnx") -> None:
        """Load ``file`` of a model. Raises ModelError for a wrong hash or another encoder version."""
        if model.encoder_version != encoder_version:
            raise ModelError(
                f"{model.strategy}:{model.version} was made for encoder version {model.encoder_version}, "
                f"this is version {encoder_version}",
                advice="use a model for this encoder, or the release of bothost that the model was made for",
            )
        if model.path is None or file not in model.files:
            message = f"{model.strategy}:{model.version} has no file {file}"
            raise ModelError(message, advice=f"use a model that was trained for {model.strategy}")
        weights.verify(Path(model.path), model.files)
        self.model = model
        self._session = open_session(Path(model.path) / file)
        self._outputs: list[str] = [output.name for output in self._session.get_outputs()]

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of what ``run`` returns."""
        return tuple(self._outputs)

    def width(self, name: str) -> int:
        """Size of the last axis of an input. Raises ModelError if there is no such input, or its size is not fixed."""
        sizes = {node.name: node.shape[-1] for node in self._session.get_inputs() if node.shape}
        if not isinstance(size := sizes.get(name), int):
            problem = f"{self.model.strategy}:{self.model.version} has no input {name!r} of a fixed size"
            raise ModelError(problem, advice="import the model anew, or train it again")
        return size

    def run(self, **inputs: FloatArray) -> list[FloatArray]:
        """All outputs of a batch, in the order of ``outputs``. Releases the GIL.

        Raises ValueError for wrong inputs, and for outputs that are not finite: the training of such a model failed.
        """
        try:
            outputs: list[FloatArray] = self._session.run(self._outputs, inputs)
            if not all(np.isfinite(output).all() for output in outputs):
                raise ValueError("its outputs are not finite numbers")
            return outputs
        except Exception as error:  # the exceptions of ONNX Runtime have no common base
            raise ValueError(f"{self.model.strategy}:{self.model.version}: {error}") from error


def open_session(path: Path) -> Any:
    """ONNX Runtime's session of a model: one thread, and no memory is kept between batches."""
    import onnxruntime  # takes 0.3 s, so only strategies with a network import it

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # A host's batches have many sizes. ONNX Runtime would keep a plan for each of them, and the memory of the largest.
    options.enable_mem_pattern = False
    options.enable_cpu_mem_arena = False
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the exceptions of ONNX Runtime have no common base
        raise ModelError(f"model file {path} cannot be loaded: {error}", advice="import the model again") from error
