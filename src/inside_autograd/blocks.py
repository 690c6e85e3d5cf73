"""The boxes of a drawing: their texts, ports and slots, and how large that makes them."""

from dataclasses import dataclass, field

from .fold import Box
from .graph import Node, Output, Shape
from .layout import Item
from .style import shorten, text_width

PAD, LINE, SMALL, SLOT_ROW, PORT_HEIGHT, STUB, ROW, LABEL = 12, 16, 13, 10, 14, 20, 16, 16
LONG_NAME = 24  # characters; longer names take two lines
WORDS = {
    "custom": "custom Function",
    "recorded": "recorded backward",
    "copy_slices": "in-place change of a view",
    "hook": "module's backward hook",
    "checkpoint": "checkpoint: runs forward again",
    "error": "raises when it runs",
}


@dataclass(slots=True)
class Port:
    """One output of the operation, on the top side: ``x`` from the block's center, in px."""

    text: str
    width: float
    used: bool = True
    x: float = 0


@dataclass(slots=True)
class Slot:
    """One entry of ``next_functions``, on the bottom side. ``stub`` stands where no wire leaves.

    ``labelled`` tells that the wire has a label, which needs room among others.
    """

    text: str
    width: float
    stub: str = ""
    title: str = ""
    x: float = 0
    labelled: bool = False


@dataclass(slots=True)
class Block:
    """One box. ``lines`` are (style, text); ``rows`` are saved tensors as (state, text)."""

    key: str
    kind: str
    lines: list[tuple[str, str]]
    title: str = ""
    ports: list[Port] = field(default_factory=list)
    slots: list[Slot] = field(default_factory=list)
    rows: list[tuple[str, str]] = field(default_factory=list)
    lanes: int = 0
    stacked: bool = False
    width: int = 0
    height: int = 0
    panel: int = 0

    @property
    def numbered(self) -> bool:
        return any(slot.text for slot in self.slots)

    def measure(self) -> Item:
        """Set the sizes, place ports and slots, and return how far the block reaches."""
        text, height = 44.0 - 2 * PAD, 10
        for style, words in self.lines:
            small = style in ("s", "x")
            height += SMALL if small else LINE
            if (wide := text_width(words, 10 if small else 12)) > text:
                text = wide
        width = text + 2 * PAD + (8 if self.kind in ("copy_slices", "checkpoint", "error") else 0)
        if self.ports:
            width = max(width, sum([p.width + 4 for p in self.ports]) + 8)
        stubs = labelled = numbered = False
        if self.slots:
            room = 8.0
            for slot in self.slots:
                room += slot.width
                stubs = stubs or bool(slot.stub)
                labelled = labelled or slot.labelled
                numbered = numbered or bool(slot.text)
            width = max(width, room)
        self.width = 2 * round(width / 2)
        self.height = 2 * round((height + (SLOT_ROW if numbered else 0)) / 2)
        self.height += 4 if self.kind == "recorded" and numbered else 0
        if len(self.ports) > 1:  # one alone stands in the middle, where it is
            _spread(self.ports, self.width, 4, 1.0)
        if len(self.slots) > 1:
            _spread(self.slots, self.width, 0, 2.2, 0.6)
        half = right = self.width / 2
        up = down = self.height / 2
        if self.rows:
            self.panel = round(max(text_width(text, 10) for _, text in self.rows) + 14)
            right += 8 + self.panel + (6 * self.lanes + 4 if self.lanes else 0)
            up = down = max(up, (ROW * len(self.rows) + 6) / 2)
        if self.ports:
            up = max(up, self.height / 2 + PORT_HEIGHT)
        if stubs:
            down = max(down, self.height / 2 + STUB)
        if labelled and len(self.slots) > 1:
            down = max(down, self.height / 2 + (LABEL - 2 if self.stacked else LABEL))
        if self.stacked:
            right, down = max(right, half + 8), down + 8
        return Item(half, right, up, down)


def _spread(parts: list, width: int, gap: float, most: float, share: float = 1) -> None:
    """Place parts side by side in the middle, drawn apart where they fill less than ``share`` of it."""
    total = sum([part.width + gap for part in parts])
    stretch = min(most, max(1, width * share / total), (width - 4) / total)
    x = -total * stretch / 2
    for part in parts:
        room = (part.width + gap) * stretch
        part.x = round(x + room / 2)
        x += room


