"""Fold a large graph: what repeats becomes one counted box.

The nodes are taken in the order in which the engine could run them. A run of nodes in that order
that repeats one pattern is folded; so is, where there is no other way, a run that does not. Because
every box holds neighbors in an order of the graph, the boxes have an order too: no cycle can arise.
Leaves lead nowhere, so they may go into any box.
"""

import heapq
import re
from collections import Counter
from dataclasses import dataclass

from .graph import Graph

MOST_BOXES = 140
MOST_NAMED = 12  # as many outputs with a name or a tag of their own are kept out of the folds
LEAST_SAVED = 5  # a fold must save as many operations
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
    order = _run_order(graph)
    tokens = _tokens(graph, order)
    runs = _repeats(tokens)
    folded = unfolded(graph)
    for cut in _ways_to_cut(graph, order, runs):
        folded = _gather(graph, order, cut)
        if len(folded.boxes) <= MOST_BOXES:
            break
    return folded


def _run_order(graph: Graph) -> list[int]:
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


def _tokens(graph: Graph, order: list[int]) -> list[int]:
    """A number for each node: equal numbers for nodes of the same name with the same kinds of inputs."""
    roots = {root.node for root in graph.roots}
    named = {node.index for node in graph.nodes if any(output.names for output in node.outputs)}
    alone = (roots if len(roots) <= MOST_NAMED else set()) | (named if len(named) <= MOST_NAMED else set())
    numbers: dict[object, int] = {}
    tokens = []
    for index in order:
        node = graph.nodes[index]
        inputs = tuple(
            "cut" if e.cut else None if e.target is None else graph.nodes[e.target].is_leaf
            for e in node.edges
        )
        key = index if index in alone else (node.name, node.kind, inputs)
        tokens.append(numbers.setdefault(key, len(numbers)))
    return tokens


def _repeats(tokens: list[int]) -> list[tuple[int, int, int]]:
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
    for period, _ in sorted(distances.items(), key=lambda item: (-item[1], item[0]))[:40]:
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
        lines = () if len(inside) == 1 else _lines(graph, nodes, period, inside)
        boxes.append(Box(tuple(inside), lines))
    return Folded(graph, tuple(boxes), tuple(box_of))


def _lines(graph: Graph, nodes: list[int], period: int, inside: list[int]) -> tuple[str, ...]:
    """What a folded box says: how often which operations, and which parameters."""
    names = Counter(graph.nodes[i].name for i in (nodes[:period] if period else nodes))
    times = len(nodes) // period if period else 1
    if times == 1 and period != 1:
        head = f"{len(nodes):,} operations"
    elif len(names) == 1 and period == 1:
        head = f"{next(iter(names))} ×{times:,}" if times > 1 else next(iter(names))
    else:
        head = f"{period} operations ×{times:,}"
    lines = [head]
    if len(names) > 1 or period != 1:
        shown = [name if many == 1 else f"{name} ×{many:,}" for name, many in names.items()]
        lines += shown if len(shown) <= 5 else [*shown[:4], f"and {len(shown) - 4} other kinds"]
    here = set(inside)
    if graph.nodes[nodes[0]].is_leaf:
        return (*lines, *_series([name for i in nodes for name in graph.nodes[i].names[:1]]))
    roles: dict[tuple, list[str]] = {}  # what stands in the same place of each repetition
    leaves = set()
    for place, i in enumerate(nodes):
        for edge in graph.nodes[i].edges:
            if edge.target in here and graph.nodes[edge.target].is_leaf and edge.target not in leaves:
                leaves.add(edge.target)
                key = (place % period if period else place, edge.slot)
                roles.setdefault(key, []).extend(graph.nodes[edge.target].names[:1])
    if not leaves:
        return tuple(lines)
    named = [sorted(names, key=_natural) for names in roles.values() if names]
    if not named:
        return (*lines, f"→ {len(leaves):,} unnamed leaves" if len(leaves) > 1 else "→ 1 unnamed leaf")
    if len(named) <= 3:
        return (*lines, *("→ " + _between(names) for names in named))
    ends = [_module([names[end] for names in named]) for end in (0, -1)]
    inside_of = f" in {_between(ends)}" if all(ends) else ""
    return (*lines, f"→ {len(leaves):,} parameters{inside_of}")


def _module(names: list[str]) -> str:
    """The dotted prefix that all names share."""
    shared = []
    for parts in zip(*(name.split(".")[:-1] for name in names), strict=False):
        if len(set(parts)) > 1:
            break
        shared.append(parts[0])
    return ".".join(shared)


def _series(names: list[str]) -> list[str]:
    """Names that differ only in numbers, written as one; at most four lines."""
    series: dict[tuple, list[str]] = {}
    for name in sorted(names, key=_natural):
        series.setdefault(tuple(re.split(r"\d+", name)), []).append(name)
    lines = [_between(members) for members in series.values()]
    return (
        lines
        if len(lines) <= 4
        else [*lines[:3], f"and {len(names) - sum(map(len, list(series.values())[:3]))} more"]
    )


def _natural(name: str) -> list:
    return [
        (0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", name) if part
    ]


def _between(names: list[str]) -> str:
    """``layers.0…11.weight`` for a series, ``leaf0…leaf1999`` where the number is not alone."""
    first, last = names[0].split("."), names[-1].split(".")
    differ = [i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b]
    if names[0] == names[-1]:
        return names[0]
    if len(first) == len(last) and len(differ) == 1:
        (i,) = differ
        return ".".join([*first[:i], f"{first[i]}…{last[i]}", *first[i + 1 :]])
    return f"{names[0]} … {names[-1]}"
