"""What a folded box says: how often which operations, and which parameters."""

import re
from collections import Counter

from .graph import Graph
from .modules import shared
from .pieces import Piece
from .style import shorten

FEW = 4  # as many operations of a box with a title are listed


def lines_of(graph: Graph, nodes: list[int], piece: Piece | None, inside: list[int]) -> tuple[str, ...]:
    """The lines of a folded box.

    Parameters
    ----------
    graph
        Where the nodes are from.
    nodes
        The operations of the box in the order of the engine, or leaves alone.
    piece
        How they repeat; ``None`` for leaves and for a single operation.
    inside
        All nodes of the box, leaves of its operations included.
    """
    if piece is None or not piece.title:
        return _plain(graph, nodes, piece, inside)
    sizes = [repeat.end - repeat.start for repeat in piece.repeats]
    usual = sizes[piece.sample]
    count = f" ×{len(sizes):,}{' steps' if piece.steps else ''}" if len(sizes) > 1 else ""
    lines = [shorten(piece.title, 48) + count]
    place = piece.repeats[piece.sample].start - piece.start
    kinds = Counter(graph.nodes[i].name for i in nodes[place : place + usual])
    if 1 < usual <= FEW:
        lines += _kinds(kinds)
    else:
        many = len(piece.repeats[piece.sample].modules)
        parts = f" in {many} modules" if many > 1 else ""
        lines.append(_count(usual, "operation") + parts + (" each" if count else ""))
    for repeat, size in zip(piece.repeats, sizes, strict=True):
        if repeat.trimmed and count:
            lines.append(f"{size:,} in {shorten(repeat.label, 32)}; its input needs no gradient")
    here = set(inside)
    used = {
        edge.target
        for i in nodes[place : place + usual]
        for edge in graph.nodes[i].edges
        if edge.target in here and graph.nodes[edge.target].is_leaf
    }
    if used:
        times = ", the same at each step" if piece.steps else " each" if count else ""
        lines.append(f"→ {_count(len(used), 'parameter')}{times}")
    return tuple(lines)


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def _kinds(names: Counter) -> list[str]:
    shown = [name if many == 1 else f"{name} ×{many:,}" for name, many in names.items()]
    return shown if len(shown) <= 5 else [*shown[:4], f"and {len(shown) - 4} other kinds"]


def _plain(graph: Graph, nodes: list[int], piece: Piece | None, inside: list[int]) -> tuple[str, ...]:
    """Without a title: what there is, how often, and the parameters by name."""
    times = len(piece.repeats) if piece and len(piece.repeats) > 1 else 1
    period = len(nodes) // times
    if piece is None:
        period = 1
        times = len(nodes)
    names = Counter(graph.nodes[i].name for i in nodes[:period])
    if times == 1 and period != 1:
        head = f"{len(nodes):,} operations"
    elif len(names) == 1 and period == 1:
        head = f"{next(iter(names))} ×{times:,}" if times > 1 else next(iter(names))
    else:
        head = f"{period} operations ×{times:,}"
    lines = [head]
    if len(names) > 1 or period != 1:
        lines += _kinds(names)
    here = set(inside)
    if graph.nodes[nodes[0]].is_leaf:
        return (*lines, *_series([name for i in nodes for name in graph.nodes[i].names[:1]]))
    roles: dict[tuple, list[str]] = {}  # what stands in the same place of each repetition
    leaves = set()
    for place, i in enumerate(nodes):
        for edge in graph.nodes[i].edges:
            if edge.target in here and graph.nodes[edge.target].is_leaf and edge.target not in leaves:
                leaves.add(edge.target)
                key = (place % period, edge.slot)
                roles.setdefault(key, []).extend(graph.nodes[edge.target].names[:1])
    if not leaves:
        return tuple(lines)
    named = [sorted(names, key=_natural) for names in roles.values() if names]
    if not named:
        return (*lines, f"→ {len(leaves):,} unnamed leaves" if len(leaves) > 1 else "→ 1 unnamed leaf")
    if len(named) <= 3:
        return (*lines, *("→ " + _between(names) for names in named))
    ends = [".".join(shared(tuple(names[end].split(".")[:-1]) for names in named)) for end in (0, -1)]
    inside_of = f" in {_between(ends)}" if all(ends) else ""
    return (*lines, f"→ {len(leaves):,} parameters{inside_of}")


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
