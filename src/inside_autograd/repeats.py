"""Find what repeats in a graph: runs of nodes that follow each other in the order of the engine."""

import heapq
from collections import Counter

from .graph import Graph

MOST_NAMED = 12  # as many outputs with a name or a tag of their own are kept out of the folds
LEAST_SAVED = 5  # a fold must save as many operations
MOST_PERIODS = 40  # lengths of patterns that are tried


def run_order(graph: Graph) -> list[int]:
    """The nodes that are no leaves, consumers first; ties go to the lower index."""
    missing = [0] * len(graph)
    for edge in graph.edges:
        if edge.target is not None:
            missing[edge.target] += 1
    ready = [i for i, many in enumerate(missing) if not many]
    heapq.heapify(ready)
    order = []
    while ready:
        index = heapq.heappop(ready)
        if not graph.nodes[index].is_leaf:
            order.append(index)
        for edge in graph.nodes[index].edges:
            if edge.target is not None:
                missing[edge.target] -= 1
                if not missing[edge.target]:
                    heapq.heappush(ready, edge.target)
    return order


def kept_apart(graph: Graph) -> set[int]:
    """Nodes that no fold may hide: outputs, and what carries a name of its own, while they are few."""
    roots = {root.node for root in graph.roots if root.node is not None}
    named = {node.index for node in graph.nodes if any(output.names for output in node.outputs)}
    return (roots if len(roots) <= MOST_NAMED else set()) | (named if len(named) <= MOST_NAMED else set())


def tokens_of(graph: Graph, order: list[int]) -> list[int]:
    """A number for each node: equal numbers for nodes of the same name that read leaves in the same slots."""
    apart = kept_apart(graph)
    numbers: dict[object, int] = {}
    tokens = []
    for index in order:
        node = graph.nodes[index]
        inputs = tuple(
            "cut" if e.cut else e.target is not None and graph.nodes[e.target].is_leaf for e in node.edges
        )
        key = index if index in apart else (node.name, node.kind, inputs)
        tokens.append(numbers.setdefault(key, len(numbers)))
    return tokens


def repeats(tokens: list[int]) -> list[tuple[int, int, int]]:
    """Runs that repeat a pattern: ``(start, length of the pattern, how often)``, none overlapping.

    The lengths that are tried are the most frequent distances between equal triples of tokens, so the
    cost grows with the number of tokens, not with its square.
    """
    last: dict[tuple, int] = {}
    distances: Counter[int] = Counter()
    for i in range(len(tokens)):
        for size in (1, 3):
            piece = tuple(tokens[i : i + size])
            if len(piece) < size:
                continue
            if piece in last:
                distances[i - last[piece]] += 1
            last[piece] = i
    found = []
    for period, _ in sorted(distances.items(), key=lambda item: (-item[1], item[0]))[:MOST_PERIODS]:
        start = 0
        for i in range(period, len(tokens) + 1):
            if i == len(tokens) or tokens[i] != tokens[i - period]:
                times = (i - start) // period
                if times > 1:
                    found.append((start, period, times))
                start = i - period + 1
    # What folds most goes first; of equal ones the shorter pattern.
    found.sort(key=lambda run: (-run[1] * (run[2] - 1), run[1], run[0]))
    taken = bytearray(len(tokens))
    chosen = []
    for start, period, times in found:
        end = start + period * times
        while start < end and taken[start]:
            start += 1
        while start < end and taken[end - 1]:
            end -= 1
        times = (end - start) // period
        if (
            times > 1
            and period * (times - 1) >= LEAST_SAVED
            and not any(taken[start : start + period * times])
        ):
            taken[start : start + period * times] = b"\1" * (period * times)
            chosen.append((start, period, times))
    return sorted(chosen)
