"""The text listing and the DOT text of a graph, against expectations written by hand."""

import re
import shutil
import subprocess

import pytest
import torch

from inside_autograd.graph import Cut, Edge, Graph, Node, Output, Root
from inside_autograd.saved import Saved
from shapes import SHAPES, refuse_to_unpack


def body(graph):
    """The listing without its headline."""
    return str(graph).split("\n", 1)[1]


# --- listing ----------------------------------------------------------------------------------


def test_a_product_with_itself():
    w = torch.ones(3, requires_grad=True)
    assert str(Graph.of((w * w).sum(), {"w": w})) == (
        "Backward graph: 3 nodes, 1 leaf. Gradients flow along the arrows. Dtype float32 unless shown.\n"
        "output  () float32  → #0 SumBackward0\n"
        "\n"
        "#0  SumBackward0    ()\n"
        "    slot 0  → #1 MulBackward0\n"
        "#1  MulBackward0    (3,)\n"
        "    slot 0       → #2 AccumulateGrad w\n"
        "    slot 1       → #2 AccumulateGrad w\n"
        "    saved other  (3,)  leaf w\n"
        "    saved self   (3,)  leaf w\n"
        "#2  AccumulateGrad  w  (3,) float32"
    )


def test_input_numbers_unused_outputs_and_several_roots():
    w = torch.ones(5, 2, requires_grad=True)
    rows = w.unbind()
    outputs = {"first": rows[0], "far": [rows[4].exp(), torch.ones(2)], "cache": None}
    assert body(Graph.of(outputs, {"w": w, "v": torch.ones(1, requires_grad=True)})) == (
        "first   (2,) float32  → #1 UnbindBackward0 (input 0)\n"
        "far[0]  (2,) float32  → #0 ExpBackward0\n"
        "far[1]  (2,) float32  no graph: does not require grad\n"
        "cache                 None\n"
        "\n"
        "#0  ExpBackward0     (2,)\n"
        "    slot 0        → #1 UnbindBackward0 (input 4)\n"
        "    saved result  (2,)  own output\n"
        "#1  UnbindBackward0  5 outputs\n"
        "    output 0    (2,)\n"
        "    output 1-3  (2,)  unused\n"
        "    output 4    (2,)\n"
        "    slot 0      → #2 AccumulateGrad w\n"
        "#2  AccumulateGrad   w  (5, 2) float32\n"
        "\n"
        "Named, but not in this graph: v."
    )


def test_reasons_of_empty_slots_stand_once_at_the_end():
    text = str(Graph.of(*SHAPES["scalar_and_constant"]()))
    assert text.count("→ None\n") == 2
    assert text.endswith(
        "\n\nNone: this input needs no gradient: a constant, absent, or requires_grad=False."
    )


def test_several_reasons_get_numbers():
    w = torch.ones(4, requires_grad=True)
    y = w * 2
    y[:2] = 0
    assert body(Graph.of(y, {"w": w})) == (
        "output  (4,) float32  → #0 CopySlices\n"
        "\n"
        "#0  CopySlices      (4,)  in-place change through a view\n"
        "    slot 0  → #1 MulBackward0\n"
        "    slot 1  → None [1]\n"
        "#1  MulBackward0    (4,)\n"
        "    slot 0       → #2 AccumulateGrad w\n"
        "    slot 1       → None [2]\n"
        "    saved other  () int64  constant\n"
        "#2  AccumulateGrad  w  (4,) float32\n"
        "\n"
        "None [1]: the value written needs no gradient.\n"
        "None [2]: this input needs no gradient: a constant, absent, or requires_grad=False."
    )


def test_states_of_saved_tensors():
    w = torch.ones(2, requires_grad=True)
    h = w.exp()
    y = h.sin()
    h.add_(1)  # both have saved h; changing it through its own node makes that node's output another
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, refuse_to_unpack):
        z = y.sigmoid()
    text = str(Graph.of(z.sum(), {"w": w}))
    assert "    saved result  packed by a hook, not read" in text
    assert re.search(
        r"SinBackward0 .*\n.*\n +saved self  \(2,\)  .*  changed in place since: using it raises\n", text
    )


