"""The site once its address is known: what others read of each page, and where it leads to copies."""

import os
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from playwright.sync_api import expect
from small_book import build_own
from test_smoke import CHAPTERS, PAGES, PHONE, title_of

import page_facts

ROOT = Path(__file__).resolve().parents[2]
SITE = Path(os.environ.get("SITE_DIR") or ROOT / "_build" / "html")
sys.path.insert(0, str(ROOT / "tests"))

from test_social import Head  # noqa: E402

FEW = ("book/index", "notebooks/11_first_gradient", "notebooks/12_grad_fn", "book/references")
RENAMED = {"notebooks/12_old": "notebooks/12_grad_fn", "old/references": "book/references"}
DAY = "2026-02-03"
ADDRESS = "https://books.example.org/autograd/"
REPOSITORY = "https://github.com/some/book"
TORCH = page_facts.pinned_torch((ROOT / "requirements.txt").read_text(encoding="utf-8"))
# What the theme and Sphinx make, without a page of ours.
MADE = ("search", "genindex")


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """A site of a few pages, built for an address."""
    folder = tmp_path_factory.mktemp("published")
    return build_own(folder, FEW, DAY, RENAMED, REPO_URL=REPOSITORY, SITE_URL=ADDRESS)


def said_on(site, name):
    return Head((site / f"{name}.html").read_text(encoding="utf-8").partition("</head>")[0]).said


@pytest.mark.parametrize("name", [*PAGES, *MADE, "index"])
def test_every_page_says_what_it_is(name):
    said = said_on(SITE, name)
    for key in ("description", "twitter:card", "twitter:title", "og:site_name", "og:title", "og:description"):
        assert len(said.get(key, ())) == 1 and said[key][0], key
    assert said["og:site_name"] == ["Inside Autograd"]
    if name in PAGES:
        assert said["og:title"] == said["twitter:title"] == [title_of(name).replace("'", "’")]
    assert said["description"] == said["og:description"] == said["twitter:description"]
    assert 20 < len(said["description"][0]) < 250 and said["description"][0].endswith(".")
    # The site as built here may know its address or not: either all of it is said, or nothing.
    known = [bool(said.get(key)) for key in ("og:url", "og:image", "twitter:image", "canonical")]
    assert all(known) or not any(known)


def test_no_two_pages_say_the_same():
    promises = [said_on(SITE, name)["description"][0] for name in PAGES]
    assert len(set(promises)) == len(promises)


@pytest.mark.parametrize("name", [*FEW, *MADE, "index"])
def test_with_an_address_a_page_names_itself_and_its_picture(published, name):
    said = said_on(published, name)
    page = FEW[0] if name == "index" else name
    assert said["og:url"] == said["canonical"] == [f"{ADDRESS}{page}.html"]
    (picture,) = said["og:image"]
    assert said["twitter:image"] == [picture] and said["twitter:card"] == ["summary_large_image"]
    assert picture.startswith(ADDRESS) and (published / picture.removeprefix(ADDRESS)).is_file()


def test_the_sitemap_lists_every_page_of_the_book_and_no_other(published):
    tree = ElementTree.parse(published / "sitemap.xml")
    space = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
    listed = {
        url.find(f"{space}loc").text: url.find(f"{space}lastmod").text for url in tree.iter(f"{space}url")
    }
    assert listed == {f"{ADDRESS}{name}.html": DAY for name in FEW}
    for address in listed:
        assert (published / address.removeprefix(ADDRESS)).is_file()


def test_without_an_address_there_is_no_sitemap():
    assert (SITE / "sitemap.xml").exists() == bool(said_on(SITE, PAGES[0]).get("canonical"))


def test_the_page_for_wrong_addresses_leads_to_the_site(published):
    assert f'href="{ADDRESS}book/index.html"' in (published / "404.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_the_old_address_of_a_page_leads_to_it(browser, published, scripts):
    context = browser.new_context(java_script_enabled=scripts)
    page = context.new_page()
    for old, new in RENAMED.items():
        page.goto(f"{(published / old).as_uri()}.html#exercises")
        page.wait_for_url(re.compile(f"/{new}.html"))
        # Without scripts a browser may forget the heading; the page is there in any case.
        assert not scripts or page.url.endswith("#exercises")
    context.close()


# ---------------------------------------------------------------- the top of a chapter


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_says_at_its_top_what_to_know(open_page, name):
    page = open_page(f"{name}.html", viewport=PHONE)
    opener = page.locator("article .opener")
    expect(opener).to_have_count(1)
    expect(opener).to_contain_text(f"Run with: torch {TORCH}")
    above = page.evaluate(
        """() => {
            const all = [...document.querySelector('article section').children]
            const end = all.findIndex(e => e.matches('.opener'))
            return all.slice(0, end + 1).map(e => e.innerText).join(' ')
        }"""
    )
    assert re.search(r"\b\d+ minutes\b", above) and "You need" in above
    assert opener.bounding_box()["y"] < 2 * PHONE["height"]
    # Each fact stands once: not at the foot as well.
    assert page.locator(".page-facts", has_text="torch").count() == 0


def test_with_an_address_the_top_leads_to_copies_that_run(browser, published):
    page = browser.new_page(viewport=PHONE)
    page.goto((published / "notebooks/12_grad_fn.html").as_uri())
    opener = page.locator("article .opener")
    expect(opener.locator("time")).to_have_text(DAY)
    links = opener.locator("a.opener-run")
    assert [(a.inner_text(), a.get_attribute("href")) for a in links.all()] == [
        (
            "Run on Binder",
            "https://mybinder.org/v2/gh/some/book/launch?urlpath=lab/tree/notebooks/12_grad_fn.ipynb",
        ),
        (
            "Run on Colab",
            "https://colab.research.google.com/github/some/book/blob/launch/notebooks/12_grad_fn.ipynb",
        ),
    ]
    for link in links.all():
        box = link.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= PHONE["width"] and box["height"] >= 24
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    report = page.locator(".page-facts a")
    assert (
        report.get_attribute("href") == f"{REPOSITORY}/issues/new?title=Mistake%20in%20notebooks/12_grad_fn"
    )
    page.goto((published / "book/references.html").as_uri())
    assert page.locator(".opener, .opener-run").count() == 0
    expect(page.locator(".page-facts time")).to_have_text(DAY)
    page.close()


def test_without_an_address_nothing_leads_to_copies():
    if said_on(SITE, PAGES[0]).get("canonical"):
        pytest.skip("the site was built for an address")
    for name in PAGES:
        text = (SITE / f"{name}.html").read_text(encoding="utf-8")
        assert "opener-run" not in text and "mybinder" not in text and "colab.research" not in text
