"""What folded boxes hold: a drawing of one repeat of each, with where its arrows come from and go to."""

from dataclasses import dataclass, replace

from .fold import READABLE, Box, Folded, fold_part
from .graph import Graph
from .modules import numbers_in, owners, shared
from .style import shorten

MOST_BOXES = 240  # in a drawing and all that its boxes hold
DEEPEST = 3  # boxes in boxes


@dataclass(frozen=True, slots=True)
class Inside:
    """What the box ``box`` of a drawing holds, and what its own folded boxes hold."""

    box: int
    folded: Folded
    insides: tuple["Inside", ...] = ()


def insides(folded: Folded) -> tuple[Inside, ...]:
    """What each folded box holds, while the boxes of all drawings together stay few."""
    users: dict[int, list[int]] = {}
    for edge in folded.graph.edges:
        if edge.target is not None:
            users.setdefault(edge.target, []).append(edge.source)
    return _insides(folded, users, [MOST_BOXES - len(folded.boxes)], DEEPEST)


def _insides(folded: Folded, users: dict, room: list[int], depth: int) -> tuple[Inside, ...]:
    found = []
    for number, box in enumerate(folded.boxes):
        if not box.around and box.repeats and len(box.repeats[box.sample][1]) > 1 and depth:
            view = _view(folded, number, users)
            shown = [inner for inner in view.boxes if not inner.around]
            if len(shown) <= room[0] and (len(shown) > 1 or len(shown[0].repeats) > 1):
                room[0] -= len(shown)
                found.append((number, view))
    return tuple(Inside(number, view, _insides(view, users, room, depth - 1)) for number, view in found)


def _view(parent: Folded, number: int, users: dict[int, list[int]]) -> Folded:
    """One repeat of a box, and tags for what lies around it."""
    box, graph = parent.boxes[number], parent.graph
    name, ops = box.repeats[box.sample]
    boxes, box_of = _boxes(graph, list(ops))
    here = set(ops)
    edges = [edge for i in ops for edge in graph.nodes[i].edges]
    below = {e.target for e in edges if e.target is not None and box_of[e.target] is None}
    above = {user for i in ops for user in users.get(i, ()) if box_of[user] is None}
    nodes = list(graph.nodes)
    groups: dict[str, list[int]] = {}
    where = {i: at for at, (_, members) in enumerate(box.repeats) for i in members}
    for word, outside in (("from", above), ("to", below)):
        for i in sorted(outside):
            kept = tuple(e for e in nodes[i].edges if e.target in here) if word == "from" else ()
            nodes[i] = replace(nodes[i], edges=kept)
            groups.setdefault(f"{word} {_place(parent, number, where, i)}", []).append(i)
    found = list(boxes)
    for text, members in groups.items():
        for i in members:
            box_of[i] = len(found)
        found.append(Box(tuple(members), (text,), around=True))
    tops = {i for i, at in enumerate(box_of) if at is not None and not found[at].around}
    roots = tuple(root for root in graph.roots if root.node in tops)
    return Folded(Graph(tuple(nodes), roots, None, ()), tuple(found), tuple(box_of), _heading(box, name))


def _boxes(graph: Graph, ops: list[int]) -> tuple[tuple[Box, ...], list[int | None]]:
    """Each node alone where that is readable, else folded again."""
    leaves = list(
        dict.fromkeys(
            edge.target
            for i in ops
            for edge in graph.nodes[i].edges
            if edge.target is not None and graph.nodes[edge.target].is_leaf
        )
    )
    if len(ops) + len(leaves) > READABLE:
        return fold_part(graph, ops, numbers_in(shared(filter(None, owners(graph, ops)))))
    box_of: list[int | None] = [None] * len(graph)
    for number, i in enumerate(ops + leaves):
        box_of[i] = number
    return tuple(Box((i,)) for i in ops + leaves), box_of


def _heading(box: Box, name: str) -> str:
    many = len(box.repeats)
    if many == 1:
        return shorten(name, 48) or box.lines[0]
    if all(label == name for label, _ in box.repeats):
        return f"{shorten(name, 48)}: one of {many:,} steps" if name else f"One of {many:,} repeats"
    return f"{shorten(name, 48)}, one of {many:,}"


def _place(parent: Folded, number: int, where: dict[int, int], node: int) -> str:
    """What the node is called in the drawing around, as short as possible."""
    box = parent.boxes[number]
    if node in where:
        label = box.repeats[where[node]][0]
        if label and label != box.repeats[box.sample][0]:
            return shorten(label, 32)
        # The order is that of the engine: what ran last comes first.
        later = where[node] < box.sample
        near = abs(where[node] - box.sample) == 1
        thing = "step" if label else "repeat"
        if near:
            return f"the next {thing}" if later else f"the {thing} before"
        return f"a later {thing}" if later else f"an earlier {thing}"
    at = parent.box_of[node]
    other = None if at is None else parent.boxes[at]
    if other and other.around:
        return other.lines[0].split(" ", 1)[1]
    if other and other.folded:
        return other.lines[0]
    return f"{shorten(parent.graph.nodes[node].name, 32)} #{node}"
