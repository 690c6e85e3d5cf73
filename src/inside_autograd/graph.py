"""Read the backward graph of a tensor into plain data: ``Graph.of(loss)``."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from .data import Cut, Edge, Node, Output, Root, Shape  # noqa: F401  (the parts of a graph)
from .facts import (  # noqa: F401  (the kinds belong to the data model)
    ACCUMULATE,
    CHECKPOINT,
    COPY_SLICES,
    CUSTOM,
    ERROR,
    HOOK,
    OP,
    RECORDED,
    unseen,
)
from .inputs import flatten_outputs, named_tensors
from .reading import Reading, collector_paused
from .walk import MAX_NODES, MAX_PATH


@dataclass(frozen=True)
class Graph:
    """The backward graph of some outputs, as plain data: no tensor and no node is kept alive.

    ``str(graph)`` is a readable listing, ``graph.to_dot()`` a text for Graphviz.

    Attributes
    ----------
    nodes
        Later operations before earlier ones. A node stands at ``nodes[node.index]``.
    roots
        One for each tensor that was handed over, and for each ``None``.
    cut
        What the limits left out; ``None`` where the graph is whole.
    unmatched
        Names from ``params`` of tensors that require grad and were not met among the nodes read.

    Examples
    --------
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> graph = Graph.of(x * x, params={"x": x})
    >>> [node.name for node in graph.nodes]
    ['MulBackward0', 'AccumulateGrad']
    >>> [(edge.slot, edge.target) for edge in graph.nodes[0].edges]
    [(0, 1), (1, 1)]
    """

    nodes: tuple[Node, ...]
    roots: tuple[Root, ...]
    cut: Cut | None = None
    unmatched: tuple[str, ...] = field(default=())

    @classmethod
    def of(
        cls,
        outputs: object,
        params: object = None,
        *,
        saved: bool = True,
        max_path: int = MAX_PATH,
        max_nodes: int = MAX_NODES,
    ) -> "Graph":
        """Read the backward graph of ``outputs``.

        Parameters
        ----------
        outputs
            A tensor, a ``torch.autograd.graph.GradientEdge``, or a nested dict, list, tuple or
            dataclass of them. ``None`` entries are skipped.
        params
            Where names come from: a module, a mapping from names to tensors or modules, or pairs
            as in ``model.named_parameters()``. Tensors that are no leaves may be named too.
        saved
            Whether to read what each node saved. ``False`` takes half the time or less: ``saved`` of a
            node then lists only what it has given up, so that ``freed`` is right all the same.
        max_path, max_nodes
            Limits on the number of nodes on one path, not counting the leaf at its end, and in all.
            What lies past them is counted in ``cut``.

        Returns
        -------
        Graph
            The same for the same graph, down to the order.

        Raises
        ------
        TypeError
            If ``outputs`` holds anything else, ``params`` has another form, or a limit is no integer.
        ValueError
            If no output has a graph, a ``GradientEdge`` asks for an output that its node does not
            have, or a limit is less than 1.

        Notes
        -----
        Reading runs no hook and no forward, and changes no tensor. One thing stays behind: torch gives
        each node that Python has seen an object which lives as long as the node, and frees a path of
        such nodes by recursion. On a stack of 512 KiB about 2,400 of them are freed safely, on 8 MiB
        about 39,000; beyond that the process crashes. ``max_path`` keeps one reading below that, so
        raise it with care. Where several threads made the graph, up to twice as many nodes can be read
        before a path is known to be too long.

        The limit cannot help where a path is seen piece by piece, by several calls with outputs at
        different places of one long chain, nor where one operation takes thousands of outputs of one
        chain at once: reading that one operation shows them all.
        """
        try:
            check_limits(max_path, max_nodes)
            with unseen(), collector_paused():
                return read_graph(
                    flatten_outputs(outputs), named_tensors(params), max_path, max_nodes, saved
                )[0]
        except (TypeError, ValueError) as error:
            # Without its traceback: whoever keeps the error would keep all tensors of these frames.
            refusal = error.with_traceback(None)
        del outputs, params
        try:
            raise refusal
        finally:
            del refusal

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def edges(self) -> Iterator[Edge]:
        """All edges, empty slots included, in the order of their nodes."""
        return (edge for node in self.nodes for edge in node.edges)

    @property
    def leaves(self) -> tuple[Node, ...]:
        """The ``AccumulateGrad`` nodes."""
        return tuple(node for node in self.nodes if node.is_leaf)

    def __str__(self) -> str:
        from .text import listing

        return listing(self)

    def to_dot(self) -> str:
        """The graph in Graphviz's DOT language. Same graph, same text."""
        from .text import dot

        return dot(self)


def read_graph(
    outputs: list, named: list, max_path: int = MAX_PATH, max_nodes: int = MAX_NODES, saved: bool = True
) -> tuple[Graph, dict]:
    """The graph, and the index of each of torch's nodes in it.

    ``outputs`` and ``named`` are what ``flatten_outputs`` and ``named_tensors`` make of the caller's.
    To be called where modes and subclasses are ``unseen`` and the collector is paused.
    """
    reading = Reading(outputs, named, max_path, max_nodes, saved)
    return Graph(reading.nodes, reading.roots, reading.cut, reading.unmatched), reading.index_of


def check_limits(max_path: int, max_nodes: int) -> None:
    for name, limit in (("max_path", max_path), ("max_nodes", max_nodes)):
        if not isinstance(limit, int) or isinstance(limit, bool):
            raise TypeError(f"{name} is {limit!r}: give a whole number of nodes, 1 or more.")
        if limit < 1:
            raise ValueError(f"{name} is {limit}: give a whole number of nodes, 1 or more.")
