"""What folded boxes hold: what the panels show, and that they open without a script."""

import re

import pytest
import torch
from torch import nn

from inside_autograd import Graph, draw
from inside_autograd.drawing import FRAME_CSS
from pictures import SVG, panels_of, read
from test_drawing_modes import page_of
from test_series import Block, Stack, blocks


@pytest.fixture(scope="module")
def drawing():
    model = Stack(blocks(12))
    return draw(model(torch.ones(2, 4)), model, fold=True)


@pytest.fixture(scope="module")
def nested():
    """Twelve layers with eight experts each: boxes in a box."""

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.experts = nn.ModuleList(blocks(9))

        def forward(self, x):
            return sum(expert(x) for expert in self.experts)

    model = Stack([Layer() for _ in range(12)])
    return draw(model(torch.ones(2, 4)), model, fold=True)


def tags(panel) -> list[str]:
    """The texts of the dark tags: where arrows come from, and where they go."""
    root = read(panel.picture.svg(alone=True)).root
    groups = [g for g in root.iter(SVG + "g") if "ag-root" in (g.get("class") or "")]
    return [text.text for g in groups for text in g.iter(SVG + "text")]


def test_a_panel_shows_one_repeat_whole(drawing):
    (panel,) = drawing.panels
    shown = read(panel.picture.svg(alone=True))
    names = [texts[0] for key, texts in shown.texts.items() if key[0].isdigit()]
    assert sorted(name for name in names if name.startswith("layers")) == [
        "layers.0.lin1.bias",
        "layers.0.lin1.weight",
        "layers.0.lin2.bias",
        "layers.0.lin2.weight",
    ]
    assert sorted(name for name in names if not name.startswith("layers")) == [
        "AddBackward0",
        *["AddmmBackward0"] * 2,
        "ReluBackward0",
        *["TBackward0"] * 2,
        "TanhBackward0",
    ]
    assert panel.picture.title == "layers.0, one of 12"


def test_tags_say_where_arrows_come_from_and_go_to(drawing):
    stem = next(n.index for n in drawing.graph.nodes if n.edges and any(
        e.target is not None and drawing.graph.nodes[e.target].names == ("stem.bias",) for e in n.edges
    ))  # fmt: skip
    assert tags(drawing.panels[0]) == ["from layers.1", f"to AddmmBackward0 #{stem}"]


def test_every_edge_of_the_repeat_is_an_arrow(drawing):
    (panel,) = drawing.panels
    shown = read(panel.picture.svg(alone=True))
    inside = {int(key) for key in shown.boxes if key.isdecimal()}
    graph = drawing.graph
    edges = [e for i in inside for e in graph.nodes[i].edges if e.target is not None]
    within = {f"{e.source}-{e.slot}" for e in edges if e.target in inside}
    drawn = {key for key, _ in shown.arrows}
    assert within <= drawn
    # The others come in from the next layer, or leave for the stem.
    others = {key for key in drawn - within if int(key.split("-")[0]) in inside}
    assert others == {f"{e.source}-{e.slot}" for e in edges if e.target not in inside}
    assert len(drawn - within - others) == 1  # into the sum; two edges, drawn as one


def test_steps_name_their_neighbors():
    cell = nn.RNNCell(4, 4)
    h = torch.zeros(2, 4)
    for _ in range(40):
        h = cell(torch.ones(2, 4), h)
    (panel,) = draw(h.sum(), {"cell": cell}, fold=True).panels
    assert panel.picture.title == "cell: one of 40 steps"
    assert tags(panel) == ["from the next step", "to the step before"]


def test_unnamed_repeats_are_counted():
    x = torch.ones(2, requires_grad=True)
    h = x.exp()
    for _ in range(90):
        h = h.sin() * h.cos()
    (panel,) = draw(h, {"x": x}, fold=True).panels
    # The last product is the output: it stays apart, so its sin and cos are no whole repeat.
    assert panel.picture.title == "One of 89 repeats"


def test_an_output_in_a_repeat_keeps_its_tag():
    """With more outputs than are kept apart, they stand in the folds."""
    model = Stack(blocks(30))
    x, outputs = torch.ones(2, 4), []
    x = model.stem(x)
    for layer in model.layers:
        x = layer(x)
        outputs.append(x)
    drawing = draw(outputs, model, fold=True)
    (panel,) = [p for p in drawing.panels if p.name.startswith("layers.")]
    assert tags(panel)[0].startswith("from layers.")
    assert any(tag.startswith("[0]") for tag in tags(panel))


def test_boxes_in_boxes_have_panels_in_panels(nested):
    (outer,) = nested.panels
    (inner,) = outer.panels
    assert re.fullmatch(r"layers\.\d+, one of 12", outer.picture.title)
    assert re.fullmatch(r"layers\.\d+\.experts\.\d, one of 9", inner.picture.title)
    assert not inner.panels


def test_all_drawings_together_stay_small():
    parts = [nn.Sequential(nn.Linear(n, n + 1), nn.Tanh(), nn.Linear(n + 1, n + 1)) for n in range(2, 60)]
    model = nn.Sequential(*parts)
    drawing = draw(model(torch.ones(2, 2)).sum(), model)
    shown = [drawing.picture, *(panel.picture for panel in panels_of(drawing))]
    boxes = [sum(key[0].isdigit() for key in picture.boxes) for picture in shown]
    assert boxes[0] <= 140 and sum(boxes) <= 240
    assert len(panels_of(drawing)) > 1


def test_saved_tensors_are_listed_in_panels():
    model = Stack(blocks(12))
    drawing = draw(model(torch.ones(2, 4)), model, saved=True, fold=True)
    assert "result (2, 4) · own output · alive" in drawing.panels[0].picture.body