def test_freed_nodes_say_so():
    w = torch.ones(2, requires_grad=True)
    y = (w * w).sum()
    y.backward()
    assert body(Graph.of(y, {"w": w})) == (
        "output  () float32  → #0 SumBackward0\n"
        "\n"
        "#0  SumBackward0    ()\n"
        "    slot 0  → #1 MulBackward0\n"
        "#1  MulBackward0    (2,)  freed\n"
        "    slot 0             → #2 AccumulateGrad w\n"
        "    slot 1             → #2 AccumulateGrad w\n"
        "    saved other, self  freed\n"
        "#2  AccumulateGrad  w  (2,) float32"
    )


def test_aliases_between_saved_tensors():
    x = torch.ones(4, requires_grad=True)
    c = torch.ones(4)
    flat = x.exp()
    y = (flat.view(2, 2) * c.view(2, 2)).sum()
    text = str(Graph.of(y, {"x": x, "c": c}))
    # The product saves its constant factor, a view of c: named or not, it is another tensor than c.
    assert "    saved other  (2, 2)  constant\n" in text
    z = flat.view(2, 2).sin() + flat.sin().view(2, 2)
    lines = str(Graph.of(z, {"x": x})).split("\n")
    (view,) = [line for line in lines if "saved self" in line and "(2, 2)" in line]
    (plain,) = [line for line in lines if "saved self" in line and "(4,)" in line]
    assert ("shares memory with" in view) != ("shares memory with" in plain)  # the later one says it
    assert "    saved result  (4,)  own output" in "\n".join(lines)


def made_by_hand():
    nodes = (
        Node(
            0,
            "SplitBackward",
            "custom",
            outputs=(
                Output(0, (2,), "float32", "cpu", ("h",)),
                Output(1, None, "float64", "cuda:0", used=False),
            ),
            edges=(
                Edge(0, 0, 1, 0),
                Edge(0, 1, None, 0, "a reason"),
                Edge(0, 2, None, 0, "not read", cut=True),
            ),
            saved=(
                Saved("saved_tensors[0]", "alive", (2,), "float32", 8, "leaf", ("w", "tied.w"), storage=0),
                Saved("saved_tensors[1]", "alive", (1,), "int64", 8, "constant", storage=0),
                Saved("saved_tensors[2]", "alive", (2,), "float32", 8, "output", ("h",), (0, 0), 1),
                Saved("saved_tensors[3]", "alive", (2,), "float32", 8, "intermediate", (), None, 2),
                Saved("ctx.mask", "alive", (2,), "bool", 2, "constant", ("m",), None, 3, checked=False),
                Saved("ctx.gone", "freed"),
                Saved("odd", "unread"),
                Saved("perhaps", "unread", (3,), "float32", 12, "constant"),
            ),
        ),
        Node(1, "AccumulateGrad", "accumulate", ("w", "tied.w"), (2,), "float32", "cuda:0"),
    )
    roots = (Root("", 0, 1, (2,), "float32"), Root("b", None, 0, reason="past the limits, not read"))
    return Graph(nodes, roots, Cut(1, 1, 10, 20), ("u", "v"))


