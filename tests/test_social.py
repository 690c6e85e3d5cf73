"""What others show of a page that somebody shares: words from the page, a picture that our tool draws."""

import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from docutils.core import publish_doctree
from PIL import Image

import social

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import social_picture  # noqa: E402

SITE = "https://owner.github.io/name/"


class Head(HTMLParser):
    """Collects what the tags of a head say: {name or property: [contents]}."""

    def __init__(self, text):
        super().__init__()
        self.said = {}
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        key = attributes.get("name") or attributes.get("property") or attributes.get("rel")
        if tag in ("meta", "link") and key:
            self.said.setdefault(key, []).append(attributes.get("content") or attributes.get("href"))


def test_the_picture_is_what_the_tool_draws_today():
    with Image.open(social_picture.PICTURE) as image:
        assert image.size == (1200, 630) == (social.WIDTH, social.HEIGHT)
        made_from = image.text[social_picture.KEY]
        colors = image.convert("RGB").getcolors(1 << 20)
    assert made_from == social_picture.digest(social_picture.page()), (
        "the drawing changed: run tools/social_picture.py"
    )
    assert len(colors) > 20
    assert social_picture.PICTURE.stat().st_size < 60_000


def test_the_page_behind_the_picture_has_a_drawing_and_the_name_of_the_book():
    page = social_picture.page()
    assert "<h1>Inside Autograd</h1>" in page
    assert '<svg xmlns="http://www.w3.org/2000/svg" class="ag"' in page and "MulBackward0" in page


def test_with_an_address_everything_is_whole():
    said = Head(social.tags("Book", 'A "b" & c', "What <d> is.", SITE, "notebooks/a.html")).said
    assert said == {
        "canonical": [f"{SITE}notebooks/a.html"],
        "description": ["What <d> is."],
        "twitter:card": ["summary_large_image"],
        "twitter:title": ['A "b" & c'],
        "twitter:description": ["What <d> is."],
        "twitter:image": [f"{SITE}_static/social.png"],
        "twitter:image:alt": [social.ALTERNATIVE],
        "og:site_name": ["Book"],
        "og:type": ["article"],
        "og:title": ['A "b" & c'],
        "og:description": ["What <d> is."],
        "og:url": [f"{SITE}notebooks/a.html"],
        "og:image": [f"{SITE}_static/social.png"],
        "og:image:width": ["1200"],
        "og:image:height": ["630"],
        "og:image:alt": [social.ALTERNATIVE],
    }


def test_without_an_address_no_address_is_named():
    text = social.tags("Book", "Book", "What it is.", None, "book/index.html")
    assert "http" not in text and "image" not in text and "index.html" not in text
    assert Head(text).said["twitter:card"] == ["summary"] and Head(text).said["og:type"] == ["website"]


@pytest.mark.parametrize(
    ("long", "short"),
    [
        ("One.  Two\nthree.", "One. Two three."),
        (f"One. {'X' * 300}. Three.", "One."),
        (f"{'X' * 300}. Two.", f"{'X' * 300}."),
        ("Run `a.b` here. `c` comes next:", "Run `a.b` here. `c` comes next."),
    ],
)
def test_whole_sentences_are_kept(long, short):
    assert social.shorten(long) == short


def test_the_promise_is_the_paragraph_below_the_title():
    assert social.promise(publish_doctree("Title\n=====\n\n* no\n\nYes,\nit *is*.\n\nNo.\n")) == "Yes, it is."
    assert social.promise(publish_doctree("* only a list\n")) == ""
