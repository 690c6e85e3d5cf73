"""The site as one archive: unpacked, it works from the disk, without a server and without a network."""

import os
import re
import sys
import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import expect
from test_smoke import PAGES

ROOT = Path(__file__).resolve().parents[2]
SITE = Path(os.environ.get("SITE_DIR") or ROOT / "_build" / "html")
sys.path.insert(0, str(ROOT / "tools"))

import offline_copy  # noqa: E402


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("offline")
    assert offline_copy.pack(SITE, folder / "inside-autograd.zip") > 50
    with zipfile.ZipFile(folder / "inside-autograd.zip") as archive:
        archive.extractall(folder)
    assert [path.name for path in folder.iterdir() if path.is_dir()] == ["inside-autograd"]
    return folder / "inside-autograd"


@pytest.fixture
def opened(browser, unpacked):
    """A function that opens a page from the disk; it must miss nothing and ask nobody."""
    context, problems = browser.new_context(offline=True), []
    context.set_default_timeout(10_000)

    def fail(path, asked):
        # Leaving a page ends what it still loads; a file that is not there fails in another way.
        if asked.failure != "net::ERR_ABORTED":
            problems.append(f"{path}: not loaded: {asked.url} ({asked.failure})")

    def open_(path):
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(f"{path}: {error}"))
        page.on("console", lambda said: said.type == "error" and problems.append(f"{path}: {said.text}"))
        page.on("requestfailed", lambda asked: fail(path, asked))
        page.on("request", lambda asked: asked.url.startswith("http") and problems.append(asked.url))
        page.goto((unpacked / path).as_uri(), wait_until="load")
        return page

    yield open_
    context.close()
    assert not problems, "\n".join(dict.fromkeys(problems))


def test_index_leads_to_the_first_page(opened, unpacked):
    page = opened("index.html")
    page.wait_for_url((unpacked / "book" / "index.html").as_uri())


@pytest.mark.parametrize("name", PAGES)
def test_a_page_opens_whole(opened, name):
    page = opened(f"{name}.html")
    expect(page.locator("article h1")).to_have_count(1)
    # Its style is there: without it the article is as wide as the window.
    assert page.locator("article").bounding_box()["width"] < 1200
    for picture in page.locator("article img:visible").all()[:20]:
        picture.scroll_into_view_if_needed()  # those far down load when they come near
        loaded = "image => image.complete && image.naturalWidth > 0"
        page.wait_for_function(loaded, arg=picture.element_handle())


def test_a_link_leads_on(opened, unpacked):
    page = opened("book/index.html")
    page.locator("a.right-next").click()
    page.wait_for_load_state("load")
    assert page.url.startswith(unpacked.as_uri()) and page.url != (unpacked / "book" / "index.html").as_uri()


def test_search_finds_a_page(opened):
    page = opened("search.html")
    page.goto(page.url + "?q=checkpoint")
    done = re.compile("found|matching", re.IGNORECASE)
    expect(page.locator("#search-results")).to_contain_text(done, timeout=20_000)
    assert page.locator("#search-results li a").count() > 0
