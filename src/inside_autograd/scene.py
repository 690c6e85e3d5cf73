"""What a drawing holds: blocks with their texts, ports, slots and sizes, and the wires between them."""

from collections import Counter
from dataclasses import dataclass, field

from .fold import Folded
from .graph import Edge, Node, Output, Shape
from .layout import Item, Link, longest_paths
from .saved import Saved
from .style import shorten, text_width

FAR = 8  # an edge to a leaf that spans more layers ends in a stub
MOST_STUBS = 6  # more of them under one node share a stub
MOST_LANES = 1_500  # an edge to any node ends in a stub where all edges together would pass more layers
PAD, LINE, SMALL, SLOT_ROW, PORT_HEIGHT, STUB, ROW = 12, 16, 13, 10, 14, 20, 16
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
    """One entry of ``next_functions``, on the bottom side. ``stub`` stands where no wire leaves."""

    text: str
    width: float
    stub: str = ""
    title: str = ""
    x: float = 0


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
        sizes = {"s": 10, "x": 10}
        text = max((text_width(text, sizes.get(style, 12)) for style, text in self.lines), default=0)
        width = max(text + 2 * PAD + (8 if self.kind in ("copy_slices", "checkpoint", "error") else 0), 44)
        width = max(width, sum(p.width + 4 for p in self.ports) + 8, sum(s.width for s in self.slots) + 8)
        self.width = 2 * round(width / 2)
        small = sum(style in sizes for style, _ in self.lines)
        self.height = (
            10 + LINE * (len(self.lines) - small) + SMALL * small + (SLOT_ROW if self.numbered else 0)
        )
        self.height = 2 * round(self.height / 2) + (4 if self.kind == "recorded" and self.numbered else 0)
        _spread(self.ports, self.width, 4, 1.0)
        _spread(self.slots, self.width, 0, 2.2)
        half, up, down = self.width / 2, self.height / 2, self.height / 2
        right = half
        if self.rows:
            self.panel = round(max(text_width(text, 10) for _, text in self.rows) + 14)
            right += 8 + self.panel + (6 * self.lanes + 4 if self.lanes else 0)
            up = down = max(up, (ROW * len(self.rows) + 6) / 2)
        up = max(up, self.height / 2 + (PORT_HEIGHT if self.ports else 0))
        down = max(down, self.height / 2 + (STUB if any(s.stub for s in self.slots) else 0))
        if self.stacked:
            right, down = max(right, half + 8), down + 8
        return Item(half, right, up, down)


def _spread(parts: list, width: int, gap: float, most: float) -> None:
    total = sum(part.width + gap for part in parts)
    stretch = min(most, (width - 12) / total) if total else 1
    x = -total * stretch / 2
    for part in parts:
        room = (part.width + gap) * stretch
        part.x = round(x + room / 2)
        x += room


@dataclass(slots=True)
class Wire:
    """One arrow: ``kind`` is edge, root, cut, or saved (a dotted line from row ``row`` to a leaf)."""

    kind: str
    key: str
    link: Link
    label: str = ""
    title: str = ""
    row: int = 0


@dataclass(slots=True)
class Scene:
    """Blocks and wires, the items to lay out, their layers, and what the legend must explain."""

    folded: Folded
    blocks: list[Block] = field(default_factory=list)
    wires: list[Wire] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)
    layers: list[int] = field(default_factory=list)


def shape_text(shape: Shape | None, dtype: str | None = None) -> str:
    """``(2, 3)``, ``scalar``, ``(4,) float64``; float32 goes without saying."""
    parts = [] if shape is None else ["scalar" if not shape else str(tuple(shape))]
    if dtype not in (None, "float32"):
        parts.append(dtype)
    return " ".join(parts)


def build(folded: Folded, saved: bool = False) -> Scene:
    """Turn a graph, folded or not, into blocks and wires.

    Parameters
    ----------
    folded
        What to draw.
    saved
        Whether nodes list their saved tensors.
    """
    return _Builder(folded, saved).scene


