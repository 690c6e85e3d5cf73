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


def each_style_once(text):
    """Keep the first of several equal style sheets: every drawing of a notebook carries its own."""
    seen = set()

    def first(match):
        if match[0] in seen:
            return ""
        seen.add(match[0])
        return match[0]

    return _STYLE.sub(first, text)


def finish(text):
    """Do all of it. A page that went through once stays as it is."""
    for change in (set_mode_early, name_sidebar, without_advertisements, without_stills, each_style_once):
        text = change(text)
    return text
