"""Drawings: what they show, that nothing covers anything else, and that their bytes never vary."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
import torch

from graphs import graph_of
from inside_autograd import Graph, draw
from inside_autograd.graph import Cut, Edge, Node, Root
from inside_autograd.style import COLORS, shorten, text_width
from pictures import CAPTURED, SVG, captured, drawn, read, seen
from shapes import SHAPES

HERE = Path(__file__).parent


# Of the larger ones, which are folded, test_fold tells that no node is lost.
@pytest.mark.parametrize("name", [name for name in CAPTURED if len(captured(name)) <= 120])
def test_every_node_and_every_edge_is_drawn(name):
    graph = captured(name)
    shown = seen(name)
    assert {str(i) for i in range(len(graph))} <= set(shown.boxes)
    wanted = {f"{e.source}-{e.slot}" for e in graph.edges if e.target is not None}
    drawn = {key for key, _ in shown.arrows if "-" in key}
    stubs = sum(
        text.text.startswith("→") for text in shown.root.iter(SVG + "text") if text.get("class") == "ag-s"
    )
    assert drawn <= wanted
    assert stubs or drawn == wanted
    empty = sum(e.target is None and not e.cut for e in graph.edges)
    nones = [t for texts in shown.texts.values() for t in texts if t == "None"]
    assert len(nones) == empty


def texts(drawing) -> list[str]:
    return [t.text for t in ElementTree.fromstring(drawing.svg).iter(SVG + "text") if t.text]


def test_both_edges_of_a_square_are_drawn_apart():
    a = torch.ones(2, requires_grad=True)
    shown = read(draw(a * a, {"a": a}).svg)
    lines = dict(shown.arrows)
    one, two = lines["0-0"], lines["0-1"]
    assert two[0][0] - one[0][0] >= 12
    assert two[-1][0] - one[-1][0] >= 12


def test_arrows_end_at_the_port_of_their_input_number():
    x = torch.arange(6.0, requires_grad=True)
    first, _second, third = x.split(2)
    drawing = draw((third * first).sum(), {"x": x})
    split = next(n for n in drawing.graph.nodes if n.name == "SplitBackward0")
    root = ElementTree.fromstring(drawing.svg)
    (group,) = [g for g in root.iter(SVG + "g") if g.get("data-n") == str(split.index)]
    ports = {t.text: float(t.get("x")) for t in group.iter(SVG + "text") if t.get("class") == "ag-s"}
    assert list(ports) == ["0", "1 unused", "2"]
    ends = {key: line[-1][0] for key, line in read(drawing.svg).arrows}
    (mul,) = [n for n in drawing.graph.nodes if n.name == "MulBackward0"]
    # third * first: slot 0 carries output 2, slot 1 carries output 0.
    assert abs(ends[f"{mul.index}-0"] - ports["2"]) <= 6
    assert abs(ends[f"{mul.index}-1"] - ports["0"]) <= 6
    assert "input number: which output of the operation it is" in texts(drawing)
    assert "output that nothing uses" in texts(drawing)


def test_an_empty_slot_says_why():
    x = torch.ones(2, requires_grad=True)
    svg = draw(x * 2, {"x": x}).svg
    graph = Graph.of(x * 2, {"x": x})
    assert f"None<title>{graph.nodes[0].edges[1].reason}</title>" in svg
    assert graph.nodes[0].edges[1].reason


def test_shared_parameters_list_every_name_shape_and_dtype():
    w = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    shown = texts(draw(w.sum(), {"a": w, "b": w}))
    assert "a" in shown and "b" in shown
    assert "AccumulateGrad (2, 3) float64" in shown


def test_named_intermediates_stand_on_their_node():
    x = torch.ones(2, requires_grad=True)
    h = x.exp()
    drawing = draw(h.sum(), {"x": x, "h": h})
    assert "h" in read(drawing.svg).texts["1"]


def test_outputs_without_a_graph_and_names_not_reached_are_noted():
    x, unused = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    shown = texts(
        draw({"loss": x.sum(), "accuracy": torch.ones(()), "extra": None}, {"x": x, "unused": unused})
    )
    assert "loss · scalar" in shown
    assert "no graph: accuracy: does not require grad, extra: None" in " ".join(shown)
    assert "not reached: unused" in shown


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("head.weight", ["head.weight"]),
        ("encoder.layers.0.linear1.weight", ["encoder.layers.", "0.linear1.weight"]),
        ("x" * 39, ["x" * 39]),
        (f"{'a' * 40}.weight", [f"{'a' * 11}…{'a' * 19}.", "weight"]),
        ("." * 30, ["." * 15] * 2),
    ],
)
def test_long_names_break_at_a_dot(name, lines):
    w = torch.ones(2, requires_grad=True)
    drawing = draw(w.sum(), {name: w})
    assert read(drawing.svg).texts["1"] == [*lines, "AccumulateGrad (2,)"]
    whole = f"node 1; {name}" if "".join(lines) != name else "node 1"
    assert f"<title>{whole}</title>" in drawing.svg


def test_freed_nodes_say_so():
    x = torch.ones(2, requires_grad=True)
    y = x.exp().sum()
    assert "saved tensors freed" not in texts(draw(y))
    y.backward()
    assert texts(draw(y)).count("saved tensors freed") == 1


def test_saved_tensors_tell_whose_they_are():
    w = torch.ones(2, requires_grad=True)
    y = (w.exp() * w).sum()
    drawing = draw(y, {"w": w}, saved=True)
    shown = texts(drawing)
    assert "other (2,) · w · alive" in shown
    assert "self (2,) · output of ExpBackward0 · alive" in shown
    assert "result (2,) · own output · alive" in shown
    assert drawing.svg.count('<path class="ag-d"') == 2  # the line to w, and its sample in the legend
    y.backward()
    assert "other · freed" in texts(draw(y, {"w": w}, saved=True))


def test_changed_saved_tensors_say_so():
    w = torch.ones(2, requires_grad=True)
    h = w.exp()
    y = h.sum()
    h.add_(1)
    assert "result (2,) · own output · changed in place" in texts(draw(y, saved=True))


def test_the_cut_is_a_box_that_counts():
    x = torch.ones(2, requires_grad=True)
    h = x
    for _ in range(10):
        h = h.sin()
    drawing = draw(h, {"x": x}, max_path=4)
    said = " ".join(read(drawing.svg).texts["cut"])
    assert said == str(drawing.graph.cut)
    assert said.startswith("cut here: 1 edge leads on")


def test_a_far_leaf_ends_in_a_named_stub():
    w = torch.ones(2, requires_grad=True)
    h = w.sin()
    for _ in range(12):
        h = h.sin()
    drawing = draw(h * w, {"w": w})
    assert "→ w" in read(drawing.svg).texts["0"]
    assert "goes to a node drawn elsewhere" in texts(drawing)


def test_the_legend_explains_only_what_occurs():
    x = torch.ones(2, requires_grad=True)
    shown = texts(draw(x.sum(), {"x": x}))
    assert shown[-2:] == [
        "gradients flow down: from the output to the leaves",
        "a leaf: its node adds to .grad",
    ]


def test_kinds_differ_in_outline_and_words():
    drawings = {
        name: drawn(name).svg
        for name in (
            "custom_three_outputs",
            "custom_once",
            "full_backward_hooks",
            "gradient_penalty",
            "written_through_views",
        )
    }
    assert "custom Function" in drawings["custom_three_outputs"]
    assert "raises when it runs" in drawings["custom_once"]
    assert "module's backward hook" in drawings["full_backward_hooks"]
    assert "recorded backward" in drawings["gradient_penalty"]
    assert "in-place change of a view" in drawings["written_through_views"]


def test_folded_boxes_say_how_to_see_everything():
    drawing = drawn("fan_in_1500")
    assert "folded: 3,002 nodes in all, fold=False draws each" in texts(drawing)
    assert any("×1,500" in text for text in texts(drawing))
    assert len(read(drawing.svg).boxes) < 6
    assert drawing.picture.key_of[0] == "0"
    assert set(drawing.picture.key_of) <= set(drawing.picture.boxes)


def test_fold_follows_the_threshold_and_the_switch():
    graph = graph_of({i: [i + 1] for i in range(30)})
    assert len(read(draw(graph).svg).boxes) == 32
    assert len(read(draw(graph, fold_above=20).svg).boxes) == 5
    assert len(read(draw(graph, fold=True).svg).boxes) == 5
    assert len(read(draw(graph, fold_above=20, fold=False).svg).boxes) == 32


HOSTILE = [
    "a<b>&c",
    '"quoted"',
    "</svg><script>",
    "ключ",
    "重み",
    "🔥" * 30,
    "x" * 300,
    "layer.\u0301combining",
    "]]>",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_any_name_is_escaped_and_fits(name):
    x = torch.ones(2, requires_grad=True)
    drawing = draw({name: x.sum()}, {name: x}, title=name)
    shown = read(drawing.svg)
    assert shorten(name) in shown.texts["1"]
    left, _, right, _ = shown.boxes["1"]
    assert text_width(shorten(name)) <= right - left
    assert "<script>" not in drawing._repr_html_()
    assert drawing._repr_html_().count("</svg>") == 1


@pytest.mark.parametrize("name", ["square_by_itself", "some_outputs_unused", "fan_in_1500"])
def test_it_is_accessible(name):
    drawing = drawn(name)
    root = ElementTree.fromstring(drawing.svg)
    assert root.get("role") == "img"
    named = [root.find(SVG + tag) for tag in ("title", "desc")]
    assert named == list(root)[:2]  # the first children of a picture name and describe it
    assert named[0].text == "Backward graph of the output"
    assert re.match(r"[\d,]+ nodes and [\d,]+ edges; gradients flow from top to bottom\.", named[1].text)
    assert f'alt="{named[0].text}. ' in drawing._repr_html_()


def test_the_description_names_what_is_special():
    x = torch.ones(4, requires_grad=True)
    first, _ = x.split(2)
    text = draw((first * 2).sum(), {"x": x}).picture.description
    assert text == (
        "4 nodes and 3 edges; gradients flow from top to bottom. "
        "Outputs: the output scalar from SumBackward0. "
        "Leaves: x (4,). Slots without a node: MulBackward0 slot 1 "
        f"({Graph.of(first * 2).nodes[0].edges[1].reason}). Unused: SplitBackward0 output 1."
    )


def test_two_equal_drawings_on_a_page_share_no_id():
    x = torch.ones(2, requires_grad=True)
    page = draw(x.sum())._repr_html_() + draw(x.sum())._repr_html_()
    page = re.sub('src="[^"]*"', "", page)  # an image is a document of its own
    assert not re.findall(r"\sid=", page)
    assert "url(#" not in page


def test_the_page_falls_back_to_the_same_picture():
    drawing = drawn("square_by_itself")
    page = drawing._repr_html_()
    (uri,) = re.findall(r'src="data:image/svg\+xml,([^"]*)"', page)
    assert unquote(uri) == drawing.svg.strip()
    assert not re.search(r'[<>#"]', uri)
    assert '<div class="ag-live" hidden="hidden">' in page  # without our style only the image is seen


def test_only_wide_drawings_are_tab_stops():
    assert "tabindex" not in drawn("square_by_itself")._repr_html_()
    x = [torch.ones(2, requires_grad=True) for _ in range(12)]
    wide = draw(torch.stack(x).sum(), {f"parameter{i}": t for i, t in enumerate(x)})._repr_html_()
    assert 'tabindex="0" role="region" aria-label=' in wide


def test_the_bundle_serves_every_viewer():
    drawing = drawn("square_by_itself")
    bundle = drawing._repr_mimebundle_()
    assert list(bundle) == ["text/html", "image/svg+xml", "text/plain"]
    assert bundle["image/svg+xml"] == drawing.svg
    assert bundle["text/plain"] == str(drawing) == str(drawing.graph)


def test_saved_tensors_are_read_where_they_are_asked_for():
    x = torch.ones(2, requires_grad=True)
    out = (x * x).exp()
    plain, whole = draw(out), draw(out, saved=True)
    assert "saved result" in str(whole) and "saved" not in str(plain)
    # What is freed is told all the same.
    out.sum().backward()
    assert "freed" in str(draw(out)) and "freed" in draw(out).svg


def test_dark_mode_follows_each_viewer():
    page = drawn("square_by_itself")._repr_html_()
    for selector in (
        'html[data-theme="dark"] .ag',
        'body[data-jp-theme-light="false"] .ag',
        'html[theme="dark"] .ag',
        "body.vscode-dark .ag",
        "@media screen and (prefers-color-scheme:dark)",
    ):
        assert selector in page


def contrast(a: str, b: str) -> float:
    def light(color: str) -> float:
        color = color[1:] if len(color) == 7 else "".join(c * 2 for c in color[1:])
        parts = [int(color[i : i + 2], 16) / 255 for i in (0, 2, 4)]
        r, g, b = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    high, low = sorted((light(a), light(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("mode", [0, 1], ids=["light", "dark"])
def test_colors_have_enough_contrast(mode):
    colors = {name: pair[mode] for name, pair in COLORS.items()}
    pages = [("#fff",), ("#14181f", "#121212", "#1e1e1e")][mode]
    fills = [colors[name] for name in COLORS if len(name) == 2 and name[1] == "f" and name != "gf"]
    for text in ("t", "m"):
        assert all(contrast(colors[text], back) >= 4.5 for back in (*fills, *pages))
    assert all(contrast(colors["es"], back) >= 4.5 for back in (colors["of"], *pages))
    assert contrast(colors["gt"], colors["gf"]) >= 4.5
    for line in [name for name in COLORS if name == "l" or name[1:] == "s"]:
        assert all(contrast(colors[line], page) >= 3 for page in pages), line


def test_saving_writes_a_file_that_stands_alone(tmp_path):
    drawing = drawn("square_by_itself")
    drawing.save(tmp_path / "graph.svg")
    assert (tmp_path / "graph.svg").read_bytes() == drawing.svg.encode()
    assert drawing.svg.startswith('<svg xmlns="http://www.w3.org/2000/svg"')


def test_a_file_styles_what_it_holds_and_needs_no_variables():
    """Inkscape and others do not know variables."""
    svg = drawn("square_by_itself").svg
    classes = {name for names in re.findall('class="([^"]*)"', svg) for name in names.split()}
    (style,) = re.findall("<style>(.*)</style>", svg)
    assert set(re.findall(r"\.(ag-?\w*)", style)) == classes
    assert "var(" not in svg and "--" not in svg
    assert ".ag-custom" in drawn("custom_three_outputs").svg


def test_saving_says_what_is_wrong(tmp_path):
    drawing = drawn("square_by_itself")
    with pytest.raises(ValueError, match=r"use a name that ends in \.svg instead of 'graph\.png'"):
        drawing.save(tmp_path / "graph.png")
    with pytest.raises(FileNotFoundError, match="does not exist: make it first"):
        drawing.save(tmp_path / "missing" / "graph.svg")


def test_wrong_input_gets_one_sentence():
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(ValueError, match="no grad_fn"):
        draw(torch.ones(2))
    with pytest.raises(TypeError, match="a module has no graph until it is called"):
        draw(torch.nn.Linear(2, 2))
    with pytest.raises(ValueError, match="A Graph has its names already"):
        draw(Graph.of(x.sin()), {"x": x})
    with pytest.raises(ValueError, match="fold_above must be at least 1"):
        draw(x.sin(), fold_above=0)


def test_the_same_graph_gives_the_same_bytes_in_every_process():
    names = [*CAPTURED[:12], "unrolled_cells", "custom_three_outputs"]
    program = (
        "import sys, warnings; warnings.simplefilter('ignore');"
        "from shapes import SHAPES; from inside_autograd import draw;"
        f"pages = ''.join(draw(*SHAPES[n](), saved=True)._repr_html_() for n in {names});"
        "sys.stdout.buffer.write(pages.encode())"
    )
    # Strings hash otherwise there than here, so a set's order would differ.
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    env = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(HERE)}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    here = "".join(draw(*SHAPES[name](), saved=True)._repr_html_() for name in names)
    assert done.stdout == here.encode()


def test_no_address_path_or_clock_in_the_bytes():
    for name in ("custom_three_outputs", "written_through_views"):
        page = drawn(name, saved=True)._repr_html_()
        assert not re.search(r"0x[0-9a-f]{6}|/home/|/tmp/|20\d\d-\d\d", page)


@pytest.mark.parametrize("name", ["unrolled_cells", "fan_in_1500", "chain_4000"])
def test_large_graphs_are_drawn_fast(name):
    graph = captured(name)
    draw(graph)  # imports igraph
    start = time.perf_counter()
    draw(graph)
    assert time.perf_counter() - start < 1.5  # 0.1 to 0.2 s on an idle machine


def test_a_graph_drawn_whole_stays_possible():
    start = time.perf_counter()
    drawing = draw(captured("unrolled_cells"), fold=False)
    assert time.perf_counter() - start < 15
    assert len(read(drawing.svg).boxes) == len(drawing.graph) + 1


GOLDEN = [
    "square_by_itself", "nested_dict", "some_outputs_unused", "custom_three_outputs", "gradient_penalty",
    "written_through_views", "fan_in_1500", "chain_4000", "shared_and_tied",
]  # fmt: skip


@pytest.mark.parametrize("name", GOLDEN)
def test_golden(name, golden):
    golden(f"{name}.svg", drawn(name, saved=name == "custom_three_outputs").svg)


def test_many_cut_edges_of_a_node_share_an_arrow():
    edges = tuple(Edge(0, slot, None, 0, "past the limits, not read", cut=True) for slot in range(290))
    edges += (Edge(0, 290, 1, 0),)
    leaf = Node(1, "AccumulateGrad", "accumulate", ("w",), (2,))
    nodes = (Node(0, "StackBackward0", "op", edges=edges), leaf)
    drawing = draw(Graph(nodes, (Root("", 0, 0, ()),), Cut(290, 290, 1500, 2)))
    arrows = [key for key, _ in read(drawing.svg).arrows]
    assert sorted(arrows) == ["0-0", "0-290", "r0"]
    assert "×290" in texts(drawing)
    assert {"0–289", "290"} <= set(read(drawing.svg).texts["0"])