class _Builder:
    def __init__(self, folded: Folded, saved: bool):
        self.folded, self.graph = folded, folded.graph
        self.scene = Scene(folded)
        self.blocks = self.scene.blocks
        for box in folded.boxes:
            self.blocks.append(
                _folded_block(box) if box.folded else _node_block(self.graph.nodes[box.members[0]])
            )
        self.cut = self._cut_block()
        self.place: dict[int, tuple[int, int]] = {}  # of an entry: its block, and its slot there
        self.entries: list[tuple[int, int, list[Edge]]] = []  # box, target block, edges drawn as one
        self._collect()
        roots = self._roots()
        dotted = self._saved() if saved else []
        pairs = [(source, target) for source, target, _ in self.entries]
        pairs += [(source, target) for source, target, _ in roots + dotted]
        self.scene.layers = longest_paths(len(self.blocks), pairs)
        self._wire(roots, dotted)

    def _cut_block(self) -> int | None:
        if not self.graph.cut:
            return None
        self.blocks.append(Block("cut", "cut", [("s", line) for line in wrap(str(self.graph.cut), 44)]))
        return len(self.blocks) - 1

    def _collect(self) -> None:
        """Gather edges by their blocks; those of a single node stay apart unless the target is folded."""
        for number, box in enumerate(self.folded.boxes):
            groups: dict[tuple, list[Edge]] = {}
            for member in box.members:
                for edge in self.graph.nodes[member].edges:
                    target = self.cut if edge.cut else self._box(edge.target)
                    if target is None or target == number:
                        continue
                    together = box.folded or (target != self.cut and self.folded.boxes[target].folded)
                    groups.setdefault((target, None if together else edge.slot), []).append(edge)
            for (target, _), edges in groups.items():
                self.entries.append((number, target, edges))

    def _box(self, node: int | None) -> int | None:
        return None if node is None else self.folded.box_of[node]

    def _roots(self) -> list[tuple[int, int, int]]:
        """One tag for each output; those into one folded box share a tag."""
        groups: dict[tuple, list] = {}
        for i, root in enumerate(self.graph.roots):
            if root.node is not None:
                box = self._box(root.node)
                groups.setdefault((box, None if self.folded.boxes[box].folded else i), []).append(root)
        made = []
        for (box, _), roots in groups.items():
            first = roots[0]
            text = first.path or "output"
            if len(roots) > 1:
                text = f"{text} … {roots[-1].path} ×{len(roots):,}"
            elif shape := shape_text(first.shape, first.dtype):
                text = f"{shorten(text)} · {shape}"
            self.blocks.append(Block(f"r{len(made)}", "root", [("", text)]))
            made.append((len(self.blocks) - 1, box, first.output_nr))
        return made

    def _saved(self) -> list[tuple[int, int, int]]:
        """Fill the rows of saved tensors; returns (block, leaf's block, row) for those that are leaves."""
        leaf_of = {name: i for i, node in enumerate(self.graph.nodes) for name in node.names}
        dotted = []
        for number, box in enumerate(self.folded.boxes):
            if box.folded:
                continue
            block = self.blocks[number]
            for item in self.graph.nodes[box.members[0]].saved:
                leaf = next((leaf_of[name] for name in item.names if name in leaf_of), None)
                if leaf is not None and item.role == "leaf":
                    dotted.append((number, self._box(leaf), len(block.rows)))
                    block.lanes += 1
                block.rows.append((item.state, self._saved_text(item)))
        return [(s, t, row) for s, t, row in dotted if s != t]

    def _saved_text(self, item: Saved) -> str:
        alias = ", ".join(item.names[:2])
        if not alias and item.role == "output":
            alias = "own output"
        elif not alias and item.role == "intermediate":
            maker = self.graph.nodes[item.source[0]].name if item.source else None
            alias = f"output of {maker}" if maker else "made by a node not read"
        elif not alias and item.role == "leaf":
            alias = "a leaf"
        elif not alias and item.role == "constant":
            alias = "needs no gradient"
        state = {"changed": "changed in place", "packed": "packed by a hook"}.get(item.state, item.state)
        parts = [f"{item.attr} {shape_text(item.shape, item.dtype)}".strip(), shorten(alias, 32), state]
        return " · ".join(part for part in parts if part)

    def _wire(self, roots: list, dotted: list) -> None:
        """Give blocks their slots and ports, measure them, and connect them."""
        stubbed = self._far()
        leaving: dict[int, list[tuple[int, tuple]]] = {}
        for i, (source, target, edges) in enumerate(self.entries):
            leaving.setdefault(source, []).append((edges[0].slot, (i, target, edges)))
        for number, box in enumerate(self.folded.boxes):
            self._slots(number, box, leaving.get(number, []), stubbed)
        for target in sorted({self.entries[i][1] for i in stubbed}):
            block = self.blocks[target]
            if block.kind != "accumulate" and not block.stacked:
                block.lines.append(("s", f"#{block.key}"))  # the stubs' name for it
        arrivals = Counter((t, self._dock(t, edges[0].input_nr)) for _, t, edges in self.entries)
        for (number, dock), many in arrivals.items():
            if dock < len(self.blocks[number].ports):
                port = self.blocks[number].ports[dock]
                port.width = max(port.width, min(64, 9 * many + 6))
        self.scene.items = [block.measure() for block in self.blocks]
        for number, x, (i, target, edges) in self.starts():
            if i not in stubbed:
                label = f"×{len(edges):,}" if len(edges) > 1 else ""
                kind = "cut" if target == self.cut else "edge"
                key = f"{edges[0].source}-{edges[0].slot}"
                self._add(kind, key, number, x, target, edges[0].input_nr, label)
        for number, target, output_nr in roots:
            self._add("root", self.blocks[number].key, number, 0, target, output_nr)
        lanes: Counter = Counter()
        for number, target, row in dotted:
            block = self.blocks[number]
            if self.scene.layers[target] - self.scene.layers[number] > FAR:
                continue
            x = block.width / 2 + 8 + block.panel + 6 * (block.lanes - lanes[number])
            lanes[number] += 1
            self._add("saved", f"s{block.key}-{row}", number, x, target, 0, row=row)

    def _far(self) -> set[int]:
        """Entries that end in a stub, because their arrow would be too long to follow."""
        spans = [self.scene.layers[t] - self.scene.layers[s] for s, t, _ in self.entries]
        stubbed = set()
        for i, (_, target, _) in enumerate(self.entries):
            leaf = target != self.cut and self.blocks[target].kind == "accumulate"
            if spans[i] > FAR and leaf:
                stubbed.add(i)
        total = sum(span for i, span in enumerate(spans) if i not in stubbed)
        for i in sorted(range(len(spans)), key=lambda i: (-spans[i], i)):
            if total <= MOST_LANES or spans[i] <= FAR:
                break
            if i not in stubbed and self.entries[i][1] != self.cut:
                stubbed.add(i)
                total -= spans[i]
        return stubbed

    def _slots(self, number: int, box, leaving: list, stubbed: set[int]) -> None:
        block = self.blocks[number]
        parts = list(leaving)
        if not box.folded:
            node = self.graph.nodes[box.members[0]]
            parts += [(e.slot, (None, None, [e])) for e in node.edges if e.target is None and not e.cut]
        parts.sort(key=lambda part: part[0])
        far = [part for part in parts if part[1][0] in stubbed]
        if far and (box.folded or len(far) > MOST_STUBS):
            parts = [part for part in parts if part[1][0] not in stubbed]
            names = [self._short_name(target) for _, (_, target, _) in far]
            text = "→ " + names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "")
            slots = "" if box.folded else "…"
            block.slots.append(Slot(slots, text_width(text, 10) + 8, text, ", ".join(names)))
        many = len(parts) > 1 and not box.folded
        for slot, (i, target, edges) in parts:
            text = (str(slot) if len(edges) == 1 else f"{slot}–{edges[-1].slot}") if many else ""
            stub = title = ""
            if i is None:
                stub, title = "None", edges[0].reason or ""
            elif i in stubbed:
                stub = "→ " + self._short_name(target)
            width = max(18, text_width(text, 9.5) + 8, text_width(stub, 10) + 8 if stub else 0)
            block.slots.append(Slot(text, width, stub, title))
            if i is not None:
                self.place[i] = (number, len(block.slots) - 1)

    def starts(self):
        """Each entry with the block and the x offset where its arrow leaves."""
        for i, (_, target, edges) in enumerate(self.entries):
            if i not in self.place:
                continue
            number, place = self.place[i]
            yield number, self.blocks[number].slots[place].x, (i, target, edges)

    def _short_name(self, target: int) -> str:
        box = self.folded.boxes[target]
        node = self.graph.nodes[box.members[0]]
        if node.names:
            return shorten(node.names[0], 26)
        return f"{shorten(node.name, 20)} #{node.index}"

    def _dock(self, target: int, input_nr: int) -> int:
        """Which port of ``target`` takes the gradient of output ``input_nr``."""
        numbers = self._port_numbers(target)
        return next((i for i, numbers in enumerate(numbers) if input_nr in numbers), 0)

    def _port_numbers(self, target: int) -> list[range]:
        if target == self.cut or target >= len(self.folded.boxes) or self.folded.boxes[target].folded:
            return []
        node = self.graph.nodes[self.folded.boxes[target].members[0]]
        return [numbers for _, numbers in _port_groups(node)]

    def _add(self, kind, key, source, x, target, input_nr, label="", row=0) -> None:
        block = self.blocks[target]
        dock = self._dock(target, input_nr)
        if block.ports and kind != "saved":
            port = block.ports[dock]
            link = Link(source, target, x, port.x, dock, port.width - 8)
        else:
            link = Link(source, target, x, 0, 0, block.width - 24)
        self.scene.wires.append(Wire(kind, key, link, label, row=row))


def _port_groups(node: Node) -> list[tuple[Port, range]]:
    """The ports of a node: one per output, runs of unused ones together. None for a single plain output."""
    outputs = node.outputs
    if node.is_leaf or (len(outputs) < 2 and not any(o.names for o in outputs)):
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


def _node_block(node: Node) -> Block:
    block = Block(str(node.index), node.kind, [], ports=[port for port, _ in _port_groups(node)])
    if node.is_leaf:
        facts = shape_text(node.shape, node.dtype)
        for name in node.names[:4]:
            block.lines.append(("b", shorten(name)))
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
    parts = [f"node {node.index}: {node.name}"]
    if node.names:
        parts.append(", ".join(node.names))
    many = len(node.outputs) > 1
    for output in node.outputs[:6]:
        if facts := shape_text(output.shape, output.dtype):
            parts.append(f"gradient {output.number}: {facts}" if many else f"gradient: {facts}")
    return "; ".join(parts)


def _folded_block(box) -> Block:
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
