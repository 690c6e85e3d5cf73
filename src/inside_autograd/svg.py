"""Write a scene as SVG text. Same scene, same bytes: whole and half px only, no clock, no address."""

from dataclasses import dataclass
from html import escape

from .blocks import PORT_HEIGHT, wrap
from .caption import describe, legend, notes
from .layout import MARGIN, Layout
from .scene import Scene, Wire
from .style import file_css, page_css, text_width
from .svg_parts import block_svg, num, row_offset, text_svg

_ARROW = "m-4-6 4 6 4-6"


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
        For each node of the graph, the ``data-n`` of the box that shows it; "" if none does.
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
        # No ids: a page may show the same drawing twice, and an id may stand on it only once.
        if not alone:
            name = f' role="img" aria-label="{escape(self.title)}"' if label else ""
            style = f"<style>{page_css()}</style>"
            return f'<svg class="ag" {size}{name}>{words if label else ""}{style}{self.body}</svg>'
        body = f'<rect class="ag-bg" width="100%" height="100%"/>{self.body}'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="ag" {size} role="img">'
            f"{words}<style>{file_css(body)}</style>{body}</svg>\n"
        )


def render(scene: Scene, layout: Layout, title: str | None = None, *, room: int = 0) -> Picture:
    """Draw ``scene`` as ``layout`` places it.

    Parameters
    ----------
    scene, layout
        From ``scene.build`` and ``layout.lay_out``.
    title
        A heading above the drawing.
    room
        Free space above the legend, in px, for marks below the lowest boxes.
    """
    top = 24 if title else 0
    parts = [text_svg(MARGIN, 18, title, "ag-w ag-h")] if title else []
    parts += [f'<g transform="translate(0 {top})">'] if top else []
    parts += [_wire(w, r, scene, layout) for w, r in zip(scene.wires, layout.routes, strict=True)]
    parts += [block_svg(block, layout.x[i], layout.y[i]) for i, block in enumerate(scene.blocks)]
    parts += ["</g>"] if top else []
    lower, width, height = _caption(scene, max(layout.width, 340), top + layout.height + room)
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
    keys = tuple("" if box is None else scene.blocks[box].key for box in scene.folded.box_of)
    body = "".join(parts) + lower
    return Picture(body, max(width, layout.width), height, name, description, boxes, keys)


def _caption(scene: Scene, width: int, y: int) -> tuple[str, int, int]:
    """Legend and notes under the drawing; returns their SVG and the size of the whole."""
    parts = []
    x, right = MARGIN, 0
    y += 10
    for symbol, text in legend(scene):
        room = 34 + round(text_width(text, 10.5))
        if x > MARGIN and x + room > width - MARGIN:
            x, y = MARGIN, y + 18
        parts.append(f'<g transform="translate({x} {y})">{_SYMBOLS[symbol]}')
        parts.append(f"{text_svg(34, 4, text, 'ag-w')}</g>")
        x += room + 14
        right = max(right, x - 14)
    for line in [part for note in notes(scene) for part in wrap(note, int((width - 2 * MARGIN) / 6.4))]:
        y += 18
        parts.append(text_svg(MARGIN, y + 4, line, "ag-w"))
        right = max(right, MARGIN + round(text_width(line, 10.5)))
    return "".join(parts), right + MARGIN, y + 18


_SYMBOLS = {
    "arrow": f'<path class="ag-l" d="M14-7V7{_ARROW}"/>',
    "leaf": '<rect class="ag-leaf" x="1" y="-6" width="26" height="12" rx="6"/>',
    "slots": '<text class="ag-i" x="7" y="3">0</text><text class="ag-i" x="21" y="3">1</text>'
    '<path class="ag-l" d="M1-7V7H27V-7"/>',
    "port": '<rect class="ag-v" x="4" y="-7" width="20" height="14" rx="3"/>'
    '<text class="ag-i" x="14" y="3">0</text>',
    "unused": '<rect class="ag-v ag-u" x="4" y="-7" width="20" height="14" rx="3"/>',
    "none": '<path class="ag-l" d="M14-9V-4"/><text class="ag-s" x="14" y="6">None</text>',
    "stub": '<path class="ag-l" d="M14-9V-4"/><text class="ag-s" x="14" y="6">→ w</text>',
    "saved": '<path class="ag-d" d="M2 0H26"/>',
    "folded": '<g class="ag-n"><rect x="8" y="-3" width="20" height="10" rx="3"/>'
    '<rect x="4" y="-6" width="20" height="10" rx="3"/></g>',
}


def _wire(wire: Wire, route: list, scene: Scene, layout: Layout) -> str:
    link = wire.link
    source, target = scene.blocks[link.source], scene.blocks[link.target]
    x0, _, bottom = route[0]
    y = layout.y[link.source] + source.height // 2
    y_now: float = y
    if wire.kind == "saved":
        y_now = layout.y[link.source] + row_offset(source, wire.row)
        edge = layout.x[link.source] + source.width // 2 + 8 + source.panel
        path = f"M{edge} {num(y_now)}H{num(x0)}"
    else:
        path = f"M{num(x0)} {y}"
    end = layout.y[link.target] - target.height // 2 - (PORT_HEIGHT if target.ports else 0)
    for x1, top, next_bottom in route[1:]:
        if x0 != x1:
            if bottom != y_now:
                path += f"V{bottom}"
            middle, to = num((bottom + top) / 2), num(x1)
            path += f"C{num(x0)} {middle} {to} {middle} {to} {top}"
            x0, y_now = x1, top
        bottom = next_bottom
    if end != y_now:
        path += f"V{end}"
    if wire.kind == "saved":
        return f'<path class="ag-d" d="{path}"/>'
    label = ""
    if wire.label:
        x, label_y = route[0][0] + 5, y + (20 if source.stacked else 13)
        if route[1][0] - route[0][0] > 20 and route[0][2] < label_y:  # the arrow itself needs the place
            x = route[0][0] - 5 - round(text_width(wire.label, 10))
        label = text_svg(x, label_y, wire.label, "ag-s ag-p")
    return f'<path class="ag-e" data-e="{wire.key}" d="{path}{_ARROW}"/>{label}'
