"""Wrong addresses, addresses of pages that were renamed, and the list of pages for search engines."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

import outside

ROOT = Path(__file__).resolve().parent.parent

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


# ---------------------------------------------------------------- pages that were renamed


@pytest.fixture(scope="module")
def pages():
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    return [toc["root"], *(chapter["file"] for part in toc["parts"] for chapter in part["chapters"])]


@pytest.fixture(scope="module")
def redirects():
    return json.loads((ROOT / outside.REDIRECTS).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def published():
    return json.loads((ROOT / "tests/data/published_pages.json").read_text(encoding="utf-8"))


def test_every_new_name_is_a_page_and_no_old_one_is(pages, redirects):
    assert outside.check_redirects(redirects, pages) == []


def test_no_address_that_was_published_is_lost(pages, redirects, published):
    lost = [name for name in published if name not in pages and name not in redirects]
    assert not lost, f"say in {outside.REDIRECTS} where these went: {lost}"


def test_every_page_is_on_the_list_of_published_ones(pages, redirects, published):
    new = [name for name in [*pages, *redirects] if name not in published]
    assert not new, f"add to tests/data/published_pages.json: {new}"
    assert len(set(published)) == len(published)


def test_what_is_wrong_is_named():
    assert outside.check_redirects({"a": "b", "c": "gone"}, ["a", "b"]) == [
        "a is a page, so it can lead to no other.",
        "c leads to gone, which is no page.",
    ]


@pytest.mark.parametrize(
    ("old", "new", "target"),
    [
        ("notebooks/a.html", "notebooks/b.html", "b.html"),
        ("notebooks/a.html", "book/b.html", "../book/b.html"),
        ("a.html", "book/b.html", "book/b.html"),
    ],
)
def test_an_old_address_leads_to_the_new_one(old, new, target):
    text = outside.moved("en", "A & B", old, new, None)
    assert f'content="0; url={target}"' in text and f'<a href="{target}">' in text
    assert f'rel="canonical" href="{target}"' in text and "A &amp; B" in text
    assert f'rel="canonical" href="{SITE}{new}"' in outside.moved("en", "A", old, new, SITE)
