"""Where everything in a drawing stands, read back from its SVG and measured without the drawing's own rules.

Arrows are vertical lines and curves that run down; neither turns around, so that what they touch is known
exactly. Letters are measured in DejaVu, wider than the other fonts that the drawings name.
"""

import re
import unicodedata
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import numpy as np
from matplotlib.ft2font import FT2Font, LoadFlags

SVG = "{http://www.w3.org/2000/svg}"
SIZES = {"ag-s": 10, "ag-i": 9.5, "ag-w": 11, "ag-h": 13}  # px, by class; 12 otherwise

Box = tuple[float, float, float, float]  # left, top, right, bottom


@dataclass
class Words:
    """One text: what it says, the px it covers, and its classes."""

    text: str
    box: Box
    style: tuple[str, ...]


@dataclass
class Piece:
    """Part of an arrow, from (x0, y0) down to (x1, y1)."""

    x0: float
    y0: float
    x1: float
    y1: float

    def x_at(self, y: float) -> float:
        """Where it is at height y."""
        if self.x0 == self.x1:
            return self.x0
        low, high = 0.0, 1.0
        for _ in range(40):
            t = (low + high) / 2
            reached = 1.5 * t * (1 - t) + t**3
            low, high = (t, high) if self.y0 + (self.y1 - self.y0) * reached < y else (low, t)
        return self.x0 + (self.x1 - self.x0) * low * low * (3 - 2 * low)

    def meets(self, box: Box) -> bool:
        """Whether it touches the inside of ``box``."""
        top, bottom = max(self.y0, box[1]), min(self.y1, box[3])
        if top >= bottom:
            return False
        left, right = sorted((self.x_at(top), self.x_at(bottom)))
        return left < box[2] and right > box[0]


@dataclass
class Arrow:
    key: str
    pieces: list[Piece]

    @property
    def start(self) -> tuple[float, float]:
        return self.pieces[0].x0, self.pieces[0].y0

    @property
    def end(self) -> tuple[float, float]:
        return self.pieces[-1].x1, self.pieces[-1].y1

    def x_at(self, y: float) -> float:
        return next(piece for piece in self.pieces if piece.y1 >= y - 1e-9).x_at(y)


@dataclass
class Seen:
    """A drawing. Boxes go by their ``data-n``: the outline, all that hangs on it, its ports, its words."""

    width: float
    height: float
    outlines: dict[str, Box] = field(default_factory=dict)
    extents: dict[str, Box] = field(default_factory=dict)
    ports: dict[str, list[Box]] = field(default_factory=dict)
    panels: dict[str, Box] = field(default_factory=dict)
    words: dict[str, list[Words]] = field(default_factory=dict)
    labels: list[Words] = field(default_factory=list)
    captions: list[Words] = field(default_factory=list)
    arrows: list[Arrow] = field(default_factory=list)
    dotted: list[Arrow] = field(default_factory=list)


@cache
def _font(name: str) -> FT2Font:
    font = FT2Font(str(Path(matplotlib.get_data_path(), "fonts", "ttf", f"{name}.ttf")))
    font.set_size(100, 72)
    return font


@cache
def _advance(character: str, name: str) -> float:
    """Width of a letter, as a part of the font's size."""
    if unicodedata.combining(character):
        return 0
    if unicodedata.east_asian_width(character) in "WF":
        return 1
    font = _font(name)
    if not font.get_char_index(ord(character)):
        return 0.602
    return font.load_char(ord(character), flags=LoadFlags.NO_HINTING).linearHoriAdvance / 65536 / 100


def measured(element: ElementTree.Element, dx: float, dy: float) -> Words:
    style = tuple((element.get("class") or "").split())
    size = next((SIZES[name] for name in ("ag-h", *style) if name in style and name in SIZES), 12)
    name = "DejaVuSans" if "ag-w" in style else "DejaVuSansMono"
    text = element.text or ""
    width = size * sum(_advance(character, name) for character in text)
    x, y = float(element.get("x")) + dx, float(element.get("y")) + dy
    left = x if {"ag-w", "ag-p"} & set(style) else x - width / 2
    return Words(text, (left, y - 0.75 * size, left + width, y + 0.2 * size), style)


def see(svg: str) -> Seen:
    """Read a drawing."""
    root = ElementTree.fromstring(svg)
    seen = Seen(float(root.get("width")), float(root.get("height")))
    assert root.get("viewBox") == f"0 0 {root.get('width')} {root.get('height')}"
    _walk(seen, root, 0, 0)
    return seen


