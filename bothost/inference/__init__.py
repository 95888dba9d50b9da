"""Model sessions: ONNX Runtime, one thread each, batched across tables by whoever calls them."""

from bothost.inference.session import Session

__all__ = ["Session"]
