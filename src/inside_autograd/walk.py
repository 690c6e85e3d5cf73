"""Find the nodes behind some outputs, without reading more of the graph than is safe.

A node that Python has seen keeps its Python object until it is freed, and torch frees such nodes by
recursion, one inside the other along each path. On torch 2.13 a path of 2,400 seen nodes was freed on
a stack of 512 KiB (a thread's on some systems) and one of 2,600 crashed the process; 4,800 were freed
on 1 MiB and 39,000 on 8 MiB. Nodes that nobody has seen are freed in a loop, however many they are.
So the limit that matters is the number of seen nodes on one path, and ``next_functions`` shows Python
every node that it lists.
"""

import heapq
from dataclasses import dataclass

from .facts import AccumulateGrad

MAX_PATH = 1_500
MAX_NODES = 50_000
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
    long ends the walk: all that wait by then are older, and might lie behind it. Leaves are always
    read, for nothing comes after them.

    Numbers do not follow the graph where several threads made it. There ``_deepen`` corrects the
    lengths, and the walk ends as soon as one is too long. An edge found late can join two paths that
    both were within the limit, so in that case alone up to twice ``max_path`` can have been read.
    """
    depth: dict = {}  # node -> number of nodes on the longest known path that ends in it
    heap: list = []
    found = Found([], {}, [])

    def see(node, length: int) -> int:
        """Note a node; returns 1 if it is new and not a leaf."""
        if node in depth:
            return 0
        depth[node] = length
        # The number seen breaks ties, so that equal graphs are read in equal order.
        heapq.heappush(heap, (-number(node), len(depth), node))
        return type(node) is not AccumulateGrad

    waiting = widest = sum([see(node, 1) for node in starts])
    too_long = False
    while heap and len(found.nodes) < max_nodes and not too_long:
        node = heap[0][2]
        length = depth[node]
        if type(node) is not AccumulateGrad:
            # All that wait may lie on one path behind this node, and have been seen. They count, unless
            # one wide operation has shown them all at once: nothing can be done about those, and most
            # often they stand side by side.
            waiting -= 1
            crowded = length > SLACK and length + waiting > max(max_path, widest + SLACK)
            if length > max_path or crowded:
                break
        heapq.heappop(heap)
        found.index_of[node] = len(found.nodes)
        found.nodes.append(node)
        targets = node.next_functions
        found.targets.append(targets)
        shown = 0
        for target, _ in targets:
            if target is None:
                continue
            shown += see(target, length + 1)
            if depth[target] <= length and type(target) is not AccumulateGrad:
                too_long |= _deepen(target, length + 1, max_path, depth, found)
        waiting += shown
        widest = max(widest, length + shown)
    _count_cut(starts, found)
    return found


def number(node) -> int:
    """Torch's number of a node: greater for a later one, greatest for a leaf."""
    read = getattr(node, "_sequence_nr", None)
    return 0 if read is None else read()


def _deepen(node, length: int, max_path: int, depth: dict, found: Found) -> bool:
    """Correct the path lengths of ``node`` and of what lies behind it; tells if one is too long."""
    depth[node] = length
    heap = [(-number(node), 0, node)]
    pushed = 0
    while heap:
        node = heapq.heappop(heap)[2]
        length = depth[node]
        if type(node) is AccumulateGrad or node not in found.index_of:
            continue
        if length > max_path:
            return True
        for target, _ in found.targets[found.index_of[node]]:
            if target is not None and depth.get(target, 0) <= length:
                depth[target] = length + 1
                pushed += 1
                heapq.heappush(heap, (-number(target), pushed, target))
    return False


def _count_cut(starts: list, found: Found) -> None:
    """Count the edges that lead to nodes which were not read, and those nodes."""
    # A root that was not read counts as an edge: something was asked for there and left out.
    ends = starts + [target for targets in found.targets for target, _ in targets if target is not None]
    cut = [node for node in ends if node not in found.index_of]
    found.cut_edges, found.cut_nodes = len(cut), len(set(cut))
