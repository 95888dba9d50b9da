"""Sessions of ONNX Runtime, and reproducible draws from the policies that they return."""

from bothost.inference.sampling import choose, draw
from bothost.inference.session import Session

__all__ = ["Session", "choose", "draw"]
