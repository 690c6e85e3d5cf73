"""What a drawing holds: its boxes, and the wires between them."""

from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, field

from .blocks import Block, Slot, folded_block, node_block, port_groups, shape_text, wrap
from .fold import Box, Folded
from .graph import Edge
from .layout import Item, Link, longest_paths
from .saved import Saved
from .style import shorten, text_width

FAR = 8  # an edge to a leaf that spans more layers ends in a stub
MOST_STUBS = 6  # more of them under one node share a stub
MOST_LANES = 1_500  # an edge to any node ends in a stub where all edges together would pass more layers


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
        self.stacked = [box.folded for box in folded.boxes]
        for box, stacked in zip(folded.boxes, self.stacked, strict=True):
            self.blocks.append(folded_block(box) if stacked else node_block(self.graph.nodes[box.members[0]]))
        self.cut = self._cut_block()
        self.port_numbers: dict[int, list[int]] = {}  # of a block: the first output of each of its ports
        self.place: dict[int, Slot] = {}  # of an entry: where it leaves its block
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
        nodes, box_of, cut = self.graph.nodes, self.folded.box_of, self.cut
        stacked = [*self.stacked, True]  # the cut's block is the last so far
        for number, box in enumerate(self.folded.boxes):
            groups: dict[int, list[Edge]] = {}
            for member in box.members:
                for edge in nodes[member].edges:
                    target = cut if edge.cut else None if edge.target is None else box_of[edge.target]
                    if target is None or target == number:
                        continue
                    if not (stacked[number] or stacked[target]):
                        self.entries.append((number, target, [edge]))
                    elif target in groups:
                        groups[target].append(edge)
                    else:
                        groups[target] = [edge]
                        self.entries.append((number, target, groups[target]))

    def _box(self, node: int | None) -> int | None:
        return None if node is None else self.folded.box_of[node]

    def _roots(self) -> list[tuple[int, int, int]]:
        """One tag for each output; those into one folded box share a tag."""
        groups: dict[tuple, list] = {}
        for i, root in enumerate(self.graph.roots):
            box = self._box(root.node)
            if box is not None:
                groups.setdefault((box, None if self.stacked[box] else i), []).append(root)
        made: list[tuple[int, int, int]] = []
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
            if self.stacked[number]:
                continue
            block = self.blocks[number]
            for item in self.graph.nodes[box.members[0]].saved:
                leaf = next((leaf_of[name] for name in item.names if name in leaf_of), None)
                target = self._box(leaf)
                if target is not None and item.role == "leaf":
                    dotted.append((number, target, len(block.rows)))
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
        arrivals = Counter(
            [(t, self._dock(t, edges[0].input_nr)) for _, t, edges in self.entries if self.blocks[t].ports]
        )
        for (number, dock), many in arrivals.items():
            port = self.blocks[number].ports[dock]
            port.width = max(port.width, min(64, 9 * many + 6))
        self.scene.items = [block.measure() for block in self.blocks]
        for i, (number, target, edges) in enumerate(self.entries):
            if i not in stubbed:
                label = _times(edges) if len(edges) > 1 else ""
                kind = "cut" if target == self.cut else "edge"
                key = f"{edges[0].source}-{edges[0].slot}"
                self._add(kind, key, number, self.place[i].x, target, edges[0].input_nr, label)
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

    def _slots(self, number: int, box: Box, leaving: list, stubbed: set[int]) -> None:
        block = self.blocks[number]
        parts = list(leaving)
        stacked = self.stacked[number]
        if not stacked:
            for edge in self.graph.nodes[box.members[0]].edges:
                if edge.target is None and not edge.cut:
                    parts.append((edge.slot, (None, None, [edge])))
        if not parts:
            return
        if len(parts) > 1:
            parts.sort(key=lambda part: part[0])
        far = [part for part in parts if part[1][0] in stubbed] if stubbed else []
        if far and (stacked or len(far) > MOST_STUBS):
            parts = [part for part in parts if part[1][0] not in stubbed]
            names = [self._short_name(target) for _, (_, target, _) in far]
            text = "→ " + names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "")
            slots = "" if stacked else "…"
            block.slots.append(Slot(slots, text_width(text, 10) + 8, text, ", ".join(names)))
        many = len(parts) > 1 and not stacked
        for slot, (i, target, edges) in parts:
            text, width, stub, title = "", 18.0, "", ""
            if many:
                text = str(slot) if len(edges) == 1 else f"{slot}–{edges[-1].slot}"
                width = max(width, text_width(text, 9.5) + 8)
            if i is None:
                stub, title = "None", edges[0].reason or ""
            elif i in stubbed:
                stub = "→ " + self._short_name(target)
            if stub:
                width = max(width, text_width(stub, 10) + 8)
            elif len(edges) > 1 and len(parts) > 1:
                width = max(
                    width, 2 * (text_width(_times(edges), 10) + 6)
                )  # the label stands beside the arrow
            place = Slot(text, width, stub, title, labelled=len(edges) > 1 and not stub)
            block.slots.append(place)
            if i is not None:
                self.place[i] = place

    def _short_name(self, target: int) -> str:
        box = self.folded.boxes[target]
        node = self.graph.nodes[box.members[0]]
        if node.names:
            return shorten(node.names[0], 26)
        return f"{shorten(node.name, 20)} #{node.index}"

    def _dock(self, target: int, input_nr: int) -> int:
        """Which port of ``target`` takes the gradient of output ``input_nr``."""
        firsts = self.port_numbers.get(target)
        if firsts is None:
            node = self.graph.nodes[self.folded.boxes[target].members[0]]
            firsts = self.port_numbers[target] = [numbers.start for _, numbers in port_groups(node)]
        return max(0, bisect_right(firsts, input_nr) - 1)

    def _add(
        self,
        kind: str,
        key: str,
        source: int,
        x: float,
        target: int,
        input_nr: int,
        label: str = "",
        row: int = 0,
    ) -> None:
        block = self.blocks[target]
        if block.ports and kind != "saved":
            dock = self._dock(target, input_nr)
            port = block.ports[dock]
            link = Link(source, target, x, port.x, dock, port.width - 8)
        else:
            link = Link(source, target, x, 0, 0, block.width - 24)
        self.scene.wires.append(Wire(kind, key, link, label, row=row))


def _times(edges: list[Edge]) -> str:
    """The label of an arrow that stands for several edges."""
    return f"×{len(edges):,}"
