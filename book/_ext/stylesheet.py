"""Join stylesheets, without the rules that no page can meet and with the few icons that are used."""

import os
import re

import tinycss2

import fonts

ICONS = "vendor/fontawesome/webfonts/fa-solid-900.ttf"
MATH = "fonts/stix-two-math-subset.woff2"
NOTICE = """\
@charset "utf-8";
/* Joined from pydata-sphinx-theme and sphinx-book-theme (BSD-3-Clause), Bootstrap (MIT), basic.css of Sphinx
   (BSD-2-Clause), Font Awesome Free (icons CC BY 4.0, font SIL OFL 1.1, code MIT),
   STIX Two Math (SIL OFL 1.1) and this book's own style, less the rules and characters that no page uses. */
"""
_NAME = re.compile(r"[.#]((?:[\w-]|\\.)+)")
_URL = re.compile(r"url\(\s*(['\"]?)(?!data:|#|https?:)([^'\")]+)\1\s*\)")
_NESTED = ("media", "supports", "layer", "container")


def _outside_parentheses(selector):
    # What stands in :not(…) or :has(…) may be missing from a page without the rule being idle.
    kept, depth = [], 0
    for char in selector:
        depth += char == "("
        if not depth:
            kept.append(char)
        depth -= char == ")"
    return "".join(kept)


def can_match(selector, words):
    """Say if every class and id that a selector asks for is among the words.

    Args:
        selector: one selector, without commas of its own.
        words: a set of names.

    Returns:
        True or False. Tags, attributes and what stands in parentheses are not looked at.
    """
    names = _NAME.findall(re.sub(r"\[[^]]*\]", "", _outside_parentheses(selector)))
    return all(name.replace("\\", "") in words for name in names)


def _split(prelude):
    # At commas, less those inside parentheses: tinycss2 has made a block of each.
    selectors, current = [], []
    for token in prelude:
        if token.type == "literal" and token.value == ",":
            selectors.append(current)
            current = []
        else:
            current.append(token)
    return [tinycss2.serialize(tokens).strip() for tokens in [*selectors, current]]


def _tight(text):
    return re.sub(r"\s+", " ", text).strip()


def purge(css, words):
    """Take the rules out that no element can meet.

    Args:
        css: a stylesheet.
        words: the names of classes and ids that pages and scripts use.

    Returns:
        The rest, one rule a line, without comments.
    """
    lines = []
    for rule in tinycss2.parse_stylesheet(css, skip_comments=True, skip_whitespace=True):
        if rule.type == "qualified-rule":
            kept = [one for one in _split(rule.prelude) if can_match(one, words)]
            body = _tight(tinycss2.serialize(rule.content))
            if kept and body:
                lines.append(f"{_tight(','.join(kept))}{{{body}}}")
        elif rule.type == "at-rule" and rule.lower_at_keyword in _NESTED and rule.content is not None:
            inner = purge(tinycss2.serialize(rule.content), words)
            if inner:
                lines.append(f"@{rule.at_keyword} {_tight(tinycss2.serialize(rule.prelude))}{{\n{inner}}}")
        elif rule.type == "at-rule" and not _is_icon_font(rule):
            lines.append(_tight(tinycss2.serialize([rule])))
        elif rule.type == "error":
            raise ValueError(f"A stylesheet does not parse: line {rule.source_line}: {rule.message}.")
    return "".join(f"{line}\n" for line in lines)


def _is_icon_font(rule):
    return rule.lower_at_keyword == "font-face" and "Font Awesome" in tinycss2.serialize(rule.content or [])


def read(path, static):
    """Read a stylesheet with what it imports; addresses in it become relative to the folder of the bundle.

    Args:
        path: the stylesheet.
        static: the folder that the bundle will be in.

    Returns:
        Its text.
    """
    text = path.read_text(encoding="utf-8")

    def imported(match):
        return read((path.parent / match[1]).resolve(), static)

    def moved(match):
        where = os.path.relpath((path.parent / match[2]).resolve(), static.resolve())
        return f'url("{where}")'

    text = re.sub(r"@charset [^;]*;", "", text)
    text = _URL.sub(moved, text)
    return re.sub(r"@import ['\"]([^'\"]+)['\"];", imported, text)


def icons_used(css):
    """List the characters that the icon font must have.

    Args:
        css: the purged stylesheet, in which each icon is a character of Unicode's private area.

    Returns:
        A sorted list of code points.
    """
    return sorted({ord(char) for char in css if 0xE000 <= ord(char) <= 0xF8FF})


def slim(paths, words, static, formulas):
    """Make the one stylesheet of the site, with its fonts inside.

    Args:
        paths: the stylesheets in the order they are loaded.
        words: the names of classes and ids that pages and scripts use.
        static: the folder that it will be in.
        formulas: the code points that the formulas of the pages need.

    Returns:
        Its text.
    """
    css = purge("\n".join(read(path, static) for path in paths), words)
    css = css.replace(MATH, fonts.as_url(fonts.cut(static / MATH, formulas, features=["*"])))
    icons = fonts.as_url(fonts.cut(static / ICONS, icons_used(css)))
    face = (
        '@font-face{font-family:"Font Awesome 6 Free";font-style:normal;font-weight:900;'
        f'src:url("{icons}") format("woff2")}}\n'
    )
    return NOTICE + face + css
