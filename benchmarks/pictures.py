"""The same models drawn by three tools, for the page to show: ``pictures.py FOLDER``.

Writes ``cnn-32-torchviz.webp`` and the like into FOLDER, and our own drawings, ``bench_cnn-32.html``,
into the folder above its parent, where the page includes them. Prints one line of JSON a picture.

A picture that is far larger than a page is written twice, side by side: the whole of it, shrunk to the
height of a screen, and its top at full size.
"""

import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import torch

SHOWN = ("cnn-32", "transformer-12")
WIDTH, HEIGHT = 700, 460  # px of what is written: a page's column, most of a screen
WHOLE = 200  # px that the whole picture takes at most, beside its top
TALL = 1_200  # px: a picture that shrinks by less than half to this is shown once
DPI = 96  # at which a browser shows an SVG that is measured in points


def views(draw: Callable[..., bytes], svg: bytes) -> tuple[bytes, list[int]]:
    """A picture as a WebP, and the picture's own size in px.

    ``draw`` draws it again with attributes of Graphviz, as PNG.
    """
    from PIL import Image

    points = re.search(rb'<svg width="([\d.]+)pt" height="([\d.]+)pt"', svg).groups()
    width, height = (round(float(one) * DPI / 72) for one in points)
    once = width <= WIDTH and height <= 2 * TALL
    zoom = min(1, TALL / height) if once else min(WHOLE / width, HEIGHT / height)
    whole = open_(draw(dpi=f"{DPI * min(4 * zoom, 1):.4f}"))  # drawn finer, then shrunk: thin lines stay
    whole = whole.resize((max(round(width * zoom), 1), round(height * zoom)), Image.LANCZOS)
    if once:
        return webp(whole), [width, height]
    room = WIDTH - whole.width - 20
    # viewport is "width, height, zoom, center": in points of the graph, counted from its lower left.
    seen = [min(room, width) * 72 / DPI, min(HEIGHT, height) * 72 / DPI]
    right, above = bounds(svg)
    x = min(max(top_node(svg), seen[0] / 2), max(right - seen[0] / 2, seen[0] / 2))
    viewport = f"{seen[0]:.2f},{seen[1]:.2f},1,{x:.2f},{above - seen[1] / 2:.2f}"
    top = open_(draw(dpi=str(DPI), viewport=viewport))
    both = Image.new("RGB", (whole.width + 20 + top.width, max(whole.height, top.height)), "white")
    both.paste(whole, (0, 0))
    both.paste((120, 120, 120), (whole.width + 9, 0, whole.width + 11, both.height))
    both.paste(top, (whole.width + 20, 0))
    return webp(both), [width, height]


def webp(image) -> bytes:
    file = io.BytesIO()
    image.quantize(32).convert("RGB").save(file, "WEBP", lossless=True, quality=100, method=6)
    return file.getvalue()


def bounds(svg: bytes) -> list[float]:
    """How far the graph reaches to the right and up; a tool may have shrunk it after that."""
    background = re.search(rb'<polygon [^>]*points="\S+ \S+ ([-\d.]+),-([-\d.]+) ', svg)
    return [float(one) for one in background.groups()]


def top_node(svg: bytes) -> float:
    """Where the highest node stands, from the left."""
    nodes = re.findall(rb'class="node">.*?<text [^>]*x="([-\d.]+)" y="([-\d.]+)"', svg, flags=re.DOTALL)
    return float(min(nodes, key=lambda at: float(at[1]))[0])


def shown_size(picture: bytes) -> list[int]:
    from PIL import Image

    return list(Image.open(io.BytesIO(picture)).size)


def open_(png: bytes):
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = None
    return Image.open(io.BytesIO(png)).convert("RGB")


def torchviz(model, inputs) -> tuple[bytes, Callable[..., bytes]]:
    from peers import dot
    from torchviz import make_dot

    source = make_dot(model(*inputs), params=dict(model.named_parameters())).source
    return dot(source), lambda **given: dot(source, "-Tpng", *(f"-G{k}={v}" for k, v in given.items()))


def torchlens(model, inputs, **options) -> tuple[bytes, Callable[..., bytes]]:
    import warnings

    import torchlens
    from peers import saved

    warnings.simplefilter("ignore")
    trace = torchlens.trace(model, list(inputs))

    def again(**given):
        return saved(trace.draw, "png", vis_graph_overrides=given, **options)

    return saved(trace.draw, **options), again


DRAWN = {
    "torchviz": torchviz,
    "torchlens": torchlens,
    "torchlens-folded": lambda *given: torchlens(*given, fold_repeats=True),
}


def main(folder: Path) -> None:
    from measure import facts_of
    from subjects import find

    from inside_autograd import draw

    folder.mkdir(parents=True, exist_ok=True)
    for key in SHOWN:
        model, inputs = find(key).make()
        drawing = draw(model(*inputs), model)
        # Without the image that stands in for the drawing where a notebook is not trusted.
        html = re.sub(r'<img class="ag-still"[^>]*>', "", drawing._repr_html_())
        # Two drawings that scroll, on one page, need names of their own.
        html = html.replace("Drawing, scrolls", f"Drawing of {find(key).name}, scrolls")
        html = f'<div style="margin-bottom:2rem">{html}</div>\n'
        (folder.parents[1] / f"bench_{key}.html").write_text(html, encoding="utf-8")
        closed = drawing.picture.svg(alone=True)
        counted = {name: facts_of(closed.encode())[name] for name in ("boxes", "edges")}
        facts = {"closed": {"size": size_of(closed), **counted}} if drawing.panels else {}
        tell(key, "inside_autograd", size_of(drawing.svg), **facts_of(drawing.svg.encode()), **facts)
        for name, make in DRAWN.items():
            svg, again = make(model, inputs)
            picture, size = views(again, svg)
            (folder / f"{key}-{name}.webp").write_bytes(picture)
            tell(key, name, size, shown=shown_size(picture), **facts_of(svg))


def size_of(svg: str) -> list[int]:
    """Width and height of a drawing of ours, in px."""
    return [int(one) for one in re.search(r'width="(\d+)" height="(\d+)"', svg).groups()]


def tell(key: str, tool: str, size: list[int], **facts) -> None:
    print(json.dumps({"picture": [key, tool], "size": size, **facts}), flush=True)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    torch.set_num_threads(1)
    main(Path(sys.argv[1]))
