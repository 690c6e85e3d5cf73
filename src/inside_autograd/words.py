"""Words for parts of a graph, shared by everything that shows one."""

from .graph import CHECKPOINT, COPY_SLICES, CUSTOM, ERROR, HOOK, RECORDED, Graph, Node, Root
from .saved import Saved

KIND_WORDS = {
    CUSTOM: "custom Function",
    RECORDED: "recorded backward",
    COPY_SLICES: "in-place change through a view",
    HOOK: "hook of a module",
    CHECKPOINT: "reentrant checkpoint",
    ERROR: "raises when it runs",
}


def root_label(root: Root) -> str:
    """What the tensor is called: its path in what was handed over, ``output`` if it stood alone."""
    return one_line(root.path) or "output"


def tensor_text(shape: tuple | None, dtype: str | None = None, device: str | None = None) -> str:
    """``(2, 3) float64 cuda:0``; the device only where it is not ``cpu``."""
    parts = ["shape unknown" if shape is None else str(shape), dtype, device if device != "cpu" else None]
    return " ".join(part for part in parts if part)


def named(names: tuple[str, ...], text: str = "") -> str:
    """The names, with commas, before ``text``."""
    return "  ".join(part for part in (", ".join(map(one_line, names)), text) if part)


def one_line(text: str) -> str:
    """Names come from the caller: keep each on its line, whatever it holds."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def saved_origin(graph: Graph, node: Node, saved: Saved) -> str:
    """Where a saved tensor that could be read comes from, in words."""
    names = named(saved.names)
    if saved.role == "output":
        several = len(node.outputs) > 1
        text = f"own output {saved.source[1]}" if saved.source and several else "own output"
    elif saved.role == "intermediate":
        if saved.source is None:
            text = "made by a node that was not read"
        else:
            index, number = saved.source
            several = len(graph.nodes[index].outputs) > 1
            text = f"output {number} of #{index}" if several else f"output of #{index}"
    else:
        return f"{saved.role} {names}".rstrip()
    return f"{text} ({names})" if names else text
