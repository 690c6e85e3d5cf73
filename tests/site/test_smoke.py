"""Every page opens, shows its drawings in each mode, asks no other host for anything, leads to the next."""

import re
import sys
from pathlib import Path

import nbformat
import pytest
import yaml
from contrast import assert_words_stand_out, contrast
from playwright.sync_api import expect

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from notebook_rules.view import Page  # noqa: E402

PHONE = {"width": 360, "height": 800}
# Explorers and players, of which a page shows one frame or step at a time, are in test_interactive.py.
FRAME = ".ag-frame:not(.iax *, .iap *)"
FIGURE = ".cell_output figure img:not(.iax *)"


def book_pages():
    """The pages of _toc.yml in order, without suffix."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    chapters = toc.get("chapters", [])
    for part in toc.get("parts", []):
        chapters = chapters + part["chapters"]
    return [toc["root"], *(chapter["file"] for chapter in chapters)]


PAGES = book_pages()
CHAPTERS = [page for page in PAGES if page.startswith("notebooks/")]
every_page = pytest.mark.parametrize("name", PAGES)
every_chapter = pytest.mark.parametrize("name", CHAPTERS)


def outputs_of(name):
    """The HTML of each output of a chapter, as stored."""
    notebook = nbformat.read(ROOT / f"{name}.ipynb", as_version=4)
    return [
        output.data["text/html"]
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if "text/html" in output.get("data", {})
    ]


def stored_drawings(name):
    """How many drawings a chapter stores, those of explorers and players left out."""
    return sum(
        "ag-frame" in attributes.get("class", "").split()
        for html in outputs_of(name)
        if not re.search(r'class="ia[xp]', html)
        for _, attributes in Page(html).elements
    )


def stored_figures(name):
    """How many matplotlib figures a chapter stores, those of explorers left out."""
    shown = [html for html in outputs_of(name) if 'class="iax' not in html]
    return sum(tag == "figure" for html in shown for tag, _ in Page(html).elements)


def title_of(name):
    """The title of a page's source, without marks."""
    path = ROOT / f"{name}.ipynb"
    if path.exists():
        text = nbformat.read(path, as_version=4).cells[0].source
    else:
        text = (ROOT / f"{name}.md").read_text(encoding="utf-8")
    return re.search(r"^# (.+)$", text, re.MULTILINE).group(1).replace("`", "").strip()


def assert_drawings_are_visible(page, name):
    """As many drawings as the notebook stores, each seen, named, and seen once."""
    frames = page.locator(FRAME)
    assert frames.count() == stored_drawings(name)
    for frame in frames.all():
        expect(frame.locator("img")).to_be_hidden()  # it stands in where the drawing is taken out
        drawing = frame.locator("svg.ag")
        expect(drawing).to_have_role("img")
        expect(drawing).to_have_accessible_name(re.compile(r"\w{3}"))
        box = drawing.bounding_box()
        assert box["width"] > 50 and box["height"] > 30, box
    figures = page.locator(FIGURE)
    assert figures.count() == stored_figures(name)
    for figure in figures.all():
        expect(figure).to_have_accessible_name(re.compile(r"\w{3}"))
        assert figure.bounding_box()["width"] > 50
        assert figure.evaluate("image => image.complete && image.naturalWidth > 0")


def test_there_are_drawings():
    assert sum(stored_drawings(name) for name in CHAPTERS) > 0


@every_page
def test_page_opens_with_its_title(open_page, name):
    page = open_page(f"{name}.html")
    title = title_of(name)
    heading = page.locator("article h1")
    expect(heading).to_have_count(1)
    shown = heading.evaluate(
        "h => { const c = h.cloneNode(true); c.querySelectorAll('.headerlink').forEach(a => a.remove());"
        " return c.textContent }"
    )
    # Sphinx sets an apostrophe as a printer would.
    title = title.replace("'", "’")
    assert " ".join(shown.split()) == title
    assert title in page.title()


def test_the_address_of_the_site_leads_to_its_first_page(open_page, address):
    page = open_page("")
    page.wait_for_url(f"{address}/{PAGES[0]}.html")


def test_next_and_previous_lead_through_the_whole_book(open_page, address):
    page = open_page(f"{PAGES[0]}.html")

    def walk(selector):
        seen = [page.url]
        while page.locator(selector).count():
            page.locator(selector).click()
            page.wait_for_load_state("load")
            assert page.url not in seen, f"{page.url} comes twice"
            seen.append(page.url)
        return [url.removeprefix(f"{address}/").removesuffix(".html") for url in seen]

    assert walk("a.right-next") == PAGES
    assert walk("a.left-prev") == PAGES[::-1]


@pytest.mark.parametrize("name", [*PAGES, "search", "404", "genindex"])
def test_a_phone_scrolls_no_page_sideways(open_page, name):
    page = open_page(f"{name}.html", viewport=PHONE)
    wide = page.evaluate(
        """() => {
            const width = document.documentElement.clientWidth
            if (document.documentElement.scrollWidth <= width && document.body.scrollWidth <= width) return []
            const scrolls = e =>
                e && (getComputedStyle(e).overflowX !== 'visible' || scrolls(e.parentElement))
            return [...document.querySelectorAll('main *')]
                .filter(e => e.getBoundingClientRect().right > width + 1 && !scrolls(e.parentElement))
                .slice(0, 5).map(e => e.outerHTML.slice(0, 120)).concat('the page is wider than the screen')
        }"""
    )
    assert not wide, wide


def test_contrast_is_computed_as_wcag_does():
    assert contrast("rgb(0, 0, 0)", "rgb(255, 255, 255)") == pytest.approx(21)
    assert contrast("rgb(119, 119, 119)", "rgb(255, 255, 255)") == pytest.approx(4.48, abs=0.005)
    assert contrast("rgb(9, 9, 9)", "rgb(9, 9, 9)") == 1


MODES = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "dark, no JavaScript": {"color_scheme": "dark", "java_script_enabled": False},
}


@pytest.mark.parametrize("mode", MODES)
@every_chapter
def test_every_drawing_is_visible_and_its_words_stand_out(open_page, name, mode):
    page = open_page(f"{name}.html", **MODES[mode])
    assert_drawings_are_visible(page, name)
    for frame in page.locator(FRAME).all():
        assert assert_words_stand_out(frame.locator("svg.ag"), "text") > 1


@every_page
def test_page_is_readable_without_javascript(open_page, name):
    page = open_page(f"{name}.html", java_script_enabled=False)
    expect(page.locator("article h1")).to_be_visible()
    assert len(page.locator("article").inner_text().split()) > 20
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert_words_stand_out(page.locator("article"), "h1, p, pre, summary")
    folds = page.locator("article details:not(.iap *)")  # a player's list of steps stands open here
    for index in range(min(folds.count(), 3)):
        content = folds.nth(index).locator(":scope > :not(summary)").first
        expect(content).to_be_hidden()
        folds.nth(index).locator(":scope > summary").click()
        expect(content).to_be_visible()
    for formula in page.locator("article math:visible").all()[:5]:
        assert formula.bounding_box()["width"] > 0


SIGN = """root => root.getBoundingClientRect().width
  - [...root.children].reduce((sum, child) => sum + child.getBoundingClientRect().width, 0)"""


def test_the_sign_of_a_root_is_drawn(open_page):
    """No character of the page stands for it: a font that lacks the sign leaves it out without a word."""
    page = open_page("notebooks/41_anomaly_and_nan.html")
    roots = page.locator("article msqrt:visible")
    assert roots.count() >= 1
    for root in roots.all():
        assert root.evaluate(SIGN) > 4, "the root has no sign"
