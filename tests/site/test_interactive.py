"""Players, explorers, exercises and solutions, on the built pages."""

import gzip
import re

import pytest
from playwright.sync_api import expect
from test_smoke import CHAPTERS, PHONE, outputs_of

from inside_autograd.exercises import all_exercises


def stored(name, mark):
    """The HTML outputs of a chapter that hold ``mark``."""
    return [html for html in outputs_of(name) if mark in html]


def players(name):
    return stored(name, 'class="iap')


def explorers(name):
    return stored(name, '<div class="iax ')


every_chapter_with_players = pytest.mark.parametrize("name", [c for c in CHAPTERS if players(c)])
every_chapter_with_explorers = pytest.mark.parametrize("name", [c for c in CHAPTERS if explorers(c)])


def test_there_is_enough_to_play_with():
    assert sum(len(players(name)) for name in CHAPTERS) >= 6
    assert sum(len(explorers(name)) for name in CHAPTERS) >= 4


@every_chapter_with_players
def test_every_player_steps_to_its_end_in_words(open_page, name):
    page = open_page(f"{name}.html")
    found = page.locator(".iap:not(.iax *)")
    assert found.count() == len([html for html in players(name) if "iax" not in html])
    for player in found.all():
        steps = [" ".join(text.split()) for text in player.locator("ol > li").all_text_contents()]
        assert len(steps) > 1
        forward = player.get_by_role("button", name="Step forward")
        for number, words in enumerate(steps):
            expect(player.get_by_role("slider")).to_have_value(str(number))
            assert words.startswith(" ".join(player.locator(".iap-say").inner_text().split())[:40])
            if number < len(steps) - 1:
                forward.click()
        expect(forward).to_be_disabled()
        player.get_by_role("button", name="First step").click()
        expect(player.get_by_role("slider")).to_have_value("0")


def test_the_first_page_has_a_player(open_page):
    player = open_page("book/index.html").locator(".iap")
    player.get_by_role("button", name="Last step").click()
    expect(player.locator(".iap-say")).to_contain_text("5 of 5 nodes ran")


@every_chapter_with_explorers
def test_every_explorer_shows_one_frame_for_each_position(open_page, name):
    page = open_page(f"{name}.html")
    found = page.locator(".iax")
    assert found.count() == len(explorers(name))
    for explorer in found.all():
        frames = explorer.locator(":scope > .iax-frame")
        controls = explorer.locator(".iax-controls")
        seen = set()
        for control in controls.locator("input[type=range]").all():
            control.focus()
            page.keyboard.press("Home")
            for _ in range(int(control.get_attribute("max")) + 1):
                seen.add(frames.locator("visible=true").get_attribute("data-at"))
                page.keyboard.press("ArrowRight")
        for control in controls.locator("select").all():
            for i in range(control.locator("option").count()):
                control.select_option(index=i)
                seen.add(frames.locator("visible=true").get_attribute("data-at"))
        for control in controls.locator("input[type=checkbox]").all():
            control.click()
            seen.add(frames.locator("visible=true").get_attribute("data-at"))
        assert len(seen) > 1
        assert explorer.locator(":scope > .iax-frame:visible").count() == 1


@every_chapter_with_explorers
def test_a_value_stands_beside_its_slider(open_page, name):
    page = open_page(f"{name}.html")
    for value in page.locator(".iax-controls output").all():
        label = value.locator("xpath=preceding-sibling::label")
        box, beside = value.bounding_box(), label.bounding_box()
        assert beside["y"] < box["y"] + box["height"] / 2 < beside["y"] + beside["height"]
        assert 0 < box["x"] - (beside["x"] + beside["width"]) < 20


@pytest.mark.parametrize("name", CHAPTERS)
def test_the_explorers_of_a_page_stay_small(name):
    together = "".join(explorers(name)).encode()
    assert len(gzip.compress(together, mtime=0)) <= 60_000


@every_chapter_with_players
def test_without_javascript_a_player_is_a_picture_and_a_list(open_page, name):
    page = open_page(f"{name}.html", java_script_enabled=False)
    for player in page.locator(".iap:not(.iax *)").all():
        expect(player.locator("svg.ag")).to_be_visible()
        expect(player.locator("svg.ag")).to_have_accessible_name(re.compile(r"\w{3}"))
        assert player.locator("ol > li:visible").count() > 1
        assert player.locator("button").count() == 0


@every_chapter_with_players
def test_players_fit_on_a_phone(open_page, name):
    page = open_page(f"{name}.html", viewport=PHONE, has_touch=True)
    for button in page.locator(".iap:not(.iax *) button").all():
        box = button.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= PHONE["width"]
        assert box["width"] >= 40 and box["height"] >= 40


@pytest.mark.parametrize("name", CHAPTERS)
def test_every_exercise_says_that_it_was_not_attempted(open_page, name):
    exercises = [e for e in all_exercises().values() if f"notebooks/{e.chapter}_" in name]
    assert exercises
    page = open_page(f"{name}.html")
    reports = page.locator(".iag-x", has_text="Not attempted yet.")  # `explain` shows cards of this kind too
    assert reports.count() == len(exercises)
    for report, exercise in zip(reports.all(), exercises, strict=True):
        expect(report).to_contain_text(re.compile(re.escape(exercise.title) + r"\.? Not attempted yet\."))
        choices = report.locator("details")
        assert choices.count() == len(exercise.choices)
        if exercise.choices:
            answer = choices.first.locator("p")
            expect(answer).to_be_hidden()
            choices.first.locator("summary").click()
            expect(answer).to_be_visible()


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
@pytest.mark.parametrize("part", "12345")
def test_solutions_are_folded_and_open(open_page, part, scripts):
    page = open_page(f"book/solutions_{part}.html", java_script_enabled=scripts)
    exercises = [e for e in all_exercises().values() if e.chapter[0] == part]
    assert exercises
    for exercise in exercises:
        title = re.compile(re.escape(exercise.title).replace("'", "['’]"))  # the site has curly quotes
        assert page.get_by_role("heading", name=title).count() == 1, exercise.name
    details = page.locator("article details")
    expected = sum(len(e.hints) + 1 + bool(e.other_right) + len(e.mistakes) for e in exercises)
    assert details.count() == expected
    assert page.locator("article details[open]").count() == 0
    first = details.first
    expect(first.locator("p").first).to_be_hidden()
    first.locator("summary").click()
    expect(first.locator("p").first).to_be_visible()


def test_an_exercise_and_its_solution_link_to_each_other(open_page):
    exercise = next(iter(all_exercises().values()))
    (chapter,) = [c for c in CHAPTERS if f"/{exercise.chapter}_" in c]
    page = open_page(f"{chapter}.html#{exercise.anchor}")
    page.locator(f"#{exercise.anchor}").get_by_role("link", name="Hints and a solution").first.click()
    page.wait_for_url(re.compile(rf"solutions_{exercise.chapter[0]}\.html#{exercise.anchor}$"))
    page.locator(f"#{exercise.anchor}").get_by_role("link", name="To the exercise").first.click()
    page.wait_for_url(re.compile(f"{chapter}.html#{exercise.anchor}$"))


def test_an_old_address_of_a_solution_leads_to_it(open_page):
    exercise = next(iter(all_exercises().values()))
    page = open_page(f"book/solutions.html#{exercise.anchor}")
    place = page.locator(f"li:has(> p > #{exercise.anchor}), li:has(> #{exercise.anchor})").last
    place.get_by_role("link").click()
    page.wait_for_url(re.compile(rf"solutions_{exercise.chapter[0]}\.html#{exercise.anchor}$"))
