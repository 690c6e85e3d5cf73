"""The index of errors finds in the page what `explain` finds in Python, for every message there is."""

import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from inside_autograd import explain  # noqa: E402
from inside_autograd.catalogue import all_entries  # noqa: E402
from ordinary_errors import ORDINARY  # noqa: E402
from pasted_texts import PASTED  # noqa: E402

ENTRIES = list(all_entries().values())
SECOND = all_entries()["backward-through-the-graph-a-second-time"]
TRACEBACK = """\
step 3 of 10
Traceback (most recent call last):
  File "train.py", line 12, in <module>
    loss.backward()
{category}: {message}
"""
# What the page says about each text: the titles it shows, and whether it calls the first one the answer.
ASK = """texts => texts.map(text => {
  const box = document.getElementById("error-text");
  box.value = text;
  box.dispatchEvent(new Event("input"));
  const shown = [...document.querySelectorAll("article h3")].filter(h => h.offsetParent).map(
    h => h.firstChild ? h.textContent.replace(/#$/, "") : "");
  return [document.getElementById("error-says").textContent, shown];
})"""


@pytest.fixture
def ask(open_page):
    page = open_page("book/errors.html")
    assert page.evaluate("window.errorIndex") is None, "it is loaded at first use"
    page.get_by_label("Your message or traceback").focus()
    page.wait_for_function("window.errorIndex")
    return lambda texts: page.evaluate(ASK, list(texts))


def plain(title: str) -> str:
    return title.replace("`", "").replace("'", "’")


def test_every_message_is_found_alone_and_in_a_traceback(ask):
    messages = [(entry, text) for entry in ENTRIES for text in (entry.message, *entry.variants)]
    texts = [text for _, text in messages]
    texts += [TRACEBACK.format(category=entry.category, message=text) for entry, text in messages]
    for (entry, text), (says, shown) in zip(messages * 2, ask(texts), strict=True):
        assert (plain(says), list(map(plain, shown))) == (
            f"This is: {plain(entry.title)}",
            [plain(entry.title)],
        ), text


def test_ordinary_errors_are_not_found(ask):
    texts = [f"{kind}: {message}" for kind, message in ORDINARY]
    for text, (says, shown) in zip(texts, ask(texts), strict=True):
        assert says.startswith("Not in the index"), text
        near = [plain(entry.title) for entry in explain(text).nearest]
        assert sorted(map(plain, shown)) == sorted(near) or (not near and len(shown) == len(ENTRIES)), text


def test_the_page_finds_what_people_paste(ask):
    answers = ask(text for text, _ in PASTED.values())
    for (name, (_, wanted)), (says, _) in zip(PASTED.items(), answers, strict=True):
        assert says.startswith("This is: ") == (wanted is not None), name
        assert wanted is None or plain(says) == f"This is: {plain(all_entries()[wanted].title)}", name


def test_a_part_of_a_message_shows_the_entries_that_hold_it(ask):
    ((says, shown),) = ask(["modified by an inplace operation"])
    assert says.endswith("this.")
    assert 1 <= len(shown) < 8
    ((says, shown),) = ask(["  "])
    assert says == ""
    assert len(shown) == len(ENTRIES)


def test_by_keyboard_with_links_that_lead_there(open_page):
    page = open_page("book/errors.html")
    page.get_by_label("Your message or traceback").focus()
    page.keyboard.type(f"RuntimeError: {SECOND.message}")
    link = page.locator("#error-says a")
    expect(link).to_have_text(SECOND.title)
    link.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=SECOND.title)).to_be_in_viewport()
    # A link to a hidden entry, such as from the list of contents, shows all again.
    other = page.locator("article h3").nth(3)
    section = other.evaluate("h => h.closest('section').id")
    expect(other).to_be_hidden()
    page.evaluate(f"location.hash = '#{section}'")
    expect(other).to_be_in_viewport()
    expect(page.get_by_label("Your message or traceback")).to_have_value("")
    page.get_by_label("Your message or traceback").fill("leaf")
    page.get_by_role("button", name="Clear").click()
    expect(page.locator("article h3:visible")).to_have_count(len(ENTRIES))


def test_each_entry_leads_to_the_clinic_and_to_its_chapter(open_page):
    page = open_page("book/errors.html")
    for name in ("causes, code and repaired code", "chapter "):
        links = page.locator("article section section a.internal", has_text=name)
        assert links.count() == len(ENTRIES)
    page.locator("article a.internal", has_text="causes, code and repaired code").first.click()
    # The clinic is the largest page: give it time on a busy machine.
    expect(page.get_by_role("heading", name=SECOND.title)).to_be_in_viewport(timeout=30_000)


def test_without_scripts_the_list_stands_and_the_box_does_not(open_page):
    page = open_page("book/errors.html", java_script_enabled=False)
    expect(page.locator("#error-box")).to_be_hidden()
    expect(page.locator("article h3:visible")).to_have_count(len(ENTRIES))


def test_the_list_of_contents_is_not_cut_off(open_page):
    page = open_page("book/errors.html", viewport={"width": 1400, "height": 900})
    aside = page.locator(".bd-sidebar-secondary")
    assert aside.evaluate("aside => aside.scrollWidth - aside.clientWidth") <= 0


def test_a_text_that_was_there_before_the_data_is_looked_up(open_page):
    page = open_page("book/errors.html")
    page.get_by_label("Your message or traceback").fill(SECOND.message)
    expect(page.locator("#error-says a")).to_have_text(SECOND.title)


def test_when_the_data_cannot_be_loaded_the_box_says_so_and_tries_again(browser, address):
    page = browser.new_page()
    page.route("**/errors_data.js", lambda route: route.abort())
    page.goto(f"{address}/book/errors.html")
    box = page.get_by_label("Your message or traceback")
    box.fill("leaf")
    expect(page.locator("#error-says")).to_contain_text("could not be loaded")
    page.unroute("**/errors_data.js")
    box.fill(SECOND.message)
    expect(page.locator("#error-says a")).to_have_text(SECOND.title)
    page.close()
