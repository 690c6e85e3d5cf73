"""What a page may cost: requests and bytes of a first visit, bytes of the next; no jumps and no noise.

Measured with an empty cache, through a server that compresses as the hosts of sites do.
"""

import base64
import gzip
import io
import os
import re
from pathlib import Path

import pytest
from fontTools.ttLib import TTFont
from test_smoke import CHAPTERS, PAGES
from weighing import open_scale

import fonts

ROOT = Path(__file__).resolve().parents[2]
SITE = Path(os.environ.get("SITE_DIR") or ROOT / "_build" / "html")
REQUESTS, FIRST, NEXT = 20, 250_000, 60_000
# The clinic is one notebook with every entry of the catalogue: its words alone, without markup, are 61 kB.
CATALOGUES = {"notebooks/42_error_clinic": 110_000}
SHIFTS = """
    window.shifts = []
    new PerformanceObserver(list => {
        for (const one of list.getEntries()) if (!one.hadRecentInput) window.shifts.push(one.value)
    }).observe({type: "layout-shift", buffered: true})
"""


@pytest.fixture(scope="module")
def scale():
    server = open_scale(SITE)
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def visit(browser, scale):
    """A function that visits a page: ``visit(name)`` gives the page and what was sent for it."""
    contexts, noise = [], []

    def visit_(name, page=None):
        wait = "load" if page else "networkidle"
        if page is None:
            contexts.append(browser.new_context())
            page = contexts[-1].new_page()
            page.add_init_script(SHIFTS)
            page.on("console", lambda m: m.type in ("error", "warning") and noise.append(m.text[:200]))
            page.on("pageerror", lambda error: noise.append(str(error)))
        scale.sent.clear()
        page.goto(f"http://127.0.0.1:{scale.server_port}/{name}.html", wait_until=wait)
        return page, list(scale.sent)

    yield visit_
    for context in contexts:
        context.close()
    assert not noise, "\n".join(noise)


def weight(sent):
    return sum(size for _, size, _ in sent)


def listing(sent):
    return "\n".join(f"{size:8} {path}" for path, size, _ in sorted(sent, key=lambda one: -one[1]))


@pytest.mark.parametrize("name", PAGES)
def test_a_first_visit_and_the_next_page_cost_little(visit, name):
    page, sent = visit(name)
    assert [status for _, _, status in sent if status != 200] == []
    assert len(sent) <= REQUESTS and weight(sent) <= FIRST, listing(sent)
    assert not any("search" in path for path, _, _ in sent), "what searches loads at the first search"
    # Nothing waits for a script, and nothing moves once it is shown.
    assert page.locator("script[src]:not([defer], [async], [type=module])").count() == 0
    assert sum(page.evaluate("window.shifts")) < 0.02

    following = PAGES[(PAGES.index(name) + 1) % len(PAGES)]
    page, sent = visit(following, page)
    played = page.evaluate(
        """async () => {
            const text = await (await fetch(location.href, {cache: 'force-cache'})).text()
            const page = new DOMParser().parseFromString(text, 'text/html')
            for (const e of page.querySelectorAll('.iap, .iax')) (e.closest('.text_html') || e).remove()
            return page.documentElement.outerHTML
        }"""
    )
    rest = weight(sent[1:]) + len(gzip.compress(played.encode(), 6))
    assert rest <= CATALOGUES.get(following, NEXT), listing(sent)


def test_the_scale_weighs_what_is_sent(visit):
    _, sent = visit(CHAPTERS[0])
    path, size, status = sent[0]
    assert (path, status) == (f"/{CHAPTERS[0]}.html", 200)
    assert size == len(gzip.compress((SITE / f"{CHAPTERS[0]}.html").read_bytes(), 6, mtime=0))


def test_the_search_page_loads_the_index(visit):
    _, sent = visit("search")
    assert any(path == "/searchindex.js" for path, _, _ in sent)
    assert weight(sent) <= FIRST


@pytest.fixture(scope="module")
def css():
    return (SITE / "_static" / "site.css").read_text(encoding="utf-8")


def font_in(css, family):
    face = re.search(rf'@font-face\s?{{[^}}]*"{family}"[^}}]*base64,([^"]+)"', css)
    return TTFont(io.BytesIO(base64.b64decode(face[1])))


def test_every_icon_of_the_pages_is_in_the_font_and_no_other(css):
    pages = [path.read_text(encoding="utf-8") for path in SITE.rglob("*.html")]
    used = {one for page in pages for one in re.findall(r'class="[^"]*\b(fa-(?!solid|lg)[\w-]+)', page)}
    assert "fa-bars" in used
    glyphs = font_in(css, "Font Awesome 6 Free").getBestCmap()
    for icon in used:
        rule = re.search(rf'\.{icon}:before[^{{]*{{content: ?"(.)"', css)
        assert rule and ord(rule[1]) in glyphs, icon
    assert len(glyphs) < 60


def test_every_character_of_the_formulas_is_in_the_font(css):
    pages = [path.read_text(encoding="utf-8") for path in SITE.rglob("*.html")]
    font = font_in(css, "Book Math")
    whole = TTFont(ROOT / "book/_static/fonts/stix-two-math-subset.woff2").getBestCmap()
    assert not (fonts.formula_codes(pages) & set(whole)) - set(font.getBestCmap())
    assert ord("∂") in font.getBestCmap() and "MATH" in font


def test_a_page_from_the_disk_has_its_style_and_its_icons(browser):
    page = browser.new_page()
    page.goto((SITE / f"{CHAPTERS[0]}.html").as_uri(), wait_until="load")
    assert page.evaluate("document.fonts.load('900 16px \"Font Awesome 6 Free\"', '\\uf0c9')") is not None
    assert page.evaluate("getComputedStyle(document.querySelector('.fa-bars')).fontWeight") == "900"
    faces = "[...document.fonts].filter(f => f.status === 'loaded').map(f => f.family)"
    assert any("Font Awesome" in family for family in page.evaluate(faces))
    page.close()
