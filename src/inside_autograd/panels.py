"""Drawings inside drawings: what a folded box holds opens below, without a script.

On a page each folded box carries a ``<summary>`` that lies over it; the keyboard and screen readers
know what that is. A file has no such thing: there all panels stand below the drawing, open.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape

from .fold import Folded
from .inside import Inside, insides
from .layout import MARGIN, lay_out
from .scene import build
from .svg import Picture, render

SHRINK = 0.85  # how far a wide drawing shrinks before its frame scrolls
EDGE = 9  # px between a panel's border and its drawing

CSS = (
    ".ag-stage{position:relative}"
    ".ag-fold{display:block;margin:0;padding:0;border:0;background:none;box-shadow:none}"
    ".ag-fold>summary{position:absolute;top:0;left:0;padding:0;list-style:none;cursor:pointer;"
    "background:none;border:0;border-radius:5px;z-index:1}"
    ".ag-fold>summary::-webkit-details-marker{display:none}"
    ".ag-fold>summary::before{display:none}"
    '.ag-fold>summary::after{content:"+";position:absolute;top:-9px;right:-9px;left:auto;bottom:auto;width:18px;'
    "height:18px;margin:0;padding:0;border-radius:9px;font:700 14px/18px sans-serif;text-align:center;"
    "float:none;transform:none;background:var(--ag-gf);color:var(--ag-gt)}"
    '.ag-fold[open]>summary::after{content:"\\2212"}'
    ".ag-fold>summary:hover,.ag-fold>summary:focus-visible,.ag-fold[open]>summary"
    "{outline:2px solid var(--ag-gf);outline-offset:1px}"
    f".ag-panel{{box-sizing:border-box;margin:10px 0 2px;padding:{EDGE - 1}px;border:1px solid var(--ag-os);"
    "border-radius:6px}"
    "@media print{.ag-fold>summary{display:none}}"
)


@dataclass(frozen=True, slots=True)
class Panel:
    """What the box ``key`` of a drawing holds: a drawing of its own, perhaps with panels again."""

    key: str
    name: str
    picture: Picture
    panels: tuple["Panel", ...] = ()


def draw_folded(folded: Folded, saved: bool = False, title: str | None = None, room: int = 0) -> Picture:
    """Lay out and render; parameters as of ``scene.build`` and ``svg.render``."""
    scene = build(folded, saved)
    layout = lay_out(scene.items, [wire.link for wire in scene.wires], scene.layers)
    return render(scene, layout, title, room=room)


def panels(folded: Folded, saved: bool = False) -> tuple[Panel, ...]:
    """A panel for each folded box that has an inside to show."""
    return tuple(_panel(folded, inside, saved) for inside in insides(folded))


def _panel(outer: Folded, inside: Inside, saved: bool) -> Panel:
    box = outer.boxes[inside.box]
    picture = draw_folded(inside.folded, saved, inside.folded.part)
    inner = tuple(_panel(inside.folded, one, saved) for one in inside.insides)
    return Panel(str(min(box.members)), box.lines[0], picture, inner)


def size(picture: Picture) -> str:
    """How wide a drawing stands on a page, as a style."""
    width = picture.width
    return f"width:100%;min-width:{round(width * SHRINK)}px;max-width:{width}px;height:auto;display:block"


def stage(picture: Picture, inner: Sequence[Panel], svg: str) -> str:
    """A drawing for a page, ``svg``, with the panels of its boxes below it."""
    return (
        f'<div class="ag-stage ag" data-lm-suppress-shortcuts="true" style="--ag-r:{_width(picture)}">{svg}'
        f"{''.join(_fold(picture, panel) for panel in inner)}</div>"
    )


def _width(picture: Picture, more: int = 0) -> str:
    extra = f" - {more}px" if more else ""
    return f"max({round(picture.width * SHRINK)}px,min(100%{extra},{picture.width}px))"


def _fold(outer: Picture, panel: Panel) -> str:
    x, y, width, height = outer.boxes[panel.key]
    left, top, wide = (f"calc(var(--ag-r)*{value / outer.width:.4f})" for value in (x, y, width))
    place = f"left:{left};margin:{top} 0 0;width:{wide};aspect-ratio:{width}/{height}"
    label = escape(f"{panel.name}: show what is inside")
    picture = panel.picture
    title, text = escape(picture.title), escape(picture.description, quote=False)
    svg = (
        f'<svg class="ag" style="{size(picture)}" width="{picture.width}" height="{picture.height}" '
        f'viewBox="0 0 {picture.width} {picture.height}" role="img" aria-label="{title}">'
        f"<title>{escape(picture.title, quote=False)}</title><desc>{text}</desc>{picture.body}</svg>"
    )
    return (
        f'<details class="ag-fold"><summary aria-label="{label}" title="show what is inside" style="{place}">'
        f'</summary><div class="ag-panel" style="width:calc({_width(picture, 2 * EDGE)} + {2 * EDGE}px)">'
        f"{stage(picture, panel.panels, svg)}</div></details>"
    )


def with_panels(picture: Picture, inner: Sequence[Panel]) -> Picture:
    """One picture of a drawing and all its panels, open, below each other."""
    parts, words = [picture.body], [picture.description]
    width, y = picture.width, picture.height
    for panel in _all(inner):
        one = panel.picture
        frame = f'<rect class="ag-v" width="{one.width}" height="{one.height}" rx="6"/>'
        parts.append(f'<g transform="translate({MARGIN} {y})">{frame}{one.body}</g>')
        words.append(f"{one.title}: {one.description}")
        width = max(width, one.width + 2 * MARGIN)
        y += one.height + MARGIN
    return replace(picture, body="".join(parts), width=width, height=y, description=" ".join(words))


def _all(inner: Sequence[Panel]) -> Iterator[Panel]:
    for panel in inner:
        yield panel
        yield from _all(panel.panels)
