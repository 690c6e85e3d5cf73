"""What is done to the HTML of a page after the theme wrote it. Each function takes its text and gives it."""

import re

# Until the theme's script runs, the page would stand in no mode at all and then flash.
_MODE = re.compile(r'<script data-cfasync="false">.*?</script>', re.DOTALL)
_SET_MODE = (
    "<script>(d => { let m = null; try { m = localStorage.getItem('mode') } catch {}"
    " d.mode = m || 'auto';"
    " d.theme = d.mode !== 'auto' ? d.mode :"
    " matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'"
    " })(document.documentElement.dataset)</script>"
)
_STILL = re.compile(r'<img class="ag-still"[^>]*>')
_STYLE = re.compile(r"<style>.*?</style>", re.DOTALL)
_CODE = re.compile(r'<div class="highlight"><pre>.*?</pre>', re.DOTALL)
_UNCOLORED = re.compile(r'<span class="(?:n|p|w|nn)">([^<]*)</span>|<span></span>')
_BUTTON = re.compile(r'<(?:a|button)\b[^>]*class="[^"]*\bbtn btn-sm\b[^>]*>')
_PLAIN = {"Toggle primary sidebar": "Pages of the book", "Toggle secondary sidebar": "On this page"}
_ADVERTISEMENT = re.compile(
    r'<div class="sidebar-primary-item">\s*<div id="ethical-ad-placement"[^>]*>\s*</div>\s*</div>'
)


def set_mode_early(text):
    """Choose light or dark before anything is drawn: the stored choice, else the system's.

    No stylesheet knows the mode "auto". Without scripts the page is light.
    """
    text = text.replace(' data-theme="auto"', ' data-theme="light"', 1)
    return _MODE.sub(_SET_MODE, text, count=1)


def name_sidebar(text):
    """Make the sidebar a landmark: its title and search button stand outside its navigation."""
    return text.replace(
        '<div id="pst-primary-sidebar" class=',
        '<div id="pst-primary-sidebar" role="region" aria-label="Book" class=',
        1,
    )


def without_advertisements(text):
    """Take out the empty place for another host's advertisements."""
    return _ADVERTISEMENT.sub("", text)


def without_stills(text):
    """Take out the pictures that stand in for a drawing where inline SVG is stripped: a site shows the SVG.

    They are encoded and so hardly compress: up to 18 kB of a page.
    """
    return _STILL.sub("", text)


def without_printed_contents(text):
    """Take out the second list of contents, which the theme has for paper: book.css prints none."""
    start = text.find('<div id="jb-print-docs-body"')
    if start < 0:
        return text
    depth = 0
    for tag in re.finditer(r"<(/?)div\b[^>]*>", text[start:]):
        depth += -1 if tag[1] else 1
        if not depth:
            return text[:start] + text[start + tag.end() :]
    return text


def plain_code(text):
    """Take the marks off names, brackets and spaces in code: they have the color of the block itself.

    They are half of all marks, and up to a sixth of a page as sent.
    """
    return _CODE.sub(lambda block: _UNCOLORED.sub(r"\1", block[0]), text)


def native_tooltips(text):
    """Let the browser show what a button does: the theme would have a script of Bootstrap's show it."""
    text = re.sub(r'\bdata-bs-title="[^"]*"\s*(?=[^>]*\btitle=")', "", text)
    text = text.replace(" data-bs-title=", " title=")
    return re.sub(r'\s+data-bs-(?:placement|toggle)="[^"]*"', "", text)


def name_buttons(text):
    """Name the buttons that show an icon alone: a screen reader would read the icon's own character."""

    def named(match):
        tag = match[0]
        for old, new in _PLAIN.items():
            tag = tag.replace(f'title="{old}"', f'title="{new}"')
        title = re.search(r'\btitle="[^"]*"', tag)
        if not title or "aria-label" in tag:
            return tag
        return f"{tag[:-1]} aria-{title[0].replace('title', 'label', 1)}>"

    return _BUTTON.sub(named, text)


def save_sources(text):
    """Save the source of a page at the press of its button: a browser would show a notebook's raw text."""
    return re.sub(r'target="_blank"(?=\s+class="btn btn-sm btn-download-source-button)', "download", text)


def each_style_once(text):
    """Keep the first of several equal style sheets: every drawing of a notebook carries its own."""
    seen = set()

    def first(match):
        if match[0] in seen:
            return ""
        seen.add(match[0])
        return match[0]

    return _STYLE.sub(first, text)


CHANGES = (
    *(set_mode_early, name_sidebar, without_advertisements, without_printed_contents, plain_code),
    native_tooltips,
    *(name_buttons, save_sources, without_stills, each_style_once),
)


def finish(text):
    """Do all of it. A page that went through once stays as it is."""
    for change in CHANGES:
        text = change(text)
    return text
