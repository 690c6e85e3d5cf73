"""Colors, fonts and text widths of the drawings, for every viewer, light and dark."""

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache

MONO = "ui-monospace,Menlo,Consolas,monospace"
SANS = "system-ui,sans-serif"

# name: (light, dark). Text on its fill has a contrast of 4.5 at least, outlines and arrows 3.
COLORS = {
    "t": ("#1b2330", "#e4e8ef"),  # text
    "m": ("#566070", "#a7b1bf"),  # muted text
    "l": ("#6b7686", "#8d98a8"),  # arrows
    "b": ("#fff", "#14181f"),  # behind a drawing that stands alone
    "of": ("#f2f4f8", "#252b35"),  # operation: fill, outline
    "os": ("#808b9b", "#768295"),
    "af": ("#e2f3e6", "#16352a"),  # leaf
    "as": ("#2e7d46", "#5fb780"),
    "cf": ("#efe9fd", "#2e2649"),  # custom Function
    "cs": ("#6c48c0", "#ab8ff2"),
    "rf": ("#fdf1d8", "#392d14"),  # recorded backward
    "rs": ("#94610a", "#d8a545"),
    "vf": ("#def1f6", "#12343e"),  # in-place change of a view
    "vs": ("#17718a", "#58b4cc"),
    "kf": ("#e6ebfc", "#222b50"),  # checkpoint
    "ks": ("#4056b5", "#93a5f2"),
    "ef": ("#fde6e5", "#421d1e"),  # error, freed
    "es": ("#ad241c", "#f29088"),
    "gf": ("#27466f", "#a9c2ec"),  # output tag: fill, text
    "gt": ("#fff", "#10192a"),
}

_DARK_PAGES = (  # the site, JupyterLab, Colab, VS Code
    'html[data-theme="dark"]',
    'body[data-jp-theme-light="false"]',
    'html[theme="dark"]',
    "body.vscode-dark",
    "body.vscode-high-contrast:not(.vscode-high-contrast-light)",
)
_LIGHT_PAGE = (
    ':root:not([data-theme="light"],[theme="light"]) '
    'body:not([data-jp-theme-light="true"],.vscode-light,.vscode-high-contrast-light)'
)

# Boxes hand their colors down to their outlines; texts and lines have their own.
_RULES = """
.ag{stroke-width:1.2}
.ag text{font:12px MONO;fill:@t;stroke:none;text-anchor:middle}
.ag .ag-s{font-size:10px;fill:@m}
.ag .ag-i{font-size:9.5px;fill:@m}
.ag .ag-bg{fill:@b}
.ag .ag-w{font-size:11px;font-family:SANS;fill:@m;text-anchor:start}
.ag .ag-h{font-size:13px;font-weight:600;fill:@t}
.ag .ag-b{font-weight:700}
.ag .ag-x{fill:@es}
.ag .ag-p{text-anchor:start}
.ag .ag-e,.ag .ag-l{fill:none;stroke:@l}
.ag .ag-e:hover{stroke:@t;stroke-width:2}
.ag .ag-d{fill:none;stroke:@as;stroke-dasharray:1 3;stroke-linecap:round;stroke-width:1.4}
.ag .ag-n{fill:@of;stroke:@os}
.ag .ag-leaf{fill:@af;stroke:@as}
.ag .ag-custom{fill:@cf;stroke:@cs}
.ag .ag-recorded{fill:@rf;stroke:@rs}
.ag .ag-copy_slices{fill:@vf;stroke:@vs}
.ag .ag-hook{fill:none;stroke:@m;stroke-dasharray:5 3}
.ag .ag-hook .ag-l{stroke-dasharray:none}
.ag .ag-checkpoint{fill:@kf;stroke:@ks}
.ag .ag-error{fill:@ef;stroke:@es;stroke-width:1.8}
.ag .ag-cut{fill:none;stroke:@es;stroke-dasharray:1.5 3;stroke-width:1.6}
.ag .ag-root{fill:@gf;stroke:none}
.ag .ag-root text{fill:@gt}
.ag .ag-q{fill:none}
.ag .ag-v{fill:none;stroke:@m;stroke-dasharray:none}
.ag .ag-u{fill:none;stroke-dasharray:3 2}
"""


def page_css() -> str:
    """The style sheet of a drawing in a page, which follows the page's light or dark mode.

    The page goes first: the site, JupyterLab, Colab, or VS Code; one that has no mode follows the
    system. Each drawing brings the whole sheet, so that two on a page never change each other.
    """
    rules = _colored(_RULES, lambda name: f"var(--ag-{name},{COLORS[name][0]})").replace("\n", "")
    dark = _variables(1)
    pages = ",".join(f"{page} .ag" for page in _DARK_PAGES)
    return (
        f".ag{{{_variables(0)}}}"
        f"@media screen and (prefers-color-scheme:dark){{{_LIGHT_PAGE} .ag{{{dark}}}}}"
        f"@media screen{{{pages}{{{dark}}}}}{rules}"
    )


def file_css(body: str) -> str:
    """The style sheet of a drawing that stands alone, which follows the system's setting.

    It holds rules for the classes in ``body`` and no others, and no variables: programs such as
    Inkscape do not know them.
    """
    classes = set(" ".join(set(re.findall(r'class="([^"]*)"', body))).split())
    rules = []
    for line in _RULES.strip().splitlines():
        selectors, declarations = line[:-1].split("{")
        found = [part for part in selectors.split(",") if set(re.findall(r"\.(ag-\w+)", part)) <= classes]
        if found and ":hover" not in selectors:
            rules.append((",".join(found), declarations))
    light = "".join(f"{selectors}{{{declarations}}}" for selectors, declarations in rules)
    dark = ""
    for selectors, declarations in rules:
        # "none" too: it must still win over the dark color of a rule before it.
        if colors := ";".join(re.findall(r"\b(?:fill|stroke):[^;]+", declarations)):
            dark += f"{selectors}{{{colors}}}"
    return (
        _colored(light, lambda name: COLORS[name][0])
        + f"@media screen and (prefers-color-scheme:dark){{{_colored(dark, lambda name: COLORS[name][1])}}}"
    )


def _colored(rules: str, color: Callable[[str], str]) -> str:
    rules = rules.replace("MONO", MONO).replace("SANS", SANS)
    return re.sub(r"@(\w+)", lambda found: color(found[1]), rules)


def _variables(mode: int) -> str:
    return ";".join(f"--ag-{name}:{colors[mode]}" for name, colors in COLORS.items())


@lru_cache(maxsize=4096)
def text_width(text: str, size: float = 12) -> float:
    """Width in px that ``text`` cannot exceed, in any of the monospaced fonts and their stand-ins."""
    if text.isascii():
        return len(text) * size * 0.605
    cells = 0.0
    for character in text:
        if unicodedata.combining(character):
            continue
        wide = ord(character) > 0x24F and unicodedata.category(character) not in ("Pd", "Po", "Sm", "Zs")
        cells += 1.9 if wide else 1
    return cells * size * 0.605


def shorten(text: str, limit: int = 40) -> str:
    """``text`` with its middle left out where it is longer than ``limit`` characters."""
    if len(text) <= limit:
        return text
    tail = (limit - 1) * 2 // 3
    return f"{text[: limit - 1 - tail]}…{text[-tail:]}"
