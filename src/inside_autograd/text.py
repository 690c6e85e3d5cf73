"""A graph as text: a listing for terminals, and DOT for Graphviz."""

import html
from collections import Counter
from collections.abc import Iterator
from itertools import groupby

from .graph import ACCUMULATE, CUSTOM, Edge, Graph, Node, Output
from .saved import CHANGED, FREED, PACKED, UNREAD, Saved
from .words import KIND_WORDS, named, one_line, root_label, saved_origin, tensor_text


def listing(graph: Graph) -> str:
    """A readable text listing of ``graph``: outputs, then every node in the order of the walk.

    Each node is followed by its outputs where there are several, its edges, and what it saved.
    The headline names the most frequent dtype; operations and saved tensors show theirs where it
    is another one. Devices are shown where they are not ``cpu``.
    """
    dtypes = Counter(output.dtype for node in graph.nodes for output in node.outputs if output.dtype)
    usual = dtypes.most_common(1)[0][0] if dtypes else None
    reasons = list(dict.fromkeys(edge.reason for edge in graph.edges if edge.target is None and not edge.cut))
    number_width = len(f"#{len(graph) - 1}")
    name_width = min(max(len(node.name) for node in graph.nodes), 32)
    first_use: dict[int, tuple[Node, Saved]] = {}
    lines = [_headline(graph, usual), *_root_lines(graph), ""]
    for node in graph.nodes:
        facts = _node_facts(node, usual)
        lines.append(f"{f'#{node.index}':<{number_width}}  {node.name:<{name_width}}  {facts}".rstrip())
        details = [
            *_output_lines(node, usual),
            *(("slot", str(edge.slot), _edge_text(graph, edge, reasons)) for edge in node.edges),
            *_saved_lines(graph, node, first_use, usual),
        ]
        heads = [f"{word} {label}" for word, label, _ in details]
        width = max(map(len, heads), default=0)
        indent = " " * (number_width + 2)
        for head, (_, _, text) in zip(heads, details, strict=True):
            lines.append(f"{indent}{head:<{width}}  {text}")
    return "\n".join([*lines, *_closing_lines(graph, reasons)])


def _headline(graph: Graph, usual: str | None) -> str:
    nodes, leaves = _count(len(graph), "node"), _count(len(graph.leaves), "leaf", "leaves")
    dtype = f" Dtype {usual} unless shown." if usual else ""
    return f"Backward graph: {nodes}, {leaves}. Gradients flow along the arrows.{dtype}"


def _root_lines(graph: Graph) -> list[str]:
    rows = []
    for root in graph.roots:
        if root.node is not None:
            text = _arrow_to(graph, root.node, root.output_nr)
        else:
            text = root.reason if root.reason == "None" else f"no graph: {root.reason}"
        shape = "" if root.dtype is None else tensor_text(root.shape, root.dtype)
        rows.append((root_label(root), shape, text))
    labels, shapes = (max(len(row[i]) for row in rows) for i in (0, 1))
    gap = "  " if shapes else ""
    return [f"{label:<{labels}}  {shape:<{shapes}}{gap}{text}" for label, shape, text in rows]


def _node_facts(node: Node, usual: str | None) -> str:
    facts = [KIND_WORDS[node.kind]] if node.kind in KIND_WORDS else []
    if node.kind == ACCUMULATE:
        facts.append(named(node.names, tensor_text(node.shape, node.dtype, node.device)))
    elif len(node.outputs) == 1:
        facts.insert(0, _output_text(node.outputs[0], usual))
    elif node.outputs:
        facts.insert(0, f"{len(node.outputs)} outputs")
    return "  ".join([*facts, "freed"] if node.freed else facts)


def _output_lines(node: Node, usual: str | None) -> Iterator[tuple[str, str, str]]:
    if len(node.outputs) < 2:
        return
    for text, alike in groupby(node.outputs, lambda output: _output_text(output, usual)):
        numbers = [output.number for output in alike]
        label = str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]}-{numbers[-1]}"
        yield "output", label, text


def _output_text(output: Output, usual: str | None) -> str:
    text = tensor_text(output.shape, output.dtype if output.dtype != usual else None, output.device)
    return named(output.names, text if output.used else f"{text}  unused")


def _edge_text(graph: Graph, edge: Edge, reasons: list[str | None]) -> str:
    if edge.cut:
        return f"→ {edge.reason}"
    if edge.target is None:
        return "→ None" + (f" [{reasons.index(edge.reason) + 1}]" if len(reasons) > 1 else "")
    return _arrow_to(graph, edge.target, edge.input_nr)


def _arrow_to(graph: Graph, target: int, input_nr: int) -> str:
    node = graph.nodes[target]
    names = f" {named(node.names)}" if node.names else ""
    # Where an operation had several outputs, its node has as many inputs: say which one.
    number = f" (input {input_nr})" if len(node.outputs) > 1 else ""
    return f"→ #{target} {node.name}{names}{number}"


def _saved_lines(
    graph: Graph, node: Node, first_use: dict, usual: str | None
) -> Iterator[tuple[str, str, str]]:
    freed = [saved.attr for saved in node.saved if saved.state == FREED]
    for saved in node.saved:
        if saved.state != FREED:
            yield (
                "saved",
                one_line(saved.attr),
                "  ".join(_saved_facts(graph, node, saved, first_use, usual)),
            )
    if freed:
        yield "saved", ", ".join(freed), "freed"


