"""Find the nodes behind some outputs, without reading more of the graph than is safe.

A node that Python has seen keeps its Python object until it is freed, and torch frees such nodes by
recursion, one inside the other along each path. On torch 2.13 a path of 2,400 seen nodes was freed on
a stack of 512 KiB (a thread's on some systems) and one of 2,600 crashed the process; 4,800 were freed
on 1 MiB and 39,000 on 8 MiB. Nodes that nobody has seen are freed in a loop, however many they are.
So the limit that matters is the number of seen nodes on one path, and ``next_functions`` shows Python
every node that it lists.
"""

from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

from .facts import AccumulateGrad

MAX_PATH = 1_500
MAX_NODES = 50_000
NEVER = float("inf")
SLACK = 100  # how deep a graph may be before the nodes that wait are held against it


@dataclass(slots=True)
class Found:
    """What a walk has found. Internal: it holds torch's nodes."""

    nodes: list  # the torch nodes that were read, in order
    index_of: dict  # torch node -> position in ``nodes``
    targets: list  # what ``next_functions`` of each says: (node or None, input number) pairs
    cut_edges: int = 0
    cut_nodes: int = 0


def walk(starts: list, max_path: int, max_nodes: int) -> Found:
    """Read the graph from ``starts`` towards the leaves, later operations first.

    Torch numbers nodes as it makes them, so an operation comes before all that it was computed from,
    and its longest path from a root is known when its turn comes. The first node whose path is too
    long ends the walk: all that wait by then are older, and might lie behind it. Leaves are read where
    they are met, for nothing comes after them.

    Numbers do not follow the graph where several threads made it. There ``_deepen`` corrects the
    lengths, and the walk ends as soon as one is too long. An edge found late can join two paths that
    both were within the limit, so in that case alone up to twice ``max_path`` can have been read.
    """
    # node -> number of nodes on the longest known path that ends in it. Nothing is longer than what a
    # leaf and an empty slot have here: their lengths are never corrected.
    depth: dict = {None: NEVER}
    waiting: list = []  # what was seen and is no leaf: a heap of (-torch's number, order seen, node)
    found = Found([], {}, [])
    nodes, index_of, all_targets = found.nodes, found.index_of, found.targets

    def meet_leaf(leaf: object) -> None:
        depth[leaf] = NEVER
        if len(nodes) < max_nodes:
            index_of[leaf] = len(nodes)
            nodes.append(leaf)
            all_targets.append(())

    for node in starts:
        if node in depth:
            continue
        if type(node) is AccumulateGrad:
            meet_leaf(node)
        else:
            depth[node] = 1
            # The order seen breaks ties, so that equal graphs are read in equal order.
            heappush(waiting, (-node._sequence_nr(), len(depth), node))
    # All that wait may lie on one path behind the node whose turn it is, and have been seen. They count,
    # unless one wide operation has shown them all at once: nothing can be done about those, and most
    # often they stand side by side.
    widest = len(waiting)
    most = max(max_path, widest + SLACK)
    too_long = False
    while waiting and len(nodes) < max_nodes and not too_long:
        node = heappop(waiting)[2]
        length = depth[node]
        if length > max_path or (length + len(waiting) > most and length > SLACK):
            break
        index_of[node] = len(nodes)
        nodes.append(node)
        targets = node.next_functions
        all_targets.append(targets)
        shown = length - len(waiting)
        for target, _ in targets:
            known = depth.get(target)
            if known is None:
                if type(target) is AccumulateGrad:
                    meet_leaf(target)
                else:
                    depth[target] = length + 1
                    heappush(waiting, (-target._sequence_nr(), len(depth), target))
            elif known > length:
                continue
            elif target in index_of:
                too_long |= _deepen(target, length + 1, max_path, depth, found)
            else:
                depth[target] = length + 1
        shown += len(waiting)
        if shown > widest:
            widest = shown
            most = max(max_path, widest + SLACK)
    if len(nodes) < len(depth) - 1:
        _count_cut(starts, found)
    return found


def number(node: Any) -> int:
    """Torch's number of a node: greater for a later one, greatest for a leaf."""
    return node._sequence_nr()


def _deepen(node: Any, length: int, max_path: int, depth: dict, found: Found) -> bool:
    """Correct the path lengths of ``node`` and of what lies behind it; tells if one is too long."""
    depth[node] = length
    heap = [(-node._sequence_nr(), 0, node)]
    pushed = 0
    while heap:
        node = heappop(heap)[2]
        length = depth[node]
        if node not in found.index_of:
            continue
        if length > max_path:
            return True
        for target, _ in found.targets[found.index_of[node]]:
            if depth[target] <= length:
                depth[target] = length + 1
                pushed += 1
                heappush(heap, (-target._sequence_nr(), pushed, target))
    return False


def _count_cut(starts: list, found: Found) -> None:
    """Count the edges that lead to nodes which were not read, and those nodes."""
    # A root that was not read counts as an edge: something was asked for there and left out.
    ends = starts + [target for targets in found.targets for target, _ in targets if target is not None]
    cut = [node for node in ends if node not in found.index_of]
    found.cut_edges, found.cut_nodes = len(cut), len(set(cut))
