"""A trial run of a stranger's ONNX graphs, in a process of their own with limited memory and time.

``python -m bothost.inference.graph_trial BYTES SECONDS FILE…`` is that process. A graph of a few bytes can ask for any
amount of memory, when it is loaded (constants are folded) or when it runs. Here that ends the trial, and not the host.
"""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bothost import children
from bothost.errors import ModelError

MEMORY_BYTES = 4 << 30
"""Address space of the trial. ONNX Runtime itself takes about 1 GiB of it."""
CPU_SECONDS = 30
TIMEOUT_S = 300.0
"""Time that passes, on a machine that is busy with other work."""

_TYPES = {"float": "f4", "float16": "f2", "double": "f8", "bool": "?", "uint8": "u1", "int8": "i1", "int32": "i4"}


def try_graphs(files: Sequence[Path]) -> None:
    """Load each graph and run it once on zeros. Raises ModelError if one fails, or exceeds a limit."""
    if not files:
        return
    command = [sys.executable, "-P", "-m", __name__, str(MEMORY_BYTES), str(CPU_SECONDS), *map(str, files)]
    try:
        done = subprocess.run(
            command,
            env=children.environment(),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _refused(f"it still ran after {TIMEOUT_S:g} s") from None
    if done.returncode < 0:
        raise _refused(f"{signal.Signals(-done.returncode).name} ended its trial")
    if done.returncode:
        raise _refused(done.stderr.strip()[-500:])


def _refused(why: str) -> ModelError:
    limits = f"a trial run has {MEMORY_BYTES >> 30} GiB of memory and {CPU_SECONDS} s of processor time"
    return ModelError(f"the model's graph is refused: {why}", advice=limits)


def _run(path: Path) -> None:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    inputs = {}
    for node in session.get_inputs():
        kind = node.type.removeprefix("tensor(").removesuffix(")")
        shape = [size if isinstance(size, int) else 1 for size in node.shape]  # a name stands for any size
        inputs[node.name] = np.zeros(shape, _TYPES.get(kind, "i8"))
    session.run(None, inputs)


def main() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    memory, seconds = map(int, sys.argv[1:3])
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    for name in sys.argv[3:]:
        try:
            _run(Path(name))
        except Exception as error:  # the exceptions of ONNX Runtime have no common base
            sys.exit(f"{Path(name).name}: {error}".replace("\n", " "))


if __name__ == "__main__":
    main()
