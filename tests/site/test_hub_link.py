"""The builder of links for a class's hub, on the page on how to use the book."""

from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

PAGE = "book/how_to_use.html"
HUB, REPO = "https://hub.example.edu/jupyter/", "https://github.com/some/book.git"


@pytest.fixture
def page(open_page):
    page = open_page(PAGE)
    page.get_by_label("Repository of the book").fill("")
    return page


def test_it_builds_the_link_that_nbgitpuller_reads(page):
    page.get_by_label("Your hub").fill(HUB)
    page.get_by_label("Repository of the book").fill(REPO)
    page.get_by_label("Opens with").select_option("12_grad_fn")
    link = page.locator("#hub-says a")
    parts = urlsplit(link.get_attribute("href"))
    assert (parts.netloc, parts.path) == ("hub.example.edu", "/jupyter/hub/user-redirect/git-pull")
    assert parse_qs(parts.query) == {
        "repo": ["https://github.com/some/book"],
        "branch": ["launch"],
        "urlpath": ["lab/tree/book/notebooks/12_grad_fn.ipynb"],
    }
    expect(link).to_have_text(link.get_attribute("href"))


@pytest.mark.parametrize(
    ("hub", "repo"), [("", REPO), (HUB, ""), ("hub.example.edu", REPO), ("javascript:alert(1)", REPO)]
)
def test_without_two_addresses_it_says_what_is_missing(page, hub, repo):
    page.get_by_label("Your hub").fill(hub)
    page.get_by_label("Repository of the book").fill(repo)
    expect(page.locator("#hub-says")).to_contain_text("Fill in two addresses")
    assert page.locator("#hub-says a").count() == 0


def test_every_chapter_can_be_chosen_by_its_title(page):
    options = page.locator("#hub-chapter option")
    values = options.evaluate_all("all => all.map(option => option.value)")
    shown = options.evaluate_all("all => all.map(option => option.textContent)")
    assert values == sorted(set(values)) and "51_function_in_a_module" in values
    assert all(len(text) > 3 for text in shown)


def test_enter_does_not_leave_the_page(page):
    page.get_by_label("Your hub").fill(HUB)
    address = page.url
    page.get_by_label("Your hub").press("Enter")
    assert page.url == address


def test_without_scripts_the_page_says_how_to_write_the_link(open_page):
    page = open_page(PAGE, java_script_enabled=False)
    expect(page.locator("#hub-link")).to_be_hidden()
    expect(page.locator("article")).to_contain_text(
        "HUB/hub/user-redirect/git-pull?repo=REPO&branch=launch&urlpath="
    )
