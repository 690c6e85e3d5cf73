"""The parts of a captured graph: plain data, no tensor and no node of torch's.

Treat them as read-only. They are not frozen because Python takes ten times as long to make a frozen
dataclass, and a graph has tens of thousands of them.
"""

from dataclasses import dataclass

from .facts import ACCUMULATE
from .saved import FREED, Saved

Shape = tuple[int, ...]


@dataclass(slots=True, unsafe_hash=True)
class Output:
    """One output of the recorded operation, which is one gradient that its node receives.

    ``shape``, ``dtype`` and ``device`` are ``None`` where torch kept no record, as for what a custom
    Function returned without a gradient. ``shape`` alone is ``None`` for nested tensors. ``names`` are
    those that ``params`` gives to the tensor. ``used`` says whether an edge or a root that was read
    takes this output.
    """

    number: int
    shape: Shape | None
    dtype: str | None
    device: str | None
    names: tuple[str, ...] = ()
    used: bool = True


@dataclass(slots=True, unsafe_hash=True)
class Edge:
    """One entry of ``next_functions``.

    Attributes
    ----------
    source, slot
        The node that has the entry, and the entry's position there (which input of the operation).
    target, input_nr
        The node that the gradient goes to, and which of its inputs it arrives at: the number of the
        output that the forward operation took. ``target`` is ``None`` for an empty slot.
    reason
        Why ``target`` is ``None``; ``None`` otherwise.
    cut
        Whether there is a node, but past the limits, so that it was not read.
    """

    source: int
    slot: int
    target: int | None
    input_nr: int
    reason: str | None = None
    cut: bool = False


@dataclass(slots=True, unsafe_hash=True)
class Node:
    """One node of the backward graph.

    Attributes
    ----------
    index
        Position in the order of the walk: roots first, later operations before earlier ones.
    name
        As torch prints it: ``MulBackward0``, ``AccumulateGrad``, ``SwishBackward``.
    kind
        ``op``, ``custom`` (an ``autograd.Function``), ``accumulate`` (a leaf), ``recorded`` (the
        backward of a backward formula), ``copy_slices`` (an in-place change through a view),
        ``hook`` (placed by a module's full backward hooks), ``checkpoint`` (reentrant), or
        ``error`` (raises when it runs, for example after ``once_differentiable``).
    names, shape, dtype, device
        For a leaf: every name that ``params`` gives it, and what it is. Empty or ``None`` otherwise.
    outputs
        What the operation returned, one entry per output.
    edges
        One per entry of ``next_functions``.
    saved
        What the node keeps for its backward formula.
    freed
        Whether backward has run through it and given up what it had saved, so that reading that, as a
        second run does, raises.
    """

    index: int
    name: str
    kind: str
    names: tuple[str, ...] = ()
    shape: Shape | None = None
    dtype: str | None = None
    device: str | None = None
    outputs: tuple[Output, ...] = ()
    edges: tuple[Edge, ...] = ()
    saved: tuple[Saved, ...] = ()

    @property
    def freed(self) -> bool:
        return bool(self.saved) and any(saved.state == FREED for saved in self.saved)

    @property
    def is_leaf(self) -> bool:
        return self.kind == ACCUMULATE


@dataclass(slots=True, unsafe_hash=True)
class Root:
    """One tensor that was handed to ``Graph.of``: its path, and the node and output it comes from.

    ``node`` is ``None`` where the tensor has no graph; ``reason`` then says why.
    """

    path: str
    node: int | None
    output_nr: int
    shape: Shape | None = None
    dtype: str | None = None
    reason: str | None = None


@dataclass(slots=True, unsafe_hash=True)
class Cut:
    """What was left out by the limits: ``edges`` that lead on, to ``nodes`` seen there and not read."""

    edges: int
    nodes: int
    max_path: int
    max_nodes: int

    def __str__(self) -> str:
        edges = "1 edge leads" if self.edges == 1 else f"{self.edges:,} edges lead"
        return (
            f"cut here: {edges} on to nodes that were not read "
            f"(limits: {self.max_path:,} nodes on a path, {self.max_nodes:,} in all)"
        )
