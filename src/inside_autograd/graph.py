"""Read the backward graph of a tensor into plain data: ``Graph.of(loss)``."""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch.autograd.graph import GradientEdge, get_gradient_edge

from .inputs import flatten_outputs, named_tensors
from .saved import Saved, describe_saved, dtype_name, read_saved, shape_of

# A node that Python has seen keeps its Python object until it is freed, and torch frees a chain of
# such nodes by recursion: on torch 2.13 about 3,000 in a row overflow a thread's 512 KiB stack.
MAX_PATH = 1_500
MAX_NODES = 50_000

OP, CUSTOM, ACCUMULATE, RECORDED = "op", "custom", "accumulate", "recorded"
COPY_SLICES, HOOK, CHECKPOINT, ERROR = "copy_slices", "hook", "checkpoint", "error"

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Output:
    """One output of the recorded operation, which is one gradient that its node receives.

    ``shape``, ``dtype`` and ``device`` are ``None`` where torch kept no record. ``names`` are those
    that ``params`` gives to the tensor. ``used`` says whether an edge or a root takes this output.
    """

    number: int
    shape: Shape | None
    dtype: str | None
    device: str | None
    names: tuple[str, ...] = ()
    used: bool = True


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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
        Whether saved tensors have been freed, so that running it again would raise.
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
        return any(saved.state == "freed" for saved in self.saved)

    @property
    def is_leaf(self) -> bool:
        return self.kind == ACCUMULATE


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True)
class Graph:
    """The backward graph of some outputs, as plain data: no tensor and no node is kept alive.

    ``str(graph)`` is a readable listing, ``graph.to_dot()`` a text for Graphviz.
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
            Limits on the number of nodes on one path and in all. What lies past them is counted
            in ``cut``. Raising ``max_path`` can crash the process when the graph is freed.

        Raises
        ------
        TypeError
            If ``outputs`` holds anything else, or ``params`` has another form.
        ValueError
            If no output has a graph, or a limit is less than 1.
        """
        if max_path < 1 or max_nodes < 1:
            raise ValueError("max_path and max_nodes must be at least 1.")
        return _Walk(flatten_outputs(outputs), named_tensors(params), max_path, max_nodes).graph()

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
    """One walk. It holds nodes and tensors while it runs, and nothing of it outlives ``graph()``."""

    def __init__(self, outputs, named, max_path: int, max_nodes: int):
        self.outputs, self.named = outputs, named
        self.max_path, self.max_nodes = max_path, max_nodes
        self.live: list = []  # the torch nodes, by index
        self.index_of: dict = {}
        self.edges: dict[int, list[Edge]] = {}
        self.beyond: set = set()
        self.cut_edges = 0

    def graph(self) -> Graph:
        roots = [self._root(path, output) for path, output in self.outputs]
        if not any(edge for _, edge in roots):
            raise ValueError(_nothing_to_read(roots))
        order = self._discover([edge.node for _, edge in roots if edge])
        return self._describe(order, roots)

    def _root(self, path: str, output) -> tuple[Root, GradientEdge | None]:
        if output is None:
            return Root(path, None, 0, reason="None"), None
        if isinstance(output, GradientEdge):
            return Root(path, None, output.output_nr), GradientEdge(output.node, output.output_nr)
        shape, dtype = shape_of(output), dtype_name(output.dtype)
        if not output.requires_grad:
            return Root(path, None, 0, shape, dtype, reason="does not require grad"), None
        edge = get_gradient_edge(output)
        return Root(path, None, edge.output_nr, shape, dtype), edge

    def _discover(self, starts: list) -> list[int]:
        """Find all nodes within the limits; returns discovery numbers in the order of the walk.

        Later operations come first (torch numbers nodes as they are made), so when a node is opened
        its longest path from a root is known, and the limit on path length is exact. Where numbers
        do not follow the graph (nodes made on several threads) ``_deepen`` corrects the lengths.
        """
        self.depth: list[int] = []
        heap: list[tuple[int, int]] = []
        order: list[int] = []
        for node in starts:
            if node not in self.index_of:
                if len(self.live) >= self.max_nodes:
                    self.beyond.add(node)
                    self.cut_edges += 1
                    continue
                self._push(node, 1, heap)
        while heap:
            number = heapq.heappop(heap)[1]
            order.append(number)
            edges = self.edges[number] = []
            for slot, (target, input_nr) in enumerate(self.live[number].next_functions):
                edges.append(self._edge(number, slot, target, input_nr, heap))
        return order

    def _push(self, node, depth: int, heap: list) -> int:
        number = self.index_of[node] = len(self.live)
        self.live.append(node)
        self.depth.append(depth)
        heapq.heappush(heap, (-node._sequence_nr(), number))
        return number

    def _edge(self, source: int, slot: int, target, input_nr: int, heap: list) -> Edge:
        if target is None:
            return Edge(source, slot, None, 0, _why_empty(self.live[source], slot))
        number = self.index_of.get(target)
        depth = self.depth[source] + 1
        if number is not None:
            if depth > self.depth[number]:
                self._deepen(number, depth)
            return Edge(source, slot, number, input_nr)
        if len(self.live) >= self.max_nodes or (depth > self.max_path and not _is_accumulate(target)):
            self.beyond.add(target)
            self.cut_edges += 1
            return Edge(source, slot, None, input_nr, "past the limits, not read", cut=True)
        return Edge(source, slot, self._push(target, depth, heap), input_nr)

    def _deepen(self, number: int, depth: int) -> None:
        stack = [(number, depth)]
        while stack:
            number, depth = stack.pop()
            if depth <= self.depth[number]:
                continue
            self.depth[number] = depth
            stack += [(e.target, depth + 1) for e in self.edges.get(number, ()) if e.target is not None]

    def _describe(self, order: list[int], roots: list) -> Graph:
        index = {number: i for i, number in enumerate(order)}
        self.index_of = {node: index[number] for node, number in self.index_of.items()}
        done_roots = tuple(self._place(root, edge) for root, edge in roots)
        names_of, output_names, unmatched = self._names()
        used = {(root.node, root.output_nr) for root in done_roots}
        edges = [
            tuple(Edge(i, e.slot, index.get(e.target), e.input_nr, e.reason, e.cut) for e in self.edges[number])
            for i, number in enumerate(order)
        ]
        used.update((e.target, e.input_nr) for node_edges in edges for e in node_edges)
        storages: dict[tuple, int] = {}
        nodes = []
        for i, number in enumerate(order):
            live = self.live[number]
            saved = [describe_saved(raw, live, self.index_of, names_of, storages) for raw in read_saved(live)]
            nodes.append(
                Node(
                    i,
                    type(live).__name__,
                    _kind(live),
                    outputs=_outputs(live, i, output_names, used),
                    edges=edges[i],
                    saved=tuple(saved),
                    **_leaf_facts(live, names_of),
                )
            )
        cut = Cut(self.cut_edges, len(self.beyond), self.max_path, self.max_nodes) if self.cut_edges else None
        return Graph(tuple(nodes), done_roots, cut, unmatched)

    def _place(self, root: Root, edge: GradientEdge | None) -> Root:
        if edge is None:
            return root
        node = self.index_of.get(edge.node)
        reason = None if node is not None else "past the limits, not read"
        return Root(root.path, node, root.output_nr, root.shape, root.dtype, reason)

    def _names(self):
        """Names by tensor id, names by (node, output), and the names that are not in the graph."""
        by_id: dict[int, list[str]] = {}
        by_output: dict[tuple[int, int], list[str]] = {}
        leaf_ids = {id(node.variable) for node in self.live if _is_accumulate(node)}
        unmatched = []
        for name, tensor in self.named:
            names = by_id.setdefault(id(tensor), [])
            if name not in names:
                names.append(name)
            maker = tensor.grad_fn
            if maker in self.index_of:
                names = by_output.setdefault((self.index_of[maker], tensor.output_nr), [])
                if name not in names:
                    names.append(name)
            elif id(tensor) not in leaf_ids and tensor.requires_grad:
                unmatched.append(name)
        return {key: tuple(names) for key, names in by_id.items()}, by_output, tuple(unmatched)


