"""What a folded box says: how often which operations, and which parameters."""

import re
from collections import Counter

from .graph import Graph


def lines_of(graph: Graph, nodes: list[int], period: int, inside: list[int]) -> tuple[str, ...]:
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
