"""What the player lays over a drawing: values on the arrows, where they find room."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from .graph import Graph
from .svg import Picture
from .values import Value, figure_text

SIZE = 10  # px, of the labels' letters
LONGEST = 16  # characters of a label
_PATH = re.compile(r'<path class="ag-e" data-e="([^"]+)" d="([^"]+)"')
_PART = re.compile(r"([MVHC])([^MVHCa-z]*)")
_NUMBER = re.compile(r"-?\d*\.?\d+")
_STUB = re.compile(r'<text class="ag-s" x="(\d+)" y="(\d+)">([^<]*)<')
_BLOCK = re.compile(r'<g class="(ag-n[^"]*)" data-n="(\d+)"')

Box = tuple[float, float, float, float]
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Arrow:
    """One arrow of a drawing as a line of points, at even distances from start to end."""

    key: str
    points: tuple[Point, ...]


def arrows(picture: Picture) -> dict[str, Arrow]:
    """The arrows that are drawn, by the key of their first edge, or of their output."""
    return {key: Arrow(key, _even(list(_walk(path)))) for key, path in _PATH.findall(picture.body)}


def _walk(path: str) -> Iterator[Point]:
    x = y = 0.0
    for command, text in _PART.findall(path.split("m")[0]):
        numbers = [float(number) for number in _NUMBER.findall(text)]
        if command == "V":
            y = numbers[-1]
        elif command == "H":
            x = numbers[-1]
        elif command == "C":
            x1, y1, x2, y2, x3, y3 = numbers
            for i in range(1, 12):
                t, s = i / 12, 1 - i / 12
                yield (
                    s**3 * x + 3 * s * s * t * x1 + 3 * s * t * t * x2 + t**3 * x3,
                    s**3 * y + 3 * s * s * t * y1 + 3 * s * t * t * y2 + t**3 * y3,
                )
            x, y = x3, y3
        else:
            x, y = numbers
        yield x, y


def _even(points: list[Point], steps: int = 20) -> tuple[Point, ...]:
    """Points along a broken line, at ``0, 1/20, ... 1`` of its length."""
    lengths = [0.0]
    for (x0, y0), (x1, y1) in pairwise(points):
        lengths.append(lengths[-1] + ((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5)
    found, i = [], 0
    for step in range(steps + 1):
        goal = lengths[-1] * step / steps
        while i < len(points) - 2 and lengths[i + 1] < goal:
            i += 1
        if len(points) < 2 or lengths[i + 1] == lengths[i]:
            found.append(points[i])
            continue
        part = (goal - lengths[i]) / (lengths[i + 1] - lengths[i])
        (x0, y0), (x1, y1) = points[i], points[i + 1]
        found.append((x0 + part * (x1 - x0), y0 + part * (y1 - y0)))
    return tuple(found)


def arrow_of(graph: Graph, picture: Picture, drawn: dict[str, Arrow]) -> dict[tuple[int, int], str]:
    """The key of the arrow that shows each edge ``(source, slot)``; edges between folded boxes share one."""
    edges = [(edge, edge.target) for edge in graph.edges if edge.target is not None]
    own = {(edge.source, edge.slot): f"{edge.source}-{edge.slot}" for edge, _ in edges}
    between: dict[tuple[str, str], str] = {}
    for edge, target in edges:
        if own[edge.source, edge.slot] in drawn:
            boxes = picture.key_of[edge.source], picture.key_of[target]
            between.setdefault(boxes, own[edge.source, edge.slot])
    members = Counter(picture.key_of)
    found = {}
    for edge, target in edges:
        key = own[edge.source, edge.slot]
        boxes = picture.key_of[edge.source], picture.key_of[target]
        folded = members[boxes[0]] > 1 or members[boxes[1]] > 1
        if key in drawn:
            found[edge.source, edge.slot] = key
        elif folded and boxes in between:  # one that ends in a stub has no arrow at all
            found[edge.source, edge.slot] = between[boxes]
    return found


def short(value: Value | None) -> str:
    """A value in as few characters as a label has room for."""
    if value is None:
        return "None"
    if len(value.text) <= LONGEST:
        return value.text
    if value.nan:
        return "NaN"
    if value.inf:
        return "inf"
    if value.minimum is not None and value.minimum == value.maximum:
        return f"all {figure_text(value.minimum)}"
    if value.norm is not None:
        return f"norm {figure_text(value.norm)}"
    return f"{value.text[: LONGEST - 1]}…"


def labels(texts: dict[str, str], drawn: dict[str, Arrow], boxes: list[Box]) -> str:
    """SVG of the labels, each where it covers no box and no other label; mid-arrow where none is free."""
    taken = list(boxes)
    parts = []
    for key, text in texts.items():
        width = len(text) * SIZE * 0.605 + 6
        places = [drawn[key].points[i] for i in (10, 8, 12, 6, 14, 4, 16, 3)]
        rooms = [(x - width / 2, y - 8, width, 15) for x, y in places]
        free = next((i for i, room in enumerate(rooms) if not any(_overlap(room, t) for t in taken)), None)
        style = "iap-v" if free is not None else "iap-v iap-tight"
        x, y = map(round, places[free or 0])
        if free is not None:
            taken.append(rooms[free])
        # A plate behind the words: an arrow that shows through them reads as a stroke of a letter.
        plate = f'<rect x="{x - round(width / 2)}" y="{y - 7}" width="{round(width)}" height="13"/>'
        words = f'<text x="{x}" y="{y + 3}">{escape(text)}</text>'
        parts.append(f'<g class="{style}" data-v="{key}">{plate}{words}</g>')
    return "".join(parts)


def stubs(picture: Picture) -> list[Box]:
    """Where short words stand beside the boxes, such as the ``None`` of an empty slot."""
    found = ((int(x), int(y), 6.1 * len(text)) for x, y, text in _STUB.findall(picture.body))
    return [(x - width / 2, y - 9, width, 12) for x, y, width in found]


def _overlap(a: Box, b: Box) -> bool:
    return a[0] < b[0] + b[2] and b[0] < a[0] + a[2] and a[1] < b[1] + b[3] and b[1] < a[1] + a[3]


def grey(body: str, keys: set[str]) -> str:
    """The drawing's body with the boxes of ``keys`` marked as never run."""

    def mark(found: re.Match) -> str:
        if found[2] not in keys:
            return found[0]
        return f'<g class="{found[1]} iap-never" stroke-dasharray="3 3" data-n="{found[2]}"'

    return _BLOCK.sub(mark, body)
