"""How the site is made slim: rules, scripts, fonts and what is done to a page's HTML."""

import re
from pathlib import Path

import pytest

import bundle
import fonts
import header
import page_html
import stylesheet

MATH_FONT = Path(__file__).resolve().parent.parent / "book/_static/fonts/stix-two-math-subset.woff2"


@pytest.mark.parametrize(
    ("selector", "kept"),
    [
        (".a", True),
        (".a .gone", False),
        ("#here > .a", True),
        ("#gone", False),
        ("p:not(.gone)", True),
        (".a:has(.gone)", True),
        ('a[href="x.html"].a', True),
        ("h1 > code", True),
        (r".w-50\%", True),
    ],
)
def test_a_selector_goes_with_the_classes_it_asks_for(selector, kept):
    assert stylesheet.can_match(selector, {"a", "here", "w-50%"}) is kept


def test_rules_go_and_the_rest_stays_in_order():
    css = """/* note */ .a, .gone { color: red } .gone { color: blue }
        @media print { .gone { x: y } } @media (min-width: 1px) { .a { x: y } .gone { x: y } }
        :is(.a, .gone) { z: y } @keyframes k { from { x: y } }"""
    assert stylesheet.purge(css, {"a"}).splitlines() == [
        ".a{color: red}",
        "@media (min-width: 1px){",
        ".a{x: y}",
        "}",
        ":is(.a, .gone){z: y}",
        "@keyframes k { from { x: y } }",
    ]


def test_a_broken_stylesheet_is_an_error():
    with pytest.raises(ValueError, match="does not parse"):
        stylesheet.purge(".a", {"a"})


def test_addresses_move_with_the_stylesheet(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "base.css").write_text("i { src: url(one.png) }")
    (tmp_path / "sub" / "top.css").write_text('@import "../base.css"; b { src: url("two.png"), url(data:x) }')
    text = stylesheet.read(tmp_path / "sub" / "top.css", tmp_path)
    assert text == 'i { src: url("one.png") } b { src: url("sub/two.png"), url(data:x) }'


def test_a_formula_needs_its_letters_in_italics_and_bold_too():
    codes = fonts.formula_codes(["<p>z</p><math><mi>x</mi><mo>&#8721;</mo><mi>h</mi><mi>β</mi></math>"])
    assert {ord("x"), 0x1D465, 0x1D431, 0x2211, 0x210E, ord("β"), 0x1D6FD} <= codes
    assert ord("z") not in codes
    assert ord("√") not in codes


@pytest.mark.parametrize(
    "formula, drawn",
    [("<msqrt><mi>u</mi></msqrt>", "√"), ("<mroot><mi>u</mi><mn>3</mn></mroot>", "√"), ("<mo>-</mo>", "−")],
)
def test_a_formula_needs_what_the_browser_draws_besides_its_characters(formula, drawn):
    assert ord(drawn) in fonts.formula_codes([f"<math>{formula}</math>"])


def test_a_cut_font_is_small_and_always_the_same():
    once = fonts.cut(MATH_FONT, {ord("x"), 0x2211}, features=["*"])
    assert once == fonts.cut(MATH_FONT, {0x2211, ord("x")}, features=["*"])
    assert len(once) < MATH_FONT.stat().st_size / 4


PAGE = """<html data-content_root="../" data-theme="auto">
<head>
<script data-cfasync="false">document.documentElement.dataset.theme = "auto";</script>
<link href="../_static/styles/theme.css?digest=1" rel="stylesheet" />
<link rel="preload" as="script" href="../_static/scripts/late.js?digest=1" />
<script src="../_static/doctools.js?v=2"></script>
<script src="../_static/scripts/bootstrap.js?digest=3"></script>
<script>DOCUMENTATION_OPTIONS.pagename = 'a';</script>
<link rel="icon" href="../_static/favicon.svg"/>
<script src="../_static/searchtools.js"></script>
<script src="../searchindex.js"></script>
</head>
<body><div id="pst-primary-sidebar" class="b"></div><main>
<link rel="stylesheet" href="../_static/own.css"><script src="../_static/own.js" defer></script>
<style>s</style><img class="ag-still" alt="a > b" src="data:x"><style>s</style><style>t</style>
</main><script defer src="../_static/scripts/late.js?digest=1"></script></body></html>
"""


def test_what_the_theme_lists():
    sheets, scripts = bundle.listed(PAGE)
    assert sheets == ["_static/styles/theme.css"]
    assert scripts == ["_static/doctools.js", "_static/scripts/late.js"]


@pytest.mark.parametrize("is_search", [False, True])
def test_a_page_loads_the_bundle_and_what_is_its_own(is_search):
    page = bundle.rewrite(PAGE, is_search)
    assert (
        page.count('href="../_static/site.css?v=0"') == page.count('defer src="../_static/site.js?v=0"') == 1
    )
    for gone in ("theme.css", "doctools.js", "late.js", "pagename", "bootstrap"):
        assert gone not in page
    for kept in ("favicon.svg", "own.css", "own.js"):
        assert kept in page
    # What ranks stands before the index, with which a query in the address is answered at once.
    order = ["site.js?v=0", "searchtools.js", "search_data.js", "search.js", "searchindex.js"]
    assert (
        re.findall(r'<script defer src="[./]*(?:_static/)?(s[^"]*)"', page) == order[: 5 if is_search else 1]
    )
    assert bundle.rewrite(page, is_search) == page