def _is_accumulate(node) -> bool:
    return hasattr(node, "variable") and type(node).__name__ == "AccumulateGrad"


def _kind(node) -> str:
    name = type(node).__name__
    if _is_accumulate(node):
        return ACCUMULATE
    if isinstance(node, torch._C._FunctionBase):
        return {"BackwardHookFunctionBackward": HOOK, "CheckpointFunctionBackward": CHECKPOINT}.get(name, CUSTOM)
    if name == "CopySlices":
        return COPY_SLICES
    if name in ("Error", "DelayedError", "NotImplemented"):
        return ERROR
    return RECORDED if "BackwardBackward" in name else OP


def _why_empty(node, slot: int) -> str:
    if type(node).__name__ == "CopySlices" and slot > 0:
        return "the value written needs no gradient"
    if isinstance(node, torch._C._FunctionBase):
        return "this tensor argument does not require grad"
    return "this input needs no gradient: a constant, absent, or requires_grad=False"


def _outputs(node, index: int, names: dict, used: set) -> tuple[Output, ...]:
    found = []
    for number, meta in enumerate(node._input_metadata):
        try:
            dtype, device = dtype_name(meta.dtype), str(meta.device)
        except RuntimeError:  # an output that was never a differentiable tensor
            dtype = device = None
        name = tuple(names.get((index, number), ()))
        found.append(Output(number, shape_of(meta), dtype, device, name, (index, number) in used))
    return tuple(found)


def _leaf_facts(node, names_of: dict) -> dict:
    if not _is_accumulate(node):
        return {}
    leaf = node.variable
    return {
        "names": names_of.get(id(leaf), ()),
        "shape": shape_of(leaf),
        "dtype": dtype_name(leaf.dtype),
        "device": str(leaf.device),
    }


def _nothing_to_read(roots: list) -> str:
    if not roots:
        return "There is nothing to draw: the outputs hold no tensor."
    if len(roots) > 1:
        return "None of the outputs requires grad, so there is no backward graph to read."
    return (
        "This tensor has no grad_fn and does not require grad, so there is no backward graph to read: it was made "
        "under no_grad, detached, or computed from tensors that do not require grad."
    )
