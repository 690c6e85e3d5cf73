"""Write a scene as SVG text. Same scene, same bytes: whole and half px only, no clock, no address."""

import hashlib
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from .caption import describe, legend, notes
from .layout import MARGIN, Layout
from .scene import LINE, PORT_HEIGHT, ROW, SMALL, Block, Scene, Wire, wrap
from .style import css, text_width

_ARROW = "m-3.5-6 3.5 6 3.5-6"


@dataclass(frozen=True)
class Picture:
    """One rendered graph.

    Attributes
    ----------
    body
        The SVG elements, without the ``<svg>`` around them. Each node is a ``<g data-n="3">`` with
        its index in ``graph.nodes`` (a folded box: its lowest member), each arrow a
        ``<path data-e="3-0">`` with the index of its source node and its slot.
    width, height
        In px.
    title, description
        What it shows, in words.
    boxes
        For each value of ``data-n``: ``(x, y, width, height)`` of the box, in px.
    key_of
        For each node of the graph, the ``data-n`` of the box that shows it.
    """

    body: str
    width: int
    height: int
    title: str
    description: str
    boxes: dict[str, tuple[int, int, int, int]]
    key_of: tuple[str, ...]

    def svg(self, *, alone: bool = False, label: bool = True) -> str:
        """The whole ``<svg>``.

        Parameters
        ----------
        alone
            For a file of its own: it brings its namespace and its background, and follows the
            system's dark mode. Otherwise it stands in a page and follows the page's.
        label
            Whether it names itself as a picture. ``False`` for a player that names the whole.
        """
        size = f'width="{self.width}" height="{self.height}" viewBox="0 0 {self.width} {self.height}"'
        title, text = escape(self.title, quote=False), escape(self.description, quote=False)
        words = f"<title>{title}</title><desc>{text}</desc>"
        if not alone:
            # No ids: a page may show the same drawing twice, and an id may stand on it only once.
            name = f' role="img" aria-label="{escape(self.title)}"' if label else ""
            style = f"<style>{css(alone=False)}</style>"
            return f'<svg class="ag" {size}{name}>{words if label else ""}{style}{self.body}</svg>'
        digest = hashlib.sha256(f"{self.title}{self.description}{self.body}".encode()).hexdigest()[:8]
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="ag" {size} role="img" '
            f'aria-labelledby="t{digest} d{digest}">'
            f'<title id="t{digest}">{title}</title><desc id="d{digest}">{text}</desc>'
            f"<style>{css(alone=True)}</style>"
            f'<rect class="ag-bg" width="100%" height="100%"/>{self.body}</svg>\n'
        )


def render(scene: Scene, layout: Layout, title: str | None = None) -> Picture:
    """Draw ``scene`` as ``layout`` places it.

    Parameters
    ----------
    scene, layout
        From ``scene.build`` and ``layout.lay_out``.
    title
        A heading above the drawing.
    """
    top = 24 if title else 0
    parts = [_text(MARGIN, 18, title, "ag-w ag-h")] if title else []
    parts.append(f'<g transform="translate(0 {top})">' if top else "<g>")
    parts += [_wire(w, r, scene, layout) for w, r in zip(scene.wires, layout.routes, strict=True)]
    parts += [_block(block, layout.x[i], layout.y[i]) for i, block in enumerate(scene.blocks)]
    parts.append("</g>")
    lower, width, height = _caption(scene, max(layout.width, 360), top + layout.height)
    if title:
        width = max(width, round(MARGIN * 2 + text_width(title, 13)))
    name, description = describe(scene, title)
    boxes = {
        block.key: (
            layout.x[i] - block.width // 2,
            layout.y[i] - block.height // 2 + top,
            block.width,
            block.height,
        )
        for i, block in enumerate(scene.blocks)
    }
    keys = tuple(scene.blocks[box].key for box in scene.folded.box_of)
    body = "".join(parts) + lower
    return Picture(body, max(width, layout.width), height, name, description, boxes, keys)


