"""Cut fonts down to the characters that the pages show, so that they fit into the stylesheet."""

import base64
import html
import io
import re

from fontTools import subset
from fontTools.ttLib import TTFont

_FORMULA = re.compile(r"<math\b.*?</math>", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
# The first letters of the alphabets that a browser may take for a single letter in a formula.
_LATIN = {"A": (0x1D400, 0x1D434), "a": (0x1D41A, 0x1D44E)}
_GREEK = {"Α": (0x1D6A8, 0x1D6E2), "α": (0x1D6C2, 0x1D6FC)}
# What a browser draws that is no character of the page: roots, and the minus of a hyphen in a formula.
_DRAWN = {"<msqrt": 0x221A, "<mroot": 0x221A, ">-</mo>": 0x2212, ">'</mo>": 0x2032}
_ELSEWHERE = {"h": 0x210E, "i": 0x1D6A4, "j": 0x1D6A5, "∂": 0x1D715}


def formula_codes(pages):
    """List the characters that the formulas of pages need.

    Args:
        pages: texts of HTML pages.

    Returns:
        A set of code points: what stands in the formulas, and each letter in bold and in italics too,
        since a browser sets a single letter as a variable.
    """
    shown, drawn = set(), set()
    for page in pages:
        for match in _FORMULA.finditer(page):
            shown.update(html.unescape(_TAG.sub("", match[0])))
            drawn.update(code for mark, code in _DRAWN.items() if mark in match[0])
    codes = {ord(char) for char in shown if not char.isspace()} | {0x20} | drawn
    for alphabet, size in ((_LATIN, 26), (_GREEK, 25)):
        for first, styles in alphabet.items():
            for offset in range(size):
                if chr(ord(first) + offset) in shown:
                    codes.update(style + offset for style in styles)
    codes.update(code for char, code in _ELSEWHERE.items() if char in shown)
    return codes


def cut(path, codes, features=()):
    """Cut a font down.

    Args:
        path: the whole font.
        codes: the code points to keep; those that the font lacks are passed over.
        features: the OpenType features to keep.

    Returns:
        A WOFF2 file as bytes, the same for the same input.
    """
    # The date of the font stays that of the original: same characters, same bytes.
    font = TTFont(path, recalcTimestamp=False)
    options = subset.Options(hinting=False, layout_features=list(features), name_IDs=[0, 13, 14])
    options.notdef_outline = True
    cutter = subset.Subsetter(options)
    cutter.populate(unicodes=codes)
    cutter.subset(font)
    font.flavor = "woff2"
    target = io.BytesIO()
    font.save(target)
    return target.getvalue()


def as_url(data):
    """Write a font as an address that holds it: a page on a disk may load none from another folder."""
    return f"data:font/woff2;base64,{base64.b64encode(data).decode()}"
