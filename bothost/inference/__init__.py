"""Model sessions: ONNX Runtime, one thread each, batched across tables by whoever calls them; actions drawn by what
they answer."""

from bothost.inference.sampling import choose, draw
from bothost.inference.session import Session

__all__ = ["Session", "choose", "draw"]