def test_every_part_of_a_hand_made_graph():
    assert str(made_by_hand()) == (
        "Backward graph: 2 nodes, 1 leaf. Gradients flow along the arrows. Dtype float32 unless shown.\n"
        "output  (2,) float32  → #0 SplitBackward (input 1)\n"
        "b                     no graph: past the limits, not read\n"
        "\n"
        "#0  SplitBackward   2 outputs  custom Function  freed\n"
        "    output 0                h  (2,)\n"
        "    output 1                shape unknown float64 cuda:0  unused\n"
        "    slot 0                  → #1 AccumulateGrad w, tied.w\n"
        "    slot 1                  → None\n"
        "    slot 2                  → not read\n"
        "    saved saved_tensors[0]  (2,)  leaf w, tied.w\n"
        "    saved saved_tensors[1]  (1,) int64  constant  shares memory with saved_tensors[0] of #0\n"
        "    saved saved_tensors[2]  (2,)  own output 0 (h)\n"
        "    saved saved_tensors[3]  (2,)  made by a node that was not read\n"
        "    saved ctx.mask          (2,) bool  constant m  version not checked\n"
        "    saved odd               not readable with this torch\n"
        "    saved perhaps           (3,)  constant  perhaps changed in place since\n"
        "    saved ctx.gone          freed\n"
        "#1  AccumulateGrad  w, tied.w  (2,) float32 cuda:0\n"
        "\n"
        "None: a reason.\n"
        "Cut here: 1 edge leads on to nodes that were not read (limits: 10 nodes on a path, 20 in all).\n"
        "Named, but not in this graph: u, v."
    )


def test_names_with_line_breaks_stay_on_their_line():
    w = torch.ones(2, requires_grad=True)
    text = str(Graph.of({"a\nb": w.sum()}, {"w\x1b[31m\r\n": w}))
    assert "a\\nb  () float32  → #0 SumBackward0" in text
    assert "#1  AccumulateGrad  w\\x1b[31m\\r\\n  (2,) float32" in text


READABLE = [name for name in SHAPES if name != "no_graph"]


@pytest.mark.parametrize("name", READABLE)
def test_listing_has_every_node_and_edge_of_every_shape(name):
    graph = Graph.of(*SHAPES[name]())
    text = str(graph)
    lines = text.split("\n")
    assert all(line.isprintable() for line in lines)
    assert [line.split()[0] for line in lines if line.startswith("#")] == [f"#{i}" for i in range(len(graph))]
    assert sum(line.startswith(" ") and " slot " in line[:20] for line in lines) == sum(
        1 for _ in graph.edges
    )
    assert not any(line != line.rstrip() for line in lines)
    assert "0x" not in text


# --- dot --------------------------------------------------------------------------------------

TOKEN = re.compile(
    r'\s*(?:(?P<quoted>"(?:[^"\\]|\\.)*")|(?P<html><(?:<[^<>]*>|[^<>])*>)|(?P<word>[A-Za-z_0-9]+)|(?P<sign>->|[{}\[\];,=:]))'
)


@pytest.mark.parametrize("broken", ['a [label="x];', "a [label=<<B>x</B>];", 'a -> "b;'])
def test_the_reader_of_dot_used_here_notices_what_is_not_closed(broken):
    with pytest.raises(AssertionError, match="not DOT"):
        tokens(broken)


def tokens(text):
    """Split DOT text into tokens; fails where a quote or a bracket of a label is not closed."""
    found, at = [], 0
    while text[at:].strip():
        match = TOKEN.match(text, at)
        assert match, f"not DOT: {text[at : at + 60]!r}"
        found.append(match[0].strip())
        at = match.end()
    return found


def statements(text):
    found = tokens(text)
    assert found[:3] == ["digraph", "backward", "{"] and found[-1] == "}"
    current, done = [], []
    for token in found[3:-1]:
        if token == ";":
            done.append(current)
            current = []
        else:
            current.append(token)
    assert not current
    return done


def label_of(statement):
    return statement[statement.index("label") + 2] if "label" in statement else None


def dot_edges(text):
    """(from, to with port, label) of each edge."""
    found = []
    for statement in statements(text):
        if statement[1] == "->":
            end = statement.index("[") if "[" in statement else len(statement)
            found.append((statement[0], "".join(statement[2:end]), label_of(statement)))
    return found


def test_dot_draws_both_edges_of_a_square():
    w = torch.ones(3, requires_grad=True)
    assert dot_edges(Graph.of(w * w, {"w": w}).to_dot()) == [
        ("out0", "n0", None),
        ("n0", "n1", '"slot 0"'),
        ("n0", "n1", '"slot 1"'),
    ]


