"""Fold a large graph: what repeats becomes one counted box, as a person would draw it.

The nodes are taken in the order in which the engine could run them. Modules of a series that are
alike and follow each other are one box; so is a run of nodes that repeats one pattern, and, where
there is no other way, a run that does not. Because every box holds neighbors in an order of the
graph, the boxes have an order too: no cycle can arise. Leaves lead nowhere, so they may go into any box.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from .folded_text import lines_of
from .graph import Graph
from .modules import entry, numbered, outer, owners, shared
from .pieces import Piece, by_module, by_size, cover, modules_whole
from .repeats import MOST_NAMED, kept_apart, run_order

MOST_BOXES = 140
READABLE = 60  # where a graph has more boxes, modules are boxes even where they do not repeat


@dataclass(slots=True, unsafe_hash=True)  # as in data.py: not frozen, for speed
class Box:
    """One box of a drawing: one node, or several folded ones.

    Attributes
    ----------
    members
        Indices of the nodes it stands for.
    lines
        What a folded box holds, in words; empty for a single node.
    repeats
        For a folded box of operations: each repeat as (label, its operations in the order of the engine).
        A box that does not repeat has one.
    sample
        Which of the repeats shows what all of them hold.
    around
        Whether it only says, in a drawing of what a box holds, where an arrow comes from or goes to.
    """

    members: tuple[int, ...]
    lines: tuple[str, ...] = ()
    repeats: tuple[tuple[str, tuple[int, ...]], ...] = ()
    sample: int = 0
    around: bool = False

    @property
    def folded(self) -> bool:
        return bool(self.lines)


@dataclass(frozen=True, slots=True)
class Folded:
    """A graph seen through boxes. ``box_of[i]`` is the box that holds node i; ``None``: it is not shown.

    ``part`` names what is shown where that is not the whole graph.
    """

    graph: Graph
    boxes: tuple[Box, ...]
    box_of: tuple[int | None, ...]
    part: str = ""


def unfolded(graph: Graph) -> Folded:
    """Every node in its own box."""
    return Folded(graph, tuple(Box((i,)) for i in range(len(graph))), tuple(range(len(graph))))


def fold(graph: Graph, show_one: bool = False) -> Folded:
    """Fold what repeats, so that there are at most ``MOST_BOXES`` boxes.

    Parameters
    ----------
    graph
        What to fold.
    show_one
        Whether one of what repeats stays unfolded, beside the box with the others.

    Notes
    -----
    Where many boxes are left, what does not repeat is gathered too: by the numbered module whose
    parameters it uses, then by any module, then by even parts.
    """
    order = run_order(graph)
    leaves = [leaf.index for leaf in graph.leaves]
    boxes, box_of = _folded(graph, order, leaves, 0, show_one)
    return Folded(graph, boxes, tuple(box_of))


def fold_part(graph: Graph, order: list[int], level: int) -> tuple[tuple[Box, ...], list[int | None]]:
    """Boxes for some operations of a graph and the leaves they use, and the box of each node.

    ``level`` is how many numbers of the modules' names are the same in all of them.
    """
    return _folded(graph, order, [], level, False)


def _folded(
    graph: Graph, order: list[int], leaves: list[int], level: int, show_one: bool
) -> tuple[tuple[Box, ...], list[int | None]]:
    """``leaves`` are shown whether or not an operation of the order uses them."""
    for most, pieces in _ways_to_cut(graph, order, owners(graph, order), level, show_one):
        boxes, box_of = _gather(graph, order, leaves, pieces)
        if len(boxes) <= most:
            break
    return boxes, box_of


def _ways_to_cut(graph: Graph, order: list[int], paths: list, level: int, show_one: bool) -> Iterator[tuple]:
    """Pieces that cover the order, from the finest to the coarsest, and how many boxes they may make."""
    if show_one:
        pieces = cover(graph, order, paths, level, show_one=True)
        yield MOST_BOXES, pieces
        for depth in (4, 3):
            yield MOST_BOXES, by_module(paths, pieces, depth)
    deep = len(shared(filter(None, paths)))
    keep = kept_apart(graph)
    apart = {place for place, index in enumerate(order) if index in keep}
    if deep:  # the inside of a module: what its own modules are comes before how they are made
        named = cover(graph, order, paths, level, patterns=False)
        yield READABLE, named
        yield READABLE, modules_whole(paths, named, outer(deep + 1), apart)
    pieces = cover(graph, order, paths, level)
    yield READABLE, pieces
    names = [entry(deep + 1), *(numbered(level + deepest) for deepest in (3, 2, 1, 0))]
    names += [outer(deep + depth) for depth in (3, 2, 1)]
    for name in names:
        yield READABLE, modules_whole(paths, pieces, name, apart)
    yield MOST_BOXES, pieces
    for depth in (3, 2, 1):
        yield MOST_BOXES, by_module(paths, pieces, depth)
    for most in (60, 30, 12):
        yield MOST_BOXES, by_size(len(order), most)


def _gather(
    graph: Graph, order: list[int], leaves: list[int], pieces: list[Piece]
) -> tuple[tuple[Box, ...], list[int | None]]:
    """Make the boxes: the pieces of the order, then the leaves."""
    box_of: list[int | None] = [None] * len(graph)
    groups: list[tuple[list[int], Piece | None]] = []
    for piece in pieces:
        nodes = order[piece.start : piece.end]
        for i in nodes:
            box_of[i] = len(groups)
        groups.append((nodes, piece))
    users: dict[int, set[int]] = {leaf: set() for leaf in leaves}
    for number, (nodes, _) in enumerate(groups):
        for edge in (edge for i in nodes for edge in graph.nodes[i].edges):
            if edge.target is not None and graph.nodes[edge.target].is_leaf:
                users.setdefault(edge.target, set()).add(number)
    together: dict[tuple, list[int]] = {}
    roots = {root.node for root in graph.roots}
    for leaf, numbers in sorted(users.items()):
        if len(numbers) == 1 and len(groups[min(numbers)][0]) > 1 and leaf not in roots:
            box_of[leaf] = min(numbers)
        else:
            key = (leaf,) if leaf in roots and len(roots) <= MOST_NAMED else tuple(sorted(numbers))
            together.setdefault(key, []).append(leaf)
    crowded = len(groups) + sum(map(len, together.values())) > MOST_BOXES
    for some in together.values():
        for part in [some] if len(some) > (1 if crowded else 6) else [[leaf] for leaf in some]:
            for leaf in part:
                box_of[leaf] = len(groups)
            groups.append((part, None))
    members: list[list[int]] = [[] for _ in groups]
    for i, box in enumerate(box_of):
        if box is not None:
            members[box].append(i)
    boxes = []
    for (nodes, shown), inside in zip(groups, members, strict=True):
        if len(inside) == 1:
            boxes.append(Box(tuple(inside)))
            continue
        repeats: tuple[tuple[str, tuple[int, ...]], ...] = ()
        if shown is not None:
            repeats = tuple(
                (repeat.label or shown.title, tuple(order[repeat.start : repeat.end]))
                for repeat in shown.repeats
            )
        lines = lines_of(graph, nodes, shown, inside)
        boxes.append(Box(tuple(inside), lines, repeats, shown.sample if shown else 0))
    return tuple(boxes), box_of
