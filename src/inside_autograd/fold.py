"""Fold a large graph: what repeats becomes one counted box.

The nodes are taken in the order in which the engine could run them. A run of nodes in that order
that repeats one pattern is folded; so is, where there is no other way, a run that does not. Because
every box holds neighbors in an order of the graph, the boxes have an order too: no cycle can arise.
Leaves lead nowhere, so they may go into any box.
"""

from dataclasses import dataclass

from .folded_text import lines_of
from .graph import Graph
from .repeats import MOST_NAMED, repeats, run_order, tokens_of

MOST_BOXES = 140
LONGEST_PATTERN = 4  # longer patterns are shown once, next to the box with the rest


@dataclass(frozen=True, slots=True)
class Box:
    """One box of a drawing: one node, or several folded ones.

    Attributes
    ----------
    members
        Indices of the nodes it stands for.
    lines
        What a folded box holds, in words; empty for a single node.
    """

    members: tuple[int, ...]
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
    """Fold what repeats, so that there are at most ``MOST_BOXES`` boxes.

    The first try shows long patterns once in full; the next folds them whole; the last gathers what
    does not repeat by the module whose parameters it uses, then by even parts.
    """
    order = run_order(graph)
    runs = repeats(tokens_of(graph, order))
    folded = unfolded(graph)
    for cut in _ways_to_cut(graph, order, runs):
        folded = _gather(graph, order, cut)
        if len(folded.boxes) <= MOST_BOXES:
            break
    return folded


def _ways_to_cut(graph: Graph, order: list[int], runs: list[tuple[int, int, int]]):
    """Lists of ``(start, end, pattern length)`` that cover the order, from the finest to the coarsest."""
    for show_first in (True, False):
        cut, at = [], 0
        for start, period, times in runs:
            end = start + period * times
            if show_first and period > LONGEST_PATTERN:
                start += period
            cut += [(i, i + 1, 1) for i in range(at, start)]
            cut.append((start, end, period))
            at = end
        cut += [(i, i + 1, 1) for i in range(at, len(order))]
        yield cut
    for depth in (3, 2, 1):
        yield _by_module(graph, order, depth, cut)
    for most in (60, 30, 12):
        size = -(-len(order) // most)
        yield [(i, min(i + size, len(order)), 0) for i in range(0, len(order), size)]


def _by_module(graph: Graph, order: list[int], depth: int, cut: list) -> list[tuple[int, int, int]]:
    """Join neighboring parts that use parameters of one module, down to ``depth`` dots in the name."""
    joined: list[tuple[int, int, int]] = []
    current = None
    for start, end, period in cut:
        leaves = (
            graph.nodes[e.target]
            for i in order[start:end]
            for e in graph.nodes[i].edges
            if e.target is not None
        )
        names = [leaf.names[0] for leaf in leaves if leaf.is_leaf and leaf.names]
        module = ".".join(names[0].split(".")[:-1][:depth]) if names else None
        single = end - start == 1
        if joined and single and (module is None or module == current) and joined[-1][2] in (0, 1):
            joined[-1] = (joined[-1][0], end, 0)
        else:
            joined.append((start, end, period))
        current = module or current
    return joined


def _gather(graph: Graph, order: list[int], cut: list[tuple[int, int, int]]) -> Folded:
    """Make the boxes: the parts of the order, then the leaves."""
    box_of = [-1] * len(graph)
    groups = []
    for start, end, period in cut:
        for i in order[start:end]:
            box_of[i] = len(groups)
        groups.append((list(order[start:end]), period))
    users: dict[int, set[int]] = {leaf.index: set() for leaf in graph.leaves}
    for edge in graph.edges:
        if edge.target in users:
            users[edge.target].add(box_of[edge.source])
    shared: dict[tuple, list[int]] = {}
    roots = {root.node for root in graph.roots}
    for leaf, boxes in users.items():
        if len(boxes) == 1 and len(groups[min(boxes)][0]) > 1 and leaf not in roots:
            box_of[leaf] = min(boxes)
        else:
            key = (leaf,) if leaf in roots and len(roots) <= MOST_NAMED else tuple(sorted(boxes))
            shared.setdefault(key, []).append(leaf)
    crowded = len(groups) + sum(map(len, shared.values())) > MOST_BOXES
    for leaves in shared.values():
        for part in [leaves] if len(leaves) > (1 if crowded else 6) else [[leaf] for leaf in leaves]:
            for leaf in part:
                box_of[leaf] = len(groups)
            groups.append((part, 1))
    members: list[list[int]] = [[] for _ in groups]
    for i, box in enumerate(box_of):
        members[box].append(i)
    boxes = []
    for (nodes, period), inside in zip(groups, members, strict=True):
        lines = () if len(inside) == 1 else lines_of(graph, nodes, period, inside)
        boxes.append(Box(tuple(inside), lines))
    return Folded(graph, tuple(boxes), tuple(box_of))
