"""Read the backward graph of a tensor into plain data: ``Graph.of(loss)``."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch.autograd.graph import GradientEdge

from .data import Cut, Edge, Node, Output, Root, Shape
from .facts import (  # noqa: F401  (the kinds belong to the data model)
    ACCUMULATE,
    CHECKPOINT,
    COPY_SLICES,
    CUSTOM,
    ERROR,
    HOOK,
    OP,
    RECORDED,
    AccumulateGrad,
    is_custom,
    kind_of,
    leaf_node,
    name_of,
    unseen,
    why_empty,
)
from .inputs import flatten_outputs, named_tensors
from .saved import describe_saved, device_name, dtype_name, read_saved, shape_of
from .walk import MAX_NODES, MAX_PATH, walk

PAST_LIMITS = "past the limits, not read"


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
    def of(cls, outputs, params=None, *, max_path: int = MAX_PATH, max_nodes: int = MAX_NODES) -> "Graph":
        """Read the backward graph of ``outputs``.

        Parameters
        ----------
        outputs
            A tensor, a ``torch.autograd.graph.GradientEdge``, or a nested dict, list, tuple or
            dataclass of them. ``None`` entries are skipped.
        params
            Where names come from: a module, a mapping from names to tensors or modules, or pairs
            as in ``model.named_parameters()``. Tensors that are no leaves may be named too.
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
            with unseen():
                return _Walk(flatten_outputs(outputs), named_tensors(params), max_path, max_nodes).graph()
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


class _Walk:
    """One reading. It holds nodes and tensors, and nothing of it outlives it but the graph."""

    def __init__(self, outputs, named, max_path: int, max_nodes: int):
        self.outputs, self.named = outputs, named
        self.max_path, self.max_nodes = max_path, max_nodes
        self.index_of: dict = {}  # torch node -> index, once ``graph`` has run

    def graph(self) -> Graph:
        roots = [self._root(path, output) for path, output in self.outputs]
        starts = [edge.node for _, edge in roots if edge]
        if not starts:
            raise ValueError(_nothing_to_read(self.outputs))
        found = walk(starts, self.max_path, self.max_nodes)
        self.index_of = found.index_of
        places = tuple(self._place(root, edge) for root, edge in roots)
        nodes = self._nodes(found, {(root.node, root.output_nr) for root in places})
        cut = (
            Cut(found.cut_edges, found.cut_nodes, self.max_path, self.max_nodes) if found.cut_edges else None
        )
        return Graph(nodes, places, cut, self.unmatched)

    def _root(self, path: str, output) -> tuple[Root, GradientEdge | None]:
        if output is None:
            return Root(path, None, 0, reason="None"), None
        if isinstance(output, GradientEdge):
            meta = output.node._input_metadata[output.output_nr]
            shape, dtype, _ = _metadata(meta)
            return Root(path, None, output.output_nr, shape, dtype), output
        shape, dtype = shape_of(output), dtype_name(output.dtype)
        if not output.requires_grad:
            return Root(path, None, 0, shape, dtype, reason="does not require grad"), None
        edge = GradientEdge(output.grad_fn or leaf_node(output), output.output_nr)
        return Root(path, None, edge.output_nr, shape, dtype), edge

    def _place(self, root: Root, edge: GradientEdge | None) -> Root:
        if edge is None:
            return root
        node = self.index_of.get(edge.node)
        reason = None if node is not None else PAST_LIMITS
        return Root(root.path, node, root.output_nr, root.shape, root.dtype, reason)

    def _nodes(self, found, used: set) -> tuple[Node, ...]:
        names_of, output_names, self.unmatched = self._names(found.nodes)
        edges = [self._edges(i, node, found.targets[i]) for i, node in enumerate(found.nodes)]
        used.update((edge.target, edge.input_nr) for node_edges in edges for edge in node_edges)
        storages: dict[tuple, int] = {}
        nodes = []
        for i, live in enumerate(found.nodes):
            saved = [
                describe_saved(raw, live, self.index_of, names_of, storages, output_names)
                for raw in read_saved(live)
            ]
            name = name_of(live)
            nodes.append(
                Node(
                    i,
                    name,
                    kind_of(live, name),
                    outputs=_outputs(live, i, output_names, used),
                    edges=edges[i],
                    saved=tuple(saved),
                    **_leaf_facts(live, names_of),
                )
            )
        return tuple(nodes)

    def _edges(self, source: int, node, targets) -> tuple[Edge, ...]:
        edges = []
        for slot, (target, input_nr) in enumerate(targets):
            if target is None:
                edges.append(Edge(source, slot, None, 0, why_empty(node, slot)))
            elif target in self.index_of:
                edges.append(Edge(source, slot, self.index_of[target], input_nr))
            else:
                edges.append(Edge(source, slot, None, input_nr, PAST_LIMITS, cut=True))
        return tuple(edges)

    def _names(self, nodes: list):
        """Names by tensor id, names by (node, output), and the names that are not in the graph."""
        by_id: dict[int, list[str]] = {}
        by_output: dict[tuple[int, int], list[str]] = {}
        leaf_ids = {id(node.variable) for node in nodes if type(node) is AccumulateGrad}
        unmatched = []
        for name, tensor in self.named:
            places = [by_id.setdefault(id(tensor), [])]
            maker = tensor.grad_fn
            if maker is not None and maker in self.index_of:
                places.append(by_output.setdefault((self.index_of[maker], tensor.output_nr), []))
            elif tensor.requires_grad and id(tensor) not in leaf_ids and name not in unmatched:
                unmatched.append(name)
            for names in places:
                if name not in names:
                    names.append(name)
        return {key: tuple(names) for key, names in by_id.items()}, by_output, tuple(unmatched)


