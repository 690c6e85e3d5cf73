"""The cheat sheet on paper: two sides, whichever mode the screen is in."""

import re

import pytest

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
