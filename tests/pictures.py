"""Read a drawing back from its SVG: boxes, texts and arrows, as the reader sees them.

The shapes that many tests look at are captured, drawn and read once: ``captured``, ``drawn``, ``seen``.
"""

import re
from dataclasses import dataclass
from functools import cache
from xml.etree import ElementTree

from graphs import random_graph
from inside_autograd import Graph, draw
from inside_autograd.drawing import Drawing
from inside_autograd.panels import Panel
from shapes import SHAPES

SVG = "{http://www.w3.org/2000/svg}"
CAPTURED = [name for name in SHAPES if name != "no_graph"]  # that one has no graph: it is refused


@dataclass
class Shown:
    """Boxes as (left, top, right, bottom) by data-n, arrows as lists of points by data-e."""

    root: ElementTree.Element
    boxes: dict[str, tuple[float, float, float, float]]
    arrows: list[tuple[str, list[tuple[float, float]]]]
    texts: dict[str, list[str]]


@cache
def captured(name: str) -> Graph:
    """The graph of a shape, or of ``random3``: random graph number 3."""
    if name.startswith("random"):
        return random_graph(int(name.removeprefix("random")))
    return Graph.of(*SHAPES[name]())


@cache
def drawn(name: str, saved: bool = False) -> Drawing:
    return draw(captured(name), saved=saved)


@cache
def seen(name: str, saved: bool = False) -> Shown:
    return read(drawn(name, saved).picture.svg(alone=True))


def panels_of(drawing: Drawing) -> list[Panel]:
    """All panels of a drawing, those of boxes in boxes too."""
    found, waiting = [], list(drawing.panels)
    while waiting:
        panel = waiting.pop(0)
        found.append(panel)
        waiting += panel.panels
    return found


def read(svg: str) -> Shown:
    root = ElementTree.fromstring(svg)
    boxes, arrows, texts = {}, [], {}
    for group in root.iter(SVG + "g"):
        if key := group.get("data-n"):
            boxes[key] = outline(group)
            texts[key] = [text.text or "" for text in group.iter(SVG + "text")]
    for path in root.iter(SVG + "path"):
        if path.get("data-e"):
            arrows.append((path.get("data-e"), points(path.get("d"))))
    return Shown(root, boxes, arrows, texts)


def outline(group: ElementTree.Element) -> tuple[float, float, float, float]:
    """The extent of a box: of its first shape that is no panel, no thread to one, and no sheet behind it."""
    shapes = [
        e
        for e in group
        if e.tag in (SVG + "rect", SVG + "path") and e.get("class") not in ("ag-l", "ag-v", "ag-k")
    ]
    shape = shapes[0]
    if shape.tag == SVG + "rect":
        x, y, w, h = (float(shape.get(a)) for a in ("x", "y", "width", "height"))
        return x, y, x + w, y + h
    corners = points(shape.get("d"))
    xs, ys = zip(*corners, strict=True)
    return min(xs), min(ys), max(xs), max(ys)


def points(d: str) -> list[tuple[float, float]]:
    """Points along a path, the head of an arrow left out; curves are sampled."""
    x = y = 0.0
    found: list[tuple[float, float]] = []
    for command, rest in re.findall(r"([A-Za-z])([^A-Za-z]*)", d):
        n = [float(v) for v in re.findall(r"-?\d*\.?\d+", rest)]
        if command == "m":
            break
        if command == "M":
            x, y = n
        elif command == "V":
            found += [(x, y + (n[0] - y) * k / 12) for k in range(1, 12)]
            y = n[0]
        elif command == "H":
            x = n[0]
        elif command == "v":
            y += n[0]
        elif command == "h":
            x += n[0]
        elif command == "l":
            for dx, dy in zip(n[::2], n[1::2], strict=True):
                x, y = x + dx, y + dy
                found.append((x, y))
        elif command == "C":
            x1, y1, x2, y2, x3, y3 = n
            for k in range(1, 24):
                t = k / 24
                a, b, c, e = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3
                found.append((a * x + b * x1 + c * x2 + e * x3, a * y + b * y1 + c * y2 + e * y3))
            x, y = x3, y3
        elif command == "z":
            continue
        else:
            raise AssertionError(f"unknown path command {command}")
        found.append((x, y))
    return found