def check_limits(max_path: int, max_nodes: int) -> None:
    for name, limit in (("max_path", max_path), ("max_nodes", max_nodes)):
        if not isinstance(limit, int) or isinstance(limit, bool):
            raise TypeError(f"{name} is {limit!r}: give a whole number of nodes, 1 or more.")
        if limit < 1:
            raise ValueError(f"{name} is {limit}: give a whole number of nodes, 1 or more.")


def _outputs(node, index: int, names: dict, used: set) -> tuple[Output, ...]:
    found = []
    for number, meta in enumerate(node._input_metadata):
        shape, dtype, device = _metadata(meta)
        taken = (index, number) in used
        if is_custom(node) and not taken and shape == ():
            # Torch's record of an output without gradient looks like that of a number: it tells nothing.
            shape = dtype = device = None
        name = tuple(names.get((index, number), ()))
        found.append(Output(number, shape, dtype, device, name, taken))
    return tuple(found)


def _metadata(meta) -> tuple[Shape | None, str | None, str | None]:
    try:
        return shape_of(meta), dtype_name(meta.dtype), device_name(meta.device)
    except RuntimeError:  # an output that was never a differentiable tensor
        return shape_of(meta), None, None


def _leaf_facts(node, names_of: dict) -> dict:
    if type(node) is not AccumulateGrad:
        return {}
    leaf = node.variable
    return {
        "names": names_of.get(id(leaf), ()),
        "shape": shape_of(leaf),
        "dtype": dtype_name(leaf.dtype),
        "device": device_name(leaf.device),
    }


def _nothing_to_read(outputs: list) -> str:
    tensors = [output for _, output in outputs if output is not None]
    if not tensors:
        return "There is nothing to read: the outputs hold no tensor."
    if any(torch._C._functorch.is_functorch_wrapped_tensor(tensor) for tensor in tensors):
        return (
            "A tensor inside a torch.func transform such as vmap has no backward graph of its own here: "
            "read the graph of what the transform returns, outside of it."
        )
    if len(tensors) > 1:
        return "None of the outputs requires grad, so there is no backward graph to read."
    if tensors[0].is_inference():
        return (
            "This tensor was made under inference_mode, so there is no backward graph to read: "
            "compute it outside, with gradients on."
        )
    if not (tensors[0].is_floating_point() or tensors[0].is_complex()):
        return (
            f"This tensor is of dtype {dtype_name(tensors[0].dtype)}, so there is no backward graph to read: "
            "only floating-point and complex tensors have gradients."
        )
    return (
        "This tensor has no grad_fn and does not require grad, so there is no backward graph to read: it was "
        "made under no_grad, detached, or computed from tensors that do not require grad."
    )
