"""One reading of a graph: from torch's nodes to the plain data of ``data.py``."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from torch.autograd.graph import GradientEdge

from .data import Cut, Edge, Node, Output, Root, Shape
from .facts import ACCUMULATE, AccumulateGrad, is_custom, kind_of, leaf_node, name_of, why_empty
from .inputs import nothing_to_read
from .saved import (
    Saved,
    describe_saved,
    device_name,
    dtype_name,
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
        """Names by tensor id, names by (node, output), and the names that are not in the graph."""
        by_id: dict[int, list[str]] = {}
        by_output: dict[tuple[int, int], list[str]] = {}
        nodes = self.found.nodes if named else ()
        leaf_ids = {id(node.variable) for node in nodes if type(node) is AccumulateGrad}
        unmatched: dict[str, None] = {}
        for name, tensor in named:
            places = [by_id.setdefault(id(tensor), [])]
            maker = tensor.grad_fn
            if maker is not None and maker in self.index_of:
                places.append(by_output.setdefault((self.index_of[maker], tensor.output_nr), []))
            elif tensor.requires_grad and id(tensor) not in leaf_ids:
                unmatched[name] = None
            for names in places:
                if name not in names:
                    names.append(name)
        self.names_of = {key: tuple(names) for key, names in by_id.items()}
        self.output_names, self.unmatched = by_output, tuple(unmatched)
        self.with_names = {index for index, _ in by_output}

    def _all_nodes(self, saved: bool) -> tuple[Node, ...]:
        storages: dict[tuple, int] = {}
        classes: dict[type, tuple] = {}
        alike: dict[tuple, tuple[Output]] = {}
        names_of, with_names = self.names_of, self.with_names
        index_of, nodes = self.index_of, []
        unclear = []  # nodes whose outputs are told apart once all edges are known
        for index, (live, targets) in enumerate(zip(self.found.nodes, self.found.targets, strict=True)):
            name, kind, attributes, empty = classes.get(type(live)) or _class_facts(live, classes)
            outputs = _single_output(live, alike) if index not in with_names else None
            if outputs is None:
                unclear.append(index)
            if kind == ACCUMULATE:
                leaf = live.variable
                names, device = names_of.get(id(leaf), ()), device_name(leaf.device)
                facts = names, shape_of(leaf), dtype_name(leaf.dtype), device, outputs
                nodes.append(Node(index, name, kind, *facts))
                continue
            edges = []
            for slot, (target, input_nr) in enumerate(targets):
                goal = index_of.get(target)
                if goal is not None:
                    edges.append(Edge(index, slot, goal, input_nr))
                elif target is None:
                    edges.append(Edge(index, slot, None, 0, empty[slot > 0]))
                else:
                    edges.append(Edge(index, slot, None, input_nr, PAST_LIMITS, True))
            kept: tuple[Saved, ...] = ()
            if attributes:
                kept = self._saved(live, attributes, storages) if saved else _freed(live, attributes)
            nodes.append(Node(index, name, kind, (), None, None, None, outputs, tuple(edges), kept))
        self._tell_outputs(nodes, unclear)
        return tuple(nodes)

    def _saved(self, node, attributes: tuple, storages: dict) -> tuple[Saved, ...]:
        index_of, names_of, output_names = self.index_of, self.names_of, self.output_names
        return tuple(
            [
                describe_saved(raw, node, index_of, names_of, storages, output_names)
                for raw in read_saved(node, attributes)
            ]
        )

    def _tell_outputs(self, nodes: list[Node], unclear: list[int]) -> None:
        """Fill in the outputs of nodes that have several, or none, or named ones, or unusual ones."""
        if not unclear:
            return
        several = set(unclear)
        used = {(root.node, root.output_nr) for root in self.roots}  # by a root, or by an edge
        for node in nodes:
            for edge in node.edges:
                if edge.target in several:
                    used.add((edge.target, edge.input_nr))
        for index in unclear:
            live = self.found.nodes[index]
            outputs = []
            for number, meta in enumerate(live._input_metadata):
                taken = (index, number) in used
                facts = metadata(meta)
                if facts[0] == () and not taken and is_custom(live):
                    # Torch's record of an output without gradient is like that of a number: it tells nothing.
                    facts = None, None, None
                names = tuple(self.output_names.get((index, number), ()))
                outputs.append(Output(number, *facts, names, taken))
            nodes[index].outputs = tuple(outputs)


def _freed(node, attributes: tuple) -> tuple[Saved, ...]:
    freed = read_freed(node, attributes)
    return tuple([Saved(raw.attr, raw.state, checked=raw.checked) for raw in freed]) if freed else ()


def _class_facts(node, classes: dict) -> tuple[str, str, tuple, tuple[str, str]]:
    """Name, kind, saved attributes, why a slot is empty; noted in ``classes`` where all nodes are alike."""
    name = name_of(node)
    found = name, kind_of(node, name), saved_attributes(node), why_empty(node)
    if type(node).__name__ == name:  # one class stands for all operations that have none of their own
        classes[type(node)] = found
    return found


def _single_output(node, alike: dict[tuple, tuple[Output]]) -> tuple[Output] | None:
    """The output of a node that has one, without a name; ``None`` where that is not so or more is to do.

    That the node was read says that its output is used. Equal outputs are one object.
    """
    metas = node._input_metadata
    if len(metas) != 1:
        return None
    meta = metas[0]
    try:
        key = tuple(meta.shape), meta.dtype, meta.device
        found = alike.get(key)
    except (RuntimeError, TypeError):  # a shape that is not of plain numbers
        return None
    if found is None:
        found = alike[key] = (Output(0, *metadata(meta)),)
    return found


def _root(path: str, output) -> tuple[Root, GradientEdge | None]:
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


def metadata(meta) -> tuple[Shape | None, str | None, str | None]:
    """Shape, dtype and device of one entry of ``_input_metadata``."""
    try:
        return shape_of(meta), dtype_name(meta.dtype), device_name(meta.device)
    except RuntimeError:  # an output that was never a differentiable tensor
        return shape_of(meta), None, None
