"""The words around a drawing: legend, notes, and the description for readers who do not see it."""

from collections.abc import Iterable

from .blocks import shape_text
from .scene import Scene
from .style import shorten


def legend(scene: Scene) -> list[tuple[str, str]]:
    """(symbol, explanation) for what occurs in this drawing, and nothing else."""
    kinds = {block.kind for block in scene.blocks}
    slots = [slot for block in scene.blocks for slot in block.slots]
    ports = [port for block in scene.blocks for port in block.ports]
    found = []
    if not scene.folded.part:  # the drawing around it says that
        found.append(("arrow", "gradients flow down: from the output to the leaves"))
        if "accumulate" in kinds:
            found.append(("leaf", "a leaf: its node adds to .grad"))
    if any(slot.text for slot in slots):
        found.append(("slots", "place in next_functions"))
    if any(port.text[:1].isdigit() for port in ports):
        found.append(("port", "input number: which output of the operation it is"))
    if any(not port.used for port in ports):
        found.append(("unused", "output that nothing uses"))
    if any(slot.stub == "None" for slot in slots):
        found.append(("none", "input that gets no gradient"))
    if any(slot.stub.startswith("→") for slot in slots):
        found.append(("stub", "goes to a node drawn elsewhere"))
    if any(wire.kind == "saved" for wire in scene.wires):
        found.append(("saved", "the saved tensor is this leaf"))
    if any(block.stacked for block in scene.blocks):
        part = scene.folded.part
        all_nodes = f"folded: {len(scene.folded.graph):,} nodes in all, fold=False draws each"
        found.append(("folded", "folded" if part else all_nodes))
    return found


def notes(scene: Scene) -> list[str]:
    """Lines about what the graph does not hold."""
    graph = scene.folded.graph
    lines = []
    if without := [
        f"{shorten(root.path or 'output')}: {root.reason}" for root in graph.roots if root.node is None
    ]:
        lines.append("no graph: " + _some(without, 4))
    if graph.unmatched:
        lines.append("not reached: " + _some(map(shorten, graph.unmatched), 6))
    return lines


def _some(things: Iterable[str], most: int) -> str:
    things = list(things)
    more = len(things) - most
    return ", ".join(things[:most]) + (f" and {more:,} more" if more > 0 else "")


def describe(scene: Scene, title: str | None) -> tuple[str, str]:
    """Title and description of the drawing, in words."""
    if scene.folded.part:
        return scene.folded.part, _describe_part(scene)
    graph = scene.folded.graph
    roots = [root for root in graph.roots if root.node is not None]
    names = _some([root.path or "the output" for root in roots], 3)
    edges = [edge for edge in graph.edges if edge.target is not None]
    name = title or f"Backward graph of {names}"
    said = [
        f"{_count(len(graph), 'node')} and {_count(len(edges), 'edge')}; gradients flow from top to bottom."
    ]
    if len(scene.folded.boxes) < len(graph):
        heads = [box.lines[0] for box in scene.folded.boxes if box.folded]
        said.append(f"Folded into {_count(len(scene.folded.boxes), 'box')}: {_some(heads, 6)}.")
    starts = [
        f"{root.path or 'the output'} {shape_text(root.shape, root.dtype)}".strip()
        + f" from {graph.nodes[root.node].name}"
        for root in roots
        if root.node is not None
    ]
    said.append(f"Outputs: {_some(starts, 4)}.")
    leaves = [
        f"{', '.join(n.names) or 'unnamed'} {shape_text(n.shape, n.dtype)}".strip() for n in graph.leaves
    ]
    said.append(f"Leaves: {_some(leaves, 8)}." if leaves else "No leaves.")
    empty = [
        f"{graph.nodes[e.source].name} slot {e.slot} ({e.reason})"
        for e in graph.edges
        if e.target is None and not e.cut
    ]
    if empty:
        said.append(f"Slots without a node: {_some(empty, 4)}.")
    unused = [
        f"{n.name} output {o.number}"
        for n in graph.nodes
        if len(n.outputs) > 1
        for o in n.outputs
        if not o.used
    ]
    if unused:
        said.append(f"Unused: {_some(unused, 4)}.")
    if freed := sum(node.freed for node in graph.nodes):
        said.append(f"Saved tensors freed in {_count(freed, 'node')}.")
    if graph.cut:
        said.append(_sentence(str(graph.cut)))
    said += [_sentence(line) for line in notes(scene)]
    return name, " ".join(said)


def _describe_part(scene: Scene) -> str:
    """What is in a folded box, and what is around it."""
    graph, boxes = scene.folded.graph, scene.folded.boxes
    inside = [box for box in boxes if not box.around]
    many = sum(len(box.members) for box in inside)
    said = [f"{_count(many, 'node')}; gradients flow from top to bottom."]
    if any(box.folded for box in inside):
        heads = [box.lines[0] for box in inside if box.folded]
        said.append(f"Folded into {_count(len(inside), 'box')}: {_some(heads, 6)}.")
    tags = [box.lines[0] for box in boxes if box.around]
    said += [_sentence(tag) for tag in tags[:8]]
    leaves = [graph.nodes[i] for box in inside for i in box.members if graph.nodes[i].is_leaf]
    names = [f"{', '.join(n.names) or 'unnamed'} {shape_text(n.shape, n.dtype)}".strip() for n in leaves]
    said.append(f"Leaves: {_some(names, 8)}." if names else "No leaves.")
    return " ".join(said)


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 'es' if thing == 'box' else 's'}"
