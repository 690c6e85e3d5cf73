"""Fold a large graph: what repeats becomes one counted box."""

from dataclasses import dataclass

from .graph import Graph


@dataclass(frozen=True, slots=True)
class Box:
    """One box of a drawing: one node, or several folded ones.

    Attributes
    ----------
    members
        Indices of the nodes it stands for.
    count
        How often the pattern is repeated; 1 for a single node.
    lines
        What a folded box holds, in words; empty for a single node.
    """

    members: tuple[int, ...]
    count: int = 1
    lines: tuple[str, ...] = ()

    @property
    def folded(self) -> bool:
        return len(self.members) > 1


@dataclass(frozen=True, slots=True)
class Folded:
    """A graph seen through boxes. ``box_of[i]`` is the box that holds node i."""

    graph: Graph
    boxes: tuple[Box, ...]
    box_of: tuple[int, ...]


def unfolded(graph: Graph) -> Folded:
    """Every node in its own box."""
    return Folded(graph, tuple(Box((i,)) for i in range(len(graph))), tuple(range(len(graph))))


def fold(graph: Graph) -> Folded:
    return unfolded(graph)
