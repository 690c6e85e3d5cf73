"""See, run and break PyTorch's backward pass."""

from .drawing import Drawing, draw
from .graph import Graph

__all__ = ["Drawing", "Graph", "draw"]
