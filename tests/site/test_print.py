"""Pages on paper: dark on white, whichever mode the screen is in; the cheat sheet on two sides."""

import re

import pytest
from contrast import assert_words_stand_out
from playwright.sync_api import expect

SHEET = "book/cheat_sheet.html"
MODES = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "dark, no JavaScript": {"color_scheme": "dark", "java_script_enabled": False},
}


def sides(pdf: bytes) -> int:
    """How many pages a PDF has."""
    return len(re.findall(rb"/Type\s*/Page[^s]", pdf))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("paper", ["A4", "Letter"])
def test_the_cheat_sheet_prints_on_two_sides(open_page, paper, mode):
    page = open_page(SHEET, **MODES[mode])
    assert sides(page.pdf(format=paper)) == 2


def test_it_still_does_where_letters_run_wider(open_page):
    page = open_page(SHEET)
    assert sides(page.pdf(width="210mm", height="275mm")) == 2  # 22 mm of A4 to spare


@pytest.mark.parametrize("mode", MODES)
def test_the_printed_sheet_is_whole_and_black_on_white(open_page, mode):
    page = open_page(SHEET, viewport={"width": 733, "height": 1000}, **MODES[mode])  # A4 without margins
    page.emulate_media(media="print")
    article = page.locator("article")
    for kind, least in (("h1", 1), ("h2", 14), ("pre", 14), ("tbody tr", 20)):
        shown = article.locator(kind)
        assert shown.count() >= least
        assert all(one.is_visible() for one in shown.all())
    cut = article.locator("pre, table").evaluate_all(
        "all => all.filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.textContent.slice(0, 80))"
    )
    assert cut == []
    colors = article.locator("h1, h2, p, td, th, pre, pre span:not(.c1), code").evaluate_all(
        "all => [...new Set(all.map(e => getComputedStyle(e).color))]"
    )
    assert colors == ["rgb(0, 0, 0)"]
    for part in ("header.bd-header", ".bd-sidebar-primary", ".bd-sidebar-secondary", ".prev-next-footer"):
        assert not any(one.is_visible() for one in page.locator(part).all())


# A chapter with drawings, players and explorers; one with formulas and figures; folded text; a long index.
KINDS = ("notebooks/22_accumulation", "notebooks/24_higher_order", "book/solutions_2", "book/errors")
# A player prints its first step; numbers of later ones wait unseen.
DRAWN = ".ag-frame:not(.iax *, .iap *) svg.ag text"
WHITE = ("rgb(255, 255, 255)", "rgba(0, 0, 0, 0)")
BEHIND = "e => getComputedStyle(e).backgroundColor"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", KINDS)
def test_a_page_prints_dark_on_white_and_whole(open_page, name, mode):
    page = open_page(f"{name}.html", viewport={"width": 733, "height": 1000}, **MODES[mode])
    page.emulate_media(media="print", color_scheme=MODES[mode]["color_scheme"])
    article = page.locator("article")
    for selector in ("html", "body", ".bd-main", "article"):
        assert page.locator(selector).first.evaluate(BEHIND) in WHITE, selector
    assert assert_words_stand_out(article, f"h1, h2, h3, p, pre, summary, td, th, {DRAWN}") > 20
    # A drawing in its dark colors would read as well, on a ground that wastes ink.
    words = article.locator(DRAWN).evaluate_all("all => all.map(e => getComputedStyle(e).fill)")
    assert "rgb(228, 232, 239)" not in words and (not words or "rgb(27, 35, 48)" in words)
    for part in ("header.bd-header-article", ".bd-header-article", ".prev-next-footer", ".opener-launch"):
        assert not any(one.is_visible() for one in page.locator(part).all()), part
    assert page.evaluate("document.documentElement.scrollWidth") <= 733 + 1
    cut = article.locator("pre:visible").evaluate_all(
        "all => all.filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.textContent.slice(0, 80))"
    )
    assert cut == []


def test_the_screen_is_dark_again_after_printing(open_page):
    page = open_page(f"{KINDS[0]}.html", color_scheme="dark")
    html = page.locator("html")
    page.emulate_media(media="print", color_scheme="dark")
    expect(html).to_have_attribute("data-theme", "light")
    page.emulate_media(media="screen", color_scheme="dark")
    expect(html).to_have_attribute("data-theme", "dark")
