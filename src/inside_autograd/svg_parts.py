"""Boxes, texts and numbers as SVG elements."""

from functools import lru_cache, partial
from html import escape

from .blocks import LINE, PORT_HEIGHT, ROW, SMALL, Block

_escape = partial(escape, quote=False)
_escaped = lru_cache(maxsize=4096)(_escape)  # for texts that repeat: names of operations and the like


def text_svg(x: float, y: float, text: str, style: str = "") -> str:
    """One line of text."""
    style = f' class="{style}"' if style else ""
    return f'<text{style} x="{num(x)}" y="{num(y)}">{_escaped(text)}</text>'


def num(value: float) -> str:
    """``3`` or ``3.5``."""
    if isinstance(value, int):
        return str(value)
    return str(int(value)) if value.is_integer() else f"{value:.1f}"


def row_offset(block: Block, row: int) -> float:
    """How far the middle of a row of saved tensors lies below that of its box, in px."""
    return (row - (len(block.rows) - 1) / 2) * ROW


def block_svg(block: Block, x: int, y: int) -> str:
    """One box with all that hangs on it; its center is (x, y)."""
    left, top = x - block.width // 2, y - block.height // 2
    kind = _KINDS.get(block.kind, f" ag-{block.kind}")
    title = f"<title>{_escape(block.title)}</title>" if block.title else ""
    parts = [f'<g class="ag-n{kind}" data-n="{block.key}">{title}']
    if block.rows:
        parts.append(_panel(block, x, y))
    parts.append(_outline(block, left, top))
    line_y = top + 1
    for style, text in block.lines:
        line_y += SMALL if style in ("s", "x") else LINE
        parts.append(f'<text{_STYLES[style]} x="{x}" y="{line_y}">{_escaped(text)}</text>')
    if block.ports:
        _ports(parts, block, x, top)
    if block.slots:
        _slots(parts, block, x, top + block.height)
    parts.append("</g>")
    return "".join(parts)


_KINDS = {"op": "", "accumulate": " ag-leaf"}
_STYLES = {"": "", "b": ' class="ag-b"', "s": ' class="ag-s"', "x": ' class="ag-s ag-x"'}


def _ports(parts: list[str], block: Block, x: int, top: int) -> None:
    for port in block.ports:
        style = "" if port.used else ' class="ag-u"'
        width = round(port.width)
        parts.append(
            f'<rect{style} x="{num(x + port.x - width / 2)}" y="{top - PORT_HEIGHT}" width="{width}" '
            f'height="{PORT_HEIGHT}" rx="3"/>'
        )
        if port.text:
            parts.append(text_svg(x + port.x, top - 3.5, port.text, "ag-s"))


def _slots(parts: list[str], block: Block, x: int, bottom: int) -> None:
    numbered, number_y = block.numbered, bottom - (7 if block.kind == "recorded" else 4)
    for slot in block.slots:
        slot_x = x + slot.x
        if numbered:
            parts.append(f'<text class="ag-i" x="{slot_x}" y="{number_y}">{slot.text}</text>')
        if slot.stub:
            title = f"<title>{_escaped(slot.title)}</title>" if slot.title else ""
            parts.append(f'<path class="ag-l" d="M{slot_x} {bottom}v8"/>')
            parts.append(
                f'<text class="ag-s" x="{slot_x}" y="{bottom + 17}">{_escaped(slot.stub)}{title}</text>'
            )


def _panel(block: Block, x: int, y: int) -> str:
    left = x + block.width // 2 + 8
    height = len(block.rows) * ROW
    parts = [
        f'<path class="ag-l" d="M{left - 8} {y}h8"/>',
        _rect(left, y - height // 2, block.panel, height, 3, ' class="ag-v"'),
    ]
    for row, (state, text) in enumerate(block.rows):
        style = "ag-s ag-p" + (" ag-x" if state in ("changed", "freed") else "")
        parts.append(text_svg(left + 7, y + row_offset(block, row) + 3.5, text, style))
    return "".join(parts)


def _rect(x: int, y: int, width: int, height: int, radius: int, style: str = "") -> str:
    return f'<rect{style} x="{x}" y="{y}" width="{width}" height="{height}" rx="{radius}"/>'


def _outline(block: Block, x: int, y: int) -> str:
    """The outline tells kinds apart without color too."""
    w, h = block.width, block.height
    if block.stacked:
        behind = _rect(x + 8, y + 8, w, h, 5, ' class="ag-k"') + _rect(x + 4, y + 4, w, h, 5, ' class="ag-k"')
        return behind + _rect(x, y, w, h, 5)
    if block.kind == "accumulate":
        return _rect(x, y, w, h, min(h // 2, 16))
    if block.kind == "custom":  # pointed sides
        return f'<path d="M{x} {y + h // 2}l6-{h // 2}h{w - 12}l6 {h // 2}-6 {h - h // 2}h-{w - 12}z"/>'
    if block.kind == "error":  # a stop sign
        return f'<path d="M{x + 8} {y}h{w - 16}l8 8v{h - 16}l-8 8h-{w - 16}l-8-8v-{h - 16}z"/>'
    if block.kind == "copy_slices":  # slanted
        return f'<path d="M{x + 7} {y}h{w - 7}l-7 {h}h-{w - 7}z"/>'
    if block.kind == "recorded":
        return _rect(x, y, w, h, 5) + _rect(x + 3, y + 3, w - 6, h - 6, 3, ' class="ag-q"')
    if block.kind == "checkpoint":
        return _rect(x, y, w, h, 2) + f'<path d="M{x + 5} {y}v{h}M{x + w - 5} {y}v{h}"/>'
    return _rect(x, y, w, h, 3 if block.kind == "root" else 5)
