"""The page for wrong addresses and the list of pages for search engines."""

from xml.etree import ElementTree

import outside

SITE = "https://owner.github.io/name/"


def test_not_found_leads_to_the_first_page_and_loads_nothing():
    page = outside.not_found("en", "A & B", "book/index.html", SITE)
    assert f'<a href="{SITE}book/index.html">the first page of A &amp; B</a>' in page
    assert "<script" not in page and "src=" not in page and "stylesheet" not in page


def test_not_found_without_an_address_looks_for_the_top():
    page = outside.not_found("en", "A", "book/index.html", None)
    assert '<a href="book/index.html">' in page and 'top_[1] + "book/index.html"' in page


def test_the_sitemap_lists_pages_with_their_days():
    text = outside.sitemap(SITE, {"b.html": None, "a.html": "2026-01-02"})
    tags = [
        (e.tag.split("}")[1], (e.text or "").strip()) for e in ElementTree.fromstring(text.encode()).iter()
    ]
    assert tags == [
        ("urlset", ""),
        ("url", ""),
        ("loc", f"{SITE}a.html"),
        ("lastmod", "2026-01-02"),
        ("url", ""),
        ("loc", f"{SITE}b.html"),
    ]