def test_a_page_is_finished_once():
    page = page_html.finish(PAGE)
    assert 'data-theme="light"' in page and "prefers-color-scheme" in page and "cfasync" not in page
    assert '<div id="pst-primary-sidebar" role="region" aria-label="Book" class="b">' in page
    assert "ag-still" not in page
    assert page.count("<style>s</style>") == page.count("<style>t</style>") == 1
    assert page_html.finish(page) == page


def test_words_come_from_attributes_and_scripts_and_not_from_text():
    page = '<p class="one two" id="three">four</p><script>add("five")</script><script src="six.js"></script>'
    words = bundle.words_in([page], ["seven()"])
    assert {"one", "two", "three", "five", "seven"} <= words
    assert not {"four", "six"} & words


def test_the_contents_for_paper_go_whole_and_alone():
    page = (
        '<main><div id="jb-print-docs-body" class="onlyprint"><h1>T</h1><div><div><h2>Contents</h2></div>'
        "<nav><ul><li>a</li></ul></nav></div></div><div><nav>b</nav></div></main>"
    )
    assert page_html.without_printed_contents(page) == "<main><div><nav>b</nav></div></main>"
    assert page_html.without_printed_contents("<main></main>") == "<main></main>"


def test_code_keeps_its_text_and_the_marks_that_have_a_color():
    code = (
        '<div class="highlight"><pre><span></span><span class="kn">import</span><span class="w"> </span>'
        '<span class="nn">torch</span>\n<span class="n">f</span><span class="p">(</span>'
        '<span class="mi">1</span><span class="p">)</span>\n</pre></div>'
    )
    other = '<p><span class="n">x</span></p><svg><text><span class="p">y</span></text></svg>'
    assert page_html.plain_code(code + other) == (
        '<div class="highlight"><pre><span class="kn">import</span> torch\nf('
        f'<span class="mi">1</span>)\n</pre></div>{other}'
    )


def test_the_browser_shows_what_a_button_does():
    page = page_html.native_tooltips(
        '<b class="a" data-bs-title="Mode"  data-bs-placement="bottom" data-bs-toggle="tooltip">x</b>'
        '<a title="Load" data-bs-placement="left"\n data-bs-toggle="tooltip">y</a>'
        '<a data-bs-title="Twice" title="Once">z</a>'
    )
    assert page == '<b class="a" title="Mode">x</b><a title="Load">y</a><a title="Once">z</a>'


def test_buttons_with_an_icon_alone_get_a_name():
    page = page_html.name_buttons(
        '<button class="sidebar-toggle btn btn-sm" title="Toggle primary sidebar"><i></i></button>'
        '<a href="x"\n class="btn btn-sm">y</a><a class="btn btn-sm" title="One" aria-label="Two">z</a>'
    )
    assert page == (
        '<button class="sidebar-toggle btn btn-sm" title="Pages of the book" aria-label="Pages of the book">'
        "<i></i></button>"
        '<a href="x"\n class="btn btn-sm">y</a><a class="btn btn-sm" title="One" aria-label="Two">z</a>'
    )
    assert page_html.name_buttons(page) == page


def test_the_source_is_saved_and_other_links_open_beside():
    link = '<a href="x" target="_blank"\n   class="btn btn-sm {}">y</a>'
    saved = page_html.save_sources(link.format("btn-download-source-button"))
    assert saved == link.format("btn-download-source-button").replace('target="_blank"', "download")
    other = link.format("btn-source-repository-button")
    assert page_html.save_sources(other) == other


def test_menus_become_buttons_and_the_launch_menu_goes():
    menu = [
        {"type": "link", "url": "a.ipynb", "text": ".ipynb", "label": "download-source-button"},
        {"type": "javascript", "javascript": "window.print()", "text": "pdf", "label": "download-pdf-button"},
    ]
    buttons = [
        {
            "type": "group",
            "label": "launch-buttons",
            "buttons": [{"type": "link", "url": "x", "text": "Colab"}],
        },
        {"type": "group", "label": "download-buttons", "buttons": menu},
        {"type": "link", "url": "y", "label": "source-repository-button", "icon": "fab fa-github"},
    ]
    flat = header.flatten(buttons, "notebook")
    assert [button["type"] for button in flat] == ["link", "javascript", "link"]
    assert flat[0]["tooltip"] == "Download the source of this notebook" and flat[0]["text"] is None
    assert flat[1]["classes"] == "pst-js-only"
    assert flat[2]["icon"] == "fas fa-code-branch"
    assert menu[0]["text"] == ".ipynb", "what the theme holds is not changed"
