"""Run models with ONNX Runtime, and sample reproducibly from their policies."""

from bothost.inference.sampling import choose, draw, legal_masks
from bothost.inference.session import Session

__all__ = ["Session", "choose", "draw", "legal_masks"]
