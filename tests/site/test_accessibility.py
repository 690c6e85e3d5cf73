"""No page keeps anybody out: axe-core finds nothing, and the keyboard reaches everything."""

import itertools

import pytest
from axe_playwright_python.sync_playwright import Axe
from test_smoke import PAGES

ALL = [*PAGES, "search", "404"]
every_page = pytest.mark.parametrize("name", ALL)
AXE = Axe()
# Rules of color, which depend on the mode. They look at one element of each look (below); all other rules
# look at the whole page.
OF_COLOR = ("color-contrast", "link-in-text-block")
# What axe-core finds in the theme's own parts and we cannot mend: rule, and a part of the element's HTML.
KNOWN: tuple[tuple[str, str], ...] = ()

# A page has thousands of words and axe-core takes milliseconds for each. Words that share their color, size,
# weight and every color behind them also share the verdict, so one of each kind is marked and looked at.
MARK = """() => {
    const seen = new Set(), looks = new Map()
    const behind = e => {
        if (!e) return ''
        if (!looks.has(e)) {
            const s = getComputedStyle(e)
            const own = s.backgroundColor === 'rgba(0, 0, 0, 0)' && s.backgroundImage === 'none'
                && s.opacity === '1' ? '' : [s.backgroundColor, s.backgroundImage, s.opacity].join()
            looks.set(e, own + (own ? '|' : '') + behind(e.parentElement))
        }
        return looks.get(e)
    }
    for (const e of document.querySelectorAll('body *')) {
        if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) || !e.checkVisibility()) continue
        const s = getComputedStyle(e)
        const around = getComputedStyle(e.parentElement)
        const link = e.localName === 'a' ? around.color + s.textDecorationLine : ''
        const look = [s.color, s.fill, s.fontSize, s.fontWeight, s.textShadow, link, behind(e)].join(';')
        if (seen.has(look)) continue
        seen.add(look)
        e.setAttribute('data-look', '')
    }
    return seen.size
}"""


# The colors of code matter to the rules of color alone; to all others a block of code is one text.
FLATTEN = """() => {
    for (const e of document.querySelectorAll('.highlight pre'))
        if (!e.querySelector('[data-look]')) e.textContent = e.textContent
}"""


def findings(response):
    """What axe-core found, one line an element, without what is known."""
    return [
        f"{rule['id']} ({rule['impact']}): {node['html'][:200]}"
        for rule in response["violations"]
        for node in rule["nodes"]
        if not any(rule["id"] == known and part in node["html"] for known, part in KNOWN)
    ]


def look_for_weak_colors(page):
    """The findings of the rules of color in the page's present mode."""
    assert page.evaluate(MARK) > 2
    page.evaluate(FLATTEN)
    options = {"runOnly": {"type": "rule", "values": list(OF_COLOR)}, "resultTypes": ["violations"]}
    return findings(AXE.run(page, context={"include": [["[data-look]"]]}, options=options).response)


@every_page
def test_axe_finds_nothing(open_page, name):
    page = open_page(f"{name}.html")
    found = look_for_weak_colors(page)
    off = {rule: {"enabled": False} for rule in OF_COLOR}
    found += findings(AXE.run(page, options={"rules": off, "resultTypes": ["violations"]}).response)
    assert not found, "\n".join(found)


@every_page
def test_axe_finds_no_weak_color_in_the_dark(open_page, name):
    page = open_page(f"{name}.html", color_scheme="dark")
    if name != "404":  # which follows the system without a script
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    found = look_for_weak_colors(page)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_axe_would_find_a_weak_color_and_a_missing_alternative(open_page, mode):
    page = open_page(f"{PAGES[0]}.html", color_scheme=mode)
    page.evaluate(
        "document.querySelector('article p').insertAdjacentHTML('beforeend',"
        ' \'<b style="color: #777; background: #888">weak</b><img src="data:,">\')'
    )
    assert any("color-contrast" in line for line in look_for_weak_colors(page))
    response = AXE.run(page, options={"runOnly": {"type": "rule", "values": ["image-alt"]}}).response
    assert any("image-alt" in line for line in findings(response))


@every_page
def test_headings_go_down_one_level_at_a_time(open_page, name):
    page = open_page(f"{name}.html")
    levels = page.locator("main :is(h1, h2, h3, h4, h5, h6)").evaluate_all(
        "all => all.map(h => +h.localName[1])"
    )
    assert levels[0] == 1
    jumps = [pair for pair in itertools.pairwise(levels) if pair[1] > pair[0] + 1]
    assert not jumps
    assert page.evaluate("document.documentElement.lang") == "en"
    assert page.locator("main").count() == 1


def test_the_keyboard_comes_to_the_text_at_once_and_then_everywhere(open_page):
    page = open_page(f"{PAGES[2]}.html")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent.trim()") == "Skip to main content"
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#main-content"
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        seen = page.evaluate(
            """() => {
                const e = document.activeElement, s = getComputedStyle(e)
                if (e === document.body) return null
                const marked = s.outlineStyle !== 'none' || s.boxShadow !== 'none'
                return [e.localName + '.' + e.className, marked]
            }"""
        )
        if seen is None:
            break
        assert seen[1], f"{seen[0]} does not show that it has the focus"
        reached.add(seen[0].split(".")[0])
    assert {"a", "button"} <= reached