def _saved_facts(graph: Graph, node: Node, saved: Saved, first_use: dict, usual: str | None) -> Iterator[str]:
    if saved.state == PACKED:
        yield "packed by a hook, not read"
        return
    if saved.role is None:
        yield "not readable with this torch"
        return
    yield tensor_text(saved.shape, saved.dtype if saved.dtype != usual else None)
    yield saved_origin(graph, node, saved)
    if saved.storage is not None:
        holder, first = first_use.setdefault(saved.storage, (node, saved))
        if first is not saved and not _same_tensor(first, saved):
            yield f"shares memory with {first.attr} of #{holder.index}"
    if saved.state == CHANGED:
        yield "changed in place since: using it raises"
    if saved.state == UNREAD:
        yield "perhaps changed in place since"
    if not saved.checked:
        yield "version not checked"


def _same_tensor(first: Saved, second: Saved) -> bool:
    """Whether what is said of both already tells that they are one tensor."""
    if first.role in ("output", "intermediate"):
        return first.source is not None and first.source == second.source
    return bool(first.names) and first.names == second.names


def _closing_lines(graph: Graph, reasons: list[str | None]) -> list[str]:
    marks = [f"None [{i}]" for i, _ in enumerate(reasons, 1)] if len(reasons) > 1 else ["None"]
    lines = [f"{mark}: {reason}." for mark, reason in zip(marks, reasons, strict=False)]
    if graph.cut:
        text = str(graph.cut)
        lines.append(text[0].upper() + text[1:] + ".")
    if graph.unmatched:
        lines.append(f"Named, but not in this graph: {named(graph.unmatched)}.")
    return ["", *lines] if lines else []


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"1 {one}" if number == 1 else f"{number:,} {many or one + 's'}"


def dot(graph: Graph) -> str:
    """``graph`` in Graphviz's DOT language: outputs on top, leaves at the bottom.

    Edges carry the slot in ``next_functions``. A node of an operation with several outputs has one
    port for each input, with its number. Saved tensors are left out.
    """
    lines = [
        "digraph backward {",
        '  graph [rankdir=TB, bgcolor="white"];',
        '  node [shape=box, fontname="sans-serif", fontsize=11];',
        '  edge [fontname="sans-serif", fontsize=9];',
    ]
    for i, root in enumerate(graph.roots):
        words = [root_label(root), *([] if root.dtype is None else [tensor_text(root.shape, root.dtype)])]
        if root.node is None and root.reason != "None":
            words.append(f"no graph: {root.reason}")
        elif root.node is None:
            words.append("None")
        style = "rounded" if root.node is not None else "rounded,dashed"
        lines.append(f"  out{i} [label={_quoted(*words)}, style={_quoted(style)}];")
    lines += [f"  n{node.index} [{_dot_node(node)}];" for node in graph.nodes]
    for i, root in enumerate(graph.roots):
        if root.node is not None:
            lines.append(f"  out{i} -> {_dot_target(graph, root.node, root.output_nr)};")
    for edge in graph.edges:
        label = f"label={_quoted(f'slot {edge.slot}')}"
        if edge.target is not None:
            target = _dot_target(graph, edge.target, edge.input_nr)
            lines.append(f"  n{edge.source} -> {target} [{label}];")
            continue
        end = f"end{edge.source}_{edge.slot}"
        text = "not read" if edge.cut else "None"
        lines.append(
            f"  {end} [label={_quoted(text)}, shape=plaintext, tooltip={_quoted(edge.reason or '')}];"
        )
        lines.append(f"  n{edge.source} -> {end} [{label}, style=dashed];")
    if graph.cut:
        lines.append(f"  label={_quoted(str(graph.cut))};")
    return "\n".join([*lines, "}", ""])


def _dot_node(node: Node) -> str:
    notes = [KIND_WORDS[node.kind]] if node.kind in KIND_WORDS else []
    if node.freed:
        notes.append("freed")
    fill = {ACCUMULATE: "#dcefdc", CUSTOM: "#fbe7c6"}.get(node.kind, "#f2f2f2")
    look = f'style="filled", fillcolor="{fill}"'
    if len(node.outputs) > 1:
        title = "<BR/>".join(html.escape(text) for text in (node.name, *notes))
        cells = "".join(_dot_cell(output) for output in node.outputs)
        table = (
            f'<TABLE BORDER="0" CELLBORDER="1" CELLSPACING="0"><TR>{cells}</TR>'
            f'<TR><TD COLSPAN="{len(node.outputs)}">{title}</TD></TR></TABLE>'
        )
        return f"label=<{table}>, shape=plain, {look}"
    names = [named(node.names)] if node.names else []
    if node.kind == ACCUMULATE:
        facts = tensor_text(node.shape, node.dtype, node.device)
    else:
        facts = _output_text(node.outputs[0], None) if node.outputs else ""
    return f"label={_quoted(node.name, *names, *filter(None, [facts]), *notes)}, {look}"


def _dot_cell(output: Output) -> str:
    text = html.escape(_output_text(output, None))
    return f'<TD PORT="i{output.number}">input {output.number}<BR/>{text}</TD>'


def _dot_target(graph: Graph, target: int, input_nr: int) -> str:
    return f"n{target}:i{input_nr}:n" if len(graph.nodes[target].outputs) > 1 else f"n{target}"


def _quoted(*lines: str) -> str:
    r"""A quoted DOT string of some lines. Backslashes are doubled: DOT reads ``\N`` as the node's name."""
    escaped = (one_line(line).replace("\\", "\\\\").replace('"', '\\"') for line in lines)
    return '"' + "\\n".join(escaped) + '"'
