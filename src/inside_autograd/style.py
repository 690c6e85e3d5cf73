"""Colors, fonts and text widths of the drawings, for every viewer, light and dark."""

import unicodedata

MONO = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace"
SANS = "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif"

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

_RULES = """
.ag text{font:12px MONO;fill:@t;stroke:none;text-anchor:middle}
.ag .ag-s{font-size:10px;fill:@m}
.ag .ag-i{font-size:9.5px;fill:@m}
.ag .ag-bg{fill:@b;stroke:none}
.ag .ag-w{font-size:11px;font-family:SANS;fill:@m;text-anchor:start}
.ag .ag-h{font-size:13px;font-weight:600;fill:@t}
.ag .ag-b{font-weight:700}
.ag .ag-x{fill:@es}
.ag .ag-p{text-anchor:start}
.ag path,.ag rect{fill:none;stroke:@l;stroke-width:1.2}
.ag .ag-e:hover{stroke:@t;stroke-width:2}
.ag .ag-d{stroke:@as;stroke-dasharray:1 3;stroke-linecap:round;stroke-width:1.4}
.ag .ag-n>rect,.ag .ag-n>path{fill:@of;stroke:@os}
.ag .ag-n>.ag-q{fill:none}
.ag .ag-n>.ag-u{fill:none;stroke-dasharray:3 2}
.ag .ag-n>.ag-l{fill:none;stroke:@l}
.ag .ag-accumulate>rect,.ag .ag-accumulate>path{fill:@af;stroke:@as}
.ag .ag-custom>rect,.ag .ag-custom>path{fill:@cf;stroke:@cs}
.ag .ag-recorded>rect,.ag .ag-recorded>path{fill:@rf;stroke:@rs}
.ag .ag-copy_slices>rect,.ag .ag-copy_slices>path{fill:@vf;stroke:@vs}
.ag .ag-hook>rect{fill:none;stroke:@m;stroke-dasharray:5 3}
.ag .ag-checkpoint>rect,.ag .ag-checkpoint>path{fill:@kf;stroke:@ks}
.ag .ag-error>rect,.ag .ag-error>path{fill:@ef;stroke:@es;stroke-width:1.8}
.ag .ag-cut>rect{fill:none;stroke:@es;stroke-dasharray:1.5 3;stroke-width:1.6}
.ag .ag-root>rect{fill:@gf;stroke:none}
.ag .ag-root>text{fill:@gt}
.ag .ag-n>.ag-v{fill:none;stroke:@m;stroke-dasharray:none}
.ag .ag-n>.ag-v.ag-u{stroke-dasharray:3 2}
"""


def css(*, alone: bool) -> str:
    """The style sheet of one drawing.

    Parameters
    ----------
    alone
        For a file of its own, which can only follow the system's setting. Otherwise the page's own
        light or dark mode goes first: the site's, JupyterLab's, Colab's, or VS Code's.
    """
    light = f".ag{{{_variables(0)}}}"
    dark = _variables(1)
    rules = _RULES.replace("MONO", MONO).replace("SANS", SANS)
    for name in sorted(COLORS, key=len, reverse=True):
        for end in ";}":
            rules = rules.replace(f"@{name}{end}", f"var(--ag-{name},{COLORS[name][0]}){end}")
    system = "@media screen and (prefers-color-scheme:dark){%s{%s}}"
    if alone:
        return light + system % (".ag", dark) + rules.replace("\n", "")
    pages = ",".join(f"{page} .ag" for page in _DARK_PAGES)
    return (
        light
        + system % (f"{_LIGHT_PAGE} .ag", dark)
        + f"@media screen{{{pages}{{{dark}}}}}"
        + rules.replace("\n", "")
    )


def _variables(mode: int) -> str:
    return ";".join(f"--ag-{name}:{colors[mode]}" for name, colors in COLORS.items())


def text_width(text: str, size: float = 12) -> float:
    """Width in px that ``text`` cannot exceed, in any of the monospaced fonts and their stand-ins."""
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