def test_dot_of_a_hand_made_graph():
    text = made_by_hand().to_dot()
    assert dot_edges(text) == [
        ("out0", "n0:i1:n", None),
        ("n0", "n1", '"slot 0"'),
        ("n0", "end0_1", '"slot 1"'),
        ("n0", "end0_2", '"slot 2"'),
    ]
    labels = {s[0]: label_of(s) for s in statements(text) if s[1] == "["}
    assert labels["out0"] == '"output\\n(2,) float32"'
    assert labels["out1"] == '"b\\nno graph: past the limits, not read"'
    assert labels["n1"] == '"AccumulateGrad\\nw, tied.w\\n(2,) float32 cuda:0"'
    assert (labels["end0_1"], labels["end0_2"]) == ('"None"', '"not read"')
    cells = re.findall(r'<TD PORT="(\w+)">(.*?)</TD>', labels["n0"])
    assert cells == [
        ("i0", "input 0<BR/>h  (2,) float32"),
        ("i1", "input 1<BR/>shape unknown float64 cuda:0  unused"),
    ]
    assert '<TD COLSPAN="2">SplitBackward<BR/>custom Function<BR/>freed</TD>' in labels["n0"]
    assert 'tooltip="a reason"' in text
    assert ["label", "=", f'"{Cut(1, 1, 10, 20)}"'] in statements(text)


def test_dot_escapes_names():
    w = torch.ones(2, 2, requires_grad=True)
    a, b = w.unbind()
    names = {'w "q" \\N <b> & \n': w, "a<b>&": a}
    text = Graph.of({'y"]; x -> y;\\': a * b}, names).to_dot()
    labels = {s[0]: label_of(s) for s in statements(text) if s[1] == "["}
    assert labels["n2"] == '"AccumulateGrad\\nw \\"q\\" \\\\N <b> & \\\\n\\n(2, 2) float32"'
    assert labels["out0"] == '"y\\"]; x -> y;\\\\\\n(2,) float32"'
    assert "a&lt;b&gt;&amp;  (2,) float32" in labels["n1"]
    assert len(dot_edges(text)) == 4


@pytest.mark.parametrize("name", READABLE)
def test_dot_has_every_edge_of_every_shape_and_is_deterministic(name):
    graph = Graph.of(*SHAPES[name]())
    text = graph.to_dot()
    if len(graph) > 200:
        assert text.count(" -> ") == sum(1 for _ in graph.edges) + sum(
            r.node is not None for r in graph.roots
        )
    else:
        found = [edge for edge in dot_edges(text) if edge[0].startswith("n")]
        assert [(a, label) for a, _, label in found] == [
            (f"n{e.source}", f'"slot {e.slot}"') for e in graph.edges
        ]
        targets = [re.match(r"n(\d+)(?::i(\d+):n)?$", b) for _, b, _ in found]
        for edge, target in zip(graph.edges, targets, strict=True):
            several = edge.target is not None and len(graph.nodes[edge.target].outputs) > 1
            wanted = (str(edge.target), str(edge.input_nr) if several else None)
            assert (target.groups() if target else None) == (wanted if edge.target is not None else None)
    assert Graph.of(*SHAPES[name]()).to_dot() == text


@pytest.mark.skipif(shutil.which("dot") is None, reason="needs Graphviz's dot, which the book does without")
@pytest.mark.parametrize(
    "name", ["square_by_itself", "some_outputs_unused", "shared_and_tied", "custom_three_outputs"]
)
def test_graphviz_reads_it(name):
    graph = Graph.of(*SHAPES[name]())
    done = subprocess.run(["dot", "-Tsvg"], input=graph.to_dot(), capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count('class="edge"') == arrows(graph)


def arrows(graph):
    return sum(1 for _ in graph.edges) + sum(root.node is not None for root in graph.roots)