def _walk(seen: Seen, parent: ElementTree.Element, dx: float, dy: float) -> None:
    for element in parent:
        if element.tag == SVG + "g" and element.get("data-n"):
            _block(seen, element, dx, dy)
        elif element.tag == SVG + "g":
            moved = re.fullmatch(r"translate\((\S+) (\S+)\)", element.get("transform") or "translate(0 0)")
            _walk(seen, element, dx + float(moved[1]), dy + float(moved[2]))
        elif element.tag == SVG + "text":
            words = measured(element, dx, dy)
            (seen.captions if dx or "ag-w" in words.style else seen.labels).append(words)
        elif element.tag == SVG + "path" and element.get("data-e"):
            seen.arrows.append(Arrow(element.get("data-e"), _pieces(element.get("d"), dy)))
        elif element.tag == SVG + "path" and element.get("class") == "ag-d" and not dx:
            seen.dotted.append(Arrow("", _pieces(element.get("d"), dy)))


def _block(seen: Seen, group: ElementTree.Element, dx: float, dy: float) -> None:
    assert (dx, dy) == (0, dy)
    key = group.get("data-n")
    assert key not in seen.outlines
    shapes: list[tuple[str, Box]] = []
    words = []
    for element in group:
        style = element.get("class") or ""
        if element.tag == SVG + "rect":
            x, y, w, h = (float(element.get(name)) for name in ("x", "y", "width", "height"))
            shapes.append((style, (x, y + dy, x + w, y + h + dy)))
        elif element.tag == SVG + "path":
            left, top, right, bottom = _corners(element.get("d"))
            shapes.append((style, (left, top + dy, right, bottom + dy)))
        elif element.tag == SVG + "text":
            words.append(measured(element, dx, dy))
    outline = next(box for style, box in shapes if style not in ("ag-l", "ag-v", "ag-k"))
    seen.outlines[key], seen.words[key] = outline, words
    seen.ports[key] = [box for style, box in shapes if style in ("", "ag-u") and box[3] == outline[1]]
    seen.panels.update((key, box) for style, box in shapes if style == "ag-v")
    boxes = [box for _, box in shapes] + [word.box for word in words]
    seen.extents[key] = (*np.min(boxes, 0)[:2], *np.max(boxes, 0)[2:])


_COMMAND = re.compile(r"([A-Za-z])([^A-Za-z]*)")
_NUMBER = re.compile(r"-?\d*\.?\d+")


def _commands(d: str):
    for command, rest in _COMMAND.findall(d):
        yield command, [float(number) for number in _NUMBER.findall(rest)]


def _corners(d: str) -> Box:
    """The extent of an outline of straight lines."""
    x = y = 0.0
    xs, ys = [], []
    for command, n in _commands(d):
        if command == "M":
            x, y = n
        elif command == "h":
            x += n[0]
        elif command == "v":
            y += n[0]
        elif command == "l":
            for mx, my in zip(n[::2], n[1::2], strict=True):
                x, y = x + mx, y + my
                xs.append(x)
                ys.append(y)
        else:
            assert command == "z", f"an outline has the command {command}"
        xs.append(x)
        ys.append(y)
    return min(xs), min(ys), max(xs), max(ys)


def _pieces(d: str, dy: float) -> list[Piece]:
    """An arrow, without its head. A curve must hang like all others, so that ``Piece`` knows its way."""
    pieces: list[Piece] = []
    x = y = 0.0
    for command, n in _commands(d):
        if command == "m":
            break
        if command == "M":
            x, y = n
        elif command == "H":  # a saved tensor's line leaves its row sideways
            x = n[0]
        elif command == "V":
            pieces.append(Piece(x, y + dy, x, n[0] + dy))
            y = n[0]
        else:
            assert command == "C", f"an arrow has the command {command}"
            x1, y1, x2, y2, x3, y3 = n
            assert x1 == x and x2 == x3 and y1 == y2 and abs(y1 - (y + y3) / 2) <= 0.06
            pieces.append(Piece(x, y + dy, x3, y3 + dy))
            x, y = x3, y3
    return pieces


def grown(box: Box, by: float) -> Box:
    return box[0] - by, box[1] - by, box[2] + by, box[3] + by


def overlap(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def within(a: Box, b: Box) -> bool:
    return a[0] >= b[0] and a[1] >= b[1] and a[2] <= b[2] and a[3] <= b[3]


class Index:
    """Boxes, to find those that overlap another one."""

    def __init__(self, boxes: dict[str, Box]):
        self.keys = list(boxes)
        self.sides = np.array(list(boxes.values())).reshape(-1, 4).T

    def near(self, box: Box) -> list[str]:
        left, top, right, bottom = self.sides
        found = (left < box[2]) & (right > box[0]) & (top < box[3]) & (bottom > box[1])
        return [self.keys[i] for i in np.flatnonzero(found)]