def _caption(scene: Scene, width: int, y: int) -> tuple[str, int, int]:
    """Legend and notes under the drawing; returns their SVG and the size of the whole."""
    parts = []
    x, right = MARGIN, 0
    y += 10
    for symbol, text in legend(scene):
        room = 34 + round(text_width(text, 10.5)) + 14
        if x > MARGIN and x + room > width:
            x, y = MARGIN, y + 18
        parts.append(f'<g transform="translate({x} {y})" class="ag-n {_SYMBOL_CLASS.get(symbol, "")}">')
        parts.append(f"{_SYMBOLS[symbol]}{_text(34, 4, text, 'ag-w')}</g>")
        x += room
        right = max(right, x)
    for line in [part for note in notes(scene) for part in wrap(note, int((width - 2 * MARGIN) / 6.4))]:
        y += 18
        parts.append(_text(MARGIN, y + 4, line, "ag-w"))
        right = max(right, MARGIN + round(text_width(line, 10.5)))
    return "".join(parts), right + MARGIN, y + 18


_SYMBOL_CLASS = {"leaf": "ag-accumulate"}
_SYMBOLS = {
    "arrow": f'<path class="ag-l" d="M14-7V7{_ARROW}"/>',
    "leaf": '<rect x="1" y="-6" width="26" height="12" rx="6"/>',
    "slots": '<text class="ag-i" x="7" y="3">0</text><text class="ag-i" x="21" y="3">1</text>'
    '<path class="ag-l" d="M1-7V7H27V-7"/>',
    "port": '<rect class="ag-v" x="4" y="-7" width="20" height="14" rx="3"/>'
    '<text class="ag-i" x="14" y="3">0</text>',
    "unused": '<rect class="ag-v ag-u" x="4" y="-7" width="20" height="14" rx="3"/>',
    "none": '<path class="ag-l" d="M14-9V-4"/><text class="ag-s" x="14" y="6">None</text>',
    "stub": '<path class="ag-l" d="M14-9V-4"/><text class="ag-s" x="14" y="6">→ w</text>',
    "saved": '<path class="ag-d" d="M2 0H26"/>',
    "folded": '<rect x="8" y="-3" width="20" height="10" rx="3"/>'
    '<rect x="4" y="-6" width="20" height="10" rx="3"/>',
}


def _text(x: float, y: float, text: str, style: str = "") -> str:
    style = f' class="{style}"' if style else ""
    return f'<text{style} x="{_n(x)}" y="{_n(y)}">{escape(text, quote=False)}</text>'


def _n(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:.1f}"


def _wire(wire: Wire, route: list, scene: Scene, layout: Layout) -> str:
    source, target = scene.blocks[wire.link.source], scene.blocks[wire.link.target]
    route = list(route)
    y = layout.y[wire.link.source]
    if wire.kind == "saved":
        row_y = y + _row_offset(source, wire.row)
        edge = layout.x[wire.link.source] + source.width // 2 + 8 + source.panel
        path = f"M{_n(edge)} {_n(row_y)}H{_n(route[0][0])}"
    else:
        path = f"M{_n(route[0][0])} {_n(y + source.height / 2)}"
    end = layout.y[wire.link.target] - target.height / 2 - (PORT_HEIGHT if target.ports else 0)
    route[-1] = (*route[-1][:2], end)
    for (x0, _, bottom), (x1, top, _) in pairwise(route):
        if x0 == x1:
            continue
        middle = (bottom + top) / 2
        path += f"V{_n(bottom)}C{_n(x0)} {_n(middle)} {_n(x1)} {_n(middle)} {_n(x1)} {_n(top)}"
    path += f"V{_n(end)}"
    if wire.kind == "saved":
        return f'<path class="ag-d" d="{path}"/>'
    label = ""
    if wire.label:
        label = _text(
            route[0][0] + 5, y + source.height / 2 + (20 if source.stacked else 13), wire.label, "ag-s ag-p"
        )
    return f'<path class="ag-e" data-e="{wire.key}" d="{path}{_ARROW}"/>{label}'


def _row_offset(block: Block, row: int) -> float:
    return (row - (len(block.rows) - 1) / 2) * ROW