def shape_text(shape: Shape | None, dtype: str | None = None) -> str:
    """``(2, 3)``, ``scalar``, ``(4,) float64``; float32 goes without saying."""
    text = "" if shape is None else str(tuple(shape)) if shape else "scalar"
    if dtype is None or dtype == "float32":
        return text
    return f"{text} {dtype}" if text else dtype


def port_groups(node: Node) -> list[tuple[Port, range]]:
    """The ports of a node: one per output, runs of unused ones together. None for a single plain output."""
    outputs = node.outputs
    if node.is_leaf or (len(outputs) < 2 and not (outputs and outputs[0].names)):
        return []
    groups: list[list[Output]] = []
    used = sum(o.used for o in outputs)
    for output in outputs:
        joins = (
            groups and not output.names and not groups[-1][-1].names and output.used == groups[-1][-1].used
        )
        if joins and (not output.used or used > 32):
            groups[-1].append(output)
        else:
            groups.append([output])
    ports = []
    for group in groups:
        first, last = group[0], group[-1]
        text = "" if len(outputs) == 1 else str(first.number)
        text += f"–{last.number}" if len(group) > 1 else ""
        text += " unused" if not first.used else ""
        text += (" " if text else "") + shorten(", ".join(first.names), 32) if first.names else ""
        ports.append(
            (Port(text, max(20, text_width(text, 10) + 8), first.used), range(first.number, last.number + 1))
        )
    return ports


def name_lines(name: str) -> list[str]:
    """A parameter's name, broken at the dot next to its middle where it is long."""
    if len(name) <= LONG_NAME:
        return [name]
    dots = [i + 1 for i, character in enumerate(name[:-1]) if character == "."]
    if not dots:
        return [shorten(name)]
    middle = min(dots, key=lambda i: (abs(2 * i - len(name)), i))
    return [shorten(name[:middle], 32), shorten(name[middle:], 32)]


def node_block(node: Node) -> Block:
    """The box of one node."""
    block = Block(str(node.index), node.kind, [], ports=[port for port, _ in port_groups(node)])
    if node.is_leaf:
        facts = shape_text(node.shape, node.dtype)
        block.lines += [("b", line) for name in node.names[:4] for line in name_lines(name)]
        if len(node.names) > 4:
            block.lines.append(("s", f"and {len(node.names) - 4} more names"))
        block.lines.append(
            ("s" if node.names else "", "AccumulateGrad" + (f" {facts}" if node.names else ""))
        )
        if not node.names and facts:
            block.lines.append(("s", facts))
    else:
        block.lines.append(("", shorten(node.name)))
        if node.kind in WORDS:
            block.lines.append(("s", WORDS[node.kind]))
        if node.freed:
            block.lines.append(("x", "saved tensors freed"))
    block.title = _node_title(node)
    return block


def _node_title(node: Node) -> str:
    """What the box itself has no room for."""
    title = f"node {node.index}"
    if node.name != shorten(node.name):
        title += f"; {node.name}"
    names = node.names
    if names and (len(names) > 4 or any(len(n) > 32 and n != "".join(name_lines(n)) for n in names)):
        title += f"; {', '.join(names)}"
    if node.is_leaf:
        return title
    many = len(node.outputs) > 1
    for output in node.outputs[:6]:
        if facts := shape_text(output.shape, output.dtype):
            title += f"; gradient {output.number}: {facts}" if many else f"; gradient: {facts}"
    return title


def folded_block(box: Box) -> Block:
    """The box of several nodes, or the tag of what lies around a part."""
    if box.around:
        return Block(f"o{min(box.members)}", "root", [("", box.lines[0])])
    lines = [("b", box.lines[0])] + [("s", line) for line in box.lines[1:]]
    first, last = min(box.members), max(box.members)
    return Block(f"{first}", "op", lines, f"{len(box.members):,} nodes, from {first} to {last}", stacked=True)


def wrap(text: str, limit: int) -> list[str]:
    """Break ``text`` between words into lines of at most ``limit`` characters where words allow."""
    lines: list[str] = []
    for word in text.split():
        if lines and len(lines[-1]) + 1 + len(word) <= limit:
            lines[-1] += " " + word
        else:
            lines.append(word)
    return lines