def test_the_file_holds_all_panels(nested):
    svg = nested.svg
    root = read(svg).root
    height = sum(p.picture.height + 12 for p in panels_of(nested)) + nested.picture.height
    assert int(root.get("height")) == height
    assert svg.count("one of 12") and svg.count("one of 9")
    assert "var(" not in svg


def test_what_folds_nothing_has_no_panels():
    x = torch.ones(2, requires_grad=True)
    for drawing in (draw(x.sin(), {"x": x}), draw(x.sin(), {"x": x}, fold=True), draw(Graph.of(x.sin()))):
        assert drawing.panels == ()
        assert "ag-fold" not in drawing._repr_html_()
        assert f"<style>{FRAME_CSS}</style>" in drawing._repr_html_()


def test_a_page_needs_no_id_and_no_script(nested):
    html = re.sub('src="[^"]*"', "", nested._repr_html_())
    assert not re.search(r"<script|\son\w+=|\sid=|url\(#|href=", html)
    assert html.count("<details") == html.count("<summary") == 2
    assert html.count("--ag-t:") == 3  # one style sheet serves the panels too: light, dark by system, by page


@pytest.mark.parametrize("name", ["a<b>&c", '"quoted"', "</svg><script>", "]]>", "x" * 300])
def test_any_name_is_escaped(name):
    model = Stack(blocks(12))
    params = {k.replace("layers", name): v for k, v in model.named_parameters()}
    drawing = draw(model(torch.ones(2, 4)), params, fold=True)
    html = drawing._repr_html_()
    assert "<script>" not in html and html.count("</svg>") == 2
    assert read(drawing.svg).boxes


def test_the_same_bytes_each_time(drawing):
    model = Stack(blocks(12))
    again = draw(model(torch.ones(2, 4)), model, fold=True)
    assert again._repr_html_() == drawing._repr_html_()
    assert again.svg == drawing.svg


def test_one_block_that_differs_has_a_panel_of_its_own():
    model = Stack([Block(extra=i == 5) for i in range(12)])
    drawing = draw(model(torch.ones(2, 4)), model, fold=True)
    titles = [panel.picture.title for panel in drawing.panels]
    assert titles == ["layers.6, one of 6", "layers.5", "layers.0, one of 5"]
    assert tags(drawing.panels[1]) == ["from layers.6…11 ×6", "to layers.0…4 ×5"]


# --- in a browser


@pytest.fixture(params=[390, 1000], ids=["phone", "desktop"])
def page(browser, request):
    context = browser.new_context(viewport={"width": request.param, "height": 800}, java_script_enabled=False)
    page = context.new_page()
    yield page
    context.close()


def test_a_click_on_the_box_opens_and_closes_it(page, drawing):
    page.set_content(page_of(drawing._repr_html_()))
    panel = page.locator(".ag-panel")
    assert not panel.is_visible()
    box = page.locator(f'[data-n="{drawing.panels[0].key}"]').first.locator("rect").last.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert panel.is_visible()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert not panel.is_visible()


def test_the_button_lies_over_its_box(page, nested):
    page.set_content(page_of(nested._repr_html_()))
    for number, panel in enumerate(panels_of(nested)):
        button = page.locator("summary").nth(number)
        box = page.locator(f'[data-n="{panel.key}"]').first.locator("rect").last.bounding_box()
        over = button.bounding_box()
        for side in ("x", "y", "width", "height"):
            assert abs(box[side] - over[side]) <= 2.5, side
        button.click()
    assert page.locator(".ag-panel").last.is_visible()


def test_the_keyboard_opens_it(page, drawing):
    page.set_content(page_of(drawing._repr_html_()))
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.locator(".ag-panel").is_visible()
    page.keyboard.press("Space")
    assert not page.locator(".ag-panel").is_visible()


def test_it_says_what_it_does_and_what_it_shows(browser, drawing):
    page = browser.new_page()
    page.set_content(page_of(drawing._repr_html_()))
    page.locator("summary").click()
    tree = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    said = {(node["role"]["value"], node.get("name", {}).get("value", "")) for node in tree if "role" in node}
    assert ("DisclosureTriangle", "layers.0…11 ×12: show what is inside") in said
    assert ("image", "layers.0, one of 12") in said
    page.close()


def test_the_page_never_grows_wider(page, nested):
    page.set_content(page_of(nested._repr_html_()))
    for number in range(2):
        page.locator("summary").nth(number).click()
    frame = page.locator(".ag-frame").bounding_box()
    assert frame["width"] <= page.viewport_size["width"]


@pytest.mark.parametrize("root", ['data-theme="dark"', 'data-theme="light"'])
def test_panels_follow_the_mode_of_the_page(browser, drawing, root):
    page = browser.new_page()
    page.set_content(page_of(drawing._repr_html_(), root))
    page.locator("summary").click()
    fills = page.evaluate(
        "[...document.querySelectorAll('svg.ag .ag-n:not(.ag-leaf):not(.ag-root) rect:not(.ag-k)')]"
        ".map((e) => getComputedStyle(e).fill)"
    )
    assert set(fills) == {"rgb(37, 43, 53)" if "dark" in root else "rgb(242, 244, 248)"}
    page.close()


def test_two_drawings_on_a_page_open_apart(page, drawing):
    page.set_content(page_of(drawing._repr_html_() * 2))
    page.locator("summary").first.click()
    assert [panel.is_visible() for panel in page.locator(".ag-panel").all()] == [True, False]


def test_printed_the_buttons_are_gone(page, drawing):
    page.set_content(page_of(drawing._repr_html_()))
    page.emulate_media(media="print")
    assert not page.locator("summary").is_visible()