def _block(block: Block, x: int, y: int) -> str:
    left, top = x - block.width // 2, y - block.height // 2
    kind = "" if block.kind == "op" else f" ag-{block.kind}"
    parts = [f'<g class="ag-n{kind}" data-n="{block.key}">']
    if block.title:
        parts.append(f"<title>{escape(block.title, quote=False)}</title>")
    if block.rows:
        parts.append(_panel(block, x, y))
    parts.append(_outline(block, left, top))
    line_y = top + 5
    for style, text in block.lines:
        height = SMALL if style in ("s", "x") else LINE
        line_y += height
        parts.append(_text(x, line_y - 4, text, {"": "", "x": "ag-s ag-x"}.get(style, f"ag-{style}")))
    for port in block.ports:
        style = "" if port.used else ' class="ag-u"'
        width = round(port.width)
        parts.append(
            f'<rect{style} x="{_n(x + port.x - width / 2)}" y="{top - PORT_HEIGHT}" width="{width}" '
            f'height="{PORT_HEIGHT}" rx="3"/>'
        )
        if port.text:
            parts.append(_text(x + port.x, top - 3.5, port.text, "ag-s"))
    bottom = top + block.height
    for slot in block.slots:
        if block.numbered:
            parts.append(
                _text(x + slot.x, bottom - (7 if block.kind == "recorded" else 4), slot.text, "ag-i")
            )
        if slot.stub:
            parts.append(f'<path class="ag-l" d="M{_n(x + slot.x)} {bottom}v8"/>')
            text = _text(x + slot.x, bottom + 17, slot.stub, "ag-s")
            if slot.title:
                text = text.replace("</text>", f"<title>{escape(slot.title, quote=False)}</title></text>")
            parts.append(text)
    parts.append("</g>")
    return "".join(parts)


def _panel(block: Block, x: int, y: int) -> str:
    left = x + block.width // 2 + 8
    top = y - len(block.rows) * ROW / 2
    parts = [
        f'<path class="ag-l" d="M{left - 8} {y}h8"/>',
        _rect(left, top, block.panel, len(block.rows) * ROW, 3, "ag-v"),
    ]
    for row, (state, text) in enumerate(block.rows):
        style = "ag-s ag-p" + (" ag-x" if state in ("changed", "freed") else "")
        parts.append(_text(left + 7, y + _row_offset(block, row) + 3.5, text, style))
    return "".join(parts)


def _rect(x: float, y: float, width: float, height: float, radius: float, style: str = "") -> str:
    style = f' class="{style}"' if style else ""
    return (
        f'<rect{style} x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}" rx="{_n(radius)}"/>'
    )


def _outline(block: Block, x: int, y: int) -> str:
    """The outline tells kinds apart without color too."""
    w, h = block.width, block.height
    if block.kind == "custom":  # pointed sides
        return f'<path d="M{x} {y + h // 2}l6-{h // 2}h{w - 12}l6 {h // 2}-6 {h - h // 2}h-{w - 12}z"/>'
    if block.kind == "error":  # a stop sign
        return f'<path d="M{x + 8} {y}h{w - 16}l8 8v{h - 16}l-8 8h-{w - 16}l-8-8v-{h - 16}z"/>'
    if block.kind == "copy_slices":  # slanted
        return f'<path d="M{x + 7} {y}h{w - 7}l-7 {h}h-{w - 7}z"/>'
    if block.kind == "accumulate":
        return _rect(x, y, w, h, min(h / 2, 16))
    if block.kind == "recorded":
        return _rect(x, y, w, h, 5) + _rect(x + 3, y + 3, w - 6, h - 6, 3, "ag-q")
    if block.kind == "checkpoint":
        return _rect(x, y, w, h, 2) + f'<path d="M{x + 5} {y}v{h}M{x + w - 5} {y}v{h}"/>'
    if block.stacked:
        behind = _rect(x + 8, y + 8, w, h, 5, "ag-k") + _rect(x + 4, y + 4, w, h, 5, "ag-k")
        return behind + _rect(x, y, w, h, 5)
    return _rect(x, y, w, h, 3 if block.kind == "root" else 5)
