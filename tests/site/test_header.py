"""The buttons above a page: each says what it does, and does it without the theme's script for menus."""

import json
import re

import pytest
from playwright.sync_api import expect
from test_smoke import CHAPTERS, PAGES, PHONE, every_page

MADE = ("search", "genindex")


@every_page
def test_each_button_has_a_name_and_room_for_a_finger(open_page, name):
    page = open_page(f"{name}.html", viewport=PHONE)
    assert page.locator("[data-bs-toggle], [data-bs-title], .dropdown").count() == 0
    buttons = page.locator(".bd-header-article :is(a, button):visible")
    assert buttons.count() >= 5
    places = []
    for button in buttons.all():
        expect(button).to_have_accessible_name(re.compile("^[A-Z][A-Za-z, ]{3,}$"))
        box = button.bounding_box()
        assert box["width"] >= 24 and box["height"] >= 24 and box["x"] + box["width"] <= PHONE["width"]
        places.append(round(box["y"] + box["height"] / 2))
    assert max(places) - min(places) <= 2, "they stand on one line"


@pytest.mark.parametrize("name", [PAGES[0], CHAPTERS[1], *MADE])
def test_on_a_phone_a_button_opens_the_list_of_pages(open_page, name):
    page = open_page(f"{name}.html", viewport=PHONE)
    link = page.locator("[id^=pst-primary-sidebar] a", has_text="Your own Function")
    expect(link).to_be_hidden()
    page.locator(".primary-toggle").click()
    expect(link).to_be_visible()
    page.keyboard.press("Escape")
    expect(link).to_be_hidden()
    page.locator(".primary-toggle").click()
    link.click()
    page.wait_for_url("**/31_custom_function.html")


def test_on_a_wide_screen_the_same_button_puts_it_away(open_page):
    page = open_page(f"{CHAPTERS[0]}.html", viewport={"width": 1400, "height": 900})
    sidebar = page.locator("#pst-primary-sidebar")
    expect(sidebar).to_be_visible()
    page.locator(".primary-toggle").click()
    expect(sidebar).not_to_be_in_viewport()
    page.locator(".primary-toggle").click()
    expect(sidebar).to_be_in_viewport()


def test_a_button_changes_the_mode_and_the_next_page_keeps_it(open_page):
    page = open_page(f"{CHAPTERS[0]}.html", color_scheme="light")
    seen = set()
    for _ in range(3):
        page.locator(".bd-header-article .theme-switch-button").click()
        seen.add(
            page.evaluate(
                "[document.documentElement.dataset.mode, document.documentElement.dataset.theme].join()"
            )
        )
    assert seen == {"light,light", "dark,dark", "auto,light"}
    while page.evaluate("document.documentElement.dataset.mode") != "dark":
        page.locator(".bd-header-article .theme-switch-button").click()
    page.goto(page.url.replace(CHAPTERS[0], CHAPTERS[1]))
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_a_button_saves_the_notebook(open_page):
    page = open_page(f"{CHAPTERS[0]}.html")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download the source of this notebook").click()
    assert download.value.suggested_filename == f"{CHAPTERS[0].split('/')[1]}.ipynb"
    with open(download.value.path(), encoding="utf-8") as file:
        assert json.load(file)["cells"]


def test_a_button_prints(open_page):
    page = open_page(f"{CHAPTERS[0]}.html")
    page.evaluate("window.print = () => { window.printed = true }")
    page.get_by_role("button", name="Print, or save as PDF").click()
    assert page.evaluate("window.printed") is True


def test_without_scripts_no_button_is_dead(open_page):
    page = open_page(f"{CHAPTERS[0]}.html", java_script_enabled=False)
    for selector in ("[onclick]", ".theme-switch-button", ".search-button__button"):
        assert not any(one.is_visible() for one in page.locator(selector).all()), selector
