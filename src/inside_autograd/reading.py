"""One reading of a graph: from torch's nodes to the plain data of ``data.py``."""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import attrgetter
from typing import Any

from torch.autograd.graph import GradientEdge

from .data import Cut, Edge, Node, Output, Root, Shape
from .facts import ACCUMULATE, AccumulateGrad, is_custom, kind_of, leaf_node, name_of, why_empty
from .inputs import nothing_to_read
from .saved import (
    CUSTOM_ATTRIBUTES,
    Saved,
    describe_saved,
    device_name,
    dtype_name,
    facts_of,
    read_freed,
    read_saved,
    saved_attributes,
    shape_of,
)
from .walk import Found, walk

PAST_LIMITS = "past the limits, not read"


@contextmanager
def collector_paused() -> Iterator[None]:
    """Python's garbage collector would search the thousands of new objects, and find nothing to free."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


class Reading:
    """Reads nodes and tensors when it is made, and holds them; nothing of it lives on in its results.

    ``nodes``, ``roots``, ``cut`` and ``unmatched`` are those of a ``Graph``; ``index_of`` gives the
    index of each torch node.
    """

    def __init__(self, outputs: list, named: list, max_path: int, max_nodes: int, saved: bool = True):
        roots = [_root(path, output) for path, output in outputs]
        starts = [edge.node for _, edge in roots if edge]
        if not starts:
            raise ValueError(nothing_to_read(outputs))
        self.found: Found = walk(starts, max_path, max_nodes)
        self.index_of = self.found.index_of
        self.roots = tuple(self._place(root, edge) for root, edge in roots)
        self._find_names(named)
        self.unmatched = self._unmatched(named)
        self.nodes = self._all_nodes(saved)
        self.cut = None
        if self.found.cut_edges:
            self.cut = Cut(self.found.cut_edges, self.found.cut_nodes, max_path, max_nodes)

    def _place(self, root: Root, edge: GradientEdge | None) -> Root:
        if edge is None:
            return root
        node = self.index_of.get(edge.node)
        reason = None if node is not None else PAST_LIMITS
        return Root(root.path, node, root.output_nr, root.shape, root.dtype, reason)

    def _find_names(self, named: list) -> None:
        """Names by tensor id, and names by (node, output)."""
        by_id: dict[int, list[str]] = {}
        by_output: dict[tuple[int, int], list[str]] = {}
        for name, tensor in named:
            places = [by_id.setdefault(id(tensor), [])]
            maker = tensor.grad_fn
            if maker is not None and maker in self.index_of:
                places.append(by_output.setdefault((self.index_of[maker], tensor.output_nr), []))
            for names in places:
                if name not in names:
                    names.append(name)
        self.names_of = {key: tuple(names) for key, names in by_id.items()}
        self.output_names = by_output
        self.with_names = {index for index, _ in by_output}

    def _unmatched(self, named: list) -> tuple[str, ...]:
        """The names of tensors that require grad and are not in the graph."""
        if not named:
            return ()
        leaf_ids = {id(node.variable) for node in self.found.nodes if type(node) is AccumulateGrad}
        unmatched: dict[str, None] = {}
        for name, tensor in named:
            if id(tensor) not in leaf_ids and tensor.requires_grad:
                maker = tensor.grad_fn
                if maker is None or maker not in self.index_of:
                    unmatched[name] = None
        return tuple(unmatched)

    def _all_nodes(self, saved: bool) -> tuple[Node, ...]:
        # The loop that a reading spends its time in: what is alike is looked up once.
        storages: dict[tuple, int] = {}
        classes: dict[type, tuple] = {}
        alike: dict[tuple, tuple[Output]] = {}
        names_of, with_names = self.names_of, self.with_names
        index_of, nodes = self.index_of, []
        unclear = []  # nodes whose outputs are told apart once all edges are known, and their metadata
        for index, (live, targets) in enumerate(zip(self.found.nodes, self.found.targets, strict=True)):
            name, kind, attributes, empty, first = classes.get(type(live)) or _class_facts(live, classes)
            metas = live._input_metadata
            outputs: tuple[Output, ...] | None = None
            if len(metas) == 1 and index not in with_names:
                # One output without a name. That the node was read says that it is used.
                meta = metas[0]
                try:
                    key = tuple(meta.shape), meta.dtype, meta.device
                    outputs = alike.get(key) or _single_output(meta, key, alike)
                except (RuntimeError, TypeError):  # a shape that is not of plain numbers
                    pass
            if outputs is None:
                outputs = ()
                unclear.append((index, metas))
            if kind == ACCUMULATE:
                leaf = live.variable
                names = names_of.get(id(leaf), ())
                shape, dtype, _, device = facts_of(leaf)
                nodes.append(Node(index, name, kind, names, shape, dtype, device, outputs))
                continue
            edges = []
            for slot, (target, input_nr) in enumerate(targets):
                if target in index_of:
                    edges.append(Edge(index, slot, index_of[target], input_nr))
                elif target is None:
                    edges.append(Edge(index, slot, None, 0, empty[slot > 0]))
                else:
                    edges.append(Edge(index, slot, None, input_nr, PAST_LIMITS, True))
            kept: tuple[Saved, ...] = ()
            if attributes:
                if saved:
                    kept = self._saved(live, attributes, storages)
                else:
                    try:  # where the first tensor is there, none is given up
                        whole = first(live) is not None
                    except (AttributeError, RuntimeError):  # a list, or it is freed
                        whole = False
                    if not whole:
                        kept = _freed(live, attributes)
            nodes.append(Node(index, name, kind, (), None, None, None, outputs, tuple(edges), kept))
        self._tell_outputs(nodes, unclear)
        return tuple(nodes)

    def _saved(self, node: Any, attributes: tuple, storages: dict) -> tuple[Saved, ...]:
        index_of, names_of, output_names = self.index_of, self.names_of, self.output_names
        return tuple(
            [
                describe_saved(raw, node, index_of, names_of, storages, output_names)
                for raw in read_saved(node, attributes)
            ]
        )

    def _tell_outputs(self, nodes: list[Node], unclear: list[tuple[int, list]]) -> None:
        """Fill in the outputs of nodes that have several, or none, or named ones, or unusual ones."""
        if not unclear:
            return
        several = {index for index, _ in unclear}
        used = {(root.node, root.output_nr) for root in self.roots}  # by a root, or by an edge
        used |= {
            (edge.target, edge.input_nr) for node in nodes for edge in node.edges if edge.target in several
        }
        alike: dict[tuple, Output] = {}
        for index, metas in unclear:
            custom, named = is_custom(self.found.nodes[index]), index in self.with_names
            outputs = []
            for number, meta in enumerate(metas):
                taken = (index, number) in used
                names = tuple(self.output_names.get((index, number), ())) if named else ()
                facts = metadata(meta)
                if facts[0] == () and not taken and custom:
                    # Torch's record of an output without gradient is like that of a number: it tells nothing.
                    facts = None, None, None
                key = number, *facts, names, taken
                outputs.append(alike.get(key) or alike.setdefault(key, Output(*key)))
            nodes[index].outputs = tuple(outputs)


def _freed(node: Any, attributes: tuple) -> tuple[Saved, ...]:
    freed = read_freed(node, attributes)
    return tuple([Saved(raw.attr, raw.state, checked=raw.checked) for raw in freed]) if freed else ()


def _class_facts(node: Any, classes: dict) -> tuple:
    """Name, kind, saved attributes, why a slot is empty, and a function that reads the first tensor saved.

    Noted in ``classes`` where all nodes of the class are alike.
    """
    name, attributes = name_of(node), saved_attributes(node)
    first: Callable[[Any], Any] = _unknown
    if attributes and attributes is not CUSTOM_ATTRIBUTES:
        first = attrgetter(f"{attributes[0][0]}.data")
    found = name, kind_of(node, name), attributes, why_empty(node), first
    if type(node).__name__ == name:  # one class stands for all operations that have none of their own
        classes[type(node)] = found
    return found


def _unknown(node: object) -> None:
    """For nodes of which no single attribute tells whether what they saved is there."""


def _single_output(meta: Any, key: tuple, alike: dict[tuple, tuple[Output]]) -> tuple[Output]:
    """The output that ``meta`` describes, as a tuple of one; equal outputs are one object."""
    found = alike[key] = (Output(0, *metadata(meta)),)
    return found


def _root(path: str, output: Any) -> tuple[Root, GradientEdge | None]:
    if output is None:
        return Root(path, None, 0, reason="None"), None
    if isinstance(output, GradientEdge):
        shape, dtype, _ = metadata(output.node._input_metadata[output.output_nr])
        return Root(path, None, output.output_nr, shape, dtype), output
    shape, dtype = shape_of(output), dtype_name(output.dtype)
    if not output.requires_grad:
        return Root(path, None, 0, shape, dtype, reason="does not require grad"), None
    edge = GradientEdge(output.grad_fn or leaf_node(output), output.output_nr)
    return Root(path, None, edge.output_nr, shape, dtype), edge


def metadata(meta: Any) -> tuple[Shape | None, str | None, str | None]:
    """Shape, dtype and device of one entry of ``_input_metadata``."""
    try:
        return shape_of(meta), dtype_name(meta.dtype), device_name(meta.device)
    except RuntimeError:  # an output that was never a differentiable tensor
        return shape_of(meta), None, None
