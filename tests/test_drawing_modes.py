"""One drawing in Chromium, dressed as each viewer: light, dark, printed, and in an untrusted notebook."""

import re
from importlib.metadata import files

import pytest

from inside_autograd.drawing import html as html_of
from pictures import CAPTURED, drawn

LIGHT, DARK = "rgb(242, 244, 248)", "rgb(37, 43, 53)"  # how an operation's box is filled

VIEWERS = {  # attributes of <html> and <body>, and the mode; None follows the system
    "nothing": ("", "", None),
    "site, dark": ('data-theme="dark"', "", DARK),
    "site, light": ('data-theme="light"', "", LIGHT),
    "JupyterLab, dark": ("", 'data-jp-theme-light="false"', DARK),
    "JupyterLab, light": ("", 'data-jp-theme-light="true"', LIGHT),
    "Colab, dark": ('theme="dark"', "", DARK),
    "VS Code, dark": ("", 'class="vscode-dark"', DARK),
    "VS Code, light": ("", 'class="vscode-light"', LIGHT),
}

LOOK = """() => {
  const svg = document.querySelector("svg.ag"), image = document.querySelector("img");
  const box = svg && svg.querySelector(".ag-n rect"), output = document.querySelector(".text_html");
  return {
    svg: svg ? svg.getBoundingClientRect().width : 0,
    image: image.getBoundingClientRect().width,
    loaded: image.naturalWidth,
    fill: box && getComputedStyle(box).fill,
    behind: getComputedStyle(output).backgroundColor,
    text: document.body.innerText.trim(),
  };
}"""


STYLES = """() => [...document.querySelectorAll("svg.ag :is(g,path,rect,text):not(.ag-bg)")].map((e) => {
  const s = getComputedStyle(e), names = ["fill", "stroke", "strokeWidth", "strokeDasharray", "fontSize",
    "fontFamily", "fontWeight", "textAnchor"];
  return [e.tagName, e.getAttribute("class"), ...(e.tagName === "g" ? [] : names.map((name) => s[name]))];
})"""


def page_of(html: str, root: str = "", body: str = "") -> str:
    """A page of the site's theme with one output."""
    (sheet,) = [f for f in files("pydata-sphinx-theme") if f.name == "pydata-sphinx-theme.css"]
    return (
        f"<!doctype html><html {root}><head><style>{sheet.read_text()}</style></head><body {body}>"
        '<div class="bd-content"><div class="cell_output">'
        f'<div class="output text_html">{html}</div></div></div>'
    )


@pytest.fixture(scope="module")
def html():
    return drawn("square_by_itself")._repr_html_()


@pytest.mark.parametrize("system", ["light", "dark"])
def test_each_viewer_gets_its_mode(browser, html, system):
    page = browser.new_page(color_scheme=system)
    for viewer, (root, body, fill) in VIEWERS.items():
        page.set_content(page_of(html, root, body))
        seen = page.evaluate(LOOK)
        assert seen["fill"] == (fill or {"light": LIGHT, "dark": DARK}[system]), viewer
        assert seen["behind"] == "rgba(0, 0, 0, 0)", f"{viewer}: a box stands behind the drawing"
        assert seen["svg"] > 0 and seen["image"] == 0, viewer
    page.set_content(page_of(html, 'data-theme="dark"'))
    page.emulate_media(media="print")
    assert page.evaluate(LOOK)["fill"] == LIGHT
    page.close()


@pytest.mark.parametrize("system", ["light", "dark"])
def test_a_file_looks_as_the_drawing_in_a_page(browser, system):
    page = browser.new_page(color_scheme=system)
    of_classes = {}  # a file's style depends on nothing else
    for name in CAPTURED:
        drawing = drawn(name, saved=True)
        classes = frozenset(re.findall('class="([^"]*)"', drawing.picture.body))
        of_classes.setdefault(classes, (name, drawing))
    for name, drawing in of_classes.values():
        page.set_content(html_of(drawing.picture))
        in_page = page.evaluate(STYLES)
        page.set_content(drawing.picture.svg(alone=True))
        assert page.evaluate(STYLES) == in_page, name
    assert len(of_classes) > 10
    page.close()


def test_a_file_tells_its_name_and_description(browser, tmp_path):
    drawing = drawn("square_by_itself")
    drawing.save(tmp_path / "graph.svg")
    page = browser.new_page()
    page.goto((tmp_path / "graph.svg").as_uri())
    tree = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    (image,) = [node for node in tree if node["role"]["value"] == "image"]
    assert image["name"]["value"] == drawing.picture.title == "Backward graph of the output"
    assert image["description"]["value"] == drawing.picture.description
    page.close()


def test_an_untrusted_notebook_shows_the_image_alone(browser, html):
    """JupyterLab's sanitizer drops styles whole, and of SVG the tags but not the texts."""
    before, image = re.sub(r"<style>.*?</style>", "", html).split("<img", 1)
    bare = re.sub(r"</?(svg|g|path|rect|text|title|desc)\b[^>]*>", "", before) + "<img" + image
    page = browser.new_page()
    page.set_content(page_of(bare))
    seen = page.evaluate(LOOK)
    assert seen["svg"] == 0
    assert seen["image"] == seen["loaded"] > 300
    assert seen["text"] == ""
    page.close()


def test_a_wide_drawing_scrolls_in_its_frame(browser):
    wide = drawn("residual_blocks")
    page = browser.new_page(viewport={"width": 390, "height": 700})
    page.set_content(page_of(wide._repr_html_()))
    frame, content, whole = page.evaluate(
        "() => { const f = document.querySelector('.ag-frame');"
        "return [f.clientWidth, f.scrollWidth, document.documentElement.scrollWidth]; }"
    )
    assert content == round(wide.picture.width * 0.85)
    assert frame <= 390 and whole <= 390
    page.set_viewport_size({"width": 1600, "height": 700})
    assert page.evaluate(LOOK)["svg"] == wide.picture.width  # its own size, not more
    page.close()
